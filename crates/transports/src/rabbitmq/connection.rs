//! A connection that is made when it is needed, and made again after it broke.

use std::fmt;
use std::time::Duration;

use lapin::protocol::AMQPErrorKind;
use lapin::{Channel, Connection, ConnectionProperties, DefaultConnectionBuilder, ErrorKind};
use tokio::sync::Mutex;

use super::address::Address;
use crate::broker::{handle, link::Attempts};

/// How long connecting to one node may take, TLS and login included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long the broker may take to answer a request on a channel.
pub(super) const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// Why an operation of the broker failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RabbitMqError {
    /// The reason, without secrets.
    pub(super) reason: String,
    /// Whether the broker cannot be reached, as opposed to one that refuses.
    pub(super) is_unreachable: bool,
    /// Whether a queue or exchange exists with other arguments.
    pub(super) is_inequivalent: bool,
}

impl RabbitMqError {
    pub(super) fn unreachable(reason: impl Into<String>) -> RabbitMqError {
        RabbitMqError { reason: reason.into(), is_unreachable: true, is_inequivalent: false }
    }

    pub(super) fn refused(reason: impl Into<String>) -> RabbitMqError {
        RabbitMqError { reason: reason.into(), is_unreachable: false, is_inequivalent: false }
    }
}

impl fmt::Display for RabbitMqError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.reason)
    }
}

impl From<lapin::Error> for RabbitMqError {
    fn from(error: lapin::Error) -> RabbitMqError {
        let ErrorKind::ProtocolError(refused) = error.kind() else {
            return RabbitMqError::unreachable(format!("RabbitMQ: {error}"));
        };
        let is_soft = matches!(refused.kind(), AMQPErrorKind::Soft(_));
        let text = refused.get_message().as_str();
        RabbitMqError {
            reason: format!("RabbitMQ refused: {text}"),
            is_unreachable: !is_soft,
            is_inequivalent: text.contains("inequivalent arg"),
        }
    }
}

/// A broker, connected to or not.
pub(super) struct Link {
    address: Address,
    /// What the broker's lists of connections show.
    name: String,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    connection: Option<Connection>,
    attempts: Attempts,
}

impl Link {
    pub(super) fn new(address: Address, name: impl Into<String>) -> Link {
        Link { address, name: name.into(), state: Mutex::default() }
    }

    pub(super) fn address(&self) -> &Address {
        &self.address
    }

    /// A new channel, connecting first where necessary.
    pub(super) async fn channel(&self) -> Result<Channel, RabbitMqError> {
        let mut state = self.state.lock().await;
        if let Some(connection) = state.connection.take_if(|connection| connection.status().connected()) {
            let opened = within(connection.create_channel()).await;
            if opened.is_ok() || connection.status().connected() {
                state.connection = Some(connection);
                return opened;
            }
        }
        state.connection = None;
        state.attempts.may_connect().map_err(RabbitMqError::unreachable)?;
        match self.connect().await {
            Ok(connection) => {
                state.attempts.succeeded();
                let opened = within(connection.create_channel()).await;
                state.connection = Some(connection);
                opened
            }
            Err(reason) => {
                state.attempts.failed(&reason);
                Err(RabbitMqError::unreachable(reason))
            }
        }
    }

    /// Closes the connection; what was not acknowledged goes back to its queue.
    pub(super) async fn close(&self) {
        if let Some(connection) = self.state.lock().await.connection.take() {
            // The broker also notices when the socket closes.
            let _ = within(connection.close(200, "closed".into())).await;
        }
    }

    async fn connect(&self) -> Result<Connection, String> {
        let mut failures = Vec::new();
        for (host, port) in &self.address.nodes {
            match self.connect_to(host, *port).await {
                Ok(connection) => return Ok(connection),
                Err(cause) => failures.push(format!("{host}:{port}: {cause}")),
            }
        }
        Err(format!("no connection to RabbitMQ: {}", failures.join("; ")))
    }

    async fn connect_to(&self, host: &str, port: u16) -> Result<Connection, String> {
        let (address, uri) = (self.address.clone(), self.address.uri(host, port));
        let properties = ConnectionProperties::default().with_connection_name(self.name.as_str().into());
        let connect = async move {
            let tls = tokio::task::spawn_blocking(move || address.tls()).await.map_err(|error| error.to_string())??;
            let builder = DefaultConnectionBuilder::new().map_err(|error| error.to_string())?;
            let builder = builder.with_uri(uri).with_properties(properties).with_tls_config(tls);
            match tokio::time::timeout(CONNECT_TIMEOUT, builder.connect()).await {
                Ok(connected) => connected.map_err(|error| error.to_string()),
                Err(_) => Err(format!("no response within {} s", CONNECT_TIMEOUT.as_secs())),
            }
        };
        handle()?.spawn(connect).await.map_err(|error| error.to_string())?
    }
}

/// How often a channel is looked at while an answer on it is waited for.
const CHANNEL_CHECK: Duration = Duration::from_millis(200);

/// Waits for the broker as long as the channel is open. A request that is made while a connection breaks may get no answer
/// and no error.
pub(super) async fn on_channel<T>(
    channel: &Channel,
    future: impl Future<Output = lapin::Result<T>>,
) -> Result<T, RabbitMqError> {
    let mut future = std::pin::pin!(within(future));
    loop {
        match tokio::time::timeout(CHANNEL_CHECK, &mut future).await {
            Ok(outcome) => return outcome,
            Err(_) if channel.status().connected() => {}
            Err(_) => return Err(RabbitMqError::unreachable("the connection to RabbitMQ was lost")),
        }
    }
}

/// Waits for the broker, not for ever.
pub(super) async fn within<T>(future: impl Future<Output = lapin::Result<T>>) -> Result<T, RabbitMqError> {
    match tokio::time::timeout(ANSWER_TIMEOUT, future).await {
        Ok(outcome) => Ok(outcome?),
        Err(_) => {
            Err(RabbitMqError::unreachable(format!("RabbitMQ did not respond within {} s", ANSWER_TIMEOUT.as_secs())))
        }
    }
}
