//! Requests that a flow passes on as they are: the backend is known from the head of the request, and nothing reads or changes
//! the message. The listener sends such a request itself, without an exchange.
//!
//! A mediator states what it does to each request with a given head ([`Mediator::decide`]); the steps up to the response are
//! followed here. The engine remains the only place that runs flows: what happens other than an ordinary response (a fault, a
//! response that must be changed) is given to the flow as the outcome of its send ([`Service::resume`]), so that fault
//! sequences, suspension of endpoints and error responses are those of any other request.
//!
//! [`Mediator::decide`]: crate::Mediator::decide
//! [`Service::resume`]: crate::ports::Service::resume

use std::any::Any;
use std::ops::Range;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use penstock_message::{FieldsView, MediaType, Message, Method};

use crate::core::{Core, Loaded};
use crate::endpoint::{Endpoint, EndpointKind, TimeoutDuration};
use crate::mediator::{Destination, Sequence, SequenceId};
use crate::metrics::InFlight;
use crate::ports::{Level, Outbound};
use crate::route::{Dispatch, ResourceMatch, ResourceQuery};
use crate::{Program, outgoing};

/// Nested sequences that are followed. Deeper flows run in the general way.
const DEPTH_MAX: usize = 4;

/// The head of a request before a [`crate::ports::Request`] is made of it.
#[derive(Debug, Clone)]
pub struct RequestHead<'h> {
    /// The method.
    pub method: Method,
    /// Path and query, as sent.
    pub target: &'h str,
    /// Whether the client came over TLS.
    pub secure: bool,
    /// Whether a body follows.
    pub has_body: bool,
    /// The header fields.
    pub fields: FieldsView<'h>,
}

