//! The audit log: who changed what.

use penstock_engine::ports::Level;
use serde_json::{Value, json};

use super::call::Call;

/// What was done.
#[derive(Debug, Clone, Copy)]
pub(super) enum Action {
    Enabled,
    Disabled,
    Created,
    Deleted,
    Updated,
    Triggered,
}

impl Action {
    fn word(self) -> &'static str {
        match self {
            Action::Enabled => "enabled",
            Action::Disabled => "disabled",
            Action::Created => "created",
            Action::Deleted => "deleted",
            Action::Updated => "updated",
            Action::Triggered => "triggered",
        }
    }
}

/// Writes the line about a change. The layout is that of Micro Integrator, which programs read: `info` is JSON in a text.
pub(super) fn changed(call: &Call<'_>, action: Action, kind: &str, info: &Value) {
    let line = json!({
        "performedBy": call.user,
        "action": action.word(),
        "type": kind,
        "info": info.to_string(),
    });
    call.api.deployer.log().say(Level::Info, "AUDIT_LOG", &line.to_string());
}

/// Writes the line about a login.
pub(super) fn logged_in(call: &Call<'_>) {
    let now = penstock_engine::clock::system_date(None);
    call.api.deployer.log().say(Level::Info, "AUDIT_LOG", &format!("{} logged in at [{now}]", call.user));
}
