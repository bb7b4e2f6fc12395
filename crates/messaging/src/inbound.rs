//! `<inboundEndpoint name="…" protocol="…" sequence="…">`: messages that come from a queue, a file or a port of their own.
//!
//! The protocols come in [`penstock_compile::Registry::inbound`]; what they have in common is here.

use std::sync::Arc;
use std::time::Duration;

use penstock_compile::inbound::INBOUND_ENDPOINT;
use penstock_compile::{
    ArtifactKind, ArtifactName, Compiler, Element, InboundEndpoint, InboundKind, Parameters, content_hash,
    declare_nothing, suggestion, withdraw_nothing,
};
use penstock_engine::background::{BackgroundService, Pace};
use penstock_engine::inject::Source;

use crate::task::Cron;

/// The kind.
pub(crate) const KIND: ArtifactKind = ArtifactKind {
    element: INBOUND_ENDPOINT,
    name: ArtifactName::Attribute("name"),
    declare: declare_nothing,
    build,
    withdraw: withdraw_nothing,
};

/// Between two polls of an endpoint that names no `interval`.
const DEFAULT_INTERVAL_MS: u64 = 1000;

/// Parameters of Micro Integrator's threads and cluster, which all protocols may have.
const COMMON_IGNORED: [&str; 2] = ["inbound.behavior", "statistics"];

/// Protocols of Micro Integrator that are not served, and why.
const REFUSED: [(&str, &str); 5] = [
    ("feed", "Micro Integrator has no such protocol since version 4; poll the feed with a task and the HTTP connector"),
    ("kafka", "the ZooKeeper consumer of Kafka 0.8; use class=\"org.wso2.carbon.inbound.kafka.KafkaMessageConsumer\""),
    ("cxf_ws_rm", "WS-ReliableMessaging; Micro Integrator has it no longer"),
    ("wso2_mb", "WSO2 Message Broker is discontinued; use `rabbitmq` or `jms` over AMQP 1.0"),
    ("grpc", "use the HTTP/2 listener, which forwards gRPC"),
];

fn build(cx: &mut Compiler<'_>, name: &str, el: &Element<'_>) {
    let errors = cx.errors_so_far();
    let parameters = match el.child("parameters") {
        Some(list) => {
            let parameters = Parameters::read(&list, cx, true);
            list.finish(cx);
            parameters
        }
        None => Parameters::read(el, cx, true),
    };
    let on_error = el.attribute("onError").filter(|name| !name.is_empty());
    let sequence = el.attribute("sequence").filter(|name| !name.is_empty());
    for (attribute, sequence) in [("onError", on_error), ("sequence", sequence)] {
        if let Some(sequence) = sequence {
            cx.sequence_ref(sequence, el.attribute_place(attribute));
        }
    }
    let suspended = el.flag("suspend", false);
    let wants_coordination = parameters.flag("coordination", true);
    let kind = find_kind(cx, name, el);
    let pace = pace(&parameters, el, cx);
    let source = Source {
        kind: INBOUND_ENDPOINT,
        name: name.into(),
        label: format!("{{inboundendpoint:{name}}}").into(),
        transport: kind.and_then(|kind| kind.protocols.first()).copied().unwrap_or("inbound"),
        on_error: on_error.map(Arc::from),
    };
    let endpoint = InboundEndpoint {
        el: *el,
        source: Arc::new(source),
        sequence: sequence.map(Arc::from),
        sequential: parameters.flag("sequential", true),
    };
    let content = content_hash(el);
    let Some(kind) = kind else { return };
    let feed = (kind.build)(&endpoint, &parameters, cx);
    let (Some(feed), Some(pace)) = (feed, pace) else { return };
    let ignored: Vec<&str> = COMMON_IGNORED.iter().chain(kind.ignored).copied().collect();
    parameters.report_unread(&format!("the protocol `{}`", endpoint.source.transport), &ignored, cx);
    if cx.errors_so_far() > errors {
        return;
    }
    let runner = feed.into_service(pace);
    // Clients may connect to a port on each node.
    let is_coordinated = wants_coordination && !runner.opens_port();
    cx.add_service(BackgroundService {
        kind: INBOUND_ENDPOINT,
        name: name.into(),
        content,
        at: el.place(),
        starts_paused: suspended,
        is_coordinated,
        runner,
    });
}

/// The protocol, by its name or by the Java class that it stands for.
fn find_kind(cx: &mut Compiler<'_>, name: &str, el: &Element<'_>) -> Option<&'static InboundKind> {
    let mut kinds = cx.registry.inbound();
    if let Some(protocol) = el.attribute("protocol").filter(|protocol| !protocol.is_empty()) {
        el.attribute("class");
        let found = kinds.clone().find(|kind| kind.protocols.contains(&protocol));
        if found.is_none() {
            let reason = match REFUSED.iter().find(|(refused, _)| *refused == protocol) {
                Some((_, reason)) => format!(" is not supported: {reason}"),
                None => {
                    let known = kinds.flat_map(|kind| kind.protocols).copied();
                    let meant = suggestion(protocol, known);
                    let hint = meant.map_or_else(String::new, |meant| format!(", did you mean `{meant}`?"));
                    format!(" is not supported{hint}")
                }
            };
            cx.error(
                el.attribute_place("protocol"),
                format!("inbound endpoint `{name}`: the protocol `{protocol}`{reason}"),
            );
        }
        return found;
    }
    let Some(class) = el.attribute("class").filter(|class| !class.is_empty()) else {
        cx.error(el.place(), "<inboundEndpoint> needs the attribute `protocol` or `class`");
        return None;
    };
    let found = kinds.find(|kind| kind.classes.contains(&class));
    if found.is_none() {
        let text = format!("inbound endpoint `{name}` needs the Java class `{class}`, which does not run here");
        cx.error(el.attribute_place("class"), text);
    }
    found
}

/// `interval` in milliseconds, or `cron`.
fn pace(parameters: &Parameters, el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Pace> {
    let Some(text) = parameters.get("cron") else {
        let millis = match parameters.get("interval") {
            None => DEFAULT_INTERVAL_MS,
            Some(text) => match text.trim().parse::<u64>() {
                Ok(millis) => millis.max(1),
                Err(_) => {
                    let text = format!("Invalid numeric value for interval: `{text}`");
                    cx.error(parameters.place("interval", el), text);
                    return None;
                }
            },
        };
        return Some(Pace::Every(Duration::from_millis(millis)));
    };
    parameters.get("interval");
    match Cron::parse(text) {
        Ok(cron) => Some(Pace::Schedule(Arc::new(move || cron.next_pause()))),
        Err(why) => {
            cx.error(parameters.place("cron", el), why);
            None
        }
    }
}
