//! The endpoint of a connection entry: `<http.init>` with a base URL, timeouts, suspension, credentials and trusted
//! certificates as child elements. Operations that use the connection compute the address of each request.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use penstock_engine::endpoint::{Endpoint, EndpointKind, EndpointPolicy, EndpointState, Format, Leaf, Target};
use penstock_engine::ports::TlsProfile;
use penstock_engine::{EndpointId, Exchange, Fault, Place};
use penstock_message::Scope;

use super::policy;
use crate::expression::Text;
use crate::{Compiler, Element};

/// The property of the flow that holds the address of the next request of a connection.
pub const CONNECTION_URL: &str = "HTTP_CONN_URL";

/// What Micro Integrator adds to a connection's name for its endpoint.
const NAME_SUFFIX: &str = "_INTERNAL_ENDPOINT_REFERENCE";

/// Certificates of a connection that are no resource of the configuration.
const FOREIGN_CERTIFICATES: [&str; 2] = ["certificateConfigurable", "certificateConfigurableName"];

struct Connection {
    basic: Option<(Text, Text)>,
    tls: Option<Arc<TlsProfile>>,
}

/// Compiles the endpoint of a connection. After an error was reported, its requests are faults.
pub fn connection(cx: &mut Compiler<'_>, key: &str, el: &Element<'_>) -> EndpointId {
    let name = el.child_text("name").filter(|name| !name.is_empty()).unwrap_or_else(|| key.to_owned());
    let name = format!("{name}{NAME_SUFFIX}");
    let id = super::reserve(cx, &name, el.place());
    let errors = cx.errors_so_far();
    let mut endpoint_policy = policy::read_connection(cx, el);
    let mut basic = None;
    let kind = el.child_text("authType").unwrap_or_default();
    match kind.to_ascii_lowercase().replace(' ', "").as_str() {
        "" | "none" => {}
        "basicauth" | "basic" | "basiccredentials" => basic = basic_auth(cx, el),
        "oauth" | "oauth2" => endpoint_policy.token = super::oauth::connection(cx, el),
        _ => {
            // A backend that is called without the credentials it expects refuses every request.
            cx.error(el.place(), format!("the `authType` `{kind}` is not one of None, Basic Auth, OAuth"));
        }
    }
    let leaf = Connection { basic, tls: certificate(cx, el) };
    if cx.errors_so_far() == errors {
        let at: Place = el.place();
        let endpoint = Endpoint {
            name: Some(name.into()),
            at,
            kind: EndpointKind::Leaf(Box::new(leaf)),
            policy: EndpointPolicy { prepare: None, ..endpoint_policy },
            state: EndpointState::default(),
        };
        cx.set_endpoint(id, endpoint);
    }
    id
}

fn basic_auth(cx: &mut Compiler<'_>, el: &Element<'_>) -> Option<(Text, Text)> {
    let user = text(cx, el, &["username", "basicCredentialsUsername"]);
    let password = text(cx, el, &["password", "basicCredentialsPassword"]);
    if user.is_none() || password.is_none() {
        cx.error(el.place(), "`Basic Auth` needs <username> and <password>");
    }
    user.zip(password)
}

/// The text of the first of these children that has one; releases of the connector name them differently.
pub(super) fn text(cx: &mut Compiler<'_>, el: &Element<'_>, names: &[&'static str]) -> Option<Text> {
    let child = names.iter().filter_map(|name| el.child(name)).find(|child| !child.text().is_empty())?;
    let text = policy::configured(cx, &child.text(), &child.place());
    Text::compile(cx, &child, &text, child.place())
}

/// A certificate that the connection trusts beside the common ones: a resource of the configuration.
fn certificate(cx: &mut Compiler<'_>, el: &Element<'_>) -> Option<Arc<TlsProfile>> {
    for name in FOREIGN_CERTIFICATES {
        if let Some(child) = el.child(name).filter(|child| !child.text().is_empty()) {
            let message = format!("<{name}> is not supported; put the certificate into the trust store of the server");
            cx.warn(child.place(), message);
        }
    }
    let child = el.child("trustStoreCertificatePath").filter(|child| !child.text().is_empty())?;
    let key = policy::configured(cx, &child.text(), &child.place());
    let Some(resource) = cx.resource(key.as_str()) else {
        let message = format!("the certificate `{key}` is not a resource of the configuration and is not trusted");
        cx.warn(child.place(), message);
        return None;
    };
    let mut profile = TlsProfile::trusting(vec![Arc::from(&resource.bytes[..])]);
    profile.also_common = true;
    Some(Arc::new(profile))
}

impl Leaf for Connection {
    fn target(&self, exchange: &mut Exchange) -> Result<Target, Fault> {
        let url = exchange.property(Scope::Default, CONNECTION_URL);
        let url = url.ok_or_else(|| Fault::new("a connection is called by the operations of its connector only"))?;
        let mut headers = Vec::new();
        if let Some((user, password)) = &self.basic {
            let pair = format!("{}:{}", user.text(exchange)?, password.text(exchange)?);
            headers.push(("Authorization".into(), format!("Basic {}", BASE64.encode(pair)).into()));
        }
        let url: Arc<str> = url.to_text().into();
        Ok(Target {
            url,
            method: None,
            format: Format::Rest,
            append_postfix: false,
            headers,
            tls: self.tls.clone(),
            addressing: None,
        })
    }
}

/// The address of a request: the base URL and the path below it, with one slash between, escaped where a URL needs it.
pub fn request_url(base: &str, path: &str) -> String {
    let (base, path) = (base.trim(), path.trim());
    let mut url = String::with_capacity(base.len() + path.len() + 1);
    super::expand::encode(&mut url, base, true);
    let path = match (base.ends_with('/'), path.starts_with('/')) {
        _ if path.is_empty() || path.starts_with('?') => path,
        (true, true) => &path[1..],
        (false, false) => {
            url.push('/');
            path
        }
        _ => path,
    };
    super::expand::encode(&mut url, path, true);
    url
}

#[cfg(test)]
mod tests {
    use super::request_url;

    #[test]
    fn base_and_path_are_joined_with_one_slash() {
        for (base, path, expected) in [
            ("http://h/a", "/b", "http://h/a/b"),
            ("http://h/a/", "/b", "http://h/a/b"),
            ("http://h/a", "b c?x=1&y=ä", "http://h/a/b%20c?x=1&y=%C3%A4"),
            ("http://h/a/", "?x=1", "http://h/a/?x=1"),
            ("http://h/a", "?x=%20", "http://h/a?x=%20"),
            (" http://h ", "", "http://h"),
        ] {
            assert_eq!(request_url(base, path), expected);
        }
    }
}
