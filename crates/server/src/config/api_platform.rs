//! `config.toml` of the API Platform's gateway: which of its keys have a meaning here, under the name they have here.

use std::sync::Arc;

use penstock_gateway::{Algorithm, PlatformConfig, RefusalFormat};

use super::keys::{FLAG, Key, NUMBER, TEXT, assign};
use super::settings::Settings;
use super::value::Value;

/// Keys of ours that say what its policies do when an API says nothing.
pub(super) const KEYS: &[Key] = &[
    Key { name: "gateway.platform.jwt.header", kind: TEXT, set: |settings, value| jwt_text(settings, value, 0) },
    Key { name: "gateway.platform.jwt.scheme", kind: TEXT, set: |settings, value| jwt_text(settings, value, 1) },
    Key { name: "gateway.platform.jwt.message", kind: TEXT, set: |settings, value| jwt_text(settings, value, 2) },
    Key {
        name: "gateway.platform.jwt.status",
        kind: NUMBER,
        set: |settings, value| {
            let status = value.number("a status from 400 to 599")?;
            if !(400..600).contains(&status) {
                return Err(format!("must be a status from 400 to 599, not `{status}`"));
            }
            platform(settings).jwt_auth.status = status;
            Ok(())
        },
    },
    Key {
        name: "gateway.platform.jwt.format",
        kind: TEXT,
        set: |settings, value| {
            platform(settings).jwt_auth.format = word(value, &RefusalFormat::WORDS)?;
            Ok(())
        },
    },
    Key {
        name: "gateway.platform.jwt.validate_issuer",
        kind: FLAG,
        set: assign!(platform => jwt_auth.validates_issuer = flag()),
    },
    Key {
        name: "gateway.platform.hosts.main",
        kind: TEXT,
        set: |settings, value| {
            let names = value.text().split(';').map(str::trim).filter(|name| !name.is_empty());
            platform(settings).hosts.main = names.map(|name| name.to_ascii_lowercase().into()).collect();
            Ok(())
        },
    },
    Key {
        name: "gateway.platform.hosts.sandbox",
        kind: TEXT,
        set: |settings, value| {
            platform(settings).hosts.sandbox = value.text().trim().to_ascii_lowercase().into();
            Ok(())
        },
    },
    Key {
        name: "gateway.platform.limits.algorithm",
        kind: TEXT,
        set: |settings, value| {
            platform(settings).rate_limit.algorithm = word(value, &Algorithm::WORDS)?;
            Ok(())
        },
    },
    Key {
        name: "gateway.platform.limits.x_headers",
        kind: FLAG,
        set: assign!(platform => rate_limit.tells_common = flag()),
    },
    Key {
        name: "gateway.platform.limits.standard_headers",
        kind: FLAG,
        set: assign!(platform => rate_limit.tells_standard = flag()),
    },
    Key {
        name: "gateway.platform.limits.retry_after",
        kind: FLAG,
        set: assign!(platform => rate_limit.tells_retry = flag()),
    },
];

/// Its keys and ours, and what a number of theirs is followed by here. What is not in the list is ignored and named once.
const NAMES: &[(&str, &str, &str)] = &[
    ("router.listener_port", "gateway.http_port", ""),
    ("router.https_port", "gateway.https_port", ""),
    ("router.downstream_tls.cert_path", "tls.certificate", ""),
    ("router.downstream_tls.key_path", "tls.key", ""),
    ("router.upstream.tls.trusted_cert_path", "tls.trust", ""),
    ("router.upstream.tls.disable_ssl_verification", "tls.trust_all", ""),
    ("router.upstream.timeouts.route_timeout_ms", "gateway.route_timeout", "ms"),
    ("router.upstream.timeouts.connect_timeout_ms", "timeouts.connect", "ms"),
    ("router.vhosts.main.default", "gateway.platform.hosts.main", ""),
    ("router.vhosts.sandbox.default", "gateway.platform.hosts.sandbox", ""),
    ("policy_engine.request_body.max_decompressed_bytes", "limits.buffered_body", ""),
    ("policy_engine.logging.level", "log.level", ""),
];

