//! Where a broker is, and who connects to it: the parameters of connections by their names.

use std::fmt;

use lapin::tcp::{OwnedIdentity, OwnedTLSConfig};
use lapin::uri::{AMQPAuthority, AMQPQueryString, AMQPScheme, AMQPUri, AMQPUserInfo};
use penstock_engine::ports::ConnectionFactory;

use super::SCHEME;
use crate::broker::lookup::Lookup;
use crate::broker::tls::{Keystore, Tls};
use crate::http::tls::certificates_to_pem;

/// A broker that is silent for twice this long is gone, in seconds.
const HEARTBEAT_S: u16 = 30;

/// A broker or a cluster of them, and credentials.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Address {
    /// Hosts and ports in the order in which they are tried.
    pub(super) nodes: Vec<(String, u16)>,
    user: String,
    password: String,
    virtual_host: String,
    tls: Option<Tls>,
}

/// The names of the parameters, which differ between stores and everything else.
pub(super) struct Names {
    host: &'static str,
    port: &'static str,
    user: &'static str,
    password: &'static str,
    virtual_host: &'static str,
}

/// Endpoints, inbound endpoints, proxy services, connection factories.
pub(super) const SERVER: Names = Names {
    host: "rabbitmq.server.host.name",
    port: "rabbitmq.server.port",
    user: "rabbitmq.server.user.name",
    password: "rabbitmq.server.password",
    virtual_host: "rabbitmq.server.virtual.host",
};

/// Message stores.
pub(super) const STORE: Names = Names {
    host: "store.rabbitmq.host.name",
    port: "store.rabbitmq.host.port",
    user: "store.rabbitmq.username",
    password: "store.rabbitmq.password",
    virtual_host: "store.rabbitmq.virtual.host",
};

impl Address {
    /// Reads the parameters of a connection.
    pub(super) fn parse(lookup: &Lookup, names: &Names) -> Result<Address, String> {
        let tls = match lookup.flag("rabbitmq.connection.ssl.enabled", false) {
            false => None,
            true => Some(Tls { keystore: keystore(lookup, "keystore"), truststore: keystore(lookup, "truststore") }),
        };
        let default_port = if tls.is_some() { "5671" } else { "5672" };
        let list = |text: &str| text.split(',').map(|item| item.trim().to_owned()).collect::<Vec<_>>();
        let hosts = list(lookup.get(names.host).unwrap_or("localhost"));
        let ports = list(lookup.get(names.port).unwrap_or(default_port));
        if ports.len() != hosts.len() && ports.len() != 1 {
            return Err(format!(
                "`{}` has {} entries and `{}` has {}: each host needs a port",
                names.host,
                hosts.len(),
                names.port,
                ports.len()
            ));
        }
        let mut nodes = Vec::new();
        for (index, host) in hosts.into_iter().enumerate() {
            let port = ports.get(index).or(ports.first()).map_or(default_port, String::as_str);
            let port = port.parse().map_err(|_| format!("the parameter `{}` is not a port: `{port}`", names.port))?;
            nodes.push((host, port));
        }
        let text = |name: &str, default: &str| lookup.get(name).unwrap_or(default).to_owned();
        Ok(Address {
            nodes,
            user: text(names.user, "guest"),
            password: text(names.password, "guest"),
            virtual_host: text(names.virtual_host, "/"),
            tls,
        })
    }

    /// One of its nodes as lapin has it.
    pub(super) fn uri(&self, host: &str, port: u16) -> AMQPUri {
        AMQPUri {
            scheme: if self.tls.is_some() { AMQPScheme::AMQPS } else { AMQPScheme::AMQP },
            authority: AMQPAuthority {
                userinfo: AMQPUserInfo { username: self.user.clone(), password: self.password.clone() },
                host: host.to_owned(),
                port,
            },
            vhost: self.virtual_host.clone(),
            query: AMQPQueryString { heartbeat: Some(HEARTBEAT_S), ..AMQPQueryString::default() },
        }
    }

    /// Keys and certificates. Reads files.
    pub(super) fn tls(&self) -> Result<OwnedTLSConfig, String> {
        let Some(tls) = &self.tls else { return Ok(OwnedTLSConfig::default()) };
        let identity = tls.keystore.as_ref().map(Keystore::identity).transpose()?.map(|identity| {
            let (pem, key) = identity.to_pem();
            OwnedIdentity::PKCS8 { pem: pem.into_bytes(), key: key.into_bytes() }
        });
        let trusted = match &tls.truststore {
            Some(truststore) => truststore.certificates()?,
            None => rustls_native_certs::load_native_certs().certs,
        };
        Ok(OwnedTLSConfig { identity, cert_chain: Some(certificates_to_pem(&trusted)) })
    }
}

fn keystore(lookup: &Lookup, which: &str) -> Option<Keystore> {
    let parameter = |name: &str| lookup.get(&format!("rabbitmq.connection.ssl.{which}.{name}"));
    Some(Keystore::new(parameter("location")?, parameter("password")))
}

/// The parameters with those of the connection factory that they name. A factory that the configuration does not have is
/// needed only where the parameters themselves name no broker.
pub(super) fn resolved(lookup: Lookup, factories: &[ConnectionFactory]) -> Result<Lookup, String> {
    let Some(factory) = lookup.get("rabbitmq.connection.factory").map(str::to_owned) else { return Ok(lookup) };
    let is_configured = factories.iter().any(|known| known.transport == SCHEME && known.name == factory);
    match is_configured || lookup.get(SERVER.host).is_none() {
        true => lookup.with_factory(SCHEME, &factory, factories),
        false => Ok(lookup),
    }
}

/// Without credentials.
impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nodes: Vec<String> = self.nodes.iter().map(|(host, port)| format!("{host}:{port}")).collect();
        write!(out, "RabbitMQ at {}", nodes.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(parameters: &[(&str, &str)]) -> Result<Address, String> {
        let entries: Vec<_> = parameters.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        Address::parse(&Lookup::new(&entries), &SERVER)
    }

    #[test]
    fn hosts_and_ports_are_lists_of_one_length() {
        let nodes = |parameters: &[(&str, &str)]| parse(parameters).map(|address| address.nodes);
        let pairs =
            |nodes: &[(&str, u16)]| nodes.iter().map(|(host, port)| ((*host).to_owned(), *port)).collect::<Vec<_>>();
        assert_eq!(nodes(&[]), Ok(pairs(&[("localhost", 5672)])));
        assert_eq!(nodes(&[("rabbitmq.connection.ssl.enabled", "true")]), Ok(pairs(&[("localhost", 5671)])));
        assert_eq!(
            nodes(&[("rabbitmq.server.host.name", "a, b"), ("rabbitmq.server.port", "1,2")]),
            Ok(pairs(&[("a", 1), ("b", 2)]))
        );
        assert!(nodes(&[("rabbitmq.server.host.name", "a"), ("rabbitmq.server.port", "1,2")]).is_err());
        assert!(nodes(&[("rabbitmq.server.port", "70000")]).is_err());
    }

    #[test]
    fn the_name_of_a_broker_has_no_credentials() {
        let address = parse(&[("rabbitmq.server.user.name", "u1"), ("rabbitmq.server.password", "p1")]).unwrap();
        assert_eq!(address.to_string(), "RabbitMQ at localhost:5672");
    }
}
