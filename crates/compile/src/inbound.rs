//! What brings messages in without the HTTP listeners: the protocols of inbound endpoints, and the transports of proxy
//! services (`transports="vfs"`). A [`crate::TransportKind`] registers both.
//!
//! # Adding a protocol
//!
//! 1. A folder in `transports/src/`, with a file `inbound.rs` that has `pub const KIND: InboundKind`. Its `build` reads every
//!    parameter by its name (`parameters.get`, `.required`, `.number`, `.millis`, `.flag`) and reports mistakes to the
//!    compiler; a parameter that nothing reads and `ignored` does not list is reported by the caller. It returns a
//!    [`Feed`], or `None` after an error.
//! 2. `inbound: &[inbound::KIND]` in the `TRANSPORT` of the folder, and one row in each table of `docs/messaging/inbound.md`.
//!
//! ```ignore
//! pub const KIND: InboundKind =
//!     InboundKind { protocols: &["mqtt"], classes: &[], ignored: &["mqtt.temporary.store.directory"], build };
//!
//! fn build(
//!     endpoint: &InboundEndpoint<'_>,
//!     parameters: &Parameters,
//!     cx: &mut Compiler<'_>,
//! ) -> Option<Feed> {
//!     let consumer = endpoint.consumer(cx)?;                 // the sequence and `onError`; an error when there is none
//!     let topic = parameters.required("mqtt.topic.name", &endpoint.el, cx)?.into();
//!     Some(Feed::Service(Arc::new(Subscription { consumer, topic })))
//! }
//!
//! impl RunService for Subscription {
//!     fn run(&self, mut control: Control) -> LocalFuture<'static, Result<(), ServiceError>> {
//!         let (consumer, topic) = (self.consumer.clone(), self.topic.clone());
//!         Box::pin(async move {
//!             // An error here makes the service faulty, with the reason in `/healthz`; the supervisor runs it again after a
//!             // pause with jitter that doubles up to a minute.
//!             let mut client = connect(&topic).await.map_err(|error| ServiceError::temporary(error.to_string()))?;
//!             control.working();                             // not faulty any more
//!             while control.next().await {                   // waits while the endpoint is suspended; false: stop
//!                 // `None`: the service must pause or stop, and no message was taken.
//!                 let Some(delivery) = control.until(client.next()).await else { continue };
//!                 let delivery = delivery.map_err(|error| ServiceError::temporary(error.to_string()))?;
//!                 let injected = consumer.consume(&control, delivery.message()).await;
//!                 match injected.outcome {                   // acknowledged after mediation, never before
//!                     Outcome::Done => delivery.acknowledge().await,
//!                     // `SET_ROLLBACK_ONLY`, or a fault that no sequence handled. `injected.message.properties` has what
//!                     // the flow set besides (`SET_REQUEUE_ON_ROLLBACK`), `injected.reply` the response, if there is one.
//!                     Outcome::RolledBack | Outcome::Failed(_) => delivery.reject().await,
//!                 }
//!             }
//!             Ok(())
//!         })
//!     }
//! }
//! ```
//!
//! A source that is polled implements [`PollSource`] instead and returns `Feed::Polled`: `interval` or `cron`, the
//! pauses after errors and the state are then the business of [`penstock_engine::background::Polling`].
//!
//! A transport that proxy services listen on (`transports="jms"`) has a [`ListenerKind`] beside its `InboundKind`; the
//! `<parameter>` elements of the proxy are its parameters.

use std::sync::Arc;
use std::time::Duration;

use penstock_engine::Place;
use penstock_engine::background::{Pace, PollSource, Polling, RunService};
use penstock_engine::inject::{Consumer, InjectTarget, Source};

use crate::{Compiler, Element, Parameters};

/// The kind of artifact and of service.
pub const INBOUND_ENDPOINT: &str = "inboundEndpoint";

/// The kind of service that is a transport of a proxy service.
pub const LISTENER: &str = "listener";

