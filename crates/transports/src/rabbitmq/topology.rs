//! Queues and exchanges, and how they are declared.

use lapin::options::{ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions};
use lapin::types::{AMQPValue, FieldTable, ShortString};
use lapin::{Channel, ExchangeKind};

use super::connection::{Link, RabbitMqError, within};
use crate::broker::lookup::Lookup;

/// A queue and an exchange that is bound to it; either may be missing.
#[derive(Debug, Clone)]
pub(super) struct Topology {
    pub(super) queue: Option<QueueDefinition>,
    pub(super) exchange: Option<ExchangeDefinition>,
    /// The key of the binding; the name of the queue when there is none.
    pub(super) routing_key: Option<ShortString>,
}

#[derive(Debug, Clone)]
pub(super) struct QueueDefinition {
    pub(super) name: ShortString,
    pub(super) is_declared: bool,
    pub(super) options: QueueDeclareOptions,
    pub(super) arguments: FieldTable,
}

#[derive(Debug, Clone)]
pub(super) struct ExchangeDefinition {
    pub(super) name: ShortString,
    pub(super) is_declared: bool,
    pub(super) kind: ExchangeKind,
    pub(super) options: ExchangeDeclareOptions,
    pub(super) arguments: FieldTable,
}

/// A name as the protocol has it: at most 255 bytes.
pub(super) fn name(text: &str) -> Result<ShortString, String> {
    ShortString::try_new(text).map_err(|_| format!("a name of RabbitMQ has at most 255 bytes: `{text}`"))
}

impl Topology {
    /// Reads `rabbitmq.queue.*` and `rabbitmq.exchange.*`.
    pub(super) fn parse(lookup: &Lookup) -> Result<Topology, String> {
        let queue = match lookup.get("rabbitmq.queue.name") {
            None => None,
            Some(text) => Some(QueueDefinition {
                name: name(text)?,
                is_declared: lookup.flag("rabbitmq.queue.autodeclare", true),
                options: QueueDeclareOptions {
                    durable: lookup.flag("rabbitmq.queue.durable", true),
                    exclusive: lookup.flag("rabbitmq.queue.exclusive", false),
                    auto_delete: lookup.flag("rabbitmq.queue.auto.delete", false),
                    ..QueueDeclareOptions::default()
                },
                arguments: arguments(lookup, "rabbitmq.queue.optional.")?,
            }),
        };
        let exchange = match lookup.get("rabbitmq.exchange.name") {
            None => None,
            Some(text) => Some(ExchangeDefinition {
                name: name(text)?,
                // Exchanges of the broker itself cannot be declared.
                is_declared: lookup.flag("rabbitmq.exchange.autodeclare", true) && !text.starts_with("amq."),
                kind: kind(lookup.get("rabbitmq.exchange.type").unwrap_or("direct")),
                options: ExchangeDeclareOptions {
                    durable: lookup.flag("rabbitmq.exchange.durable", true),
                    auto_delete: lookup.flag("rabbitmq.exchange.auto.delete", false),
                    ..ExchangeDeclareOptions::default()
                },
                arguments: arguments(lookup, "rabbitmq.exchange.optional.")?,
            }),
        };
        let routing_key = lookup.get("rabbitmq.queue.routing.key").map(name).transpose()?;
        Ok(Topology { queue, exchange, routing_key })
    }

    /// Declares what is to be declared, and returns a channel. What exists with other arguments is used as it is, as in Micro
    /// Integrator.
    pub(super) async fn declare(&self, link: &Link) -> Result<Channel, RabbitMqError> {
        let mut channel = link.channel().await?;
        if let Some(queue) = self.queue.as_ref().filter(|queue| queue.is_declared) {
            let declared = channel.queue_declare(queue.name.clone(), queue.options, queue.arguments.clone());
            channel = usable(link, channel.clone(), within(declared).await.map(drop)).await?;
        }
        if let Some(exchange) = self.exchange.as_ref().filter(|exchange| exchange.is_declared) {
            let (kind, arguments) = (exchange.kind.clone(), exchange.arguments.clone());
            let declared = channel.exchange_declare(exchange.name.clone(), kind, exchange.options, arguments);
            channel = usable(link, channel.clone(), within(declared).await).await?;
        }
        if let (Some(queue), Some(exchange)) = (&self.queue, &self.exchange) {
            let key = self.routing_key.clone().unwrap_or_else(|| queue.name.clone());
            let bound = channel.queue_bind(
                queue.name.clone(),
                exchange.name.clone(),
                key,
                QueueBindOptions::default(),
                FieldTable::default(),
            );
            within(bound).await?;
        }
        Ok(channel)
    }
}

/// The channel after a declaration: the broker closes it when it refuses one.
async fn usable(link: &Link, channel: Channel, declared: Result<(), RabbitMqError>) -> Result<Channel, RabbitMqError> {
    match declared {
        Ok(()) => Ok(channel),
        Err(error) if error.is_inequivalent => link.channel().await,
        Err(error) => Err(error),
    }
}

fn kind(text: &str) -> ExchangeKind {
    match text {
        "direct" => ExchangeKind::Direct,
        "fanout" => ExchangeKind::Fanout,
        "headers" => ExchangeKind::Headers,
        "topic" => ExchangeKind::Topic,
        other => ExchangeKind::Custom(other.to_owned()),
    }
}

/// Arguments are flags, whole numbers or texts, as their values look.
fn arguments(lookup: &Lookup, prefix: &str) -> Result<FieldTable, String> {
    let mut table = FieldTable::default();
    for (key, value) in lookup.beginning_with(prefix) {
        let key = name(key)?;
        if table.contains_key(key.as_str()) {
            continue;
        }
        let value = match (value, value.parse::<i32>()) {
            ("true" | "false", _) => AMQPValue::Boolean(value == "true"),
            (_, Ok(number)) => AMQPValue::LongInt(number),
            _ => AMQPValue::LongString(value.into()),
        };
        table.insert(key, value);
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_have_the_types_they_look_like() {
        let parameters = [
            ("rabbitmq.queue.name", "q"),
            ("rabbitmq.queue.optional.x-single-active-consumer", "true"),
            ("rabbitmq.queue.optional.x-max-length", "10"),
            ("rabbitmq.queue.optional.x-dead-letter-exchange", "dead"),
        ];
        let entries: Vec<_> = parameters.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        let topology = Topology::parse(&Lookup::new(&entries)).unwrap();
        let arguments = topology.queue.unwrap().arguments;
        let get = |name: &str| arguments.inner().get(name).cloned();
        assert_eq!(get("x-single-active-consumer"), Some(AMQPValue::Boolean(true)));
        assert_eq!(get("x-max-length"), Some(AMQPValue::LongInt(10)));
        assert_eq!(get("x-dead-letter-exchange"), Some(AMQPValue::LongString("dead".into())));
        assert!(topology.exchange.is_none());
    }

    #[test]
    fn a_name_that_is_too_long_is_an_error() {
        let long = "q".repeat(256);
        let lookup = Lookup::new(&[("rabbitmq.queue.name".into(), long.into())]);
        assert!(Topology::parse(&lookup).unwrap_err().contains("255"));
    }
}
