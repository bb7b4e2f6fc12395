//! `/logging`: levels of loggers.

use serde_json::{Value, json};

use super::super::audit::{self, Action};
use super::super::call::{Call, Outcome, list, ok, refuse, text};
use crate::log::{LevelFilter, ROOT_LOGGER};

pub(crate) fn read(call: &Call<'_>) -> Outcome {
    let loggers = call.api.deployer.log().levels();
    let described = |(name, component, level): &(String, String, LevelFilter)| -> Value {
        json!({ "loggerName": name, "componentName": component, "level": level.word() })
    };
    match call.parameter("loggerName") {
        Some(name) => match loggers.iter().find(|(known, ..)| *known == name) {
            Some(found) => ok(&described(found)),
            None => refuse(400, format!("Logger name ('{name}') not found")),
        },
        None => list(call, loggers.iter().filter(|(name, ..)| call.finds(name)).map(described)),
    }
}

pub(crate) fn change(call: &Call<'_>) -> Outcome {
    let payload = call.payload()?;
    let Some(wanted) = text(&payload, "loggingLevel") else { return refuse(400, "Log level is missing") };
    let Some(level) = LevelFilter::parse(&wanted) else {
        return refuse(400, format!("Invalid log level {wanted}"));
    };
    let Some(name) = text(&payload, "loggerName") else { return refuse(400, "Logger name is missing") };
    let class = text(&payload, "loggerClass");
    let log = call.api.deployer.log();
    let exists = log.levels().iter().any(|(known, ..)| *known == name);
    let info = json!({ "loggerName": name, "loggingLevel": wanted });
    match &class {
        Some(_) if exists => {
            let text = format!("Specified logger name ('{name}') already exists, try updating the level instead");
            return refuse(400, text);
        }
        None if !exists => return refuse(400, format!("Specified logger ('{name}') not found")),
        _ => {}
    }
    if !log.set_level(&name, class.as_deref(), level) {
        return refuse(400, "there are too many loggers with a level of their own");
    }
    let kind = if name == ROOT_LOGGER { "root_log_level" } else { "log_level" };
    audit::changed(call, if class.is_some() { Action::Created } else { Action::Updated }, kind, &info);
    let of_class = class.map_or_else(String::new, |class| format!(" for class {class}"));
    ok(&json!({ "message": format!("Successfully added logger for ('{name}') with level {}{of_class}", level.word()) }))
}

pub(crate) fn delete(call: &Call<'_>) -> Outcome {
    let Some(name) = call.parameter("loggerName") else { return refuse(400, "Logger name is missing") };
    if name == ROOT_LOGGER {
        return refuse(403, "the root logger cannot be removed");
    }
    if !call.api.deployer.log().remove_level(&name) {
        return refuse(404, format!("Specified logger ('{name}') not found"));
    }
    audit::changed(call, Action::Deleted, "log_level", &json!({ "loggerName": name }));
    ok(&json!({ "message": format!("Successfully removed logger for ('{name}')") }))
}
