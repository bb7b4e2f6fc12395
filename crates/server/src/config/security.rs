//! The keys that say who may call managed APIs, and what the gateway signs with.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use penstock_catalog::{Application, Subscription};
use penstock_compile::MessageKeys;
use penstock_gateway::GatewayConfig;
use penstock_gateway::security::{BackendJwt, Encoding, RevokedSource, Secret, SecurityConfig, Signer};
use penstock_transports::http::tls::{Identity, TlsError, read_certificates};

use super::keys::{FLAG, Key, LIST, NUMBER, TEXT, TIME, assign};
use super::settings::{Keystore, Settings};
use crate::control::FetchRules;

/// What of it lies in files or belongs to the catalog.
#[derive(Debug, Clone, Default)]
pub struct SecuritySettings {
    /// The key the gateway signs with; made and kept in the state folder when absent.
    pub signing_key: Option<Keystore>,
    /// Ids of tokens that count no longer, one a line.
    pub revoked: Option<PathBuf>,
    /// The URL of a list of such tokens.
    pub revoked_source: Option<RevokedSource>,
    /// Who may subscribe.
    pub applications: Vec<Application>,
    /// Who did.
    pub subscriptions: Vec<Subscription>,
    /// The keystore that signs and decrypts messages; that of the listeners when absent.
    pub keystore: Option<Keystore>,
    /// Certificates of clients that sign messages, or of authorities that issued them.
    pub truststore: Option<PathBuf>,
    /// Its password.
    pub truststore_password: String,
    /// Artifacts that are served although their protection cannot be enforced.
    pub serve_unprotected: Vec<Arc<str>>,
}

/// The keys.
pub(super) const KEYS: &[Key] = &[
    Key { name: "security.keystore", kind: TEXT, set: assign!(message_keystore => file = path) },
    Key { name: "security.password", kind: TEXT, set: assign!(message_keystore => password = verbatim) },
    Key { name: "security.alias", kind: TEXT, set: assign!(message_keystore => alias = some verbatim) },
    Key { name: "security.key_password", kind: TEXT, set: assign!(message_keystore => key_password = some verbatim) },
    Key { name: "security.truststore", kind: TEXT, set: assign!(security.truststore = some path) },
    Key { name: "security.truststore_password", kind: TEXT, set: assign!(security.truststore_password = verbatim) },
    Key {
        name: "security.serve_unprotected",
        kind: LIST,
        set: |settings, value| {
            let names = value.list();
            Arc::make_mut(&mut settings.gateway).serve_unprotected.clone_from(&names);
            settings.security.serve_unprotected = names;
            Ok(())
        },
    },
    Key {
        name: "control.fetch_from",
        kind: LIST,
        set: |settings, value| {
            settings.fetch_from = FetchRules::parse(&value.list())?;
            Ok(())
        },
    },
    Key { name: "gateway.own_issuer", kind: TEXT, set: assign!(security => own_issuer = string) },
    Key { name: "gateway.authorization_header", kind: TEXT, set: assign!(security => authorization_header = string) },
    Key { name: "gateway.internal_key_header", kind: TEXT, set: assign!(security => internal_key_header = string) },
    Key { name: "gateway.certificate_header", kind: TEXT, set: assign!(security => certificate_header = some string) },
    Key {
        name: "gateway.trust_forwarded",
        kind: FLAG,
        set: |settings, value| {
            Arc::make_mut(&mut settings.gateway).trusts_forwarded = value.flag()?;
            Ok(())
        },
    },
    Key { name: "gateway.forward_credentials", kind: FLAG, set: assign!(security => forward_credentials = flag()) },
    Key { name: "gateway.clock_skew", kind: TIME, set: assign!(security => clock_skew = duration("s")) },
    Key { name: "gateway.system_host", kind: TEXT, set: assign!(security => system_host = string) },
    Key {
        name: "gateway.explain_key",
        kind: TEXT,
        set: |settings, value| {
            if value.text().len() < EXPLAIN_KEY_MIN {
                return Err(format!("must have {EXPLAIN_KEY_MIN} characters or more"));
            }
            security(settings).explain_key = Some(Secret::new(value.text()));
            Ok(())
        },
    },
    Key {
        name: "gateway.test_token_lifetime",
        kind: TIME,
        set: assign!(security => test_key_lifetime = duration("s")),
    },
    Key { name: "gateway.keys_refresh", kind: TIME, set: assign!(security => keys_refresh = duration("s")) },
    Key { name: "gateway.jwks_limit", kind: NUMBER, set: assign!(security => jwks_rate.0 = number("a whole number")) },
    Key { name: "gateway.jwks_window", kind: TIME, set: assign!(security => jwks_rate.1 = duration("s")) },
    Key {
        name: "gateway.backend_jwt.enabled",
        kind: FLAG,
        set: |settings, value| match value.flag()? {
            true => {
                backend_jwt(settings);
                Ok(())
            }
            false => Err("must be `true`; without the table there is no such token".to_owned()),
        },
    },
    Key { name: "gateway.backend_jwt.header", kind: TEXT, set: assign!(backend_jwt => header = string) },
    Key { name: "gateway.backend_jwt.ttl", kind: TIME, set: assign!(backend_jwt => ttl = duration("s")) },
    Key { name: "gateway.backend_jwt.dialect", kind: TEXT, set: assign!(backend_jwt => dialect = string) },
    Key {
        name: "gateway.backend_jwt.encoding",
        kind: TEXT,
        set: |settings, value| {
            backend_jwt(settings).encoding = match value.text() {
                "base64" => Encoding::Base64,
                "base64url" => Encoding::Base64Url,
                other => return Err(format!("must be `base64` or `base64url`, not `{other}`")),
            };
            Ok(())
        },
    },
    Key { name: "gateway.signing_key", kind: TEXT, set: assign!(signing_key => file = path) },
    Key { name: "gateway.signing_key_password", kind: TEXT, set: assign!(signing_key => password = verbatim) },
    Key { name: "gateway.signing_key_alias", kind: TEXT, set: assign!(signing_key => alias = some verbatim) },
    Key { name: "gateway.revoked", kind: TEXT, set: assign!(security.revoked = some path) },
    Key {
        name: "gateway.revoked_url",
        kind: "a URL",
        set: |settings, value| {
            if !["http://", "https://"].iter().any(|scheme| value.text().starts_with(scheme)) {
                return Err("a URL of http or https".to_owned());
            }
            revoked_source(settings).url = value.text().into();
            Ok(())
        },
    },
    Key {
        name: "gateway.revoked_authorization",
        kind: TEXT,
        set: |settings, value| {
            revoked_source(settings).authorization = Some(penstock_catalog::Secret(value.text().into()));
            Ok(())
        },
    },
    Key { name: "gateway.revoked_every", kind: TIME, set: assign!(revoked_source => every = duration("s")) },
];