/// The same for the parameters of policies, for any version in the name of their table.
const POLICIES: &[(&str, &str)] = &[
    ("jwtauth.headername", "gateway.platform.jwt.header"),
    ("jwtauth.authheaderscheme", "gateway.platform.jwt.scheme"),
    ("jwtauth.onfailurestatuscode", "gateway.platform.jwt.status"),
    ("jwtauth.errormessageformat", "gateway.platform.jwt.format"),
    ("jwtauth.errormessage", "gateway.platform.jwt.message"),
    ("jwtauth.validateissuer", "gateway.platform.jwt.validate_issuer"),
    ("jwtauth.leeway", "gateway.clock_skew"),
    ("ratelimit.algorithm", "gateway.platform.limits.algorithm"),
    ("ratelimit.headers.include_x_rate_limit", "gateway.platform.limits.x_headers"),
    ("ratelimit.headers.include_ietf", "gateway.platform.limits.standard_headers"),
    ("ratelimit.headers.include_retry_after", "gateway.platform.limits.retry_after"),
    ("interceptor_service.maxresponsesize", "gateway.interceptors.reply_size"),
];

/// Tables that neither a file of ours nor one of Choreo Connect has.
const TABLES: [&str; 6] =
    ["policy_configurations", "policy_engine", "controller", "immutable_gateway", "collector", "traffic_logging"];

/// The table of parameters, and what issuers of tokens are called in it.
const PARAMETERS: &str = "policy_configurations.";
const ISSUERS: &str = "jwtauth.keymanagers";

/// What is different from ours before anything is read.
pub(super) fn defaults(settings: &mut Settings) {
    let gateway = Arc::make_mut(&mut settings.gateway);
    (gateway.http_port, gateway.https_port) = (8080, 8443);
}

/// Whether a text is such a configuration: by the tables it has.
pub(super) fn is_one(text: &str) -> bool {
    text.lines().any(|line| {
        let line = line.trim_start();
        let name = line.trim_start_matches('[').split([']', '.']).next().unwrap_or_default().trim();
        line.starts_with('[') && TABLES.contains(&name)
    })
}

/// What a key is called here, and what follows its value.
pub(super) fn ours(path: &str) -> Option<(&'static str, &'static str)> {
    if let Some(parameter) = parameter(path) {
        return POLICIES.iter().find(|(theirs, _)| *theirs == parameter).map(|(_, ours)| (*ours, ""));
    }
    NAMES.iter().find(|(theirs, ..)| *theirs == path).map(|(_, ours, unit)| (*ours, *unit))
}

/// `jwtauth.leeway` for `policy_configurations.jwtauth_v1.leeway`.
fn parameter(path: &str) -> Option<String> {
    let path = path.strip_prefix(PARAMETERS)?.to_ascii_lowercase();
    let (table, key) = path.split_once('.')?;
    let (policy, version) = table.rsplit_once("_v")?;
    version.bytes().all(|byte| byte.is_ascii_digit()).then(|| format!("{policy}.{key}"))
}

/// What the entries of a table that is repeated are here; `None` for one that has no meaning here. The names are those of
/// its own tables too (`jwks.remote.uri`). What is not taken stays in `entries`.
pub(super) fn table(path: &str, entries: &mut Vec<(String, Value)>) -> Option<Vec<(String, Value)>> {
    if parameter(path)? != ISSUERS {
        return None;
    }
    let mut take = |name: &str| {
        let index = entries.iter().position(|(known, _)| known.eq_ignore_ascii_case(name))?;
        Some(entries.remove(index).1).filter(|value| !value.text().is_empty())
    };
    let name = take("name")?;
    const NAMES: [(&str, &str); 5] = [
        ("issuer", "issuer"),
        ("scopeClaim", "scopes_claim"),
        ("jwks.remote.uri", "jwks_url"),
        ("jwks.local.certificatePath", "certificate"),
        ("jwks.local.inline", "key"),
    ];
    let key = |ours: &str| format!("gateway.issuers.{}.{ours}", name.text());
    Some(NAMES.iter().filter_map(|(theirs, ours)| Some((key(ours), take(theirs)?))).collect())
}

fn platform(settings: &mut Settings) -> &mut PlatformConfig {
    &mut Arc::make_mut(&mut settings.gateway).platform
}

fn jwt_text(settings: &mut Settings, value: &Value, which: usize) -> Result<(), String> {
    let jwt = &mut platform(settings).jwt_auth;
    let slots = [&mut jwt.header, &mut jwt.scheme, &mut jwt.message];
    for slot in slots.into_iter().skip(which).take(1) {
        *slot = value.text().into();
    }
    Ok(())
}

