//! Connections over AMQP 1.0 and the links on them.

use std::fmt;
use std::time::Duration;

use fe2o3_amqp::connection::ConnectionHandle;
use fe2o3_amqp::link::receiver::CreditMode;
use fe2o3_amqp::sasl_profile::SaslProfile;
use fe2o3_amqp::session::SessionHandle;
use fe2o3_amqp::types::definitions::SenderSettleMode;
use fe2o3_amqp::types::messaging::{FilterSet, Source, Target, TerminusDurability, TerminusExpiryPolicy};
use fe2o3_amqp::types::primitives::{Symbol, Value};
use fe2o3_amqp::{Connection, Receiver, Sender, Session};
use penstock_engine::clock;
use serde_amqp::described::Described;
use serde_amqp::descriptor::Descriptor;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use super::address::{Address, Destination, Node};
use crate::broker::{handle, tls};

/// How long connecting to one node may take, TLS and login included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long the broker may take to open a link or to accept a message.
pub(super) const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// A broker that is silent for longer is gone, in milliseconds.
const IDLE_TIMEOUT_MS: u32 = 60_000;

/// The largest message that is taken; bodies of other transports have the same limit.
const MESSAGE_BYTES_MAX: u64 = 128 << 20;

/// The filter for selectors, as Apache registered it.
const SELECTOR_FILTER: &str = "apache.org:selector-filter:string";

/// Why an operation of the broker failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct JmsError {
    /// The reason, without secrets.
    pub(super) reason: String,
    /// Whether the broker cannot be reached, as opposed to one that refuses.
    pub(super) is_unreachable: bool,
}

impl JmsError {
    pub(super) fn unreachable(reason: impl Into<String>) -> JmsError {
        JmsError { reason: reason.into(), is_unreachable: true }
    }

    pub(super) fn refused(reason: impl Into<String>) -> JmsError {
        JmsError { reason: reason.into(), is_unreachable: false }
    }

    pub(super) fn lost(cause: impl fmt::Display) -> JmsError {
        JmsError::unreachable(format!("the connection to the JMS broker was lost: {cause}"))
    }

    fn silent() -> JmsError {
        JmsError::unreachable(format!("the JMS broker did not answer within {} s", ANSWER_TIMEOUT.as_secs()))
    }
}

/// How a consumer reads a queue or topic.
#[derive(Debug, Clone, Default)]
pub(super) struct Subscription {
    /// The name of a durable subscription, and the client identifier.
    pub(super) durable: Option<(String, String)>,
    /// Several consumers share a subscription.
    pub(super) is_shared: bool,
    pub(super) selector: Option<String>,
    /// The number of messages that the broker sends ahead; `None` when they are fetched one by one.
    pub(super) prefetch: Option<u32>,
}

/// A connection with a session.
pub(super) struct Connected {
    connection: ConnectionHandle<()>,
    session: SessionHandle<()>,
}

impl Connected {
    /// Connects to the first node that answers, on the runtime of broker clients.
    pub(super) async fn open(address: &Address, container: &str) -> Result<Connected, JmsError> {
        let (address, container) = (address.clone(), container.to_owned());
        on_runtime(async move {
            let mut failures = Vec::new();
            for node in &address.nodes {
                let connected = tokio::time::timeout(CONNECT_TIMEOUT, Connected::open_node(node, &address, &container));
                match connected.await {
                    Ok(Ok(connected)) => return Ok(connected),
                    Ok(Err(cause)) => failures.push(format!("{}:{}: {cause}", node.host, node.port)),
                    Err(_) => failures.push(format!(
                        "{}:{}: no answer within {} s",
                        node.host,
                        node.port,
                        CONNECT_TIMEOUT.as_secs()
                    )),
                }
            }
            Err(JmsError::unreachable(format!("no connection to the JMS broker: {}", failures.join("; "))))
        })
        .await
    }

    async fn open_node(node: &Node, address: &Address, container: &str) -> Result<Connected, String> {
        let profile = match &address.user {
            Some((username, password)) => SaslProfile::Plain { username: username.clone(), password: password.clone() },
            None => SaslProfile::Anonymous,
        };
        // Without TLS of the library: a connection is made here, so that keystores are read as everywhere.
        let builder = Connection::builder()
            .container_id(container)
            .hostname(node.host.as_str())
            .sasl_hostname(node.host.as_str())
            .scheme("amqp")
            .idle_time_out(IDLE_TIMEOUT_MS)
            .sasl_profile(profile);
        let socket = connect(node).await?;
        let opened = if node.is_tls {
            builder.open_with_stream(tls::connect(&address.tls, &node.host, socket).await?).await
        } else {
            builder.open_with_stream(socket).await
        };
        let mut connection = match opened {
            Ok(connection) => connection,
            Err(_) if speaks_openwire(node).await => {
                return Err(
                    "the broker speaks OpenWire on this port, and not AMQP 1.0; define a connection in the configuration \
                     that `replaces` this address by `amqp://host:port`"
                        .to_owned(),
                );
            }
            Err(error) => return Err(error.to_string()),
        };
        let session = Session::begin(&mut connection).await.map_err(|error| error.to_string())?;
        Ok(Connected { connection, session })
    }

    pub(super) fn is_open(&self) -> bool {
        !self.connection.is_closed() && !self.session.is_ended()
    }

