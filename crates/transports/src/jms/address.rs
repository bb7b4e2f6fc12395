//! Where a broker is: the provider URLs of JNDI, and the names of destinations.

use std::fmt;
use std::time::Duration;

use penstock_engine::ports::ConnectionFactory;

use super::SCHEME;
use crate::broker::lookup::Lookup;
use crate::broker::tls::{Keystore, Tls};

/// The parameter that has the URL of the broker.
pub(super) const PROVIDER_URL: &str = "java.naming.provider.url";

/// The parameter that names a connection of the configuration.
pub(super) const FACTORY: &str = "transport.jms.ConnectionFactory";

/// The connection of artifacts that name neither a broker nor a connection, as in Micro Integrator.
const DEFAULT_FACTORY: &str = "default";

/// The parameter of a connection that names the broker of artifacts in whose place it is used.
const REPLACES: &str = "replaces";

/// Redeliveries, and the pause before one, when the URL does not have them: those of the ActiveMQ client.
const REDELIVERIES_MAX: u32 = 6;
const REDELIVERY_DELAY_MS: u64 = 1000;

/// A broker, or several of which the first that answers is used.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) nodes: Vec<Node>,
    /// Without it the login is anonymous.
    pub(super) user: Option<(String, String)>,
    pub(super) tls: Tls,
    /// `jms.redeliveryPolicy.maximumRedeliveries`: a message that rolls back more often is rejected.
    pub(super) redeliveries_max: u32,
    /// `jms.redeliveryPolicy.initialRedeliveryDelay`
    pub(super) redelivery_delay: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) is_tls: bool,
}

/// The names of the parameters for the login, which differ between stores and everything else.
pub(super) struct Names {
    user: &'static str,
    password: &'static str,
}

/// Endpoints, inbound endpoints, proxy services, connections of the configuration.
pub(super) const TRANSPORT: Names = Names { user: "transport.jms.UserName", password: "transport.jms.Password" };

/// Message stores.
pub(super) const STORE: Names = Names { user: "store.jms.username", password: "store.jms.password" };

impl Address {
    /// Reads the provider URL: `tcp://host:61616`, `ssl://…`, `amqp://…`, `amqps://…`, `failover:(tcp://a,tcp://b)?…`.
    /// `factories`: the connections of the configuration, which may replace nodes.
    pub(super) fn parse(lookup: &Lookup, names: &Names, factories: &[ConnectionFactory]) -> Result<Address, String> {
        let url = lookup.get(PROVIDER_URL).ok_or_else(|| format!("the parameter `{PROVIDER_URL}` is missing"))?;
        let Url { nodes: texts, options } = Url::parse(url);
        let mut user = credentials(lookup, names);
        let mut nodes = Vec::new();
        for text in texts {
            match factories.iter().find(|factory| replaces(factory, text)) {
                None => nodes.push(Node::parse(text)?),
                Some(factory) => {
                    let replacement = Lookup::default().with_factory(SCHEME, &factory.name, factories)?;
                    let url = replacement.get(PROVIDER_URL).unwrap_or_default();
                    for text in Url::parse(url).nodes {
                        nodes.push(Node::parse(text)?);
                    }
                    user = credentials(&replacement, &TRANSPORT).or(user);
                }
            }
        }
        let option = |name: &str| options.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
        let number = |name: &str| -> Result<Option<i64>, String> {
            let Some(text) = option(name) else { return Ok(None) };
            text.parse().map(Some).map_err(|_| format!("`{name}` in `{PROVIDER_URL}` is not a number: `{text}`"))
        };
        let redeliveries = number("jms.redeliveryPolicy.maximumRedeliveries")?;
        let delay = number("jms.redeliveryPolicy.initialRedeliveryDelay")?;
        let keystore = |location: &str, password: &str| Some(Keystore::new(option(location)?, option(password)));
        Ok(Address {
            nodes,
            user,
            tls: Tls {
                keystore: keystore("transport.keyStoreLocation", "transport.keyStorePassword"),
                truststore: keystore("transport.trustStoreLocation", "transport.trustStorePassword"),
            },
            // -1 is without end.
            redeliveries_max: redeliveries.map_or(REDELIVERIES_MAX, |most| u32::try_from(most).unwrap_or(u32::MAX)),
            redelivery_delay: Duration::from_millis(
                delay.and_then(|delay| u64::try_from(delay).ok()).unwrap_or(REDELIVERY_DELAY_MS),
            ),
        })
    }
}

