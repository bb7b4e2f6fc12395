//! The sampling processor: runs a sequence for each message. A message is acknowledged as it is taken, so it is processed
//! at most once, as in Micro Integrator.

use std::sync::Arc;

use penstock_compile::{Compiler, Element, Parameters};
use penstock_engine::background::{Control, RunService, ServiceError};
use penstock_engine::ports::{Level, LocalFuture};

use super::{Common, sequence};
use crate::processor::forwarding::take;
use crate::stored;

/// Messages that one firing takes.
const CONCURRENCY_MAX: usize = 1000;

struct Sampling {
    common: Common,
    sequence: Arc<str>,
    concurrency: usize,
}

pub(super) fn compile(
    common: &Common,
    parameters: &Parameters,
    el: &Element<'_>,
    cx: &mut Compiler<'_>,
) -> Option<Arc<dyn RunService>> {
    let concurrency = parameters.number("concurrency", el, cx).unwrap_or(1usize).clamp(1, CONCURRENCY_MAX);
    let Some(sequence) = sequence("sequence", parameters, el, cx) else {
        cx.error(el.place(), "a sampling processor needs the parameter `sequence`");
        return None;
    };
    Some(Arc::new(Sampling { common: common.clone(), sequence, concurrency }))
}

impl RunService for Sampling {
    fn run(&self, control: Control) -> LocalFuture<'static, Result<(), ServiceError>> {
        let (common, sequence, concurrency) = (self.common.clone(), self.sequence.clone(), self.concurrency);
        Box::pin(async move { sample(common, sequence, concurrency, control).await })
    }
}

async fn sample(
    common: Common,
    sequence: Arc<str>,
    concurrency: usize,
    mut control: Control,
) -> Result<(), ServiceError> {
    let mut was_empty = true;
    while common.rhythm.wait(&mut control, was_empty).await {
        for _ in 0..concurrency * common.rhythm.members {
            let Some((store, reservation)) = take(&common, &control).await? else {
                was_empty = true;
                break;
            };
            was_empty = false;
            store.acknowledge(reservation.token).await.map_err(|error| ServiceError::temporary(error.message))?;
            match stored::decode(&reservation.record.bytes) {
                Ok(message) => {
                    let (common, sequence, control) = (common.clone(), sequence.clone(), control.clone());
                    tokio::task::spawn_local(async move {
                        let injected = common.run(&control, &sequence, message).await;
                        control.count(injected.outcome.is_done());
                    });
                }
                Err(why) => {
                    control.log(Level::Error, &format!("message {} cannot be read: {why}", reservation.record.id));
                    control.count(false);
                }
            }
        }
    }
    Ok(())
}
