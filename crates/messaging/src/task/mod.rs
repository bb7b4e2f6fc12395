//! `<task name="…" class="…">`: injects a message into a flow on a schedule.

mod cron;
mod injector;
mod trigger;

use std::pin::pin;
use std::sync::Arc;

use penstock_compile::{
    ArtifactKind, ArtifactName, Compiler, Element, content_hash, declare_nothing, withdraw_nothing,
};
use penstock_engine::background::{BackgroundService, Control, RunService, ServiceError};
use penstock_engine::inject::inject;
use penstock_engine::ports::LocalFuture;

pub(crate) use cron::Cron;
use injector::Injector;
use trigger::Trigger;

/// The kind of artifact and of service.
const ELEMENT: &str = "task";

/// The class of a task that names none.
const MESSAGE_INJECTOR: &str = "org.apache.synapse.startup.tasks.MessageInjector";

/// The kind.
pub(crate) const KIND: ArtifactKind = ArtifactKind {
    element: ELEMENT,
    name: ArtifactName::Attribute("name"),
    declare: declare_nothing,
    build,
    withdraw: withdraw_nothing,
};

/// A task that is ready to run.
struct Task {
    trigger: Arc<Trigger>,
    injector: Arc<Injector>,
}

fn build(cx: &mut Compiler<'_>, name: &str, el: &Element<'_>) {
    let errors = cx.errors_so_far();
    el.attribute("group");
    let class = el.attribute("class").unwrap_or(MESSAGE_INJECTOR);
    if class != MESSAGE_INJECTOR {
        el.accept_all();
        let text = format!("the task `{name}` needs the Java class `{class}`, which does not run here");
        cx.error(el.attribute_place("class"), text);
        return;
    }
    let pinned: Vec<Arc<str>> = el
        .attribute("pinnedServers")
        .unwrap_or_default()
        .split([' ', ','])
        .filter(|server| !server.is_empty())
        .map(Arc::from)
        .collect();
    // A pinned task names its servers itself.
    let is_coordinated = pinned.is_empty();
    let trigger = Trigger::compile(cx, el, pinned);
    let injector = Injector::compile(cx, name, el);
    el.child("description");
    el.finish(cx);
    let (Some(trigger), Some(injector)) = (trigger, injector) else { return };
    if cx.errors_so_far() > errors {
        return;
    }
    cx.add_service(BackgroundService {
        kind: ELEMENT,
        name: name.into(),
        content: content_hash(el),
        at: el.place(),
        starts_paused: false,
        is_coordinated,
        runner: Arc::new(Task { trigger: Arc::new(trigger), injector: Arc::new(injector) }),
    });
}

impl RunService for Task {
    fn run(&self, mut control: Control) -> LocalFuture<'static, Result<(), ServiceError>> {
        let (trigger, injector) = (self.trigger.clone(), self.injector.clone());
        Box::pin(async move {
            let operator = control.clone();
            let run = async || {
                let injected = inject(operator.core(), injector.injection()).await;
                operator.count(injected.outcome.is_done());
            };
            let mut runs = 0;
            loop {
                let mut next = pin!(trigger.wait(&mut control, runs));
                let is_due = loop {
                    tokio::select! {
                        biased;
                        is_due = &mut next => break is_due,
                        () = operator.triggered() => run().await,
                    }
                };
                if !is_due {
                    return Ok(());
                }
                runs += 1;
                run().await;
            }
        })
    }
}
