//! The failover processor: moves messages from one store to another, as soon as that one takes them.

use std::sync::Arc;
use std::time::Duration;

use penstock_compile::{Compiler, Element, Parameters};
use penstock_engine::background::{Control, RunService, ServiceError};
use penstock_engine::ports::{Level, LocalFuture};

use super::Common;
use super::forwarding::{move_to, next};
use crate::store::MESSAGE_STORE;

struct Failover {
    common: Common,
    settings: Arc<Settings>,
}

struct Settings {
    target: Arc<str>,
    /// `None` is for ever.
    attempts_max: Option<u32>,
    retry_interval: Duration,
    drops: bool,
}

pub(super) fn compile(
    common: &Common,
    parameters: &Parameters,
    el: &Element<'_>,
    cx: &mut Compiler<'_>,
) -> Option<Arc<dyn RunService>> {
    let Some(target) = parameters.text("message.target.store.name") else {
        // Micro Integrator acknowledges each message and loses it.
        cx.error(el.place(), "a failover processor needs the parameter `message.target.store.name`");
        return None;
    };
    if !cx.is_declared(MESSAGE_STORE, &target) {
        cx.unknown(MESSAGE_STORE, &target, parameters.place("message.target.store.name", el));
    }
    let attempts: i64 = parameters.number("max.delivery.attempts", el, cx).unwrap_or(-1);
    let settings = Settings {
        target,
        attempts_max: u32::try_from(attempts).ok().filter(|attempts| *attempts > 0),
        retry_interval: parameters.millis("client.retry.interval", 1000, el, cx),
        drops: parameters.get("max.delivery.drop") == Some("Enabled"),
    };
    Some(Arc::new(Failover { common: common.clone(), settings: Arc::new(settings) }))
}

impl RunService for Failover {
    fn run(&self, control: Control) -> LocalFuture<'static, Result<(), ServiceError>> {
        let (common, settings) = (self.common.clone(), self.settings.clone());
        Box::pin(async move { move_all(common, settings, control).await })
    }
}

async fn move_all(common: Common, settings: Arc<Settings>, mut control: Control) -> Result<(), ServiceError> {
    let mut was_empty = true;
    while let Some((store, reservation)) = next(&common, &mut control, &mut was_empty).await? {
        let mut attempts = 0;
        let done = loop {
            let Err(why) = move_to(&control, &settings.target, &reservation).await else {
                control.count(true);
                break true;
            };
            attempts += 1;
            control.faulty(format!("storing in `{}` failed: {why}", settings.target));
            if settings.attempts_max.is_some_and(|most| attempts >= most) {
                control.count(false);
                if !settings.drops {
                    control.pause();
                    control.log(Level::Warn, "deactivated after the last attempt");
                }
                break settings.drops;
            }
            if !control.sleep(settings.retry_interval).await {
                break false;
            }
        };
        let ended = match done {
            true => store.acknowledge(reservation.token).await,
            false => store.release(reservation.token).await,
        };
        ended.map_err(|error| ServiceError::temporary(error.message))?;
        control.working();
    }
    Ok(())
}
