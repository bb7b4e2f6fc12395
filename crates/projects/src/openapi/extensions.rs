//! The extensions there are, the levels they are read at, and what becomes of those that are not read.

use penstock_compile::suggestion;

use crate::Import;
use crate::document::Item;

/// Where in a definition an extension stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    Api,
    Path,
    Operation,
}

impl Level {
    fn name(self) -> &'static str {
        match self {
            Api => "the API",
            Path => "a path",
            Operation => "an operation",
        }
    }
}

/// What becomes of an extension.
enum Use {
    /// It is read at these levels.
    At(&'static [Level]),
    /// It says nothing to a gateway.
    Quiet,
    /// It has no effect here, for this reason.
    Idle(&'static str),
}

use Level::{Api, Operation, Path};

const EXTENSIONS: &[(&str, Use)] = &[
    ("x-wso2-basePath", Use::At(&[Api])),
    ("x-wso2-production-endpoints", Use::At(&[Api, Path])),
    ("x-wso2-sandbox-endpoints", Use::At(&[Api, Path])),
    ("x-wso2-endpoints", Use::At(&[Api])),
    ("x-wso2-cors", Use::At(&[Api])),
    ("x-wso2-disable-security", Use::At(&[Api, Path, Operation])),
    ("x-auth-type", Use::At(&[Path, Operation])),
    ("x-wso2-forward-credentials", Use::At(&[Api, Path, Operation])),
    ("x-wso2-auth-header", Use::At(&[Api])),
    ("x-wso2-throttling-tier", Use::At(&[Api, Operation])),
    ("x-throttling-tier", Use::At(&[Api, Operation])),
    ("x-wso2-request-interceptor", Use::At(&[Api, Path, Operation])),
    ("x-wso2-response-interceptor", Use::At(&[Api, Path, Operation])),
    ("x-wso2-http2-backend-enabled", Use::At(&[Api])),
    ("x-wso2-application-security", Use::At(&[Api, Operation])),
    ("x-wso2-mutual-ssl", Use::At(&[Api])),
    ("x-wso2-label", Use::At(&[Api])),
    ("x-amzn-resource-name", Use::At(&[Path, Operation])),
    ("x-wso2-response-cache", Use::At(&[Api])),
    ("x-wso2-schema-validation", Use::At(&[Api])),
    ("x-wso2-transports", Use::At(&[Api])),
    ("x-wso2-api-key-header", Use::At(&[Api])),
    ("x-wso2-is-mock-api", Use::At(&[Api])),
    ("x-wso2-security", Use::Quiet),
    ("x-wso2-scopes", Use::Quiet),
    ("x-wso2-example", Use::Quiet),
    ("x-scopes-bindings", Use::Quiet),
    ("x-wso2-curl", Use::Quiet),
    ("x-wso2-request", Use::Quiet),
    ("x-wso2-response", Use::Quiet),
    ("x-mediation-script", Use::At(&[Operation])),
    (
        "x-wso2-pass-request-payload-to-enforcer",
        Use::Idle("there is no second process; a policy that needs the body reads it"),
    ),
    ("x-uri-mapping", Use::Idle("it belongs to WebSocket APIs")),
    ("x-scopes", Use::Idle("it belongs to WebSocket APIs")),
];

/// Extensions that keep requests out.
const PROTECTING: [&str; 3] = ["x-wso2-application-security", "x-wso2-mutual-ssl", "x-wso2-schema-validation"];

/// Says what becomes of the extensions of a mapping that are not read.
pub(super) fn check(import: &mut Import<'_>, item: &Item<'_>, level: Level) {
    for (key, at, _) in item.entries().filter(|(key, _, _)| key.starts_with("x-")) {
        match EXTENSIONS.iter().find(|(name, _)| *name == &**key).map(|(_, found)| found) {
            Some(Use::At(levels)) if !levels.contains(&level) => {
                let levels: Vec<&str> = levels.iter().map(|level| level.name()).collect();
                let (levels, level) = (levels.join(" and "), level.name());
                let message = format!("`{key}` is ignored at {level}; it is read at {levels}");
                match PROTECTING.contains(&&**key) {
                    true => import.unprotected(&at, message),
                    false => import.warn(&at, message),
                }
            }
            Some(Use::Idle(reason)) => import.warn(&at, format!("`{key}` is ignored: {reason}")),
            Some(_) => {}
            // Other vendors' extensions are ignored.
            None if key.starts_with("x-wso2") => {
                let names = EXTENSIONS.iter().map(|(name, _)| *name);
                let meant = suggestion(key, names);
                let hint = meant.as_ref().map_or_else(String::new, |meant| format!(", did you mean `{meant}`?"));
                let message = format!("unknown extension `{key}` is ignored{hint}");
                match meant.is_some_and(|meant| PROTECTING.contains(&meant)) {
                    true => import.unprotected(&at, message),
                    false => import.warn(&at, message),
                }
            }
            None => {}
        }
    }
}