fn word<T: Copy>(value: &Value, words: &[(&str, T)]) -> Result<T, String> {
    let found = words.iter().find(|(word, _)| word.eq_ignore_ascii_case(value.text()));
    found.map(|(_, meaning)| *meaning).ok_or_else(|| {
        let names = words.iter().map(|(word, _)| format!("`{word}`")).collect::<Vec<_>>().join(", ");
        format!("must be one of {names}, not `{}`", value.text())
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use penstock_gateway::{Algorithm, RefusalFormat};

    use super::super::{Dialect, dialect_of, read};

    #[test]
    fn what_has_a_meaning_is_taken_and_the_rest_is_named_once() {
        let text = "[router]\ngateway_host = '*'\nlistener_port = 9090\n\
                    [router.upstream.timeouts]\nroute_timeout_ms = 7000\n\
                    [policy_configurations.jwtauth_v1]\nleeway = '9s'\nerrormessageformat = 'plain'\njwksfetchtimeout = '5s'\n\
                    errormessage = '{{ env \"WORDS\" \"nothing\" }}'\nheadername = '{{ env \"NONE\" \"X-Token\" }}'\n\
                    [[policy_configurations.jwtauth_v1.keymanagers]]\nname = 'first'\nissuer = 'https://idp'\n\
                    [policy_configurations.jwtauth_v1.keymanagers.jwks.remote]\nuri = 'https://idp/jwks'\nskipTlsVerify = false\n\
                    [[policy_configurations.jwtauth_v1.keymanagers]]\nname = 'second'\nissuer = 'two'\nscopeClaim = 'scp'\n\
                    [policy_configurations.jwtauth_v1.keymanagers.jwks.remote]\nuri = 'https://other/jwks'\n\
                    [policy_configurations.ratelimit_v0]\nalgorithm = 'gcra'\n\
                    [policy_configurations.ratelimit_v0.headers]\ninclude_ietf = false\n\
                    [[controller.auth.basic.users]]\nusername = 'x'\n";
        assert_eq!(dialect_of(Path::new("config.toml"), text), Dialect::ApiPlatform);
        let lookup = |name: &str| (name == "WORDS").then(|| "go away".to_owned());
        let found = read("config.toml", text, Dialect::ApiPlatform, &lookup);
        let notes: Vec<String> = found.diagnostics.iter().map(ToString::to_string).collect();
        assert_eq!(
            notes,
            ["config.toml:2:1: warning: keys that have no meaning here are ignored: router.gateway_host, \
              policy_configurations.jwtauth_v1.jwksfetchtimeout, \
              policy_configurations.jwtauth_v1.keymanagers.jwks.remote.skipTlsVerify, controller.auth.basic.users"]
        );
        let gateway = found.settings.gateway;
        assert_eq!((gateway.http_port, gateway.route_timeout), (9090, Duration::from_secs(7)));
        assert_eq!(gateway.security.clock_skew, Duration::from_secs(9));
        let jwt = &gateway.platform.jwt_auth;
        assert_eq!((&*jwt.message, &*jwt.header, jwt.format), ("go away", "X-Token", RefusalFormat::Plain));
        assert_eq!(gateway.platform.rate_limit.algorithm, Algorithm::Gcra);
        assert!(gateway.platform.rate_limit.tells_common && !gateway.platform.rate_limit.tells_standard);
        let issuers: Vec<_> =
            gateway.security.issuers.iter().map(|one| (&*one.name, &*one.issuer, &*one.scopes_claim)).collect();
        assert_eq!(issuers, [("first", "https://idp", "scope"), ("second", "two", "scp")]);
        assert_eq!(gateway.security.issuers[0].jwks_url.as_deref(), Some("https://idp/jwks"));
    }

    #[test]
    #[ignore = "reads ../shared; .ci/run runs it where the folder is"]
    fn corpus_files_are_read() {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus/gateway/config/api-platform");
        for path in std::fs::read_dir(&corpus).unwrap().map(|entry| entry.unwrap().path()) {
            let Ok(text) = std::fs::read_to_string(&path) else { continue };
            assert_eq!(dialect_of(&path, &text), Dialect::ApiPlatform, "{}", path.display());
            let found = read("config.toml", &text, Dialect::ApiPlatform, &|_| None);
            for note in &found.diagnostics {
                assert!(note.message.contains("ignored"), "{}: {note}", path.display());
            }
        }
    }
}
