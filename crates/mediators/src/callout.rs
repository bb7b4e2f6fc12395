//! `<callout>`: the older `<call>`: sends the message or a part of it, and stores the response in the target.

use std::sync::Arc;

use penstock_compile::{Compiler, Element, Expression, MediatorKind, NameKind};
use penstock_engine::endpoint::{
    Endpoint, EndpointKind, EndpointPolicy, EndpointState, Format, Leaf, Suspension, Target as Address,
};
use penstock_engine::{Destination, Exchange, Fault, Flow, Mediator, Needs, Resume, Side, codes};
use penstock_message::{Envelope, Form, MediaType, Message, Scope, Value};

use penstock_engine::payload::{self, copy_of};
use penstock_message::tree::{Change, Changes, Content, edit};

/// The kind.
pub const KIND: MediatorKind = MediatorKind { name: "callout", compile };

struct Callout {
    destination: Destination,
    action: Option<Arc<str>>,
    source: CalloutPayload,
    target: Arc<Target>,
}

/// What is sent.
enum CalloutPayload {
    Envelope,
    Path(Expression),
    /// A property, or an entry of the configuration.
    Key(Arc<str>),
}

/// Where the answer goes.
enum Target {
    Message,
    Path(Expression),
    Property(Arc<str>),
}

fn compile(el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    // How the client of Micro Integrator is set up.
    for unused in ["initAxis2ClientOptions", "useServerConfig"] {
        el.attribute(unused);
    }
    if let Some(configuration) = el.child("configuration") {
        configuration.accept_all();
    }
    if let Some(security) = el.child("enableSec") {
        security.accept_all();
        cx.unprotected(security.place(), "WS-Security to a backend is not supported");
    }
    let action = el.attribute("action").map(Arc::from);
    let destination = destination(el, cx);
    let source = match el.child("source") {
        Some(source) => source_of(&source, cx)?,
        None => CalloutPayload::Envelope,
    };
    let target = match el.child("target") {
        Some(target) => target_of(&target, cx)?,
        None => Target::Message,
    };
    Some(Box::new(Callout { destination, action, source, target: Arc::new(target) }))
}

fn destination(el: &Element<'_>, cx: &mut Compiler<'_>) -> Destination {
    let inline = el.child("endpoint");
    if let Some(url) = el.attribute("serviceURL") {
        let place = el.attribute_place("serviceURL");
        let url = cx.configured(url, &place);
        if !url.starts_with("http:") && !url.starts_with("https:") {
            let scheme = url.split(':').next().unwrap_or_default();
            cx.warn(place.clone(), format!("the transport `{scheme}` is not supported; the call will be a fault"));
        }
        // Micro Integrator gives an address an endpoint that is never suspended: its codes are those of no error.
        let suspension =
            Suspension { mark_codes: vec![u32::MAX], suspend_codes: vec![u32::MAX], ..Suspension::default() };
        return Destination::Endpoint(cx.add_endpoint(Endpoint {
            name: None,
            at: place,
            kind: EndpointKind::Leaf(Box::new(Service(url.into()))),
            policy: EndpointPolicy { suspension, ..EndpointPolicy::default() },
            state: EndpointState::default(),
        }));
    }
    match (el.attribute("endpointKey"), inline) {
        (Some(key), _) => cx.endpoint_ref(key, el.attribute_place("endpointKey")),
        (None, Some(inline)) => penstock_compile::endpoint::destination(cx, &inline),
        (None, None) => Destination::Implicit,
    }
}

/// `serviceURL`.
struct Service(Arc<str>);

impl Leaf for Service {
    fn target(&self, _exchange: &mut Exchange) -> Result<Address, Fault> {
        let url = self.0.clone();
        Ok(Address {
            url,
            method: None,
            format: Format::Same,
            append_postfix: false,
            headers: Vec::new(),
            tls: None,
            addressing: None,
        })
    }
}

