//! What a module may ask for: the functions it imports from `penstock`. Texts are UTF-8, given by address and length.

use penstock_engine::ports::Level;
use penstock_engine::{Exchange, Fault};
use penstock_message::{Form, MediaType, Scope, Value};
use wasmi::{Caller, Engine, Error, Linker, Memory, StoreLimits, TrapCode};

use super::Setting;
use penstock_engine::payload;

/// The module that functions are imported from.
pub(super) const MODULE: &str = "penstock";

/// Their names.
pub(super) const FUNCTIONS: [&str; 5] = ["get", "set", "remove", "log", "fail"];

/// What a call costs besides what it moves, in the fuel of instructions: about half a microsecond.
const CALL_FUEL: u64 = 100;

/// What a byte costs that is copied between a module and a message.
const BYTE_FUEL: u64 = 1;

/// What a byte of a payload costs more: it is written or parsed for every call.
const PAYLOAD_BYTE_FUEL: u64 = 4;

/// What a line in the log costs: it leaves the process.
const LOG_FUEL: u64 = 10_000;

/// What belongs to one message's instance.
pub(super) struct Guest {
    pub exchange: Exchange,
    pub properties: Vec<Setting>,
    pub limits: StoreLimits,
    /// The argument of `fail`.
    pub failure: Option<String>,
}

/// The kinds of values, by the number a module gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ValueKind {
    Payload,
    Scoped(Scope),
    Variable,
    Own,
}

impl ValueKind {
    fn from_number(number: i32) -> Result<ValueKind, Error> {
        Ok(match number {
            0 => ValueKind::Payload,
            1 => ValueKind::Scoped(Scope::Default),
            2 => ValueKind::Scoped(Scope::Axis2),
            3 => ValueKind::Scoped(Scope::Transport),
            4 => ValueKind::Scoped(Scope::Operation),
            5 => ValueKind::Variable,
            6 => ValueKind::Own,
            other => return Err(Error::new(format!("there is no kind of value {other}, only 0 to 6"))),
        })
    }
}

/// The functions.
pub(super) fn linker(engine: &Engine) -> Linker<Guest> {
    let mut linker = Linker::new(engine);
    linker
        .func_wrap(MODULE, "get", get)
        .and_then(|linker| linker.func_wrap(MODULE, "set", set))
        .and_then(|linker| linker.func_wrap(MODULE, "remove", remove))
        .and_then(|linker| linker.func_wrap(MODULE, "log", log))
        .and_then(|linker| linker.func_wrap(MODULE, "fail", fail))
        .expect("the names differ");
    linker
}

/// `get(kind, name, name_length, into, room) -> length`: copies as much of the value as there is room for and gives its whole
/// length; -1 when there is none.
fn get(
    mut caller: Caller<'_, Guest>,
    kind: i32,
    name: i32,
    name_length: i32,
    into: i32,
    room: i32,
) -> Result<i32, Error> {
    let memory = memory(&caller)?;
    let name = text(&memory, &mut caller, name, name_length)?;
    let kind = ValueKind::from_number(kind)?;
    let found = value(caller.data_mut(), kind, &name).map_err(failed)?;
    let Some(found) = found else { return Ok(-1) };
    charge(&mut caller, moved(kind, found.len()))?;
    let room = usize::try_from(room).unwrap_or_default().min(found.len());
    let start = into as u32 as usize;
    let target = memory.data_mut(&mut caller).get_mut(start..start.saturating_add(room)).ok_or_else(outside)?;
    target.copy_from_slice(&found.as_bytes()[..room]);
    i32::try_from(found.len()).map_err(|_| Error::new("a value is too long for a module"))
}

/// `set(kind, name, name_length, value, value_length)`; the name of a payload is its media type, empty for the one it has.
fn set(
    mut caller: Caller<'_, Guest>,
    kind: i32,
    name: i32,
    name_length: i32,
    value: i32,
    value_length: i32,
) -> Result<(), Error> {
    let memory = memory(&caller)?;
    let name = text(&memory, &mut caller, name, name_length)?;
    let value = text(&memory, &mut caller, value, value_length)?;
    let kind = ValueKind::from_number(kind)?;
    if kind == ValueKind::Payload {
        charge(&mut caller, moved(kind, value.len()))?;
    }
    let exchange = &mut caller.data_mut().exchange;
    match kind {
        ValueKind::Payload => set_payload(exchange, &name, value).map_err(failed)?,
        ValueKind::Scoped(scope) => exchange.set_property(scope, &name, Value::string(value)),
        ValueKind::Variable => exchange.message.variables.set(name.as_str(), Value::string(value)),
        ValueKind::Own => return Err(Error::new("a class cannot set the properties it is configured with")),
    }
    Ok(())
}

