//! `config.toml` of Choreo Connect: which of its keys have a meaning here, under the name they have here.

mod read;

use super::keys;
use super::settings::Settings;
use super::value::Value;

/// Its keys and ours. What is not in the list is ignored and named once.
const KEYS: &[(&str, &str)] = &[
    ("adapter.server.enabled", "adapter.enabled"),
    ("adapter.server.port", "adapter.port"),
    ("adapter.server.tokenTTL", "adapter.token_lifetime"),
    ("adapter.soapErrorInXMLEnabled", "gateway.soap_errors"),
    ("router.listenerPort", "gateway.http_port"),
    ("router.securedListenerPort", "gateway.https_port"),
    ("router.systemHost", "gateway.system_host"),
    ("router.clusterTimeoutInSeconds", "gateway.interceptors.timeout"),
    ("router.keystore.certPath", "tls.certificate"),
    ("router.keystore.keyPath", "tls.key"),
    ("router.cors.enabled", "gateway.cors.enabled"),
    ("router.cors.allowOrigins", "gateway.cors.origins"),
    ("router.cors.allowMethods", "gateway.cors.methods"),
    ("router.cors.allowHeaders", "gateway.cors.headers"),
    ("router.cors.exposeHeaders", "gateway.cors.expose_headers"),
    ("router.cors.allowCredentials", "gateway.cors.credentials"),
    ("router.upstream.tls.trustedCertPath", "tls.trust"),
    ("router.upstream.tls.disableSslVerification", "tls.trust_all"),
    ("router.upstream.timeouts.routeTimeoutInSeconds", "gateway.route_timeout"),
    ("router.upstream.timeouts.maxRouteTimeoutInSeconds", "gateway.route_timeout_max"),
    ("router.upstream.retry.maxRetryCount", "gateway.retry.count_max"),
    ("router.upstream.retry.baseIntervalInMillis", "gateway.retry.base"),
    ("router.upstream.retry.statusCodes", "gateway.retry.statuses"),
    ("router.upstream.health.timeout", "gateway.health.timeout"),
    ("router.upstream.health.interval", "gateway.health.interval"),
    ("router.upstream.health.unhealthyThreshold", "gateway.health.unhealthy_after"),
    ("router.upstream.health.healthyThreshold", "gateway.health.healthy_after"),
    ("router.filters.compression.enabled", "gateway.compression.enabled"),
    ("router.awsLambda.awsRegion", "gateway.aws.region"),
    ("router.awsLambda.payloadPassthrough", "gateway.aws.passthrough"),
    ("enforcer.jwtIssuer.issuer", "gateway.own_issuer"),
    ("enforcer.jwtIssuer.validityPeriod", "gateway.test_token_lifetime"),
    ("enforcer.security.authHeader.enableOutboundAuthHeader", "gateway.forward_credentials"),
    ("enforcer.security.authHeader.authorizationHeader", "gateway.authorization_header"),
    ("enforcer.security.authHeader.testConsoleHeaderName", "gateway.internal_key_header"),
    ("enforcer.jwtGenerator.header", "gateway.backend_jwt.header"),
    ("enforcer.jwtGenerator.tokenTTL", "gateway.backend_jwt.ttl"),
    ("enforcer.jwtGenerator.claimDialect", "gateway.backend_jwt.dialect"),
    ("enforcer.jwtGenerator.encoding", "gateway.backend_jwt.encoding"),
    ("enforcer.jwtGenerator.jwksRatelimitQuota", "gateway.jwks_limit"),
    ("enforcer.jwtGenerator.jwksRatelimitTimeWindowInSeconds", "gateway.jwks_window"),
];

/// The field of a proxy's certificate, when nothing else is said.
const CERTIFICATE_HEADER: &str = "X-WSO2-CLIENT-CERTIFICATE";

/// The user of either API when a file names none, and the variables with its passwords.
const USUAL_USER: &str = "admin";
const ADAPTER_PASSWORD: &str = "adapter_admin_pwd";
const TEST_KEY_PASSWORD: &str = "enforcer_admin_pwd";