/// What a mediator does to each request with a given head.
pub enum Decision<'m> {
    /// More than that has to be known, or it does something else.
    Unknown,
    /// Nothing: the next mediator runs.
    Next,
    /// That sequence runs, then the next mediator.
    Enter(SequenceId),
    /// [`crate::Flow::Send`] without a sequence for the response.
    Send(&'m Destination),
    /// [`crate::Flow::Call`].
    Call(&'m Destination),
    /// [`crate::Flow::Respond`].
    Respond,
}

/// An address that each message goes to as it is, and what the transport made of it.
#[derive(Default)]
pub struct FixedAddress {
    /// Absolute.
    pub url: Arc<str>,
    prepared: OnceLock<Arc<dyn Any + Send + Sync>>,
}

impl FixedAddress {
    /// The address of a URL.
    pub fn new(url: Arc<str>) -> FixedAddress {
        FixedAddress { url, prepared: OnceLock::new() }
    }

    /// What a transport makes of the URL, made once.
    pub fn prepared<T: Any + Send + Sync>(&self, make: impl FnOnce(&str) -> T) -> Option<&T> {
        self.prepared.get_or_init(|| Arc::new(make(&self.url))).downcast_ref()
    }
}

/// A request that is passed on: where, within which time, and what is counted when it is over.
pub struct Passage {
    core: Rc<Core>,
    pub(crate) loaded: Rc<Loaded>,
    pub(crate) in_flight: InFlight,
    pub(crate) started: Instant,
    endpoint: Arc<Endpoint>,
    service: (&'static str, Arc<str>),
    /// From the end of the request to the head of the response.
    pub response_timeout: Duration,
    /// From now to the deadline of the request.
    pub time_left: Duration,
    /// The part of the request's target that follows the path of the address.
    pub postfix: Range<usize>,
    /// Whether a slash stands between both.
    pub slash: bool,
}

impl Passage {
    /// Where the request goes.
    pub fn address(&self) -> Option<&FixedAddress> {
        fixed(&self.endpoint)
    }

    /// The sender.
    pub fn outbound(&self) -> &dyn Outbound {
        &*self.core.outbound
    }

    /// Whether a field of the request or of the response crosses this hop.
    pub fn forwards(name: &[u8]) -> bool {
        outgoing::travels(name, b"")
    }

    /// Counts the request, whose response is the backend's.
    pub fn finish(self) {
        let (kind, name) = &self.service;
        self.core.metrics.finished(kind, name, self.started.elapsed(), false);
    }
}

/// The backend that a request with this head is passed on to, and the response of which is passed back; `None` when the flow
/// does anything else.
pub(crate) fn find(core: &Rc<Core>, head: &RequestHead<'_>) -> Option<Passage> {
    // Lines about the steps of a flow need its exchange.
    if core.log.enabled(Level::Debug) {
        return None;
    }
    let loaded = core.program();
    let program = &*loaded.program;
    if program.routes.router.is_some() {
        return None;
    }
    // A search that is prepared for long texts costs more than this one.
    let end = head.target.bytes().position(|byte| byte == b'?');
    let (path, query) = (&head.target[..end.unwrap_or(head.target.len())], end.map(|end| &head.target[end + 1..]));
    // Descriptions of services are found by the query.
    if query.is_some() && head.method == Method::Get {
        return None;
    }
    let text = |name| head.fields.get(name).and_then(|value| std::str::from_utf8(value).ok());
    let content_type = head.fields.get("Content-Type");
    if content_type.is_some_and(Message::names_grpc) {
        return None;
    }
    let (kind, name, postfix_at, endpoint) = match program.routes.dispatch(path, || text("Host"), head.secure) {
        Dispatch::Proxy(proxy) => {
            let is_offered = if head.secure { proxy.https } else { proxy.http };
            if !is_offered || proxy.is_stopped.is_on() || proxy.is_traced.is_on() {
                return None;
            }
            if proxy.gate.is_some() || proxy.seal.is_some() {
                return None;
            }
            let way = Way { start: proxy.in_sequence, implied: proxy.endpoint.as_ref(), out: proxy.out_sequence };
            let endpoint = way.endpoint(program, head)?.clone();
            let after = path.len().min("/services/".len() + proxy.name.len());
            ("proxy", proxy.name.clone(), after, endpoint)
        }
        Dispatch::Api(api) => {
            let is_description = query.is_some_and(|query| query.starts_with("swagger."))
                || head.method == Method::Get && path.starts_with("/services");
            if is_description || api.is_traced.is_on() || !api.handlers.is_empty() {
                return None;
            }
            let sub_path = api.sub_path(head.target);
            let resource_query = ResourceQuery {
                method: &head.method,
                secure: head.secure,
                content_type: content_type.and_then(|value| std::str::from_utf8(value).ok()),
                has_body: head.has_body,
                user_agent: text("User-Agent"),
            };
            let ResourceMatch::Found(index, _) = api.resource(sub_path, &resource_query) else { return None };
            let resource = &api.resources[index];
            let way = Way { start: resource.in_sequence, implied: None, out: resource.out_sequence };
            let endpoint = way.endpoint(program, head)?.clone();
            ("api", api.name.clone(), head.target.len() - sub_path.len(), endpoint)
        }
        Dispatch::Source(..) | Dispatch::Main => return None,
    };
    let address = fixed(&endpoint)?;
    let postfix = postfix_at..head.target.len();
    let slash = joins_with_slash(head, content_type, &address.url, &head.target[postfix.clone()])?;
    let response_timeout = match &endpoint.policy.timeout {
        None => program.limits.endpoint_timeout,
        Some(TimeoutDuration::Fixed(timeout)) => *timeout,
        Some(TimeoutDuration::Computed(_)) => return None,
    };
    Some(Passage {
        core: core.clone(),
        time_left: program.limits.deadline,
        loaded,
        in_flight: core.metrics.enter(),
        started: Instant::now(),
        endpoint,
        service: (kind, name),
        response_timeout,
        postfix,
        slash,
    })
}

/// The address of an endpoint that sends each message there as it is and has no failures to take into account.
fn fixed(endpoint: &Endpoint) -> Option<&FixedAddress> {
    let EndpointKind::Leaf(leaf) = &endpoint.kind else { return None };
    let policy = &endpoint.policy;
    if policy.prepare.is_some() || policy.token.is_some() || policy.addressing.is_some() {
        return None;
    }
    leaf.fixed()
}

/// Whether a slash stands between an address and what follows it; `None` when they are joined in another way.
fn joins_with_slash(head: &RequestHead<'_>, content_type: Option<&[u8]>, url: &str, postfix: &str) -> Option<bool> {
    if postfix.is_empty() {
        return Some(false);
    }
    // The query of the address would have to be merged.
    if url.contains(['?', '#']) {
        return None;
    }
    // A call of SOAP goes to the address alone; whether `text/xml` is one depends on its body.
    if head.method == Method::Post {
        let content_type = content_type.and_then(|value| std::str::from_utf8(value).ok());
        let media_type = content_type.map_or(MediaType::Binary, MediaType::parse);
        if matches!(media_type, MediaType::SoapXml | MediaType::TextXml) || head.fields.get("SOAPAction").is_some() {
            return None;
        }
    }
    match (url.ends_with('/'), postfix.starts_with('/')) {
        (true, true) => None,
        (false, false) => Some(!postfix.starts_with('?')),
        _ => Some(false),
    }
}

/// The steps of a service.
struct Way<'p> {
    start: Option<SequenceId>,
    /// Where the request goes when the steps end without sending it.
    implied: Option<&'p Destination>,
    out: Option<SequenceId>,
}

/// A sequence that is followed, and its next step.
type Position<'p> = (&'p Sequence, usize);