/// The interval of requests for the list of revoked tokens.
const REVOKED_EVERY: Duration = Duration::from_secs(10);

/// A secret that can be guessed is none.
const EXPLAIN_KEY_MIN: usize = 16;

/// The source, complete once there is an address.
fn revoked_source(settings: &mut Settings) -> &mut RevokedSource {
    settings.security.revoked_source.get_or_insert_with(|| RevokedSource {
        url: "".into(),
        authorization: None,
        every: REVOKED_EVERY,
    })
}

pub(super) fn security(settings: &mut Settings) -> &mut SecurityConfig {
    let gateway: &mut GatewayConfig = Arc::make_mut(&mut settings.gateway);
    &mut gateway.security
}

fn backend_jwt(settings: &mut Settings) -> &mut BackendJwt {
    security(settings).backend_jwt.get_or_insert_default()
}

fn message_keystore(settings: &mut Settings) -> &mut Keystore {
    settings.security.keystore.get_or_insert_default()
}

/// Reads the keys for the security of messages: of their own keystore, or of that of the listeners.
pub fn read_message_keys(settings: &Settings) -> Option<Result<Arc<MessageKeys>, String>> {
    let keystore = settings.security.keystore.as_ref().or(settings.keystore.as_ref())?;
    Some(message_keys(keystore, &settings.security).map(Arc::new))
}

fn message_keys(keystore: &Keystore, security: &SecuritySettings) -> Result<MessageKeys, String> {
    let read = |file: &Path| std::fs::read(file).map_err(|error| format!("`{}`: {error}", file.display()));
    let refused = |file: &Path, error: TlsError| format!("`{}`: {error}", file.display());
    let bytes = read(&keystore.file)?;
    let is_pem = bytes.starts_with(b"-----BEGIN");
    let identity = if is_pem {
        let key = keystore.key.as_deref().map_or_else(|| Ok(bytes.clone()), read)?;
        Identity::from_pem(&bytes, &key)
    } else {
        Identity::from_keystore(&bytes, &keystore.password, keystore.key_password.as_deref(), keystore.alias.as_deref())
    };
    let identity = identity.map_err(|error| refused(&keystore.file, error))?;
    let certificate = identity.certificate_der().unwrap_or_default().to_vec();
    let mut trusted = Vec::new();
    if !is_pem {
        // As in Carbon, where one keystore often holds both.
        let found = read_certificates(&bytes, &keystore.password).map_err(|error| refused(&keystore.file, error))?;
        trusted.extend(found.iter().map(|one| one.to_vec()));
    }
    if let Some(file) = &security.truststore {
        let found = read_certificates(&read(file)?, &security.truststore_password);
        trusted.extend(found.map_err(|error| refused(file, error))?.iter().map(|one| one.to_vec()));
    }
    Ok(MessageKeys { certificate, key: identity.key_der().to_vec(), trusted })
}

