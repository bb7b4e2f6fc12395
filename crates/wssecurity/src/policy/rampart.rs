//! `RampartConfig` and `CarbonSecConfig`: settings of the products beside the assertions.

use std::time::Duration;

use penstock_xml::{Document, NodeId};

use super::{PolicyProblem, Settings, settings_of};
use crate::tree::{elements, text};

const RAMPART: &str = "http://ws.apache.org/rampart/policy";
const CARBON: &str = "http://www.wso2.org/products/carbon/security";

/// The longest time that a message or nonce may count: a longer one would make replay protection meaningless.
const LIFE_MAX_S: u64 = 86_400;

/// Settings that name keystores, users and classes of the product: keys and users come from the configuration here.
const REPLACED: [&str; 14] = [
    "user",
    "userCertAlias",
    "encryptionUser",
    "stsAlias",
    "passwordCallbackClass",
    "tokenStoreClass",
    "timestampPrecisionInMilliseconds",
    "timestampStrict",
    "optimizeParts",
    "encryptionCrypto",
    "decryptionCrypto",
    "signatureCrypto",
    "tokenIssuerPolicy",
    "sslConfig",
];

/// Reads an element that is no assertion; `false` when it is none of the known ones.
pub(super) fn read(
    document: &Document,
    node: NodeId,
    settings: &mut Settings,
    problems: &mut Vec<PolicyProblem>,
) -> bool {
    match (document.namespace(node), document.local_name(node)) {
        (RAMPART, "RampartConfig") => rampart(document, node, settings, problems),
        (CARBON, "CarbonSecConfig") => carbon(document, node, problems),
        _ => return false,
    }
    true
}

fn rampart(document: &Document, node: NodeId, settings: &mut Settings, problems: &mut Vec<PolicyProblem>) {
    for (name, value, at) in settings_of(document, node) {
        let mut report = |message: String| problems.push(PolicyProblem { position: document.position(at), message });
        let mut seconds = || match value.parse() {
            Ok(seconds) if seconds <= LIFE_MAX_S => Some(Duration::from_secs(seconds)),
            _ => {
                report(format!("`{name}` must be a number of seconds up to {LIFE_MAX_S}, not `{value}`"));
                None
            }
        };
        match name {
            "timestampTTL" => settings.ttl = seconds().unwrap_or(settings.ttl),
            "timestampMaxSkew" => settings.skew = seconds().unwrap_or(settings.skew),
            "nonceLifeTime" => settings.nonce_life = seconds().unwrap_or(settings.nonce_life),
            // The response is encrypted for the client of the request; another recipient would be a fixed certificate.
            "encryptionUser" if !value.is_empty() && !value.eq_ignore_ascii_case("useReqSigCert") => {
                report(format!("`encryptionUser` must be `useReqSigCert`, not `{value}`"));
            }
            known if REPLACED.contains(&known) => {}
            other => report(format!("the setting `{other}` of RampartConfig is not supported")),
        }
    }
}

/// Roles that every user has.
const EVERYONE: [&str; 2] = ["everyone", "internal/everyone"];

fn carbon(document: &Document, node: NodeId, problems: &mut Vec<PolicyProblem>) {
    for part in elements(document, node) {
        let properties: Vec<NodeId> = elements(document, part).collect();
        for property in properties {
            let name = document.attribute(property, "", "name").unwrap_or_default();
            let value = text(document, property);
            let is_known = match document.local_name(part) {
                "Authorization" => {
                    name.ends_with("allowedroles")
                        && value.split(',').any(|role| EVERYONE.contains(&&*role.trim().to_ascii_lowercase()))
                }
                // Where the product keeps keys.
                "Trust" => true,
                _ => false,
            };
            if !is_known {
                let message =
                    format!("`{}` of CarbonSecConfig is not supported: users have no roles", document.local_name(part));
                problems.push(PolicyProblem { position: document.position(property), message });
            }
        }
    }
}