/// A protocol of inbound endpoints.
pub struct InboundKind {
    /// The values of `protocol` it stands for.
    pub protocols: &'static [&'static str],
    /// The Java classes it stands for, in `class`.
    pub classes: &'static [&'static str],
    /// Parameters that have a meaning in Micro Integrator and none here.
    pub ignored: &'static [&'static str],
    /// Compiles an endpoint. `None` after an error was reported.
    pub build: fn(&InboundEndpoint<'_>, &Parameters, &mut Compiler<'_>) -> Option<Feed>,
}

/// A transport that proxy services listen on.
pub struct ListenerKind {
    /// What `transports` calls it.
    pub transport: &'static str,
    /// Compiles the parameters of a proxy service. `None` after an error was reported, or when the transport is not used.
    pub build: fn(&ProxyListener<'_>, &Parameters, &mut Compiler<'_>) -> Option<Feed>,
}

/// What brings messages in.
pub enum Feed {
    /// A service that waits for messages: a subscription, a port.
    Service(Arc<dyn RunService>),
    /// A source that is polled.
    Polled(Arc<dyn PollSource>),
}

impl Feed {
    /// As a service.
    pub fn into_service(self, pace: Pace) -> Arc<dyn RunService> {
        match self {
            Feed::Service(service) => service,
            Feed::Polled(source) => Arc::new(Polling { source, pace }),
        }
    }
}

/// An `<inboundEndpoint>`, as far as all protocols have it.
pub struct InboundEndpoint<'a> {
    /// The element.
    pub el: Element<'a>,
    /// What it is called in logs and metrics.
    pub source: Arc<Source>,
    /// `sequence`: a name or a registry key.
    pub sequence: Option<Arc<str>>,
    /// `sequential`: one message after the other. Otherwise several at once, each acknowledged by itself.
    pub sequential: bool,
}

impl InboundEndpoint<'_> {
    /// What runs for each message. An endpoint without a sequence is reported.
    pub fn consumer(&self, cx: &mut Compiler<'_>) -> Option<Consumer> {
        let Some(sequence) = self.sequence.clone() else {
            cx.error(self.el.place(), "Sequence name not specified: <inboundEndpoint> needs the attribute `sequence`");
            return None;
        };
        Some(Consumer { target: InjectTarget::Sequence(sequence), source: self.source.clone() })
    }
}

/// A proxy service that listens on a transport.
pub struct ProxyListener<'a> {
    /// The proxy.
    pub el: Element<'a>,
    /// Its name.
    pub name: &'a str,
    /// What runs for each message.
    pub consumer: Consumer,
}

impl ProxyListener<'_> {
    pub(crate) fn new<'a>(el: Element<'a>, name: &'a str, transport: &'static str) -> ProxyListener<'a> {
        let source = Source {
            kind: LISTENER,
            name: format!("{name}/{transport}").into(),
            label: format!("{{proxy:{name}}}").into(),
            transport,
            on_error: None,
        };
        let consumer = Consumer { target: InjectTarget::Proxy(name.into()), source: Arc::new(source) };
        ProxyListener { el, name, consumer }
    }
}

/// `transport.PollInterval` of a proxy service that has none: five minutes, as in Axis2.
const POLL_INTERVAL: Duration = Duration::from_secs(300);

/// `transport.PollInterval`: seconds, or milliseconds with the unit `ms`.
pub(crate) fn poll_interval(parameters: &Parameters, el: &Element<'_>, cx: &mut Compiler<'_>) -> Duration {
    const NAME: &str = "transport.PollInterval";
    let Some(text) = parameters.get(NAME) else { return POLL_INTERVAL };
    let parsed = match text.trim().strip_suffix("ms") {
        Some(millis) => millis.trim().parse().map(Duration::from_millis).ok(),
        None => text.trim().parse().map(Duration::from_secs).ok(),
    };
    let at: Place = parameters.place(NAME, el);
    parsed.filter(|interval| !interval.is_zero()).unwrap_or_else(|| {
        cx.error(
            at,
            format!("the parameter `{NAME}` is not a number of seconds, or of milliseconds as `500ms`: `{text}`"),
        );
        POLL_INTERVAL
    })
}