fn signing_key(settings: &mut Settings) -> &mut Keystore {
    settings.security.signing_key.get_or_insert_default()
}

/// What does not go together.
pub(super) fn check(settings: &Settings) -> Vec<String> {
    let mut mistakes = Vec::new();
    for issuer in &settings.gateway.security.issuers {
        let name = &issuer.name;
        if **name == *penstock_gateway::security::OWN_ISSUER {
            mistakes.push(format!("`gateway.issuers.{name}`: the name is the gateway's own"));
        }
        if issuer.issuer.is_empty() {
            mistakes.push(format!("`gateway.issuers.{name}` has no `issuer`, the value of `iss` in its tokens"));
        }
        let is_address = issuer.issuer.starts_with("https://") || issuer.issuer.starts_with("http://");
        let is_known = !issuer.keys.is_empty() || issuer.jwks_url.is_some() || issuer.introspection.is_some();
        if !is_known && issuer.discovery_url.is_none() && !is_address {
            mistakes.push(format!(
                "`gateway.issuers.{name}` has neither `jwks_url`, `discovery_url`, `certificate` nor `introspection_url`, \
                 and `issuer` is not an address where they could be discovered"
            ));
        }
        if let Some(asked) = &issuer.introspection {
            let parts = [
                ("introspection_url", asked.url.is_empty()),
                ("introspection_client", asked.client_id.is_empty()),
                ("introspection_secret", asked.client_secret.0.is_empty()),
            ];
            for (part, _) in parts.into_iter().filter(|(_, is_missing)| *is_missing) {
                mistakes.push(format!("`gateway.issuers.{name}` has introspection settings and lacks `{part}`"));
            }
        }
    }
    if settings.security.signing_key.as_ref().is_some_and(|key| key.file.as_os_str().is_empty()) {
        mistakes
            .push("the password or alias of a signing key is given, and no file (`gateway.signing_key`)".to_owned());
    }
    mistakes
}

/// Reads the key the gateway signs with: PEM, or a keystore.
pub fn read_signing_key(key: &Keystore) -> Result<Signer, String> {
    let shown = key.file.display();
    let bytes = crate::load::standard_input::read_file(&key.file).map_err(|error| format!("`{shown}`: {error}"))?;
    let refused = |why: &dyn std::fmt::Display| format!("`{shown}`: {why}");
    if bytes.windows(10).any(|window| window == b"-----BEGIN") {
        return Signer::from_pem(&bytes).map_err(|error| refused(&error));
    }
    let identity = Identity::from_keystore(&bytes, &key.password, key.key_password.as_deref(), key.alias.as_deref());
    Signer::from_der(identity.map_err(|error| refused(&error))?.key_der()).map_err(|error| refused(&error))
}

/// Reads the key that the key manager signs with: PEM or a keystore, with the certificate that its id is derived from.
pub fn read_rsa_key(key: &Keystore) -> Result<penstock_control::SigningKey, String> {
    let shown = key.file.display();
    let bytes = crate::load::standard_input::read_file(&key.file).map_err(|error| format!("`{shown}`: {error}"))?;
    if bytes.windows(10).any(|window| window == b"-----BEGIN") {
        let blocks = penstock_gateway::security::pem_blocks(&bytes);
        let block =
            |wanted: &str| blocks.iter().find(|(label, _)| label.ends_with(wanted)).map(|(_, der)| der.to_vec());
        let pkcs8 = block("PRIVATE KEY").ok_or_else(|| format!("`{shown}` has no private key"))?;
        return Ok(penstock_control::SigningKey { pkcs8, certificate: block("CERTIFICATE") });
    }
    let identity = Identity::from_keystore(&bytes, &key.password, key.key_password.as_deref(), key.alias.as_deref());
    let identity = identity.map_err(|error| format!("`{shown}`: {error}"))?;
    Ok(penstock_control::SigningKey { pkcs8: identity.key_der().to_vec(), certificate: None })
}

#[cfg(test)]
mod tests {
    use penstock_catalog::SubscriptionState;

    use super::super::{Dialect, read};
    use super::*;

