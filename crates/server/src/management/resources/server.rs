//! `/server`: what runs here, and its end.

use serde_json::json;

use super::super::audit::{self, Action};
use super::super::call::{Call, Outcome, done, ok, refuse, text};
use crate::serve::Event;

/// What does not exist here.
const NONE: &str = "N/A";

pub(crate) fn describe(call: &Call<'_>) -> Outcome {
    let home = call.api.deployer.settings().management.home.clone().unwrap_or_default();
    let version = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    ok(&json!({
        "carbonHome": home.display().to_string(),
        "javaHome": NONE,
        "javaVersion": NONE,
        "javaVendor": NONE,
        "osName": std::env::consts::OS,
        "osVersion": version.trim(),
        "productName": "Penstock",
        "productVersion": env!("CARGO_PKG_VERSION"),
    }))
}

pub(crate) fn change(call: &Call<'_>) -> Outcome {
    let payload = call.payload()?;
    let Some(status) = text(&payload, "status") else { return refuse(400, "Invalid payload structure received.") };
    let answer = match status.as_str() {
        "shutdown" => "The server will start to shutdown.",
        "shutdownGracefully" => "The server will start to shutdown gracefully.",
        "restart" | "restartGracefully" => {
            let text =
                "Penstock does not start itself again: shut it down, and its supervisor starts it, or send SIGHUP";
            return refuse(400, text);
        }
        _ => return refuse(400, "Invalid server status received."),
    };
    audit::changed(call, Action::Updated, "server", &json!({ "status": status }));
    // The main thread waits for this as long as the server runs. Requests that run end first in both cases.
    let _ = call.api.events.send(Event::End("an operator ends the server"));
    done(answer)
}