/// What Choreo Connect's begin with that stand for keys.
const VARIABLE_PREFIX: &str = "CC_";

/// Tables that a file of ours does not have.
const TABLES: [&str; 5] = ["router", "enforcer", "controlPlane", "analytics", "adapter.server"];

/// Tables that are read as one, and those that are repeated.
const WHOLE: [&str; 7] = [
    "router.filters.compression.responseDirection",
    "enforcer.security.mutualSSL",
    "enforcer.security.tokenService",
    "enforcer.jwtGenerator.keypair",
    "enforcer.jwtIssuer.jwtUser",
    "adapter.server.users",
    "adapter.vhostMapping",
];

/// Features that a switch turns on or off, independently of their table.
#[derive(Debug, Default)]
pub(super) struct Switches {
    /// Backend tokens. Off by default.
    tells_backends: bool,
    /// No development tokens.
    no_test_keys: bool,
}

impl Switches {
    /// Takes a key that is a switch; whether it is one.
    pub(super) fn take(&mut self, path: &str, value: &Value) -> bool {
        let is_on = value.text().eq_ignore_ascii_case("true");
        match path.strip_suffix('d').unwrap_or(path) {
            "enforcer.jwtGenerator.enable" => self.tells_backends = is_on,
            "enforcer.jwtIssuer.enable" => self.no_test_keys = !is_on,
            _ => return false,
        }
        true
    }

    /// Once everything was read.
    pub(super) fn apply(&self, settings: &mut Settings) {
        let security = &mut std::sync::Arc::make_mut(&mut settings.gateway).security;
        match self.tells_backends {
            true => drop(security.backend_jwt.get_or_insert_default()),
            false => security.backend_jwt = None,
        }
        if self.no_test_keys {
            security.test_key_users.clear();
        }
    }
}

/// The switches, as environment variables may say them.
pub(super) const SWITCHES: [&str; 2] = ["enforcer.jwtGenerator.enabled", "enforcer.jwtIssuer.enabled"];

/// What the entries of `[[enforcer.security.tokenService.claimMapping]]` are called among those of their token service.
const MAPPING: &str = "claimMapping.";

/// An entry of a token service that is a table of its own, repeated: theirs and ours.
pub(super) fn mapping(name: &str, get: impl Fn(&str) -> Option<Value>) -> Option<(String, Value)> {
    let (remote, local) = get("remoteClaim").zip(get("localClaim")).filter(|_| name == "claimMapping")?;
    Some((format!("{MAPPING}{}", remote.text()), local))
}

/// Whether a value of ours is the name of a file, which the containers of Choreo Connect have and a machine may not.
pub(super) fn names_a_file(ours: &str) -> bool {
    const FILES: [&str; 4] = ["tls.certificate", "tls.key", "tls.trust", "gateway.signing_key"];
    FILES.contains(&ours) || (ours.starts_with("gateway.issuers.") && ours.ends_with(".certificate"))
}

/// Whether a text is such a configuration: by the tables it has.
pub(super) fn is_one(text: &str) -> bool {
    text.lines().any(|line| {
        let name = line.trim().trim_start_matches('[').trim_end_matches(']').trim();
        let is_table = line.trim_start().starts_with('[');
        is_table
            && TABLES
                .iter()
                .any(|table| name == *table || name.strip_prefix(table).is_some_and(|rest| rest.starts_with('.')))
    })
}

/// What a key is called here. The first versions wrote `enable` for `enabled`.
pub(super) fn ours(path: &str) -> Option<&'static str> {
    let find = |path: &str| KEYS.iter().find(|(theirs, _)| *theirs == path).map(|(_, ours)| *ours);
    find(path).or_else(|| path.ends_with(".enable").then(|| find(&format!("{path}d"))).flatten())
}