    fn read_text(text: &str) -> (Settings, Vec<String>) {
        let found = read("penstock.toml", text, Dialect::Penstock, &|_| None);
        (found.settings, found.diagnostics.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn issuers_applications_and_users_are_read() {
        let (settings, diagnostics) = read_text(
            "[gateway]\nclock_skew = 3\nexplain_key = '0123456789abcdef'\njwks_limit = 7\n\
             [gateway.backend_jwt]\nenabled = true\nencoding = 'base64url'\n\
             [gateway.users]\nanna = 's'\n[gateway.test_users]\ndev = 'd'\n\
             [gateway.issuers.'Resident KM']\nissuer = 'https://idp/oauth2'\njwks_url = 'https://idp/jwks'\n\
             audiences = ['a', 'b']\nvalidate_subscription = true\n\
             [gateway.issuers.'Resident KM'.claim_mapping]\n'http://x.org/role' = 'role'\n\
             [gateway.applications.app]\nkeys = ['k1']\nsandbox_keys = ['k2']\nplan = 'Gold'\n\
             subscriptions = ['pets:1.0.0:Gold', 'cats:2:Bronze:BLOCKED', 'dogs:1']\n",
        );
        assert_eq!(diagnostics, [""; 0]);
        let security = &settings.gateway.security;
        let issuer = &security.issuers[0];
        assert_eq!((&*issuer.name, &*issuer.issuer), ("Resident KM", "https://idp/oauth2"));
        assert_eq!((issuer.audiences.len(), issuer.validate_subscription), (2, true));
        assert_eq!(issuer.claim_mapping, [("http://x.org/role".into(), "role".into())]);
        assert_eq!((security.users.len(), security.test_key_users.len(), security.jwks_rate.0), (1, 1, 7));
        assert_eq!(security.backend_jwt.as_ref().map(|told| told.encoding), Some(Encoding::Base64Url));
        let (settings_of_asked, diagnostics) = read_text(
            "[gateway.issuers.idp]\nissuer = 'https://idp'\n[gateway.issuers.asked]\nissuer = 'https://asked'\n\
             introspection_url = 'https://asked/introspect'\nintrospection_client = 'gateway'\n\
             introspection_secret = 's'\nintrospection_cache = 30\n[gateway.issuers.half]\nissuer = 'half'\n\
             introspection_url = 'https://half'\n",
        );
        let all = &settings_of_asked.gateway.security.issuers;
        let asked = all.iter().find(|issuer| &*issuer.name == "asked").unwrap();
        let asked = asked.introspection.as_ref().unwrap();
        assert_eq!((&*asked.url, asked.cache.as_secs()), ("https://asked/introspect", 30));
        assert!(!format!("{asked:?}").contains("\"s\""), "{asked:?}");
        let all = diagnostics.join("\n");
        assert!(
            all.contains("`gateway.issuers.half` has introspection settings and lacks `introspection_client`"),
            "{all}"
        );
        assert!(!all.contains("gateway.issuers.idp") && !all.contains("gateway.issuers.asked"), "{all}");
        let application = &settings.security.applications[0];
        assert_eq!(application.keys, [("k1".into(), true), ("k2".into(), false)]);
        let states: Vec<_> = settings.security.subscriptions.iter().map(|one| (&*one.api, one.state)).collect();
        let blocked = SubscriptionState::Blocked;
        let unblocked = SubscriptionState::Unblocked;
        assert_eq!(states, [("pets", unblocked), ("cats", blocked), ("dogs", unblocked)]);
    }

    #[test]
    fn mistakes_are_reported_with_their_place() {
        let (_, diagnostics) = read_text(
            "[gateway]\nexplain_key = 'short'\n[gateway.issuers.a]\njwks_url = 'ftp://x'\nkeys = 1\n\
             certificate = 'nowhere.pem'\n[gateway.applications.b]\nsubscriptions = ['x']\n",
        );
        let all = diagnostics.join("\n");
        for part in [
            "penstock.toml:2:15: error: `gateway.explain_key` must have 16 characters or more",
            "penstock.toml:4:12: error: `gateway.issuers.a.jwks_url`: must begin with `https://` or `http://`, not `ftp://x`",
            "unknown key `gateway.issuers.a.keys`",
            "`nowhere.pem`: No such file",
            "must be `API:VERSION`",
            "`gateway.issuers.a` has no `issuer`",
            "`gateway.issuers.a` has neither `jwks_url`, `discovery_url`, `certificate` nor `introspection_url`",
        ] {
            assert!(all.contains(part), "{part} is not in\n{all}");
        }
    }
}
