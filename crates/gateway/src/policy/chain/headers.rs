//! `set-headers`, `add-headers`, `remove-headers`, `modify-headers`: fields of requests and answers.

use std::sync::Arc;

use penstock_engine::{Exchange, Fault, Flow, Mediator};
use penstock_message::Headers;

use super::params::{Param, Params};
use crate::policy::chain::kind::{ChainPhase, ChainPolicy, Made, Making};
use crate::text::is_field_value;

/// Replaces header fields, or adds to them.
pub(super) const SET: ChainPolicy = ChainPolicy { name: "set-headers", make: make_set };

/// Adds fields.
pub(super) const ADD: ChainPolicy = ChainPolicy { name: "add-headers", make: make_add };

/// Removes fields.
pub(super) const REMOVE: ChainPolicy = ChainPolicy { name: "remove-headers", make: make_remove };

/// Each of these, field by field.
pub(super) const MODIFY: ChainPolicy = ChainPolicy { name: "modify-headers", make: make_modify };

/// What the API Platform lets names and values be.
const NAME_BYTES_MAX: usize = 256;
const VALUE_BYTES_MAX: usize = 8192;

/// What becomes of fields of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Set,
    Append,
    Remove,
}

struct Change {
    action: Action,
    name: Arc<str>,
    value: Arc<str>,
}

/// Changes the fields of the message that is there.
struct Modify(Vec<Change>);

fn make_set(_making: &Making<'_>, params: &Params<'_>) -> Option<Made> {
    let action = params.one_of("mode", &[("set", Action::Set), ("append", Action::Append)]).unwrap_or(Action::Set);
    made(params, |item| change(item, action))
}

fn make_add(_making: &Making<'_>, params: &Params<'_>) -> Option<Made> {
    made(params, |item| change(item, Action::Append))
}

fn make_remove(_making: &Making<'_>, params: &Params<'_>) -> Option<Made> {
    made(params, |item| change(item, Action::Remove))
}

fn make_modify(_making: &Making<'_>, params: &Params<'_>) -> Option<Made> {
    made(params, |item| {
        let item = item.map("headers")?;
        let actions = [("SET", Action::Set), ("APPEND", Action::Append), ("DELETE", Action::Remove)];
        let Some(action) = item.one_of("action", &actions) else {
            item.error("a change needs `action`");
            return None;
        };
        named(&item, action)
    })
}

/// Reads the changes of both flows; the first version of the API Platform wrote `requestHeaders` for `request.headers`.
fn made(params: &Params<'_>, read: impl Fn(Param<'_>) -> Option<Change>) -> Option<Made> {
    let flow = |name: &'static str, old: &'static str| -> Option<(ChainPhase, Vec<Change>)> {
        let mut phase = ChainPhase::Head;
        let list = match params.map(name) {
            Some(flow) => {
                phase =
                    flow.one_of("phase", &[("header", ChainPhase::Head), ("body", ChainPhase::Body)]).unwrap_or(phase);
                let list = flow.list("headers");
                if list.is_empty() {
                    flow.error("`headers` must be a list of at least one header");
                }
                list
            }
            None => params.list(old),
        };
        let changes: Vec<Change> = list.into_iter().filter_map(&read).collect();
        (!changes.is_empty()).then_some((phase, changes))
    };
    let (request, response) = (flow("request", "requestHeaders"), flow("response", "responseHeaders"));
    if request.is_none() && response.is_none() {
        params.error("`request` or `response` is missing");
    }
    let boxed = |(phase, changes)| -> (ChainPhase, Box<dyn Mediator>) { (phase, Box::new(Modify(changes))) };
    Some(Made { request: request.map(boxed), response: response.map(boxed), ..Made::default() })
}

fn change(item: Param<'_>, action: Action) -> Option<Change> {
    named(&item.map("headers")?, action)
}

fn named(item: &Params<'_>, action: Action) -> Option<Change> {
    let name: Arc<str> = item.required_text("name")?.trim().into();
    if !is_name(&name) {
        item.error(format!("`{name}` is not a header name"));
        return None;
    }
    let value = match action {
        Action::Remove => Arc::default(),
        _ => match item.text("value") {
            Some(value) if is_value(&value) => value,
            Some(_) => {
                item.error(format!("the value of `{name}` is too long or holds a control character"));
                return None;
            }
            None => {
                item.error(format!("the field `{name}` needs `value`"));
                return None;
            }
        },
    };
    Some(Change { action, name, value })
}

/// As the API Platform lets it be.
pub(super) fn is_name(name: &str) -> bool {
    let is_good = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    !name.is_empty() && name.len() <= NAME_BYTES_MAX && name.bytes().all(is_good)
}

pub(super) fn is_value(value: &str) -> bool {
    value.len() <= VALUE_BYTES_MAX && is_field_value(value)
}

impl Modify {
    fn apply(&self, headers: &mut Headers) {
        for Change { action, name, value } in &self.0 {
            match action {
                Action::Set => headers.set(name, &**value),
                Action::Append => headers.append(name, &**value),
                Action::Remove => drop(headers.remove(name)),
            }
        }
    }
}

impl Mediator for Modify {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        self.apply(&mut exchange.message.headers);
        Ok(Flow::Next)
    }
}