/// What is different from ours before anything is read.
pub(super) fn defaults(settings: &mut Settings) {
    let gateway = std::sync::Arc::make_mut(&mut settings.gateway);
    (gateway.http_port, gateway.https_port) = (9090, 9095);
}

/// Keys that environment variables override: `CC_ROUTER_LISTENERPORT` is `router.listenerPort`.
pub(super) fn overrides(lookup: &dyn Fn(&str) -> Option<String>) -> Vec<(&'static str, Value)> {
    let set = |(theirs, ours): &(&str, &'static str)| {
        let value = lookup(&variable(theirs))?;
        let is_list = keys::find(ours, keys::Dialect::Penstock).is_some_and(|key| key.kind == keys::LIST);
        Some((*ours, Value(if is_list { value.replace(',', "\n") } else { value })))
    };
    KEYS.iter().filter_map(set).collect()
}

/// The variable that stands for a key.
pub(super) fn variable(path: &str) -> String {
    format!("{VARIABLE_PREFIX}{}", path.replace('.', "_").to_ascii_uppercase())
}

/// The user who is there when a file names none, if the environment has a password.
pub(super) fn usual_users(
    settings: &Settings,
    lookup: &dyn Fn(&str) -> Option<String>,
) -> Vec<(&'static str, &'static str, Value)> {
    let missing = [
        (settings.adapter.users.is_empty(), "adapter.users", ADAPTER_PASSWORD),
        (settings.gateway.security.test_key_users.is_empty(), "gateway.test_users", TEST_KEY_PASSWORD),
    ];
    let missing = missing.into_iter().filter(|(is_missing, _, _)| *is_missing);
    missing.filter_map(|(_, table, name)| Some((table, USUAL_USER, Value(lookup(name)?)))).collect()
}

/// Whether the entries of a table, or of one that is repeated, are read together.
pub(super) fn is_whole(path: &str) -> bool {
    WHOLE.contains(&path)
}

