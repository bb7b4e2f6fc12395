//! Pages for people: login, consent, the code of a device, messages. Plain HTML without scripts.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{SHA256, digest};

use crate::http::Response;

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;margin:0;background:#f3f4f6;color:#1f2937}\
main{max-width:24rem;margin:4rem auto;padding:2rem;background:#fff;border:1px solid #d1d5db;border-radius:.5rem}\
h1{font-size:1.4rem;margin:0 0 1rem}label{display:block;margin-top:1rem;font-weight:600}\
input[type=text],input[type=password]{box-sizing:border-box;width:100%;padding:.6rem;border:1px solid #6b7280;\
border-radius:.25rem;font:inherit}button{margin:1.5rem .5rem 0 0;padding:.6rem 1.2rem;border:1px solid #1d4ed8;\
border-radius:.25rem;background:#1d4ed8;color:#fff;font:inherit;cursor:pointer}\
button.second{background:#fff;color:#1d4ed8}:focus-visible{outline:3px solid #f59e0b;outline-offset:2px}\
.error{padding:.6rem;border-left:4px solid #b91c1c;background:#fef2f2;color:#7f1d1d}";

/// Text in HTML, also in a quoted attribute.
pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;").replace('\'', "&#39;")
}

fn page(status: u16, title: &str, content: &str) -> Response {
    let html = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><style>{STYLE}</style></head>\
         <body><main><h1>{title}</h1>\n{content}\n</main></body></html>\n"
    );
    let style = STANDARD.encode(digest(&SHA256, STYLE.as_bytes()));
    // No `form-action`: browsers apply it to the redirect after a form too, and that leads to the client.
    let policy = format!("default-src 'none'; style-src 'sha256-{style}'; frame-ancestors 'none'; base-uri 'none'");
    Response::of_type(status, "text/html; charset=utf-8", html)
        .with("Content-Security-Policy", policy)
        .with("X-Frame-Options", "DENY")
        .with("X-Content-Type-Options", "nosniff")
        .with("Referrer-Policy", "no-referrer")
        .with("Cache-Control", "no-store")
}

fn error_line(text: &str) -> String {
    format!("<p class=\"error\" role=\"alert\">{}</p>", escaped(text))
}

/// The login form; it carries the request that waits for it.
pub(super) fn login(state: &str, failed: bool) -> Response {
    let error = if failed { error_line("Login failed. Check the user name and the password.") } else { String::new() };
    let content = format!(
        "{error}<form method=\"post\" action=\"/commonauth\">\
         <input type=\"hidden\" name=\"tocommonauth\" value=\"true\">\
         <input type=\"hidden\" name=\"sessionDataKey\" value=\"{}\">\
         <label for=\"username\">User name</label>\
         <input type=\"text\" id=\"username\" name=\"username\" autocomplete=\"username\" autocapitalize=\"none\" required autofocus>\
         <label for=\"password\">Password</label>\
         <input type=\"password\" id=\"password\" name=\"password\" autocomplete=\"current-password\" required>\
         <button type=\"submit\">Log in</button></form>",
        escaped(state)
    );
    page(200, "Log in", &content)
}

/// What a client asks for, and the decision.
pub(super) fn consent(state: &str, client: &str, user: &str, scopes: &[&str], may_remember: bool) -> Response {
    let items: String = scopes.iter().map(|scope| format!("<li>{}</li>", escaped(scope))).collect();
    let always = match may_remember {
        true => "<button class=\"second\" name=\"consent\" value=\"approveAlways\">Always allow</button>",
        false => "",
    };
    let content = format!(
        "<p><strong>{}</strong> asks for access in the name of <strong>{}</strong>:</p><ul>{items}</ul>\
         <form method=\"post\" action=\"/oauth2/authorize\">\
         <input type=\"hidden\" name=\"sessionDataKeyConsent\" value=\"{}\">\
         <input type=\"hidden\" name=\"hasApprovedAlways\" value=\"false\">\
         <button name=\"consent\" value=\"approve\">Allow</button>{always}\
         <button class=\"second\" name=\"consent\" value=\"deny\">Deny</button></form>",
        escaped(client),
        escaped(user),
        escaped(state)
    );
    page(200, "Allow access", &content)
}

/// The form for the code of a device.
pub(super) fn device(user_code: &str, failed: bool) -> Response {
    let error = if failed { error_line("The code is wrong or has expired.") } else { String::new() };
    let content = format!(
        "{error}<p>Type the code that your device shows. Continue only if you started this on a device of yours.</p>\
         <form method=\"post\" action=\"{}\"><label for=\"user_code\">Code</label>\
         <input type=\"text\" id=\"user_code\" name=\"user_code\" value=\"{}\" autocomplete=\"off\" spellcheck=\"false\" \
         required autofocus><button type=\"submit\">Continue</button></form>",
        super::device::PAGE,
        escaped(user_code)
    );
    page(200, "Connect a device", &content)
}

/// The question before a logout that no client vouches for.
pub(super) fn confirm_logout() -> Response {
    let content = "<p>Do you want to log out?</p><form method=\"post\" action=\"/oidc/logout\">\
                   <input type=\"hidden\" name=\"consent\" value=\"approve\"><button type=\"submit\">Log out</button></form>";
    page(200, "Log out", content)
}

/// A message.
pub(super) fn message(status: u16, title: &str, text: &str) -> Response {
    let content = if status >= 400 { error_line(text) } else { format!("<p role=\"status\">{}</p>", escaped(text)) };
    page(status, title, &content)
}