impl<'p> Way<'p> {
    /// The endpoint to which the request is passed on, when the response goes to the client as it is.
    fn endpoint(&self, program: &'p Program, head: &RequestHead<'_>) -> Option<&'p Arc<Endpoint>> {
        let mut steps = Steps { frames: [None; DEPTH_MAX], depth: 0, program };
        if let Some(start) = self.start {
            steps.enter(start)?;
        }
        let (destination, responds) = loop {
            match steps.next(head) {
                None => break (self.implied?, self.passes_back(program, head)),
                Some(Decision::Next) => {}
                Some(Decision::Enter(sequence)) => steps.enter(sequence)?,
                Some(Decision::Send(destination)) => break (destination, self.passes_back(program, head)),
                Some(Decision::Call(destination)) => break (destination, steps.responds(head)),
                Some(Decision::Respond | Decision::Unknown) => return None,
            }
        };
        if !responds {
            return None;
        }
        let endpoint = match destination {
            Destination::Endpoint(id) => program.endpoint(*id),
            Destination::Named(name) => program.endpoint(*program.endpoint_names.get(name)?),
            Destination::Implicit | Destination::Address(_) => return None,
        };
        endpoint.state.is_active().then_some(endpoint)
    }

    /// Whether the out path gives the response to the client at once.
    fn passes_back(&self, program: &'p Program, head: &RequestHead<'_>) -> bool {
        let Some(out) = self.out else { return true };
        let mut steps = Steps { frames: [None; DEPTH_MAX], depth: 0, program };
        steps.enter(out).is_some() && steps.responds(head)
    }
}

struct Steps<'p> {
    frames: [Option<Position<'p>>; DEPTH_MAX],
    depth: usize,
    program: &'p Program,
}

impl<'p> Steps<'p> {
    fn enter(&mut self, sequence: SequenceId) -> Option<()> {
        *self.frames.get_mut(self.depth)? = Some((self.program.sequence(sequence), 0));
        self.depth += 1;
        Some(())
    }

    /// What the next step does; `None` at the end.
    fn next(&mut self, head: &RequestHead<'_>) -> Option<Decision<'p>> {
        while let Some(at) = self.depth.checked_sub(1) {
            if let Some((sequence, next)) = &mut self.frames[at]
                && let Some(step) = sequence.steps.get(*next)
            {
                *next += 1;
                return Some(step.mediator.decide(head));
            }
            self.depth = at;
        }
        None
    }

    /// Whether the next step gives the response of the backend to the client. A mediator decides by the head of a request,
    /// which is no longer the one at hand, so nothing else is followed.
    fn responds(&mut self, head: &RequestHead<'_>) -> bool {
        matches!(self.next(head), Some(Decision::Respond | Decision::Send(Destination::Implicit)))
    }
}