    /// Opens a link to a destination.
    pub(super) async fn sender(&mut self, to: &Destination) -> Result<Sender, JmsError> {
        let target = Target::builder().address(to.name.clone()).capabilities(vec![Symbol::from(to.capability())]);
        let attached = Sender::builder()
            .name(unique_name())
            .target(target.build())
            .sender_settle_mode(SenderSettleMode::Unsettled)
            .attach(&mut self.session);
        let attached = tokio::time::timeout(ANSWER_TIMEOUT, attached).await;
        self.attached(attached, &to.name)
    }

    /// Opens a link from a destination.
    pub(super) async fn receiver(
        &mut self,
        from: &Destination,
        subscription: &Subscription,
    ) -> Result<Receiver, JmsError> {
        let mut capabilities = vec![Symbol::from(from.capability())];
        if subscription.is_shared {
            capabilities.push(Symbol::from("shared"));
        }
        let mut source = Source::builder().address(from.name.clone()).capabilities(capabilities);
        if let Some(selector) = &subscription.selector {
            source = source.filter(selector_filter(selector));
        }
        if subscription.durable.is_some() {
            source = source.durable(TerminusDurability::UnsettledState).expiry_policy(TerminusExpiryPolicy::Never);
        }
        let name = subscription.durable.as_ref().map_or_else(unique_name, |(name, _)| name.clone());
        let receiver = Receiver::builder()
            .name(name)
            .source(source.build())
            .credit_mode(subscription.prefetch.map_or(CreditMode::Manual, CreditMode::Auto))
            .max_message_size(MESSAGE_BYTES_MAX)
            .attach(&mut self.session);
        let attached = tokio::time::timeout(ANSWER_TIMEOUT, receiver).await;
        self.attached(attached, &from.name)
    }

    /// Opens a link from a queue that exists as long as the link, and returns its address.
    pub(super) async fn temporary_queue(&mut self) -> Result<(Receiver, String), JmsError> {
        let source = Source::builder().dynamic(true).capabilities(vec![Symbol::from("temporary-queue")]).build();
        let receiver = Receiver::builder()
            .name(unique_name())
            .source(source)
            .credit_mode(CreditMode::Auto(1))
            .max_message_size(MESSAGE_BYTES_MAX)
            .attach(&mut self.session);
        let attached = tokio::time::timeout(ANSWER_TIMEOUT, receiver).await;
        let receiver = self.attached(attached, "a temporary queue")?;
        let address = receiver.source().as_ref().and_then(|source| source.address.clone());
        let address = address.ok_or_else(|| JmsError::refused("the JMS broker made no temporary queue"))?;
        Ok((receiver, address))
    }

    fn attached<T, E: fmt::Display>(
        &self,
        attached: Result<Result<T, E>, tokio::time::error::Elapsed>,
        name: &str,
    ) -> Result<T, JmsError> {
        match attached {
            Ok(Ok(link)) => Ok(link),
            Ok(Err(error)) if self.is_open() => {
                Err(JmsError::refused(format!("the JMS broker refused a link with `{name}`: {error}")))
            }
            Ok(Err(error)) => Err(JmsError::lost(error)),
            Err(_) => Err(JmsError::silent()),
        }
    }

    /// Ends the connection.
    pub(super) async fn close(mut self) {
        let closed = async {
            let _ = self.session.end().await;
            let _ = self.connection.close().await;
        };
        // The broker also notices when the socket closes.
        let _ = tokio::time::timeout(CONNECT_TIMEOUT, closed).await;
    }
}

/// Ends a link that receives; what was not accepted goes back. A durable subscription stays.
pub(super) async fn end_receiver(receiver: Receiver, is_durable: bool) {
    let ended = async {
        match is_durable {
            true => drop(receiver.detach().await),
            false => drop(receiver.close().await),
        }
    };
    let _ = tokio::time::timeout(CONNECT_TIMEOUT, ended).await;
}

/// Links and containers have names that no other has.
pub(super) fn unique_name() -> String {
    format!("penstock-{}", clock::uuid())
}

fn selector_filter(selector: &str) -> FilterSet {
    let described = Described {
        descriptor: Descriptor::Name(Symbol::from(SELECTOR_FILTER)),
        value: Value::String(selector.to_owned()),
    };
    let mut filters = FilterSet::new();
    filters.insert(Symbol::from("jms-selector"), Value::Described(Box::new(described)));
    filters
}

async fn connect(node: &Node) -> Result<TcpStream, String> {
    let socket = TcpStream::connect((node.host.as_str(), node.port)).await.map_err(|error| error.to_string())?;
    // A message is one small write, whose answer is waited for.
    let _ = socket.set_nodelay(true);
    Ok(socket)
}

/// Whether the port belongs to ActiveMQ's own protocol: such a broker introduces itself before the client does.
async fn speaks_openwire(node: &Node) -> bool {
    const PATIENCE: Duration = Duration::from_secs(1);
    const MAGIC: &[u8] = b"ActiveMQ";
    if node.is_tls {
        return false;
    }
    let introduced = async {
        let mut beginning = [0; 64];
        let read = connect(node).await.ok()?.read(&mut beginning).await.ok()?;
        Some(beginning[..read].windows(MAGIC.len()).any(|window| window == MAGIC))
    };
    tokio::time::timeout(PATIENCE, introduced).await.ok().flatten().unwrap_or(false)
}

/// Runs on the runtime of broker clients to its end, also when the caller gives up.
pub(super) async fn on_runtime<T: Send + 'static>(
    future: impl Future<Output = Result<T, JmsError>> + Send + 'static,
) -> Result<T, JmsError> {
    let runtime = handle().map_err(JmsError::refused)?;
    runtime.spawn(future).await.map_err(|error| JmsError::refused(error.to_string()))?
}