fn source_of(el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<CalloutPayload> {
    let source = match (el.attribute("type"), el.attribute("xpath"), el.attribute("key")) {
        (Some("envelope"), ..) => CalloutPayload::Envelope,
        (_, Some(_), _) => CalloutPayload::Path(cx.expression(el, "xpath")?),
        (_, None, Some(key)) => CalloutPayload::Key(key.into()),
        (_, None, None) => {
            cx.error(el.place(), "<source> of a <callout> needs `xpath`, `key`, or `type=\"envelope\"`");
            return None;
        }
    };
    el.finish(cx);
    Some(source)
}

fn target_of(el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Target> {
    let target = match (el.attribute("xpath"), el.attribute("key")) {
        (Some(_), _) => Target::Path(cx.expression(el, "xpath")?),
        (None, Some(key)) => Target::Property(key.into()),
        (None, None) => {
            cx.error(el.place(), "<target> of a <callout> needs `xpath` or `key`");
            return None;
        }
    };
    el.finish(cx);
    Some(target)
}

impl CalloutPayload {
    /// The element that is sent in place of the body. `None`: the message as it is.
    fn content(&self, exchange: &mut Exchange) -> Result<Option<Content>, Fault> {
        if exchange.message.source_media() == MediaType::Json {
            // Micro Integrator sends the whole of it, for any source.
            return Ok(None);
        }
        match self {
            CalloutPayload::Envelope => Ok(None),
            CalloutPayload::Path(path) => {
                let (document, nodes) = path.nodes(exchange)?;
                match nodes.first().filter(|node| document.is_element(**node)) {
                    Some(node) => Ok(Some(Content::Node(document.clone(), *node))),
                    None => Err(Fault::new(format!("the source `{}` of the callout finds no element", path.text))),
                }
            }
            CalloutPayload::Key(key) => {
                if let Some(Value::Xml(document, nodes)) = exchange.property(Scope::Default, key)
                    && let Some(node) = nodes.first()
                {
                    return Ok(Some(Content::Node(document, *node)));
                }
                let entry = exchange.entry_of_key(key).filter(|entry| entry.is_xml);
                let Some(entry) = entry else {
                    let kind = NameKind::RESOURCE.noun();
                    return Err(Fault::new(format!("neither a property nor a {kind} `{key}` is an element")));
                };
                let (document, root) = payload::parse(entry.bytes.clone())?;
                Ok(Some(Content::Node(document, root)))
            }
        }
    }
}

impl Target {
    /// Puts the answer into the message.
    fn take(&self, exchange: &mut Exchange, reply: Message) -> Result<(), Fault> {
        // A JSON response becomes the body, for any target.
        let is_json = reply.source_media() == MediaType::Json && !reply.body.is_empty();
        let path = match self {
            _ if is_json => None,
            Target::Message => None,
            Target::Property(name) => {
                if let Some((document, node)) = first_element(exchange, reply)? {
                    exchange.message.properties.set(name.clone(), Value::Xml(document, vec![node]));
                }
                return Ok(());
            }
            Target::Path(path) => Some(path),
        };
        let Some(path) = path else {
            take_body(&mut exchange.message, reply);
            return Ok(());
        };
        let (document, nodes) = path.nodes(exchange)?;
        let Some(replaced) = nodes.first().copied() else {
            return Err(Fault::new(format!("the target `{}` of the callout finds no element", path.text)));
        };
        let Some((answer, node)) = first_element(exchange, reply)? else { return Ok(()) };
        let changes = Changes::from([(replaced, Change::Replace(vec![Content::Node(answer, node)]))]);
        let edited = Arc::new(edit(&document, &changes));
        let envelope = Envelope::find(edited)
            .ok_or_else(|| Fault::new("the target of the callout is not in the body of the message"))?;
        exchange.message.body.set(Form::Xml(Arc::new(envelope)));
        Ok(())
    }
}

/// The first element of the answer's payload.
fn first_element(
    exchange: &mut Exchange,
    reply: Message,
) -> Result<Option<(Arc<penstock_xml::Document>, penstock_xml::NodeId)>, Fault> {
    let program = exchange.program().clone();
    let mut reply = reply;
    if reply.body.is_empty() {
        return Ok(None);
    }
    let envelope = reply.xml(&program.conversion)?;
    Ok(envelope.payload().map(|node| (envelope.document.clone(), node)))
}

/// The answer's body with its type; the fields of the request stay, unless the flow says otherwise.
fn take_body(message: &mut Message, reply: Message) {
    let takes_fields = message.property_text("BLOCKING_SENDER_PRESERVE_REQ_HEADERS").as_deref() == Some("false");
    if takes_fields {
        message.headers = reply.headers;
    } else {
        match reply.headers.get("Content-Type") {
            Some(content_type) => message.headers.set("Content-Type", content_type),
            None => drop(message.headers.remove("Content-Type")),
        }
        // The answer's own encoding holds for its bytes.
        message.headers.remove("Content-Encoding");
        if let Some(encoding) = reply.headers.get("Content-Encoding") {
            message.headers.set("Content-Encoding", encoding);
        }
    }
    message.body = reply.body;
    for told in ["messageType", "ContentType"] {
        message.axis2.remove(told);
    }
}

impl Mediator for Callout {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let content = self.source.content(exchange)?;
        let kept = copy_of(&exchange.message);
        if let Some(content) = content {
            payload::replace_by_nodes(exchange, &[content])?;
        }
        if let Some(action) = &self.action {
            exchange.message.addressing_mut().action = Some(action.clone());
            if exchange.message.media_type() == MediaType::TextXml {
                exchange.message.headers.set("SOAPAction", format!("\"{action}\""));
            }
        }
        let one_way = exchange.message.properties.is_true("OUT_ONLY");
        let (target, direction) = (self.target.clone(), exchange.direction);
        let then = move |exchange: &mut Exchange, reply: Result<Message, Fault>| {
            exchange.message = kept;
            exchange.direction = direction;
            let reply = reply.map_err(|fault| match fault.side {
                Side::Us => fault,
                _ => Fault { code: penstock_engine::FaultCode::Number(codes::CALLOUT), ..fault },
            })?;
            exchange.message.axis2.set("HTTP_SC", Value::Integer(i64::from(reply.status)));
            if !one_way {
                target.take(exchange, reply)?;
            }
            Ok(Flow::Next)
        };
        Ok(Flow::CallWith(self.destination.clone(), Resume::new(then)))
    }

    fn needs(&self) -> Needs {
        Needs::Whole
    }
}
