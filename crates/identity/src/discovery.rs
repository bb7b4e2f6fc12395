//! OpenID Connect Discovery 1.0: where an issuer publishes its keys.

use std::sync::Arc;

use penstock_engine::ports::Outbound;
use serde_json::Value;

use super::fetch;

/// Where the keys of an issuer are published.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum KeySource {
    /// A set of keys.
    Jwks(Arc<str>),
    /// A document that names it, of an issuer.
    Discovery {
        /// The address of the document.
        document: Arc<str>,
        /// The issuer that the document must name.
        issuer: Arc<str>,
    },
}

/// What follows an issuer in the address of its document (OpenID Connect Discovery 1.0 §4.1).
const WELL_KNOWN: &str = "/.well-known/openid-configuration";

/// The address of the document of an issuer that is an address itself.
pub fn document_of(issuer: &str) -> Option<Arc<str>> {
    let is_url = issuer.starts_with("https://") || issuer.starts_with("http://");
    is_url.then(|| format!("{}{WELL_KNOWN}", issuer.trim_end_matches('/')).into())
}

impl KeySource {
    /// Gets the set of keys. The document is read each time: an issuer may move its keys.
    pub(super) async fn fetch(&self, outbound: &dyn Outbound) -> Result<Value, String> {
        let jwks = match self {
            KeySource::Jwks(url) => url.clone(),
            KeySource::Discovery { document, issuer } => {
                let found = fetch::get(outbound, document.clone()).await;
                let found = found.map_err(|why| format!("the discovery document: {why}"))?;
                jwks_uri(&found, document, issuer)?
            }
        };
        fetch::get(outbound, jwks).await
    }
}

/// The address of the keys in a document, which must be of the issuer (§4.3) and must not lead from TLS to plain text.
fn jwks_uri(found: &Value, document: &str, issuer: &str) -> Result<Arc<str>, String> {
    let text = |name: &str| found.get(name).and_then(Value::as_str);
    match text("issuer") {
        Some(named) if named == issuer => {}
        Some(_) => return Err("the discovery document is of another issuer".to_owned()),
        None => return Err("the discovery document has no `issuer`".to_owned()),
    }
    let uri = text("jwks_uri").ok_or("the discovery document has no `jwks_uri`")?;
    let allowed = uri.starts_with("https://") || (uri.starts_with("http://") && document.starts_with("http://"));
    if !allowed {
        return Err("`jwks_uri` of the discovery document is no address of https".to_owned());
    }
    Ok(uri.into())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn documents_name_the_keys_of_their_issuer_only() {
        let issuer = "https://idp.example.com/t";
        let document = document_of(&format!("{issuer}/")).unwrap();
        assert_eq!(&*document, "https://idp.example.com/t/.well-known/openid-configuration");
        assert!(document_of("urn:idp").is_none());
        let of = |found: Value| jwks_uri(&found, &document, issuer).map(|uri| uri.to_string());
        assert_eq!(of(json!({"issuer": issuer, "jwks_uri": "https://k"})), Ok("https://k".to_owned()));
        for bad in [
            json!({"issuer": "https://other", "jwks_uri": "https://k"}),
            json!({"jwks_uri": "https://k"}),
            json!({"issuer": issuer}),
            json!({"issuer": issuer, "jwks_uri": "http://k"}),
            json!({"issuer": issuer, "jwks_uri": "file:///k"}),
            json!([]),
        ] {
            assert!(of(bad.clone()).is_err(), "{bad}");
        }
        assert!(jwks_uri(&json!({"issuer": "http://i", "jwks_uri": "http://k"}), "http://i/d", "http://i").is_ok());
    }
}
