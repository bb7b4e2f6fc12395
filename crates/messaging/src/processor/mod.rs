//! `<messageProcessor name="…" class="…" messageStore="…">`: takes messages out of a store.

mod failover;
mod forwarding;
mod rhythm;
mod sampling;

use std::sync::Arc;

use penstock_compile::{
    ArtifactKind, ArtifactName, Compiler, Element, NameKind, Parameters, content_hash, declare_nothing,
    withdraw_nothing,
};
use penstock_engine::background::{BackgroundService, Control, RunService};
use penstock_engine::inject::{InjectTarget, Injected, Injection, Source, inject};
use penstock_message::Message;

use crate::store::MESSAGE_STORE;
use rhythm::Rhythm;

/// The kind of artifact and of service.
pub(crate) const ELEMENT: &str = "messageProcessor";

/// The kind.
pub(crate) const KIND: ArtifactKind = ArtifactKind {
    element: ELEMENT,
    name: ArtifactName::Attribute("name"),
    declare: declare_nothing,
    build,
    withdraw: withdraw_nothing,
};

type Compile = fn(&Common, &Parameters, &Element<'_>, &mut Compiler<'_>) -> Option<Arc<dyn RunService>>;

/// The classes, old names included.
const CLASSES: [(&str, Compile); 5] = [
    ("org.apache.synapse.message.processor.impl.forwarder.ScheduledMessageForwardingProcessor", forwarding::compile),
    ("org.apache.synapse.message.processors.forward.ScheduledMessageForwardingProcessor", forwarding::compile),
    ("org.apache.synapse.message.processor.impl.sampler.SamplingProcessor", sampling::compile),
    ("org.apache.synapse.message.processors.sampler.SamplingProcessor", sampling::compile),
    (
        "org.apache.synapse.message.processor.impl.failover.FailoverScheduledMessageForwardingProcessor",
        failover::compile,
    ),
];

/// What processors of all classes have.
#[derive(Clone)]
pub(crate) struct Common {
    store: Arc<str>,
    source: Arc<Source>,
    rhythm: Arc<Rhythm>,
}

fn build(cx: &mut Compiler<'_>, name: &str, el: &Element<'_>) {
    let errors = cx.errors_so_far();
    let parameters = Parameters::read(el, cx, false);
    let class = el.required(cx, "class").unwrap_or_default();
    let store = el.required(cx, "messageStore").unwrap_or_default();
    if !store.is_empty() && !cx.is_declared(MESSAGE_STORE, store) {
        cx.unknown(MESSAGE_STORE, store, el.attribute_place("messageStore"));
    }
    let Some(rhythm) = Rhythm::compile(&parameters, el, cx) else { return };
    let source = Source {
        kind: ELEMENT,
        name: name.into(),
        label: format!("{{messageprocessor:{name}}}").into(),
        transport: "store",
        on_error: None,
    };
    let common = Common { store: store.into(), source: Arc::new(source), rhythm: Arc::new(rhythm) };
    let runner = match CLASSES.iter().find(|(known, _)| *known == class) {
        Some((_, compile)) => compile(&common, &parameters, el, cx),
        None if class.is_empty() => None,
        None => {
            let text = format!("the class `{class}` is not a message processor Penstock has");
            cx.error(el.attribute_place("class"), text);
            None
        }
    };
    el.attribute("targetEndpoint");
    el.finish(cx);
    let Some(runner) = runner.filter(|_| cx.errors_so_far() == errors) else { return };
    cx.add_service(BackgroundService {
        kind: ELEMENT,
        name: name.into(),
        content: content_hash(el),
        at: el.place(),
        starts_paused: !parameters.flag("is.active", true),
        is_coordinated: true,
        runner,
    });
}

/// The name of a sequence in a parameter; one that is not defined is reported.
fn sequence(parameter: &str, parameters: &Parameters, el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Arc<str>> {
    let name = parameters.get(parameter)?;
    cx.sequence_ref(name, parameters.place(parameter, el));
    Some(name.into())
}

/// The name of an endpoint; one that is not defined is reported.
fn endpoint(name: &str, parameter: &str, parameters: &Parameters, el: &Element<'_>, cx: &mut Compiler<'_>) -> Arc<str> {
    if !cx.is_declared(NameKind::ENDPOINT, name) {
        cx.unknown(NameKind::ENDPOINT, name, parameters.place(parameter, el));
    }
    name.into()
}

impl Common {
    /// Runs a sequence of the processor on a message.
    async fn run(&self, control: &Control, sequence: &Arc<str>, message: Message) -> Injected {
        let injection =
            Injection { target: InjectTarget::Sequence(sequence.clone()), message, source: self.source.clone() };
        inject(control.core(), injection).await
    }
}
