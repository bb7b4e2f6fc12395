//! Connections: the client settings under Kafka's names.

use std::time::Duration;

use krafka::Kafka;
use krafka::auth::{AuthConfig, TlsConfig};
use krafka::consumer::{AutoOffsetReset, Consumer};

use crate::broker::handle;
use crate::broker::lookup::Lookup;
use crate::broker::tls::Keystore;
use crate::http::tls::certificates_to_pem;

/// How long a member of a group may be silent.
const SESSION_TIMEOUT_MS: u64 = 10_000;

/// How long the flows of one poll may take before the group takes the partitions away.
const POLL_INTERVAL_MS: u64 = 300_000;

/// Records of one poll.
const POLL_RECORDS_MAX: i32 = 500;

/// What a consumer needs, read from the parameters.
#[derive(Clone)]
pub(super) struct Settings {
    pub(super) servers: String,
    group: String,
    topics: Vec<String>,
    reset: AutoOffsetReset,
    session_timeout: Duration,
    poll_interval: Duration,
    poll_records_max: i32,
    security: Security,
}

/// `security.protocol` and what belongs to it.
#[derive(Clone, Default)]
struct Security {
    /// Mechanism, user and password.
    login: Option<(String, String, String)>,
    has_tls: bool,
    truststore: Option<Keystore>,
    keystore: Option<Keystore>,
}

impl Settings {
    pub(super) fn parse(lookup: &Lookup) -> Result<Settings, String> {
        let text = |name: &str| lookup.get(name).map(str::to_owned).ok_or_else(|| format!("there is no `{name}`"));
        let millis = |name: &str, default: u64| -> Result<Duration, String> {
            Ok(Duration::from_millis(lookup.number(name)?.unwrap_or(default)))
        };
        for name in ["key.deserializer", "value.deserializer"] {
            let class = lookup.get(name).unwrap_or_default().rsplit('.').next().unwrap_or_default();
            if !["", "StringDeserializer", "ByteArrayDeserializer"].contains(&class) {
                return Err(format!(
                    "`{name}` is `{class}`; only StringDeserializer and ByteArrayDeserializer are supported"
                ));
            }
        }
        let reset = match lookup.get("auto.offset.reset") {
            None | Some("latest") => AutoOffsetReset::Latest,
            Some("earliest") => AutoOffsetReset::Earliest,
            Some("none") => AutoOffsetReset::None,
            Some(other) => {
                return Err(format!(
                    "`auto.offset.reset` is `{other}`, which is none of `latest`, `earliest` and `none`"
                ));
            }
        };
        Ok(Settings {
            servers: text("bootstrap.servers")?,
            group: text("group.id")?,
            topics: text("topic.name")?.split(',').map(|topic| topic.trim().to_owned()).collect(),
            reset,
            session_timeout: millis("session.timeout.ms", SESSION_TIMEOUT_MS)?,
            poll_interval: millis("max.poll.interval.ms", POLL_INTERVAL_MS)?,
            poll_records_max: lookup.number("max.poll.records")?.unwrap_or(POLL_RECORDS_MAX),
            security: Security::parse(lookup)?,
        })
    }

    /// A consumer that has subscribed. Its tasks live on the runtime of broker clients.
    pub(super) async fn connect(&self) -> Result<Consumer, String> {
        let settings = self.clone();
        let connected = handle()?.spawn(async move {
            let security = settings.security.clone();
            let security = tokio::task::spawn_blocking(move || security.config()).await;
            let security = security.map_err(|error| error.to_string())??;
            let kafka = Kafka::builder(settings.servers.as_str()).client_id("penstock").security(security);
            let kafka = kafka.connect().await.map_err(|error| error.to_string())?;
            let consumer = kafka
                .consumer(settings.group.as_str())
                .auto_offset_reset(settings.reset)
                .enable_auto_commit(false)
                .session_timeout(settings.session_timeout)
                .max_poll_interval(settings.poll_interval)
                .max_poll_records(settings.poll_records_max)
                .build()
                .await
                .map_err(|error| error.to_string())?;
            consumer.subscribe(&settings.topics).await.map_err(|error| error.to_string())?;
            Ok::<Consumer, String>(consumer)
        });
        connected.await.map_err(|error| error.to_string())?
    }
}

