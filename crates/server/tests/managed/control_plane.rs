//! `penstock manage` as a browser and an administrator use it: login over HTTPS with cookies, backup, restore, a new key.

use std::io::{Read, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::support::{Folder, Server, penstock, ports, tls};

/// The ports of the REST APIs and of the gateway, to which the offset is added.
const PORTS: [u16; 3] = [9443, 8280, 8243];

const CALLBACK: &str = "https://client.example/back";

/// A key of the tests: generating one takes seconds without optimization.
const SIGNING_KEY: &str = include_str!("../../../control/tests/signing-key.pem");

/// A server with the state of a folder, with its ports moved by an offset.
fn start(folder: &Folder, state: &str, offset: u16) -> (Server, Browser) {
    let arguments = ["manage", "--demo", "--offset", &offset.to_string(), "--state", state];
    let mut server = Server::start(folder, &arguments, "");
    server.wait_for_log("API management: https://");
    (server, Browser { port: PORTS[0] + offset, cookies: Vec::new() })
}

/// A client over TLS that keeps cookies.
struct Browser {
    port: u16,
    cookies: Vec<(String, String)>,
}

struct Page {
    status: u16,
    location: String,
    set_cookies: Vec<String>,
    body: String,
}

impl Page {
    /// A parameter of the address to which the page redirects, as it is.
    fn parameter(&self, name: &str) -> String {
        let query = self.location.split_once('?').map_or("", |(_, query)| query);
        let pair = query.split('&').find_map(|pair| pair.strip_prefix(&format!("{name}=")));
        pair.unwrap_or_else(|| panic!("no `{name}` in {}", self.location)).to_owned()
    }
}

impl Browser {
    fn get(&mut self, path: &str) -> Page {
        self.send("GET", path, "", "")
    }

    fn post(&mut self, path: &str, form: &str) -> Page {
        self.send("POST", path, "Content-Type: application/x-www-form-urlencoded\r\n", form)
    }

    /// With HTTP Basic.
    fn call(&mut self, path: &str, credentials: &str, media_type: &str, body: &str) -> Value {
        let fields = format!("Authorization: Basic {}\r\nContent-Type: {media_type}\r\n", STANDARD.encode(credentials));
        let page = self.send("POST", path, &fields, body);
        serde_json::from_str(&page.body).unwrap_or_else(|_| panic!("{path}: {} {}", page.status, page.body))
    }

    fn send(&mut self, method: &str, path: &str, fields: &str, body: &str) -> Page {
        let path = path.strip_prefix(&format!("https://localhost:{}", self.port)).unwrap_or(path);
        let pairs: Vec<String> = self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let mut stream = tls::connect(self.port, "localhost");
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nCookie: {}\r\nContent-Length: {}\r\n{fields}\r\n",
            pairs.join("; "),
            body.len()
        );
        stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
        let mut response = Vec::new();
        // The end may come without a closing alert.
        let _ = stream.read_to_end(&mut response);
        let response = String::from_utf8_lossy(&response).into_owned();
        let (head, body) = response.split_once("\r\n\r\n").expect("a whole response");
        let values = |name: &str| -> Vec<String> {
            let lines = head.lines().filter_map(|line| line.split_once(": "));
            lines.filter(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned()).collect()
        };
        let set_cookies = values("set-cookie");
        for cookie in &set_cookies {
            let (name, value) = cookie.split(';').next().and_then(|pair| pair.split_once('=')).unwrap();
            self.cookies.retain(|(known, _)| known != name);
            if !value.is_empty() {
                self.cookies.push((name.to_owned(), value.to_owned()));
            }
        }
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap();
        Page { status, location: values("location").pop().unwrap_or_default(), set_cookies, body: body.to_owned() }
    }

    /// A client with the grant of browsers: id and secret.
    fn register(&mut self) -> String {
        let body = format!(
            r#"{{"clientName":"browser","owner":"admin","callbackUrl":"{CALLBACK}","grantType":"authorization_code password"}}"#
        );
        let made = self.call("/client-registration/v0.17/register", "admin:admin", "application/json", &body);
        format!("{}:{}", made["clientId"].as_str().unwrap(), made["clientSecret"].as_str().unwrap())
    }

    fn token(&mut self, client: &str, form: &str) -> Value {
        self.call("/oauth2/token", client, "application/x-www-form-urlencoded", form)
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text")).to_owned()
}

#[test]
fn a_browser_logs_in_consents_and_logs_out_over_https() {
    let folder = Folder::new("browser");
    folder.write("state/signing-key.pem", SIGNING_KEY);
    let (_server, mut browser) = start(&folder, "state", ports::offset(&PORTS));
    let client = browser.register();
    let id = client.split(':').next().unwrap();
    let request =
        format!("/oauth2/authorize?response_type=code&client_id={id}&redirect_uri={CALLBACK}&scope=openid&state=s1");
    let page = browser.get(&format!("{request}&prompt=none"));
    assert_eq!((page.status, &*page.parameter("error")), (302, "login_required"));

    let page = browser.get(&format!("{request}&prompt=consent"));
    assert!(page.location.contains("/authenticationendpoint/login.do?"), "{}", page.location);
    let cookie = &page.set_cookies[0];
    assert!(cookie.starts_with("sessionNonceCookie-") && cookie.contains("Secure; HttpOnly; SameSite=Lax"), "{cookie}");
    let login = browser.get(&page.location);
    assert!(login.status == 200 && login.body.contains("<form"), "{}", login.body);
    let key = page.parameter("sessionDataKey");
    let login = |password: &str| format!("username=admin&password={password}&tocommonauth=true&sessionDataKey={key}");
    let refused = browser.post("/commonauth", &login("wrong"));
    assert_eq!((refused.status, &*refused.parameter("authFailure")), (302, "true"));
    let mut stranger = Browser { port: browser.port, cookies: Vec::new() };
    assert_eq!(stranger.post("/commonauth", &login("admin")).status, 400, "another browser has no cookie");
    let accepted = browser.post("/commonauth", &login("admin"));
    assert!(
        accepted.set_cookies.iter().any(|cookie| cookie.starts_with("commonAuthId=")),
        "{:?}",
        accepted.set_cookies
    );

    let consent = browser.get(&accepted.location);
    assert!(consent.location.contains("/authenticationendpoint/oauth2_consent.do?"), "{}", consent.location);
    assert_eq!(browser.get(&consent.location).status, 200);
    let decision = format!("consent=approve&sessionDataKeyConsent={}", consent.parameter("sessionDataKeyConsent"));
    let done = browser.post("/oauth2/authorize", &decision);
    assert!(done.location.starts_with(CALLBACK) && done.parameter("state") == "s1", "{}", done.location);
    let form = format!("grant_type=authorization_code&redirect_uri={CALLBACK}&code={}", done.parameter("code"));
    let issued = browser.token(&client, &form);
    let id_token = text(&issued["id_token"]);

    let again = browser.get(&format!("{request}&prompt=none"));
    assert_ne!(again.parameter("code"), done.parameter("code"), "the session needs no login");
    let target = format!("/oidc/logout?id_token_hint={id_token}&post_logout_redirect_uri={CALLBACK}&state=s2");
    let out = browser.get(&target);
    assert_eq!((out.status, &*out.parameter("state")), (302, "s2"));
    assert_eq!(browser.get(&format!("{request}&prompt=none")).parameter("error"), "login_required");
}

#[test]
fn a_state_folder_is_copied_restored_and_gets_another_key() {
    let folder = Folder::new("maintenance");
    folder.write("state/signing-key.pem", SIGNING_KEY);
    // The issuer of tokens has the port in it.
    let offset = ports::offset(&PORTS);
    let (server, mut browser) = start(&folder, "state", offset);
    let client = browser.register();
    let form = "grant_type=password&username=admin&password=admin&scope=openid";
    let token = text(&browser.token(&client, form)["access_token"]);
    let manage = |arguments: &[&str]| penstock(&folder.0, &[&["manage"], arguments].concat());
    let copied = manage(&["backup", "--state", "state", "copy"]);
    assert_eq!(copied.status, 0, "while the server runs: {}", copied.stderr);
    drop(server);
    let refused = manage(&["restore", "--state", "state", "copy"]);
    assert!(refused.status != 0 && refused.stderr.contains("has a database"), "{}", refused.stderr);
    assert_eq!(manage(&["restore", "--state", "restored", "copy"]).status, 0);
    assert_eq!(manage(&["rotate-key", "--state", "restored"]).status, 0);

    let (_server, mut browser) = start(&folder, "restored", offset);
    let keys: Value = serde_json::from_str(&browser.get("/oauth2/jwks").body).unwrap();
    assert_eq!(keys["keys"].as_array().unwrap().len(), 2, "the key before is published");
    let known = |browser: &mut Browser, token: &str| {
        let form = format!("token={token}");
        browser.call("/oauth2/introspect", "admin:admin", "application/x-www-form-urlencoded", &form)["active"] == true
    };
    assert!(known(&mut browser, &token), "tokens of the key before are accepted");
    let new = text(&browser.token(&client, form)["access_token"]);
    let header = |token: &str| token.split('.').next().unwrap().to_owned();
    assert!(known(&mut browser, &new) && header(&new) != header(&token), "the new key signs");
}
