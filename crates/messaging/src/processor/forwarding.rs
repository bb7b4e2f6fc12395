//! The forwarding processor: sends each message to an endpoint, and acknowledges it when the backend has taken it. A
//! message that cannot be delivered stays at the head of the store, unless the artifact says to drop or to move it.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use penstock_compile::{Compiler, Element, Parameters};
use penstock_engine::Fault;
use penstock_engine::background::{Control, RunService, ServiceError};
use penstock_engine::inject;
use penstock_engine::ports::{Level, LocalFuture};
use penstock_engine::store::{MessageStore, Reservation};
use penstock_message::Message;

use super::{Common, endpoint, sequence};
use crate::store::{self, MESSAGE_STORE};
use crate::stored;

/// `max.delivery.attempts` of a processor that names none.
const DEFAULT_ATTEMPTS: i64 = 4;

/// `client.retry.interval` of a processor that names none.
const DEFAULT_RETRY_MS: u64 = 1000;

struct Forwarding {
    common: Common,
    settings: Arc<Settings>,
}

struct Settings {
    /// `targetEndpoint`, unless the message has a property `target.endpoint`.
    target: Option<Arc<str>>,
    /// Attempts before the message counts as undeliverable; `None` is for ever.
    attempts_max: Option<u32>,
    retry_interval: Duration,
    /// `max.delivery.drop`
    drops: bool,
    /// `message.processor.failMessagesStore`
    fail_store: Option<Arc<str>>,
    reply_sequence: Option<Arc<str>>,
    fault_sequence: Option<Arc<str>>,
    deactivate_sequence: Option<Arc<str>>,
    /// Micro Integrator looks for a status in the text of the list.
    non_retry_status_codes: Option<Arc<str>>,
}

/// How the attempts to deliver a message ended.
enum Delivery {
    Delivered,
    /// The last attempt failed; the message as the fault sequence left it.
    Undeliverable(Message),
    /// The processor cannot go on with this message: no target, no reply sequence.
    Impossible(String, Message),
    /// The processor stops before the message was delivered.
    Interrupted,
}

pub(super) fn compile(
    common: &Common,
    parameters: &Parameters,
    el: &Element<'_>,
    cx: &mut Compiler<'_>,
) -> Option<Arc<dyn RunService>> {
    let target = el.attribute("targetEndpoint").or_else(|| parameters.get("target.endpoint"));
    let target = target.map(|name| endpoint(name, "target.endpoint", parameters, el, cx));
    let attempts: i64 = parameters.number("max.delivery.attempts", el, cx).unwrap_or(DEFAULT_ATTEMPTS);
    let fail_store = parameters.text("message.processor.failMessagesStore");
    if let Some(name) = fail_store.as_deref().filter(|name| !cx.is_declared(MESSAGE_STORE, name)) {
        cx.unknown(MESSAGE_STORE, name, parameters.place("message.processor.failMessagesStore", el));
    }
    let settings = Settings {
        target,
        attempts_max: u32::try_from(attempts).ok().filter(|attempts| *attempts > 0),
        retry_interval: parameters.millis("client.retry.interval", DEFAULT_RETRY_MS, el, cx),
        drops: parameters.get("max.delivery.drop") == Some("Enabled"),
        fail_store,
        reply_sequence: sequence("message.processor.reply.sequence", parameters, el, cx),
        fault_sequence: sequence("message.processor.fault.sequence", parameters, el, cx),
        deactivate_sequence: sequence("message.processor.deactivate.sequence", parameters, el, cx),
        non_retry_status_codes: parameters.text("non.retry.status.codes"),
    };
    Some(Arc::new(Forwarding { common: common.clone(), settings: Arc::new(settings) }))
}

impl RunService for Forwarding {
    fn run(&self, control: Control) -> LocalFuture<'static, Result<(), ServiceError>> {
        let (common, settings) = (self.common.clone(), self.settings.clone());
        Box::pin(async move {
            let member = |_| forward(common.clone(), settings.clone(), control.clone());
            let members = (0..common.rhythm.members).map(member);
            futures_util::future::try_join_all(members).await.map(drop)
        })
    }
}

/// The first message of the processor's store, reserved.
pub(super) async fn take(
    common: &Common,
    control: &Control,
) -> Result<Option<(Rc<dyn MessageStore>, Reservation)>, ServiceError> {
    let program = control.core().program().program.clone();
    let Some(store) = store::find(&program, &common.store) else {
        return Err(ServiceError::lasting(format!("there is no message store `{}`", common.store)));
    };
    let temporary = |error: penstock_engine::store::StoreError| ServiceError::temporary(error.message);
    let opened = control.core().stores().and_then(|stores| stores.open(&store.definition)).map_err(temporary)?;
    let reservation = opened.reserve().await.map_err(temporary)?;
    control.working();
    Ok(reservation.map(|reservation| (opened, reservation)))
}

/// The next message of the processor's store, reserved, when it is time for it; `None` when the processor must stop.
pub(super) async fn next(
    common: &Common,
    control: &mut Control,
    was_empty: &mut bool,
) -> Result<Option<(Rc<dyn MessageStore>, Reservation)>, ServiceError> {
    while common.rhythm.wait(control, *was_empty).await {
        let taken = take(common, control).await?;
        *was_empty = taken.is_none();
        if taken.is_some() {
            return Ok(taken);
        }
    }
    Ok(None)
}

