//! The functions Synapse adds to XPath.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use penstock_engine::{Exchange, clock};
use penstock_message::{RESERVED, Scope, Value};
use penstock_xpath::XPathError;
use percent_encoding::{AsciiSet, utf8_percent_encode};

/// Calls a function by its local name. Arguments are strings: no function of Micro Integrator takes more.
pub(super) fn call(
    exchange: &mut Exchange,
    name: &str,
    argument: &dyn Fn(usize) -> String,
    count: usize,
) -> Result<Option<Value>, XPathError> {
    let text = |text: String| Some(Value::string(text));
    Ok(match (name, count) {
        ("get-property", 1) => get_property(exchange, "default", &argument(0), None),
        ("get-property", 2) => {
            let (first, second) = (argument(0), argument(1));
            // With two arguments the first is a scope, or the name of a date and the second its format.
            match Scope::parse(&first) {
                Some(_) => get_property(exchange, &first, &second, None),
                None => get_property(exchange, "default", &first, Some(&second)),
            }
        }
        ("get-property", 3) => get_property(exchange, &argument(0), &argument(1), Some(&argument(2))),
        ("base64Encode", 1..=2) => text(BASE64.encode(argument(0))),
        ("base64Decode", 1..=2) => {
            let decoded = BASE64.decode(argument(0).trim()).map_err(|error| failure(name, &error.to_string()))?;
            text(String::from_utf8_lossy(&decoded).into_owned())
        }
        ("url-encode", 1..=2) => text(url_encode(&argument(0))),
        ("vault-lookup", 1..=3) => text(vault_lookup(exchange, argument, count)?),
        ("hmac-generate" | "encrypt" | "decrypt", _) => return Err(failure(name, "it is not supported yet")),
        _ => return Err(XPathError::new("XPST0017", format!("unknown function `{name}` with {count} arguments"))),
    })
}

/// `wso2:vault-lookup('alias'[, 'VAULT|ENV|FILE|DOCKER'[, …]])`; with other arguments it is HashiCorp's.
fn vault_lookup(
    exchange: &mut Exchange,
    argument: &dyn Fn(usize) -> String,
    count: usize,
) -> Result<String, XPathError> {
    let alias = argument(0);
    let kind = if count > 1 { argument(1) } else { "VAULT".to_owned() };
    let environment = &exchange.core().environment;
    match kind.to_ascii_uppercase().as_str() {
        "ENV" => environment
            .variables
            .get(&alias)
            .cloned()
            .ok_or_else(|| failure("wso2:vault-lookup", &format!("the environment variable `{alias}` is not set"))),
        "VAULT" | "FILE" | "DOCKER" => environment
            .secrets
            .get(&alias)
            .map(ToString::to_string)
            .ok_or_else(|| failure("wso2:vault-lookup", &format!("the table `[secrets]` has no `{alias}`"))),
        _ => Err(failure("hashicorp:vault-lookup", super::NO_HASHICORP)),
    }
}

fn failure(name: &str, why: &str) -> XPathError {
    XPathError::new("FOER0000", format!("`{name}`: {why}"))
}

fn get_property(exchange: &mut Exchange, scope: &str, name: &str, format: Option<&str>) -> Option<Value> {
    if let (Some(format), "SYSTEM_DATE") = (format, name) {
        return Some(Value::string(clock::system_date(Some(format))));
    }
    exchange.property(Scope::parse(scope)?, name)
}

/// What is escaped in the path of an address: what has a meaning there stays.
const PATH: &AsciiSet = &RESERVED
    .remove(b'!')
    .remove(b'*')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b':')
    .remove(b'@')
    .remove(b'&')
    .remove(b'=')
    .remove(b'$')
    .remove(b',')
    .remove(b';')
    .remove(b'/');

/// The same in a query.
const QUERY: &AsciiSet = &PATH.remove(b'+').remove(b'?');

/// Percent-encoding of an address' path and query, as Micro Integrator does it.
fn url_encode(text: &str) -> String {
    let (path, query) = text.split_at(text.find('?').unwrap_or(text.len()));
    format!("{}{}", utf8_percent_encode(path, PATH), utf8_percent_encode(query, QUERY))
}

#[cfg(test)]
mod tests {
    #[test]
    fn addresses_keep_what_has_a_meaning_in_them() {
        for (text, encoded) in [
            ("wso2 lanka", "wso2%20lanka"),
            ("/a b/c:d@e;f=1,2", "/a%20b/c:d@e;f=1,2"),
            ("a+b%20", "a%2Bb%2520"),
            ("/x?q=a+b&c=d e#f", "/x?q=a+b&c=d%20e%23f"),
            ("å\"<", "%C3%A5%22%3C"),
        ] {
            assert_eq!(super::url_encode(text), encoded);
        }
    }
}
