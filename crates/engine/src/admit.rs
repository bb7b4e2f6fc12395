//! From a request to the exchange that runs it: which service it is for, and what that starts with.

use std::rc::Rc;

use penstock_message::{Message, Method, RequestLine, Value};

use crate::core::{Core, Loaded};
use crate::ports::{Client, Request};
use crate::route::{Dispatch, Entry, ResourceMatch, ResourceQuery, Unserved};
use crate::{Exchange, Fault, SequenceId, fallback, incoming, run};

/// Sequences of these names answer what no resource takes.
const RESOURCE_MISMATCH: &str = "_resource_mismatch_handler_";
const METHOD_NOT_ALLOWED: &str = "_method_not_allowed_handler_";

/// Whether the sequences an exchange starts with were entered. Boxed, because each request carries the size of this type.
pub(crate) type Entered = Result<(), Box<Fault>>;

/// What becomes of a request.
pub(crate) enum Admission {
    /// It is answered at once.
    Answer(Box<Message>),
    /// It runs: its sequences are entered. A fault is one of entering them.
    Run(Box<Exchange>, Entered),
}

/// Finds the service and makes the exchange, or the answer when there is none to run.
pub(crate) fn admit(core: &Rc<Core>, loaded: &Rc<Loaded>, request: Request) -> Admission {
    let program = &loaded.program;
    let Request { client, mut message } = request;
    if let Some(router) = &program.routes.router
        && let Some(routed) = router.route(&client, &mut message)
    {
        let entry = Entry::Operation(routed.operation);
        let start = entry.in_sequence(program);
        let mut exchange = Box::new(Exchange::new(core.clone(), loaded.clone(), client, message, entry));
        exchange.extension = routed.extension;
        return begin(exchange, start.into_iter());
    }
    let line = &client.line;
    let target = Target::of_line(line);
    if line.method == Method::Get
        && let Some(answer) = crate::describe::services(core, &program.routes, target.path)
    {
        return Admission::Answer(Box::new(answer));
    }
    let dispatch = program.routes.dispatch(target.path, || message.headers.get("Host"), line.secure);
    admit_to(core, loaded, &client, &target, message, dispatch)
}

/// The target of a request, read once: each request that is admitted needs its path.
pub(crate) struct Target<'r> {
    /// Path and query.
    whole: &'r str,
    /// The path.
    pub(crate) path: &'r str,
    query: Option<&'r str>,
}

impl<'r> Target<'r> {
    pub(crate) fn of_line(line: &'r RequestLine) -> Target<'r> {
        let whole = line.target();
        let end = whole.bytes().position(|byte| byte == b'?');
        Target { whole, path: &whole[..end.unwrap_or(whole.len())], query: end.map(|end| &whole[end + 1..]) }
    }
}

/// Makes the exchange of a service that was found, or the answer when there is none to run.
pub(crate) fn admit_to(
    core: &Rc<Core>,
    loaded: &Rc<Loaded>,
    client: &Rc<Client>,
    target: &Target<'_>,
    mut message: Message,
    dispatch: Dispatch,
) -> Admission {
    let program = &loaded.program;
    let line = &client.line;
    let Target { whole: target, path, query } = *target;
    let is_local = client.protocol == crate::local::PROTOCOL;
    let make = |message, entry| Box::new(Exchange::new(core.clone(), loaded.clone(), client.clone(), message, entry));
    match dispatch {
        Dispatch::Proxy(proxy) => {
            let refusal = if proxy.is_stopped.is_on() {
                Some(format!("The system is attempting to access an inactive service: {}", proxy.name))
            } else if !(is_local && proxy.local || if line.secure { proxy.https } else { proxy.http }) {
                Some(format!("The service cannot be found for the endpoint reference (EPR) {path}"))
            } else {
                None
            };
            if let Some(text) = refusal {
                let mut exchange = make(message, Entry::Main);
                return Admission::Answer(Box::new(fallback::answer(&mut exchange, &Fault::new(text).public())));
            }
            if line.method == Method::Get
                && let Some(answer) = crate::describe::proxy(core, &proxy, query)
            {
                return Admission::Answer(Box::new(answer));
            }
            let after = path.len().min("/services/".len() + proxy.name.len());
            let postfix = &target[after..];
            message.url_postfix = (!postfix.is_empty()).then(|| postfix.into());
            let start = proxy.gate.into_iter().chain(proxy.in_sequence);
            begin(make(message, Entry::Proxy(proxy)), start)
        }
        Dispatch::Api(api) => {
            if let Some(answer) = crate::describe::api(core, &api, line) {
                return Admission::Answer(Box::new(answer));
            }
            let sub_path = api.sub_path(target);
            let resource_query = ResourceQuery {
                method: &line.method,
                secure: line.secure,
                content_type: message.headers.get("Content-Type"),
                has_body: !message.body.is_empty(),
                user_agent: message.headers.get("User-Agent"),
            };
            let found = api.resource(sub_path, &resource_query);
            message.url_postfix = Some(sub_path.into());
            let handlers = api.handlers.clone().into_iter();
            let (status, name) = match found {
                ResourceMatch::Found(index, _)
                    if line.method == Method::Options && !api.resources[index].answers_options() =>
                {
                    return begin(make(message, Entry::Api(api, Unserved::Options(index))), handlers);
                }
                ResourceMatch::Found(index, variables) => {
                    for (name, value) in variables {
                        message.properties.set(format!("uri.var.{name}"), Value::string(value));
                    }
                    let start = api.resources[index].in_sequence;
                    return begin(make(message, Entry::Resource(api, index)), handlers.chain(start));
                }
                ResourceMatch::NotFound => (404, RESOURCE_MISMATCH),
                ResourceMatch::MethodNotAllowed => (405, METHOD_NOT_ALLOWED),
                ResourceMatch::BadRequest => (400, ""),
            };
            let instead = program.sequence_names.get(name).copied();
            if instead.is_none() && api.handlers.is_empty() {
                return Admission::Answer(Box::new(incoming::empty(status)));
            }
            // A sequence that stands in and says nothing is acknowledged like any other.
            let status = if instead.is_some() { 202 } else { status };
            begin(make(message, Entry::Api(api, Unserved::Refused(status))), handlers.chain(instead))
        }
        Dispatch::Source(source, sequence) => {
            let named = sequence.as_ref().map(|name| (name, program.sequence_names.get(name).copied()));
            let start = named.map_or(program.main, |(_, found)| found);
            let exchange = make(message, Entry::Source(source.clone()));
            match (start, named) {
                (None, Some((name, _))) => {
                    Admission::Run(exchange, Err(Box::new(Fault::new(format!("Sequence: {name} not found")))))
                }
                _ => begin(exchange, start.into_iter()),
            }
        }
        Dispatch::Main => match program.main {
            None => {
                make(message, Entry::Main).log_simple("");
                Admission::Answer(Box::new(incoming::empty(404)))
            }
            Some(main) => begin(make(message, Entry::Main), Some(main).into_iter()),
        },
    }
}

/// Enters what the exchange starts with, in the order of `start`, and gives it its service's fault handlers.
fn begin(mut exchange: Box<Exchange>, start: impl DoubleEndedIterator<Item = SequenceId>) -> Admission {
    let loaded = exchange.loaded.clone();
    let base = exchange.entry.base_handlers(&loaded.program);
    exchange.handlers.extend(base);
    // The stack runs from its top: what starts first is pushed last.
    let entered = start.rev().try_for_each(|sequence| run::enter(&mut exchange, sequence));
    Admission::Run(exchange, entered.map_err(Box::new))
}