/// What the entries of a table that must be read together are here, or of one that is repeated
/// (`[[adapter.server.users]]`); `None` for one that has no meaning here.
pub(super) fn table(path: &str, entries: &[(String, Value)]) -> Option<Vec<(String, Value)>> {
    let get = |name: &str| {
        let found = entries.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
        found.filter(|value| !value.text().is_empty())
    };
    let pair = |table: &str, name: &str, value: &str| {
        let (name, value) = (get(name)?, get(value)?);
        Some(vec![(format!("{table}.{}", name.text()), value)])
    };
    match path {
        "adapter.server.users" => Some(pair("adapter.users", "username", "password").unwrap_or_default()),
        "adapter.vhostMapping" => Some(pair("gateway.vhosts", "environment", "vhost").unwrap_or_default()),
        "enforcer.jwtIssuer.jwtUser" => Some(pair("gateway.test_users", "username", "password").unwrap_or_default()),
        "enforcer.jwtGenerator.keypair" => {
            let signs = get("useForSigning").is_none_or(|flag| flag.text() == "true");
            let key = get("privateKeyPath").filter(|_| signs);
            Some(key.into_iter().map(|key| ("gateway.signing_key".to_owned(), key)).collect())
        }
        "router.filters.compression.responseDirection" => {
            const NAMES: [(&str, &str); 3] =
                [("enabled", "enabled"), ("minimumContentLength", "min"), ("contentType", "types")];
            // Both this table and the one around it must be on.
            let matters = |name: &str, value: &Value| name != "enabled" || value.text() == "false";
            let found = NAMES.iter().filter_map(|(theirs, ours)| {
                Some((format!("gateway.compression.{ours}"), get(theirs).filter(|value| matters(theirs, value))?))
            });
            Some(found.collect())
        }
        // With `enableClientValidation` the certificate is that of the connection, and the header is not trusted.
        "enforcer.security.mutualSSL" => {
            let by_field = get("enableClientValidation").is_some_and(|flag| flag.text() == "false");
            let name = || get("certificateHeader").unwrap_or_else(|| Value(CERTIFICATE_HEADER.to_owned()));
            Some(by_field.then(|| ("gateway.certificate_header".to_owned(), name())).into_iter().collect())
        }
        "enforcer.security.tokenService" => {
            // The template of Choreo Connect has entries that are left blank.
            let Some((name, _)) = get("name").zip(get("issuer")) else { return Some(Vec::new()) };
            const NAMES: [(&str, &str); 5] = [
                ("issuer", "issuer"),
                ("jwksURL", "jwks_url"),
                ("certificateFilePath", "certificate"),
                ("validateSubscription", "validate_subscription"),
                ("consumerKeyClaim", "consumer_key_claim"),
            ];
            let key = |ours: &str| format!("gateway.issuers.{}.{ours}", name.text());
            let mut found: Vec<_> = NAMES.iter().filter_map(|(theirs, ours)| Some((key(ours), get(theirs)?))).collect();
            let mappings = entries.iter().filter(|(name, _)| name.starts_with(MAPPING));
            found.extend(
                mappings
                    .map(|(name, value)| (key(&format!("claim_mapping.{}", &name[MAPPING.len()..])), value.clone())),
            );
            Some(found)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use penstock_compile::Severity;

    use super::super::{Configuration, Dialect, dialect_of, read};
    use super::VARIABLE_PREFIX;

    #[test]
    fn what_has_a_meaning_is_taken_and_the_rest_is_named_once() {
        let text = "[adapter.server]\nenabled = true\nport = \"9999\"\n\
                    [[adapter.server.users]]\nusername = 'admin'\npassword = '$env{PASSWORD}'\n\
                    [[adapter.vhostMapping]]\nenvironment = 'Default'\nvhost = 'Api.Example.com'\n\
                    [router]\nlistenerPort = 9090\nuseRemoteAddress = false\n\
                    [router.cors]\nallowOrigins = ['https://a', 'https://b']\n\
                    [router.upstream.timeouts]\nrouteTimeoutInSeconds = 7\n\
                    [enforcer.jwtGenerator]\nenabled = false\n\
                    [[enforcer.security.tokenService]]\nname = 'KM'\nissuer = 'https://km'\njwksURL = 'https://km/jwks'\n\
                    certificateFilePath = ''\nvalidateSubscription = true\n\
                    [[enforcer.throttling.publisher.URLGroup]]\nreceiverURLs = ['tcp://x']\n";
        assert_eq!(dialect_of(Path::new("vhost-deployment.toml"), text), Dialect::ChoreoConnect);
        let lookup = |name: &str| (name == "PASSWORD").then(|| "secret".to_owned());
        let found = read("config.toml", text, Dialect::ChoreoConnect, &lookup);
        let notes: Vec<String> = found.diagnostics.iter().map(ToString::to_string).collect();
        assert_eq!(
            notes,
            ["config.toml:12:1: warning: keys that have no meaning here are ignored: router.useRemoteAddress, \
              enforcer.throttling.publisher.URLGroup"]
        );
        let settings = found.settings;
        assert_eq!((settings.adapter.enabled, settings.adapter.port), (true, 9999));
        assert_eq!(settings.adapter.users, [("admin".to_owned(), "secret".to_owned())]);
        let gateway = &settings.gateway;
        assert_eq!((gateway.http_port, gateway.route_timeout), (9090, Duration::from_secs(7)));
        assert_eq!(gateway.vhosts, [("Default".to_owned(), "api.example.com".to_owned())]);
        assert_eq!(gateway.cors.origins.len(), 2);
        let issuer = &gateway.security.issuers[0];
        assert_eq!((&*issuer.issuer, issuer.validate_subscription, issuer.keys.len()), ("https://km", true, 0));
        assert!(gateway.security.backend_jwt.is_none());
    }

    fn configured(text: &str, variables: &[(&str, &str)]) -> Configuration {
        let lookup =
            |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        read("config.toml", text, Dialect::ChoreoConnect, &lookup)
    }

    #[test]
    fn defaults_are_those_of_choreo_connect() {
        let found = configured("[router]\n", &[]);
        let gateway = &found.settings.gateway;
        assert_eq!((gateway.http_port, gateway.https_port, gateway.route_timeout_max), (9090, 9095, None));
        assert!(gateway.security.backend_jwt.is_none() && gateway.security.certificate_header.is_none());
        assert!(gateway.security.test_key_users.is_empty() && found.diagnostics.is_empty());
        let users = configured("[router]\n", &[("adapter_admin_pwd", "a"), ("enforcer_admin_pwd", "e")]).settings;
        assert_eq!(users.adapter.users, [("admin".to_owned(), "a".to_owned())]);
        assert_eq!(&*users.gateway.security.test_key_users[0].name, "admin");
    }

    #[test]
    fn switches_decide_over_their_tables() {
        let generator = |enabled: &str| {
            let text = format!(
                "[enforcer.jwtGenerator]\n{enabled}\nheader = 'X-J'\ntokenTTL = 60\njwksRatelimitQuota = 5\n\
                 jwksRatelimitTimeWindowInSeconds = 300\n"
            );
            configured(&text, &[]).settings.gateway.security.clone()
        };
        assert!(generator("enabled = false").backend_jwt.is_none() && generator("").backend_jwt.is_none());
        for name in ["enabled", "enable"] {
            let security = generator(&format!("{name} = true"));
            assert_eq!(security.backend_jwt.map(|told| (told.header, told.ttl.as_secs())), Some(("X-J".into(), 60)));
            assert_eq!(security.jwks_rate, (5, Duration::from_secs(300)));
        }
        let issuer = |enabled: bool| {
            let users = "[[enforcer.jwtIssuer.jwtUser]]\nusername = 'u'\npassword = 'p'\n";
            let text = format!("[enforcer.jwtIssuer]\nenabled = {enabled}\nvalidityPeriod = 7\n{users}");
            configured(&text, &[]).settings.gateway.security.clone()
        };
        assert!(issuer(false).test_key_users.is_empty() && issuer(true).test_key_users.len() == 1);
        assert_eq!(issuer(true).test_key_lifetime, Duration::from_secs(7));
        let compression = |inner: bool, outer: bool| {
            let text = format!(
                "[router.filters.compression]\nenabled = {outer}\n[router.filters.compression.responseDirection]\n\
                 enabled = {inner}\nminimumContentLength = 99\ncontentType = ['text/css', 'text/xml']\n"
            );
            configured(&text, &[]).settings.gateway.compression.clone()
        };
        assert!(compression(true, true).enabled && !compression(false, true).enabled);
        assert!(!compression(true, false).enabled && compression(true, true).bytes_min == 99);
        assert_eq!(compression(true, true).types.len(), 2);
    }

    #[test]
    fn a_clients_word_for_its_certificate_counts_only_behind_a_proxy() {
        let header = |table: &str| {
            let found = configured(&format!("[enforcer.security.mutualSSL]\n{table}"), &[]);
            assert!(found.diagnostics.is_empty());
            found.settings.gateway.security.certificate_header.clone()
        };
        assert_eq!(header("certificateHeader = 'X-C'\nenableClientValidation = true\n"), None);
        assert_eq!(header("certificateHeader = 'X-C'\n"), None);
        assert_eq!(header("certificateHeader = 'X-C'\nenableClientValidation = false\n"), Some("X-C".into()));
        assert_eq!(header("enableClientValidation = false\n"), Some("X-WSO2-CLIENT-CERTIFICATE".into()));
    }

    #[test]
    fn token_services_with_their_claims_and_without_their_files() {
        let text = "[[enforcer.security.tokenService]]\nname = 'KM'\nissuer = 'https://km'\njwksURL = 'https://km/k'\n\
                    certificateFilePath = '/nowhere/km.pem'\nvalidateSubscription = false\n\
                    [[enforcer.security.tokenService.claimMapping]]\nremoteClaim = 'sub'\nlocalClaim = 'USER'\n\
                    [[enforcer.security.tokenService.claimMapping]]\nremoteClaim = 'http://x/a.b'\nlocalClaim = 'c'\n\
                    [[enforcer.security.tokenService]]\nname = 'Old'\nissuer = 'https://old'\n\
                    certificateFilePath = '/nowhere/old.pem'\n";
        let found = configured(text, &[]);
        let notes: Vec<String> = found.diagnostics.iter().map(ToString::to_string).collect();
        assert_eq!(
            notes,
            [
                "config.toml:1:1: warning: `/nowhere/km.pem`: no such file; it is ignored",
                "config.toml:13:1: warning: `/nowhere/old.pem`: no such file; it is ignored"
            ]
        );
        let issuers = &found.settings.gateway.security.issuers;
        assert_eq!((issuers.len(), issuers[0].keys_for_any_api), (1, true));
        let mapped: Vec<(&str, &str)> =
            issuers[0].claim_mapping.iter().map(|(theirs, ours)| (&**theirs, &**ours)).collect();
        assert_eq!(mapped, [("sub", "USER"), ("http://x/a.b", "c")]);
    }

    #[test]
    fn the_environment_has_the_last_word_and_what_it_lacks_is_left_out() {
        let text = "[adapter.server]\nenabled = true\n[[adapter.server.users]]\nusername = 'admin'\n\
                    password = '$env{nobody_set_this}'\n[router]\nlistenerPort = 1\n\
                    [enforcer.throttling.publisher]\npassword = '$env{nor_this}'\n";
        let variables =
            [("CC_ROUTER_LISTENERPORT", "7"), ("CC_ROUTER_CORS_ALLOWORIGINS", "http://a, http://b"), ("CC_X", "1")];
        let found = configured(text, &variables);
        let notes: Vec<String> = found.diagnostics.iter().map(ToString::to_string).collect();
        assert_eq!(
            notes,
            [
                "config.toml:1:1: warning: `adapter.server` has no user with a password; APIs cannot be deployed over HTTPS",
                "config.toml:5:12: warning: `$env{nobody_set_this}`: the environment variable `nobody_set_this` is not \
                 set; the key is ignored",
                "config.toml:9:1: warning: keys that have no meaning here are ignored: enforcer.throttling.publisher.password",
            ]
        );
        let settings = found.settings;
        assert_eq!((settings.gateway.http_port, settings.adapter.users.len()), (7, 0));
        assert_eq!(settings.gateway.cors.origins.len(), 2);
        let users = configured(text, &[("CC_ADAPTER_SERVER_USERS_0_PASSWORD", "p")]).settings.adapter.users;
        assert_eq!(users, [("admin".to_owned(), "p".to_owned())]);
    }

    #[test]
    #[ignore = "reads ../shared; .ci/run runs it where the folder is"]
    fn corpus_files_are_read() {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus/gateway/config/choreo-connect");
        for path in std::fs::read_dir(&corpus).unwrap().map(|entry| entry.unwrap().path()) {
            let Ok(text) = std::fs::read_to_string(&path) else { continue };
            // The template has values without quotes, which are filled in before it is TOML.
            if path.extension().is_none_or(|extension| extension != "toml") {
                continue;
            }
            if dialect_of(&path, &text) != Dialect::ChoreoConnect {
                continue;
            }
            let lookup = |name: &str| (!name.starts_with(VARIABLE_PREFIX)).then(|| "x".to_owned());
            let found = read("config.toml", &text, Dialect::ChoreoConnect, &lookup);
            for note in &found.diagnostics {
                // Certificates are at paths of the containers.
                let expected = note.message.contains("no such file") || note.message.contains("ignored");
                assert!(expected && note.severity == Severity::Warning, "{}: {note}", path.display());
            }
        }
    }
}
