//! Where a broker is, and who connects to it.

use std::fmt;
use std::time::Duration;

use penstock_engine::ports::ConnectionFactory;
use rumqttc::{AsyncClient, EventLoop, MqttOptions, NetworkOptions, QoS, TlsConfiguration, Transport};

use super::SCHEME;
use crate::broker::lookup::Lookup;
use crate::broker::tls::{Keystore, Tls, client_config};

/// The parameter that names a connection of the configuration.
pub(super) const FACTORY: &str = "mqtt.connection.factory";

/// The parameter that has the host of the broker.
pub(super) const HOST: &str = "mqtt.server.host.name";

/// The parameter that has the topic.
pub(super) const TOPIC: &str = "mqtt.topic.name";

/// The parameter that has the quality of service.
pub(super) const QUALITY: &str = "mqtt.subscription.qos";

/// A broker that is silent for longer than one and a half of these is gone.
const KEEP_ALIVE: Duration = Duration::from_secs(30);

/// How long connecting may take, in seconds.
const CONNECT_TIMEOUT_S: u64 = 10;

/// The largest message, in bytes; bodies of other brokers have the same limit.
const PACKET_BYTES_MAX: usize = 128 << 20;

/// Requests that wait for the connection: acknowledgements, messages.
const REQUESTS_MAX: usize = 64;

/// A broker, and an account.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Address {
    host: String,
    port: u16,
    user: Option<(String, String)>,
    /// Missing: no TLS.
    tls: Option<Tls>,
    client_id: Option<String>,
}

impl Address {
    /// Reads the parameters of a connection.
    pub(super) fn parse(lookup: &Lookup) -> Result<Address, String> {
        let keystore = |which: &str| {
            let parameter = |name: &str| lookup.get(&format!("mqtt.ssl.{which}.{name}"));
            Some(Keystore::new(parameter("location")?, parameter("password")))
        };
        let tls = lookup
            .flag("mqtt.ssl.enable", false)
            .then(|| Tls { keystore: keystore("keystore"), truststore: keystore("truststore") });
        let user = lookup
            .get("mqtt.subscription.username")
            .map(|user| (user.to_owned(), lookup.get("mqtt.subscription.password").unwrap_or_default().to_owned()));
        Ok(Address {
            host: lookup.get(HOST).ok_or_else(|| format!("the parameter `{HOST}` is missing"))?.to_owned(),
            port: lookup.number("mqtt.server.port")?.unwrap_or(if tls.is_some() { 8883 } else { 1883 }),
            user,
            tls,
            client_id: lookup.get("mqtt.client.id").map(str::to_owned),
        })
    }

    /// A client that connects when its loop is polled. `client_id`: unless a parameter names one. Reads keystores.
    pub(super) async fn client(&self, client_id: &str, is_clean: bool) -> Result<(AsyncClient, EventLoop), String> {
        let id = self.client_id.as_deref().unwrap_or(client_id);
        let mut options = MqttOptions::new(id, self.host.as_str(), self.port);
        options
            .set_keep_alive(KEEP_ALIVE)
            .set_clean_session(is_clean)
            .set_manual_acks(true)
            .set_max_packet_size(PACKET_BYTES_MAX, PACKET_BYTES_MAX);
        if let Some((user, password)) = &self.user {
            options.set_credentials(user, password);
        }
        if let Some(tls) = self.tls.clone() {
            let config = tokio::task::spawn_blocking(move || client_config(&tls)).await;
            let config = config.map_err(|error| error.to_string())??;
            options.set_transport(Transport::tls_with_config(TlsConfiguration::Rustls(config)));
        }
        let (client, mut events) = AsyncClient::new(options, REQUESTS_MAX);
        let mut network = NetworkOptions::new();
        network.set_connection_timeout(CONNECT_TIMEOUT_S);
        network.set_tcp_nodelay(true);
        events.set_network_options(network);
        Ok((client, events))
    }
}

/// The parameters with those of the connection that they name. One that the configuration does not have is needed only where
/// the parameters themselves name no broker.
pub(super) fn resolved(lookup: Lookup, factories: &[ConnectionFactory]) -> Result<Lookup, String> {
    let Some(factory) = lookup.get(FACTORY).map(str::to_owned) else { return Ok(lookup) };
    let is_configured = factories.iter().any(|known| known.transport == SCHEME && known.name == factory);
    match is_configured || lookup.get(HOST).is_none() {
        true => lookup.with_factory(SCHEME, &factory, factories),
        false => Ok(lookup),
    }
}

/// `mqtt.subscription.qos`: at most once, at least once, exactly once.
pub(super) fn quality(lookup: &Lookup) -> Result<QoS, String> {
    match lookup.get(QUALITY) {
        Some("0") => Ok(QoS::AtMostOnce),
        None | Some("1") => Ok(QoS::AtLeastOnce),
        Some("2") => Ok(QoS::ExactlyOnce),
        Some(other) => Err(format!("the parameter `{QUALITY}` is none of 0, 1 and 2: `{other}`")),
    }
}

/// Without credentials.
impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "the MQTT broker at {}:{}", self.host, self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(parameters: &[(&str, &str)]) -> Result<Address, String> {
        let entries: Vec<_> = parameters.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        Address::parse(&Lookup::new(&entries))
    }

    #[test]
    fn the_port_depends_on_tls() {
        let host = (HOST, "mq");
        assert_eq!(parse(&[host]).unwrap().to_string(), "the MQTT broker at mq:1883");
        assert_eq!(parse(&[host, ("mqtt.ssl.enable", "true")]).unwrap().to_string(), "the MQTT broker at mq:8883");
        assert_eq!(parse(&[host, ("mqtt.server.port", "1")]).unwrap().to_string(), "the MQTT broker at mq:1");
        assert!(parse(&[host, ("mqtt.server.port", "x")]).is_err());
        assert!(parse(&[]).is_err());
    }

    #[test]
    fn the_quality_of_service_is_one_of_three() {
        let quality = |text: &str| quality(&Lookup::new(&[(QUALITY.into(), text.into())]));
        assert_eq!(quality("2"), Ok(QoS::ExactlyOnce));
        assert_eq!(quality(""), Ok(QoS::AtLeastOnce));
        assert!(quality("3").is_err());
    }
}
