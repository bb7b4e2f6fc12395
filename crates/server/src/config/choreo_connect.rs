//! `config.toml` of Choreo Connect: which of its keys have a meaning here, under the name they have here.

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
    ("router.upstream.retry.maxRetryCount", "gateway.retry.count_max"),
    ("router.upstream.retry.baseIntervalInMillis", "gateway.retry.base"),
    ("router.upstream.retry.statusCodes", "gateway.retry.statuses"),
    ("router.upstream.health.timeout", "gateway.health.timeout"),
    ("router.upstream.health.interval", "gateway.health.interval"),
    ("router.upstream.health.unhealthyThreshold", "gateway.health.unhealthy_after"),
    ("router.upstream.health.healthyThreshold", "gateway.health.healthy_after"),
    ("router.filters.compression.enabled", "gateway.compression.enabled"),
    ("enforcer.jwtIssuer.issuer", "gateway.own_issuer"),
    ("enforcer.security.authHeader.enableOutboundAuthHeader", "gateway.forward_credentials"),
    ("enforcer.security.authHeader.authorizationHeader", "gateway.authorization_header"),
    ("enforcer.security.authHeader.testConsoleHeaderName", "gateway.internal_key_header"),
    ("enforcer.security.mutualSSL.certificateHeader", "gateway.certificate_header"),
    ("enforcer.jwtGenerator.enabled", "gateway.backend_jwt.enabled"),
    ("enforcer.jwtGenerator.header", "gateway.backend_jwt.header"),
    ("enforcer.jwtGenerator.tokenTTL", "gateway.backend_jwt.ttl"),
    ("enforcer.jwtGenerator.claimDialect", "gateway.backend_jwt.dialect"),
    ("enforcer.jwtGenerator.encoding", "gateway.backend_jwt.encoding"),
];

/// Tables that a file of ours does not have.
const TABLES: [&str; 5] = ["router", "enforcer", "controlPlane", "analytics", "adapter.server"];

/// Keys that only switch something on: `false` is as if they were not there.
const SWITCHES: [&str; 1] = ["gateway.backend_jwt.enabled"];

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

/// What a key is called here.
pub(super) fn ours(path: &str) -> Option<&'static str> {
    KEYS.iter().find(|(theirs, _)| *theirs == path).map(|(_, ours)| *ours)
}

/// Whether a value leaves everything as it is: nothing, or a switch that is off.
pub(super) fn says_nothing(ours: &str, value: &Value) -> bool {
    value.text().is_empty() || (SWITCHES.contains(&ours) && value.text() == "false")
}

/// What the entries of a table that is repeated (`[[adapter.server.users]]`) are here; `None` for one that has no meaning
/// here.
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
        "enforcer.security.tokenService" => {
            // The template of the original has entries that are left blank.
            let Some((name, _)) = get("name").zip(get("issuer")) else { return Some(Vec::new()) };
            const NAMES: [(&str, &str); 5] = [
                ("issuer", "issuer"),
                ("jwksURL", "jwks_url"),
                ("certificateFilePath", "certificate"),
                ("validateSubscription", "validate_subscription"),
                ("consumerKeyClaim", "consumer_key_claim"),
            ];
            let key = |ours: &str| format!("gateway.issuers.{}.{ours}", name.text());
            Some(NAMES.iter().filter_map(|(theirs, ours)| Some((key(ours), get(theirs)?))).collect())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use super::super::{Dialect, dialect_of, read};

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

    #[test]
    fn files_of_the_corpus_are_read() {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus/gateway/config/choreo-connect");
        let Ok(entries) = std::fs::read_dir(&corpus) else { return };
        for path in entries.flatten().map(|entry| entry.path()) {
            let Ok(text) = std::fs::read_to_string(&path) else { continue };
            // The template has values without quotes, which are filled in before it is TOML.
            if path.extension().is_none_or(|extension| extension != "toml") {
                continue;
            }
            if dialect_of(&path, &text) != Dialect::ChoreoConnect {
                continue;
            }
            let found = read("config.toml", &text, Dialect::ChoreoConnect, &|_| Some("x".to_owned()));
            for note in &found.diagnostics {
                // Certificates stand where the containers have them.
                let expected = note.message.contains("No such file")
                    || note.message.contains("ignored")
                    || note.message.contains("neither `jwks_url` nor `certificate`");
                assert!(expected, "{}: {note}", path.display());
            }
        }
    }
}