impl Security {
    fn parse(lookup: &Lookup) -> Result<Security, String> {
        let (has_tls, has_login) = match lookup.get("security.protocol") {
            None | Some("PLAINTEXT") => (false, false),
            Some("SSL") => (true, false),
            Some("SASL_PLAINTEXT") => (false, true),
            Some("SASL_SSL") => (true, true),
            Some(other) => return Err(format!("`security.protocol` is `{other}`, which Kafka does not have")),
        };
        let login = match has_login {
            false => None,
            true => {
                let mechanism = lookup.get("sasl.mechanism").unwrap_or("PLAIN");
                if !["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"].contains(&mechanism) {
                    return Err(format!("`sasl.mechanism` is `{mechanism}`, which is not supported"));
                }
                let jaas = lookup.get("sasl.jaas.config").unwrap_or_default();
                let part =
                    |name: &str| jaas_option(jaas, name).ok_or_else(|| format!("`sasl.jaas.config` has no `{name}`"));
                Some((mechanism.to_owned(), part("username")?, part("password")?))
            }
        };
        let keystore = |which: &str| {
            let parameter = |name: &str| lookup.get(&format!("ssl.{which}.{name}"));
            Some(Keystore::new(parameter("location")?, parameter("password")))
        };
        Ok(Security { login, has_tls, truststore: keystore("truststore"), keystore: keystore("keystore") })
    }

    /// Reads keystores.
    fn config(&self) -> Result<AuthConfig, String> {
        let tls = self.has_tls.then(|| self.tls()).transpose()?;
        let config = match &self.login {
            None => match tls {
                None => return Ok(AuthConfig::plaintext()),
                Some(tls) => return Ok(AuthConfig::ssl(tls)),
            },
            Some((mechanism, user, password)) => match mechanism.as_str() {
                "SCRAM-SHA-256" => AuthConfig::sasl_scram_sha256(user.as_str(), password.as_str()),
                "SCRAM-SHA-512" => AuthConfig::sasl_scram_sha512(user.as_str(), password.as_str()),
                _ => AuthConfig::sasl_plain(user.as_str(), password.as_str()),
            },
        };
        Ok(match tls {
            Some(tls) => config.with_tls(tls),
            None => config,
        })
    }

    fn tls(&self) -> Result<TlsConfig, String> {
        let trusted = match &self.truststore {
            Some(truststore) => truststore.certificates()?,
            None => rustls_native_certs::load_native_certs().certs,
        };
        let mut tls = TlsConfig::new().with_ca_cert_pem(certificates_to_pem(&trusted));
        if let Some(keystore) = &self.keystore {
            let (certificates, key) = keystore.identity()?.to_pem();
            tls = tls.with_client_cert_pem(certificates, key.into_bytes());
        }
        Ok(tls)
    }
}

/// An option of a login module: `… required username="u" password="p";`.
fn jaas_option(jaas: &str, name: &str) -> Option<String> {
    let (_, rest) = jaas.split_once(&format!("{name}="))?;
    let quote = rest.chars().next().filter(|first| ['"', '\''].contains(first))?;
    Some(rest[1..].split(quote).next()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(parameters: &[(&str, &str)]) -> Result<Settings, String> {
        let common = [("bootstrap.servers", "h:9092"), ("group.id", "g"), ("topic.name", "a, b")];
        let entries: Vec<_> =
            common.iter().chain(parameters).map(|(name, value)| ((*name).into(), (*value).into())).collect();
        Settings::parse(&Lookup::new(&entries))
    }

    #[test]
    fn settings_have_kafkas_names() {
        let settings = parse(&[("auto.offset.reset", "earliest"), ("max.poll.records", "7")]).unwrap();
        assert_eq!((settings.topics, settings.poll_records_max), (vec!["a".to_owned(), "b".to_owned()], 7));
        assert!(parse(&[("auto.offset.reset", "x")]).is_err());
        assert!(parse(&[("value.deserializer", "io.confluent.kafka.serializers.KafkaAvroDeserializer")]).is_err());
        assert!(parse(&[("value.deserializer", "org.apache.kafka.common.serialization.StringDeserializer")]).is_ok());
    }

    #[test]
    fn a_login_is_in_the_configuration_of_jaas() {
        let jaas = "org.apache.kafka.common.security.plain.PlainLoginModule required username=\"u\" password=\"p=1\";";
        let sasl = ("security.protocol", "SASL_PLAINTEXT");
        let login = parse(&[sasl, ("sasl.jaas.config", jaas)]).unwrap().security.login;
        assert_eq!(login, Some(("PLAIN".into(), "u".into(), "p=1".into())));
        assert!(parse(&[sasl]).is_err());
        assert!(parse(&[sasl, ("sasl.jaas.config", jaas), ("sasl.mechanism", "GSSAPI")]).is_err());
    }
}
