//! Endpoints `jms:/…`: send and wait until the broker has accepted the message, or send a request and wait for the reply.

use std::sync::Arc;
use std::time::Duration;

use penstock_engine::ports::{ConnectionFactory, Outgoing};
use penstock_engine::{Fault, Side, codes};
use penstock_message::Message;

use super::address::{Address, Destination, TRANSPORT, is_topic, resolved};
use super::connection::JmsError;
use super::content::Rule;
use super::message::{Format, Hyphens, outgoing, received};
use super::outlet::{Outlet, ReplyQueue};
use crate::broker::body::directive;
use crate::broker::kept::{Connections, Parsed};
use crate::broker::sender::SharedClient;
use crate::broker::{body, lookup::Lookup};

/// How long a reply is waited for.
const WAIT_MS: u64 = 30_000;

/// The connections of all endpoints. One for the whole process.
pub(crate) struct Jms {
    factories: Vec<ConnectionFactory>,
    outlets: Connections<Outlet>,
    endpoints: Parsed<Endpoint>,
}

/// What a URL means.
struct Endpoint {
    outlet: Arc<Outlet>,
    destination: Destination,
    reply_queue: Option<Destination>,
    format: Format,
}

impl Jms {
    /// No connections yet. `factories`: the connection factories of the configuration.
    pub(crate) fn new(factories: Vec<ConnectionFactory>) -> Jms {
        Jms { factories, outlets: Connections::default(), endpoints: Parsed::default() }
    }

    fn parse(&self, url: &str) -> Result<Endpoint, String> {
        let (path, lookup) = Lookup::from_url(url);
        let lookup = resolved(lookup, &self.factories)?;
        let name = match path.as_str() {
            "" => lookup.get("transport.jms.Destination").ok_or("it names no queue or topic")?,
            path => path,
        };
        let reply_queue = lookup
            .get("transport.jms.ReplyDestination")
            .map(|name| Destination::parse(name, is_topic(&lookup, "transport.jms.ReplyDestinationType"), &lookup));
        Ok(Endpoint {
            outlet: self.outlet(Address::parse(&lookup, &TRANSPORT, &self.factories)?),
            destination: Destination::parse(name, is_topic(&lookup, "transport.jms.DestinationType"), &lookup),
            reply_queue,
            format: Format {
                hyphens: Hyphens::parse(lookup.get("transport.jms.MessagePropertyHyphens"))?,
                content_type_property: lookup.get("transport.jms.ContentTypeProperty").map(str::to_owned),
            },
        })
    }

    fn outlet(&self, address: Address) -> Arc<Outlet> {
        self.outlets.get_or_make(|outlet| *outlet.address() == address, || Outlet::new(address.clone()))
    }
}

impl SharedClient for Jms {
    async fn deliver(self: Arc<Self>, from: Outgoing) -> Result<Message, Fault> {
        let Outgoing { url, message: mut sent, options, .. } = from;
        let endpoint = self
            .endpoints
            .get_or_parse(&url, |url| self.parse(url))
            .map_err(|reason| Fault::new(format!("JMS endpoint: {reason}")))?;
        if let Some(command) = directive(&sent, "transport.jms.TransactionCommand") {
            // Sending it outside of the transaction would be worse.
            let text = format!("transactions over several JMS messages are not supported: `{command}`");
            return Err(Fault::new(text));
        }
        let payload = body::whole(std::mem::take(&mut sent.body)).await?;
        let message = outgoing(&sent, &payload, &endpoint.format).map_err(Fault::new)?;
        let Endpoint { outlet, destination, .. } = &*endpoint;
        if options.one_way {
            return match tokio::time::timeout(options.time_left, outlet.send(destination, message)).await {
                Ok(Ok(())) => Ok(Message { status: 202, ..Message::default() }),
                Ok(Err(error)) => Err(failed(error)),
                Err(_) => Err(timed_out("the JMS broker did not accept the message before the deadline".to_owned())),
            };
        }
        let wait = wait(&sent)?.min(options.time_left);
        let (reply_queue, name) = match (directive(&sent, "JMS_REPLY_TO"), &endpoint.reply_queue) {
            (Some(name), _) => (ReplyQueue::Named(Destination::queue(&name)), name),
            (None, Some(queue)) => (ReplyQueue::Named(queue.clone()), queue.name.clone()),
            (None, None) => (ReplyQueue::Temporary, "temporary".to_owned()),
        };
        match outlet.request(destination, message, reply_queue, wait).await {
            Ok(Some(reply)) => {
                let reply = received(reply, &reply_rules(&endpoint.format, sent.headers.get("Content-Type"))).message;
                Ok(Message { status: 200, ..reply })
            }
            Ok(None) => {
                let text = format!("Did not receive a JMS response within {} ms to the queue {name}", wait.as_millis());
                Err(timed_out(text))
            }
            Err(error) => Err(failed(error)),
        }
    }
}

/// A reply is of the type that it has, else of that of its request.
fn reply_rules(format: &Format, request: Option<&str>) -> Vec<Rule> {
    let property = format.content_type_property.clone().unwrap_or_else(|| "contentType".to_owned());
    let mut rules = vec![Rule::Property(property), Rule::Field, Rule::Bytes("application/octet-stream".to_owned())];
    rules.extend(request.map(|content_type| Rule::All(content_type.to_owned())));
    rules
}

fn wait(message: &Message) -> Result<Duration, Fault> {
    let Some(text) = directive(message, "JMS_WAIT_REPLY") else { return Ok(Duration::from_millis(WAIT_MS)) };
    let wrong = |_| Fault::new(format!("the property `JMS_WAIT_REPLY` is not a number of milliseconds: `{text}`"));
    text.parse().map(Duration::from_millis).map_err(wrong)
}

fn failed(error: JmsError) -> Fault {
    let code = if error.is_unreachable { codes::CONNECTION_FAILED } else { codes::SENDER_IO_SENDING };
    Fault::coded(code, Side::Backend, error.reason)
}

fn timed_out(text: String) -> Fault {
    Fault::coded(codes::CONNECTION_TIMED_OUT, Side::Backend, text)
}