async fn forward(common: Common, settings: Arc<Settings>, mut control: Control) -> Result<(), ServiceError> {
    let mut was_empty = true;
    while let Some((store, reservation)) = next(&common, &mut control, &mut was_empty).await? {
        let token = reservation.token;
        let done = process(&common, &settings, &mut control, &reservation).await;
        let ended = if done { store.acknowledge(token).await } else { store.release(token).await };
        ended.map_err(|error| ServiceError::temporary(error.message))?;
    }
    Ok(())
}

/// Processes a message; `true` when it can be removed from its store.
async fn process(common: &Common, settings: &Settings, control: &mut Control, reservation: &Reservation) -> bool {
    match deliver(common, settings, control, reservation).await {
        Delivery::Delivered => {
            control.count(true);
            true
        }
        Delivery::Interrupted => false,
        Delivery::Undeliverable(message) => {
            control.count(false);
            if settings.drops {
                control.log(Level::Warn, "the message was dropped after the last delivery attempt");
                return true;
            }
            if let Some(name) = &settings.fail_store {
                match move_to(control, name, reservation).await {
                    Ok(()) => return true,
                    Err(why) => control.log(Level::Error, &format!("storing in `{name}` failed: {why}")),
                }
            }
            deactivate(common, settings, control, message).await;
            false
        }
        Delivery::Impossible(why, message) => {
            control.count(false);
            control.log(Level::Error, &why);
            deactivate(common, settings, control, message).await;
            false
        }
    }
}

async fn deliver(common: &Common, settings: &Settings, control: &mut Control, reservation: &Reservation) -> Delivery {
    let mut attempts = 0;
    loop {
        // Each attempt starts with the message as it was stored.
        let message = match stored::decode(&reservation.record.bytes) {
            Ok(message) => message,
            Err(why) => {
                let text = format!("message {} cannot be read: {why}", reservation.record.id);
                return Delivery::Impossible(text, Message::default());
            }
        };
        let target = message.property_text("target.endpoint").map(Arc::from).or_else(|| settings.target.clone());
        let Some(target) = target else {
            return Delivery::Impossible("the message has no target endpoint".to_owned(), message);
        };
        if !control.core().program().program.endpoint_names.contains_key(&target) {
            return Delivery::Impossible(format!("there is no endpoint `{target}`"), message);
        }
        let one_way = message.properties.is_true("OUT_ONLY") || message.axis2.is_true("OUT_ONLY");
        let (message, sent) = inject::call(control.core(), &common.source, &target, message).await;
        let status = message.status;
        let failed = match judge(settings, common, &target, one_way, status, sent) {
            Ok(()) if one_way => return Delivery::Delivered,
            Ok(()) => match &settings.reply_sequence {
                Some(sequence) => {
                    common.run(control, sequence, message).await;
                    return Delivery::Delivered;
                }
                None => {
                    let text = "a reply came and there is no `message.processor.reply.sequence`".to_owned();
                    return Delivery::Impossible(text, message);
                }
            },
            Err(why) => why,
        };
        control.log(Level::Warn, &failed);
        let message = match &settings.fault_sequence {
            Some(sequence) => common.run(control, sequence, message).await.message,
            None => message,
        };
        attempts += 1;
        if settings.attempts_max.is_some_and(|most| attempts >= most) {
            return Delivery::Undeliverable(message);
        }
        if !control.sleep(settings.retry_interval).await {
            return Delivery::Interrupted;
        }
    }
}

/// Whether a delivery succeeded; the error says why not.
fn judge(
    settings: &Settings,
    common: &Common,
    target: &str,
    one_way: bool,
    status: u16,
    sent: Result<(), Fault>,
) -> Result<(), String> {
    sent.map_err(|fault| format!("sending to `{target}` failed: {}", fault.message))?;
    let listed = settings.non_retry_status_codes.as_deref().is_some_and(|codes| codes.contains(&status.to_string()));
    // Transports other than HTTP have no status.
    if (200..300).contains(&status) || status == 0 || listed {
        return Ok(());
    }
    let name = &common.source.name;
    Err(match one_way {
        true => format!("`{target}` responded with the status {status}"),
        // The words of Micro Integrator, which monitoring looks for.
        false => format!(
            "Message processor [{name}] received a response with HTTP_SC: {status} from backend {target}. Message \
             forwarding failed."
        ),
    })
}

/// Puts a message as it was stored into another store.
pub(super) async fn move_to(control: &Control, name: &str, reservation: &Reservation) -> Result<(), String> {
    let program = control.core().program().program.clone();
    let Some(store) = store::find(&program, name) else { return Err("there is no such message store".to_owned()) };
    let record = &reservation.record;
    let moved = store::put(control.core(), &store, record.bytes.to_vec(), record.priority).await;
    moved.map_err(|error| error.message)
}

async fn deactivate(common: &Common, settings: &Settings, control: &Control, message: Message) {
    control.pause();
    control.log(Level::Warn, &format!("Successfully deactivated the message processor [{}]", common.source.name));
    if let Some(sequence) = &settings.deactivate_sequence {
        common.run(control, sequence, message).await;
    }
}
