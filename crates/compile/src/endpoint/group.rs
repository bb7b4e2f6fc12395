//! Groups: `<loadbalance>`, `<failover>`, `<recipientlist>`, and what their members are.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use penstock_engine::endpoint::{Endpoint, EndpointKind, EndpointPolicy, EndpointState, SessionKind, Sessions};
use penstock_engine::endpoint::{Format, Leaf, Target};
use penstock_engine::{Destination, Exchange, Fault};

use crate::{Compiler, Element, Expression};

/// How long a session lives that says nothing about it.
const SESSION_USUAL: Duration = Duration::from_secs(120);

/// A member cannot weigh more than this: its turns are written out.
const WEIGHT_MAX: usize = 100;

/// `<failover>`
pub(super) fn failover(cx: &mut Compiler<'_>, el: &Element<'_>) -> EndpointKind {
    let stays = (!el.flag("dynamic", true)).then(AtomicUsize::default);
    el.attribute("buildMessage");
    EndpointKind::Failover { members: members(cx, el), stays }
}

/// `<loadbalance>`; `session` stands beside it.
pub(super) fn load_balance(cx: &mut Compiler<'_>, el: &Element<'_>, session: Option<&Element<'_>>) -> EndpointKind {
    let failover = el.flag("failover", true);
    for known in ["policy", "buildMessage"] {
        el.attribute(known);
    }
    let algorithm = el.attribute("algorithm").unwrap_or_default();
    let weighted = algorithm.ends_with("WeightedRoundRobin");
    if !weighted && !algorithm.is_empty() && !algorithm.to_ascii_lowercase().ends_with("roundrobin") {
        let message = format!("the algorithm `{algorithm}` is a Java class; members take turns");
        cx.warn(el.attribute_place("algorithm"), message);
    }
    let mut members = members(cx, el);
    if weighted {
        members = weighed(cx, el, members);
    }
    let sessions = session.and_then(|session| sessions(cx, session));
    EndpointKind::LoadBalance { members, failover, next: AtomicUsize::new(0), sessions }
}

/// Every member as often as its property `loadbalance.weight` says.
fn weighed(cx: &mut Compiler<'_>, el: &Element<'_>, members: Vec<Destination>) -> Vec<Destination> {
    let mut turns = Vec::new();
    for (member, destination) in el.elements("endpoint").zip(members) {
        let weight =
            member.elements("property").find(|property| property.attribute("name") == Some("loadbalance.weight"));
        let weight = weight.and_then(|property| property.attribute("value")).map_or(Ok(1), str::parse::<usize>);
        let weight = weight.unwrap_or_else(|_| {
            cx.warn(member.place(), "the weight is not a number; it counts as 1");
            1
        });
        turns.extend(std::iter::repeat_n(destination, weight.clamp(1, WEIGHT_MAX)));
    }
    turns
}

fn sessions(cx: &mut Compiler<'_>, el: &Element<'_>) -> Option<Sessions> {
    let kind = match el.attribute("type") {
        Some("http") => SessionKind::Http,
        Some("soap") => SessionKind::Soap,
        Some("simpleClientSession") => SessionKind::Client,
        other => {
            let other = other.unwrap_or_default();
            cx.error(el.place(), format!("the session type `{other}` is not one of http, soap, simpleClientSession"));
            return None;
        }
    };
    let timeout =
        el.child_text("sessionTimeout").and_then(|text| text.parse().ok()).filter(|milliseconds| *milliseconds > 0);
    el.finish(cx);
    Some(Sessions::new(kind, timeout.map_or(SESSION_USUAL, Duration::from_millis)))
}

/// `<recipientlist>`: members that are written, and a list that is computed.
pub(super) fn recipients(cx: &mut Compiler<'_>, el: &Element<'_>) -> EndpointKind {
    let Some(list) = el.child("endpoints") else {
        return EndpointKind::Recipients { members: members(cx, el), computed: None };
    };
    list.attribute("max-cache");
    let place = list.value_place("value");
    let value = list.required(cx, "value");
    list.finish(cx);
    let mut found = Vec::new();
    for member in el.elements("endpoint") {
        found.push(super::destination(cx, &member));
    }
    let Some(text) = value else { return EndpointKind::Recipients { members: found, computed: None } };
    let text = crate::expression::braced(text);
    let Some(text) = text else {
        found.extend(parts(value.unwrap_or_default()).map(Destination::Address));
        return EndpointKind::Recipients { members: found, computed: None };
    };
    let Some(expression) = Expression::compile(cx, &list, text, place) else {
        return EndpointKind::Recipients { members: found, computed: None };
    };
    let computed = move |exchange: &mut Exchange| {
        let list = expression.text(exchange)?;
        let program = exchange.program().clone();
        let destination = |part: Arc<str>| match program.endpoint_names.get(&part) {
            Some(id) => Destination::Endpoint(*id),
            None if part.contains("://") => Destination::Address(part),
            None => Destination::Named(part),
        };
        Ok(parts(&list).map(destination).collect())
    };
    EndpointKind::Recipients { members: found, computed: Some(Box::new(computed)) }
}

fn parts(list: &str) -> impl Iterator<Item = Arc<str>> {
    list.split(',').map(str::trim).filter(|part| !part.is_empty()).map(Arc::from)
}

fn members(cx: &mut Compiler<'_>, group: &Element<'_>) -> Vec<Destination> {
    let mut found = Vec::new();
    for member in group.elements("endpoint") {
        found.push(super::destination(cx, &member));
    }
    for member in group.elements("member") {
        if let Some(leaf) = Host::compile(cx, &member) {
            let endpoint = Endpoint {
                name: None,
                at: member.place(),
                kind: EndpointKind::Leaf(Box::new(leaf)),
                policy: EndpointPolicy::default(),
                state: EndpointState::default(),
            };
            found.push(Destination::Endpoint(cx.add_endpoint(endpoint)));
        }
        member.finish(cx);
    }
    if found.is_empty() {
        cx.error(group.place(), format!("<{}> has no <endpoint>", group.name()));
    }
    found
}

/// `<member hostName httpPort httpsPort>`: the message's own path on that host.
struct Host {
    name: String,
    http: Option<u16>,
    https: Option<u16>,
}

impl Host {
    fn compile(cx: &mut Compiler<'_>, el: &Element<'_>) -> Option<Host> {
        let name = el.required(cx, "hostName")?.to_owned();
        let port = |attribute| el.attribute(attribute).and_then(|port| port.trim().parse().ok());
        let (http, https) = (port("httpPort"), port("httpsPort"));
        if http.is_none() && https.is_none() {
            cx.error(el.place(), "<member> needs `httpPort` or `httpsPort`");
            return None;
        }
        Some(Host { name, http, https })
    }
}

impl Leaf for Host {
    fn target(&self, exchange: &mut Exchange) -> Result<Target, Fault> {
        let secure = exchange.client.line.secure;
        let (scheme, port) = match (secure, self.http, self.https) {
            (true, _, Some(port)) | (false, None, Some(port)) => ("https", port),
            (_, Some(port), _) => ("http", port),
            (true, None, None) | (false, None, None) => return Err(Fault::new("the member has no port")),
        };
        let to = exchange.message.addressing.as_ref().and_then(|addressing| addressing.to.clone());
        let path = match &to {
            Some(to) => {
                to.split_once("://").map_or(&**to, |(_, rest)| rest.find('/').map_or("", |slash| &rest[slash..]))
            }
            None => exchange.client.line.target(),
        };
        let url = format!("{scheme}://{}:{port}{path}", self.name).into();
        Ok(Target {
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
