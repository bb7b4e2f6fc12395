//! `/configs`: correlation logs, which are the lines of the logger `Request` here.

use serde_json::{Value, json};

use super::super::audit::{self, Action};
use super::super::call::{Call, Outcome, ok, refuse, text};
use crate::log::LevelFilter;

const CORRELATION: &str = "correlation";

/// The logger of the line about each request.
const LOGGER: &str = "Request";

pub(crate) fn read(call: &Call<'_>) -> Outcome {
    let Some(name) = call.parameter("configName") else {
        return refuse(400, " Error : Missing Required Query Parameter : configName");
    };
    if name != CORRELATION {
        return refuse(400, format!(" Error : {name} configName not found"));
    }
    let levels = call.api.deployer.log().levels();
    let is_enabled = levels.iter().any(|(logger, _, level)| logger == LOGGER && *level <= LevelFilter::DEBUG);
    ok(&json!({ "configName": CORRELATION, "configs": { "enabled": is_enabled } }))
}

pub(crate) fn change(call: &Call<'_>) -> Outcome {
    let payload = call.payload()?;
    let missing = |field: &str| refuse(400, format!(" Error : Missing Required Field: {field}"));
    let Some(name) = text(&payload, "configName") else { return missing("configName") };
    if name != CORRELATION {
        return refuse(400, format!(" Error : {name} configName not found"));
    }
    let Some(configs) = payload.get("configs").and_then(Value::as_object) else { return missing("configs") };
    let Some(enabled) = text(configs, "enabled") else { return missing("enabled") };
    let log = call.api.deployer.log();
    let enables = enabled.eq_ignore_ascii_case("true");
    if enables {
        log.set_level(LOGGER, None, LevelFilter::DEBUG);
    } else {
        log.remove_level(LOGGER);
    }
    let action = if enables { Action::Enabled } else { Action::Disabled };
    audit::changed(call, action, "correlation_logs", &json!({ "configName": CORRELATION }));
    ok(&json!({ "message": "Successfully Updated Correlation Logs Status" }))
}