/// `remove(kind, name, name_length)`
fn remove(mut caller: Caller<'_, Guest>, kind: i32, name: i32, name_length: i32) -> Result<(), Error> {
    let memory = memory(&caller)?;
    let name = text(&memory, &mut caller, name, name_length)?;
    let exchange = &mut caller.data_mut().exchange;
    match ValueKind::from_number(kind)? {
        ValueKind::Scoped(scope) => exchange.remove_property(scope, &name),
        ValueKind::Variable => drop(exchange.message.variables.remove(&name)),
        ValueKind::Payload | ValueKind::Own => return Err(Error::new("only properties and variables can be removed")),
    }
    Ok(())
}

/// What a value costs that is given to a module, or a payload that it sets.
fn moved(kind: ValueKind, bytes: usize) -> u64 {
    bytes as u64 * if kind == ValueKind::Payload { PAYLOAD_BYTE_FUEL } else { BYTE_FUEL }
}

/// Takes fuel for work that is done for a module.
fn charge(caller: &mut Caller<'_, Guest>, fuel: u64) -> Result<(), Error> {
    let left = caller.get_fuel()?.checked_sub(fuel).ok_or(TrapCode::OutOfFuel)?;
    caller.set_fuel(left)
}

/// `log(level, text, length)`: 0 is an error, 1 a warning, 2 information, 3 detail.
fn log(mut caller: Caller<'_, Guest>, level: i32, at: i32, length: i32) -> Result<(), Error> {
    charge(&mut caller, LOG_FUEL)?;
    let memory = memory(&caller)?;
    let text = text(&memory, &mut caller, at, length)?;
    let level = match level {
        0 => Level::Error,
        1 => Level::Warn,
        2 => Level::Info,
        _ => Level::Debug,
    };
    caller.data_mut().exchange.log(level, "ClassMediator", &text);
    Ok(())
}

/// `fail(text, length)`: what the fault says that the class ends with.
fn fail(mut caller: Caller<'_, Guest>, at: i32, length: i32) -> Result<(), Error> {
    let memory = memory(&caller)?;
    let text = text(&memory, &mut caller, at, length)?;
    caller.data_mut().failure = Some(text);
    Ok(())
}

fn memory(caller: &Caller<'_, Guest>) -> Result<Memory, Error> {
    caller
        .get_export("memory")
        .and_then(wasmi::Extern::into_memory)
        .ok_or_else(|| Error::new("the module exports no memory called `memory`"))
}

/// A text of the module's memory. Its call and its length are paid for here.
fn text(memory: &Memory, caller: &mut Caller<'_, Guest>, at: i32, length: i32) -> Result<String, Error> {
    let (start, length) = (at as u32 as usize, length as u32 as usize);
    charge(caller, CALL_FUEL + length as u64 * BYTE_FUEL)?;
    let bytes = memory.data(&*caller).get(start..start.saturating_add(length)).ok_or_else(outside)?;
    Ok(String::from_utf8_lossy(bytes).into_owned())
}

fn outside() -> Error {
    Error::new("an address outside of the module's memory was given")
}

fn failed(fault: Fault) -> Error {
    Error::new(fault.message.to_string())
}

fn value(guest: &mut Guest, kind: ValueKind, name: &str) -> Result<Option<String>, Fault> {
    let exchange = &mut guest.exchange;
    Ok(match kind {
        ValueKind::Payload => payload_text(exchange)?,
        ValueKind::Scoped(scope) => exchange.property(scope, name).map(|value| value.to_text().into_owned()),
        ValueKind::Variable => exchange.message.variables.get(name).map(|value| value.to_text().into_owned()),
        ValueKind::Own => guest.properties.iter().find(|(own, _)| **own == *name).map(|(_, value)| value.to_string()),
    })
}

/// The payload as it is written: JSON, the element, or the text.
fn payload_text(exchange: &mut Exchange) -> Result<Option<String>, Fault> {
    let is_tree = matches!(exchange.message.body.form(), Form::Xml(_) | Form::Json(_));
    let kind = exchange.message.source_media();
    if exchange.message.body.is_empty() || is_tree || kind == MediaType::Json || kind.is_xml() {
        return Ok(payload::payload_of(exchange)?.map(|value| value.to_text().into_owned()));
    }
    let program = exchange.program().clone();
    Ok(Some(exchange.message.text(&program.conversion)?.to_string()))
}

fn set_payload(exchange: &mut Exchange, media_type: &str, text: String) -> Result<(), Fault> {
    let kind = if media_type.is_empty() { exchange.message.media_type() } else { MediaType::parse(media_type) };
    match kind {
        MediaType::Json => {
            serde_json::from_str::<serde_json::Value>(&text)
                .map_err(|error| Fault::new(format!("the payload a class set is not JSON: {error}")))?;
            payload::set_json_text(exchange, text);
        }
        kind if kind.is_xml() => {
            payload::parse(text.clone())?;
            payload::replace_by_bytes(exchange, text.into_bytes())?;
        }
        _ => payload::set_text(exchange, text),
    }
    if !media_type.is_empty() && MediaType::parse(media_type) != exchange.message.media_type() {
        payload::set_media_type(exchange, media_type);
    }
    Ok(())
}
