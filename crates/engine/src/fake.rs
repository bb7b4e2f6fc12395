//! A core without sockets, for unit tests.

use std::rc::Rc;
use std::sync::Arc;

use penstock_message::Message;

use crate::ports::{Level, LocalFuture, LogSink, Outbound, Outgoing, Record};
use crate::{Core, Current, Fault, Metrics, Program};

struct Nothing;

impl LogSink for Nothing {
    fn write(&self, _record: &Record<'_>) {}

    fn enabled(&self, _level: Level) -> bool {
        false
    }
}

impl Outbound for Nothing {
    fn send<'a>(&'a self, _outgoing: Outgoing) -> LocalFuture<'a, Result<Message, Fault>> {
        Box::pin(async { Err(Fault::new("no backend")) })
    }
}

/// A core that logs nothing and reaches no backend.
pub(crate) fn core(program: Program) -> Rc<Core> {
    let current = Current::new(Arc::new(program));
    Core::new(Rc::new(Nothing), Arc::new(Nothing), Arc::default(), Arc::new(Metrics::default()), current)
}

/// Runs a test on a local set.
pub(crate) fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, test);
}
