//! `<authentication><oauth>`: how an endpoint requests its tokens.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use penstock_engine::endpoint::{TokenRequest, TokenSource};
use penstock_engine::{Exchange, Fault};
use penstock_message::push_field;

use crate::expression::Text;
use crate::{Compiler, Element};

/// A token server that says nothing within this time will say nothing.
const TIMEOUT_USUAL: Duration = Duration::from_secs(30);

/// What is computed for each request for a token.
struct Grant {
    url: Text,
    /// Credentials of the client, and whether they go into the header or into the form.
    client: Option<(Text, Text)>,
    in_header: bool,
    /// The form besides them.
    form: Vec<(Arc<str>, Text)>,
    headers: Vec<(Arc<str>, Text)>,
    timeout: Duration,
}

/// Compiles `<oauth>`. `None` after an error was reported.
pub(super) fn compile(cx: &mut Compiler<'_>, el: &Element<'_>) -> Option<TokenSource> {
    let mut grants = el.children();
    let Some(kind) = grants.next() else {
        cx.error(el.place(), "<oauth> needs <clientCredentials>, <passwordCredentials> or <authorizationCode>");
        return None;
    };
    let (grant_type, needed): (&str, &[(&'static str, &str)]) = match kind.name() {
        "clientCredentials" => ("client_credentials", &[]),
        "passwordCredentials" => ("password", &[("username", "username"), ("password", "password")]),
        "authorizationCode" => ("refresh_token", &[("refreshToken", "refresh_token")]),
        other => {
            kind.accept_all();
            cx.error(kind.place(), format!("<oauth> does not know the grant <{other}>"));
            return None;
        }
    };
    let mut form = vec![(Arc::from("grant_type"), Text::Constant(grant_type.into()))];
    for (element, parameter) in needed {
        form.push((Arc::from(*parameter), required(cx, &kind, element)?));
    }
    let (id, secret) = (text(cx, &kind, "clientId"), text(cx, &kind, "clientSecret"));
    // A password may be granted to clients that have no secret of their own.
    let client = id.zip(secret);
    if client.is_none() && grant_type != "password" {
        cx.error(kind.place(), format!("<{}> needs <clientId> and <clientSecret>", kind.name()));
        return None;
    }
    if let Some(scope) = text(cx, &kind, "scope") {
        form.push((Arc::from("scope"), scope));
    }
    pairs(cx, &kind, "requestParameters", "parameter", &mut form);
    let mut headers = Vec::new();
    pairs(cx, &kind, "customHeaders", "header", &mut headers);
    let in_header = !kind.child_text("authMode").is_some_and(|mode| mode.eq_ignore_ascii_case("payload"));
    let timeout = ["socketTimeout", "connectionRequestTimeout", "connectionTimeout"]
        .iter()
        .filter_map(|name| kind.child_text(name)?.parse::<u64>().ok().filter(|milliseconds| *milliseconds > 0));
    let timeout = timeout.max().map_or(TIMEOUT_USUAL, Duration::from_millis);
    for proxy in ["useGlobalProxyConfigs", "proxyConfigs"] {
        if let Some(child) = kind.child(proxy) {
            child.accept_all();
            if proxy == "proxyConfigs" || child.text() == "true" {
                cx.warn(child.place(), "the proxy is not used for token requests");
            }
        }
    }
    let grant = Grant { url: required(cx, &kind, "tokenUrl")?, client, in_header, form, headers, timeout };
    kind.finish(cx);
    Some(TokenSource::new(Box::new(move |exchange: &mut Exchange| grant.request(exchange))))
}

/// The same from the children of a connection entry. `None` after an error was reported.
pub(super) fn connection(cx: &mut Compiler<'_>, el: &Element<'_>) -> Option<TokenSource> {
    let grant = el.child_text("oauthGrantType").unwrap_or_default();
    let grant_type = match grant.to_ascii_lowercase().replace([' ', '_'], "").as_str() {
        "clientcredentials" => "client_credentials",
        "password" => "password",
        // What the editor preselects.
        "authorizationcode" | "" => "refresh_token",
        _ => {
            let known = "Authorization Code, Client Credentials, Password";
            cx.error(el.place(), format!("the `oauthGrantType` `{grant}` is not one of {known}"));
            return None;
        }
    };
    let mut form = vec![(Arc::from("grant_type"), Text::Constant(grant_type.into()))];
    match grant_type {
        "password" => {
            form.push(("username".into(), needed(cx, el, &["username", "oauthUsername"])?));
            form.push(("password".into(), needed(cx, el, &["password", "oauthPassword"])?));
        }
        "refresh_token" => {
            form.push(("refresh_token".into(), needed(cx, el, &["refreshToken", "oauthRefreshToken"])?));
        }
        _ => {}
    }
    let id = needed(cx, el, &["clientId", "oauthClientId"])?;
    let secret = needed(cx, el, &["clientSecret", "oauthClientSecret"])?;
    let url = needed(cx, el, &["tokenUrl", "oauthTokenUrl", "oauthTokenEndpoint"])?;
    for name in ["additionalProperties", "oauthAdditionalProperties"] {
        // `name:value` pairs with commas between; Micro Integrator passes over what is no pair.
        let Some(pairs) = el.child(name) else { continue };
        let text = super::policy::configured(cx, &pairs.text(), &pairs.place());
        for (name, value) in text.split(',').filter_map(|pair| pair.split_once(':')) {
            let value = Text::compile(cx, &pairs, value.trim(), pairs.place())?;
            form.push((name.trim().into(), value));
        }
    }
    let mode = el.child_text("oauthAuthorizationMode");
    let in_header = !mode.is_some_and(|mode| mode.eq_ignore_ascii_case("payload"));
    let client = Some((id, secret));
    let grant = Grant { url, client, in_header, form, headers: Vec::new(), timeout: TIMEOUT_USUAL };
    Some(TokenSource::new(Box::new(move |exchange: &mut Exchange| grant.request(exchange))))
}

fn needed(cx: &mut Compiler<'_>, el: &Element<'_>, names: &[&'static str]) -> Option<Text> {
    let found = super::connection::text(cx, el, names);
    if found.is_none() {
        let name = names.first().copied().unwrap_or_default();
        cx.error(el.place(), format!("OAuth needs <{name}> in the connection"));
    }
    found
}

fn text(cx: &mut Compiler<'_>, el: &Element<'_>, name: &'static str) -> Option<Text> {
    let child = el.child(name)?;
    let text = super::policy::configured(cx, &child.text(), &child.place());
    if text.is_empty() {
        return None;
    }
    Text::compile(cx, &child, &text, child.place())
}

fn required(cx: &mut Compiler<'_>, el: &Element<'_>, name: &'static str) -> Option<Text> {
    let found = text(cx, el, name);
    if found.is_none() {
        cx.error(el.place(), format!("<{}> needs <{name}>", el.name()));
    }
    found
}

fn pairs(
    cx: &mut Compiler<'_>,
    el: &Element<'_>,
    list: &'static str,
    entry: &'static str,
    found: &mut Vec<(Arc<str>, Text)>,
) {
    for pair in el.elements(list).flat_map(|list| list.elements(entry).collect::<Vec<_>>()) {
        let Some(name) = pair.required(cx, "name") else { continue };
        let text = super::policy::configured(cx, &pair.text(), &pair.place());
        if let Some(text) = Text::compile(cx, &pair, &text, pair.place()) {
            found.push((name.into(), text));
        }
    }
}

impl Grant {
    fn request(&self, exchange: &mut Exchange) -> Result<TokenRequest, Fault> {
        let mut form = String::new();
        let mut headers = Vec::with_capacity(self.headers.len() + 1);
        for (name, text) in &self.headers {
            headers.push((name.clone(), text.text(exchange)?));
        }
        for (name, text) in &self.form {
            push_field(&mut form, name, &text.text(exchange)?);
        }
        if let Some((id, secret)) = &self.client {
            let (id, secret) = (id.text(exchange)?, secret.text(exchange)?);
            if self.in_header {
                let basic = format!("Basic {}", BASE64.encode(format!("{id}:{secret}")));
                headers.push(("Authorization".into(), basic.into()));
            } else {
                push_field(&mut form, "client_id", &id);
                push_field(&mut form, "client_secret", &secret);
            }
        }
        Ok(TokenRequest { url: self.url.text(exchange)?, form, headers, timeout: self.timeout, tls: None })
    }
}