/// A provider URL: its nodes, and its options as they are written.
struct Url<'a> {
    nodes: Vec<&'a str>,
    options: Vec<(&'a str, &'a str)>,
}

impl<'a> Url<'a> {
    fn parse(url: &'a str) -> Url<'a> {
        let (list, options) = match url.strip_prefix("failover:").map(|rest| rest.trim_start_matches("//")) {
            Some(rest) => match rest.strip_prefix('(').and_then(|rest| rest.split_once(')')) {
                Some((list, options)) => (list, options),
                None => rest.split_once('?').unwrap_or((rest, "")),
            },
            None => url.split_once('?').unwrap_or((url, "")),
        };
        let pairs = options.trim_start_matches('?').split('&').filter_map(|pair| pair.split_once('='));
        // Nodes of a list may have options of their own, which are those of TCP.
        let nodes = list.split(',').map(|node| node.trim().split('?').next().unwrap_or_default().trim_end_matches('/'));
        Url { nodes: nodes.collect(), options: pairs.collect() }
    }
}

fn credentials(lookup: &Lookup, names: &Names) -> Option<(String, String)> {
    let user = lookup.get(names.user)?.to_owned();
    Some((user, lookup.get(names.password).unwrap_or_default().to_owned()))
}

fn replaces(factory: &ConnectionFactory, node: &str) -> bool {
    let named = |(name, value): &(String, String)| name == REPLACES && value.trim() == node;
    factory.transport == SCHEME && factory.parameters.iter().any(named)
}

/// The parameters with those of the connection that they name.
pub(super) fn resolved(lookup: Lookup, factories: &[ConnectionFactory]) -> Result<Lookup, String> {
    let is_known = |name: &str| factories.iter().any(|factory| factory.transport == SCHEME && factory.name == name);
    let has_url = lookup.get(PROVIDER_URL).is_some();
    match lookup.get(FACTORY).map(str::to_owned) {
        Some(name) if is_known(&name) || !has_url => lookup.with_factory(SCHEME, &name, factories),
        None if !has_url && is_known(DEFAULT_FACTORY) => lookup.with_factory(SCHEME, DEFAULT_FACTORY, factories),
        Some(_) | None => Ok(lookup),
    }
}

impl Node {
    fn parse(url: &str) -> Result<Node, String> {
        let unknown = || {
            let known = "`tcp://`, `ssl://`, `amqp://`, `amqps://` or `failover:(…)`";
            format!("`{PROVIDER_URL}` is `{url}`, not an address of a broker with {known}")
        };
        let (scheme, rest) = url.split_once("://").ok_or_else(unknown)?;
        let (is_tls, default_port) = match scheme {
            "tcp" | "nio" => (false, 61616),
            "ssl" | "nio+ssl" => (true, 61617),
            "amqp" => (false, 5672),
            "amqps" | "amqp+ssl" => (true, 5671),
            _ => return Err(unknown()),
        };
        let authority = rest.split('/').next().unwrap_or_default();
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) => (host, port.parse().map_err(|_| unknown())?),
            None => (authority, default_port),
        };
        if host.is_empty() {
            return Err(unknown());
        }
        Ok(Node { host: host.trim_matches(['[', ']']).to_owned(), port, is_tls })
    }
}

/// Without credentials.
impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nodes: Vec<String> = self.nodes.iter().map(|node| format!("{}:{}", node.host, node.port)).collect();
        write!(out, "the JMS broker at {}", nodes.join(", "))
    }
}

/// A queue or topic.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Destination {
    pub(super) name: String,
    pub(super) is_topic: bool,
}

impl Destination {
    /// A name as JNDI has it: `dynamicQueues/NAME` and `dynamicTopics/NAME` state the type, a parameter `queue.NAME` or
    /// `topic.NAME` the name that the broker knows.
    pub(super) fn parse(name: &str, is_topic: bool, lookup: &Lookup) -> Destination {
        for (dynamic, named, is_topic) in [("dynamicQueues/", "queue.", false), ("dynamicTopics/", "topic.", true)] {
            let physical = lookup.get(&format!("{named}{name}"));
            if let Some(name) = physical.or(name.strip_prefix(dynamic)) {
                return Destination { name: name.to_owned(), is_topic };
            }
        }
        Destination { name: name.to_owned(), is_topic }
    }

    pub(super) fn queue(name: &str) -> Destination {
        Destination { name: name.to_owned(), is_topic: false }
    }

    /// The capability of AMQP 1.0 that makes a broker create and route it as such.
    pub(super) fn capability(&self) -> &'static str {
        if self.is_topic { "topic" } else { "queue" }
    }
}

/// Whether a destination is a topic: by its own type, else by that of the connection factory.
pub(super) fn is_topic(lookup: &Lookup, own: &str) -> bool {
    let kind = lookup.get(own).or(lookup.get("transport.jms.ConnectionFactoryType"));
    kind.is_some_and(|kind| kind.eq_ignore_ascii_case("topic"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> Result<Address, String> {
        Address::parse(&Lookup::new(&[(PROVIDER_URL.into(), url.into())]), &TRANSPORT, &[])
    }

    #[test]
    fn provider_urls_name_brokers_and_redeliveries() {
        let address = parse("tcp://localhost:61616?jms.redeliveryPolicy.maximumRedeliveries=3").unwrap();
        assert_eq!(address.to_string(), "the JMS broker at localhost:61616");
        assert_eq!((address.redeliveries_max, address.redelivery_delay.as_millis()), (3, 1000));
        let address =
            parse("failover:(tcp://a:1?keepAlive=true,ssl://b)?jms.redeliveryPolicy.maximumRedeliveries=-1").unwrap();
        assert_eq!(address.nodes[0], Node { host: "a".into(), port: 1, is_tls: false });
        assert_eq!(address.nodes[1], Node { host: "b".into(), port: 61617, is_tls: true });
        assert_eq!((address.nodes.len(), address.redeliveries_max), (2, u32::MAX));
        assert_eq!(parse("amqp://h/").unwrap().nodes[0].port, 5672);
        assert!(parse("amqps://h?transport.trustStoreLocation=a.p12").unwrap().tls.truststore.is_some());
    }

    #[test]
    fn other_urls_are_refused() {
        let wrong_number = "tcp://h:1?jms.redeliveryPolicy.maximumRedeliveries=x";
        for url in ["", "conf/jndi.properties", "vm://x", "tcp://", "tcp://h:x", wrong_number] {
            assert!(parse(url).is_err(), "{url}");
        }
    }

    #[test]
    fn a_connection_of_the_configuration_may_replace_a_node() {
        let parameter = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let factory = ConnectionFactory {
            transport: SCHEME.into(),
            name: "Classic".into(),
            parameters: vec![
                parameter("replaces", "tcp://mq:61616"),
                parameter(PROVIDER_URL, "amqp://mq:5672"),
                parameter("transport.jms.UserName", "u"),
            ],
        };
        let lookup = Lookup::new(&[(PROVIDER_URL.into(), "tcp://mq:61616?wireFormat.x=1".into())]);
        let address = Address::parse(&lookup, &STORE, &[factory]).unwrap();
        assert_eq!(address.nodes, [Node { host: "mq".into(), port: 5672, is_tls: false }]);
        assert_eq!(address.user, Some(("u".into(), String::new())));
    }

    #[test]
    fn destinations_have_types_and_other_names() {
        let lookup = Lookup::new(&[("queue.Orders".into(), "physical.orders".into())]);
        let parse = |name| Destination::parse(name, false, &lookup);
        assert_eq!(parse("dynamicTopics/t"), Destination { name: "t".into(), is_topic: true });
        assert_eq!(parse("Orders").name, "physical.orders");
        assert_eq!(parse("q").capability(), "queue");
    }
}
