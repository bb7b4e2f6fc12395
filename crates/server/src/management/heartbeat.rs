//! Heartbeats to the dashboard of Micro Integrator: which group and node this server is, and where its management API is.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use penstock_engine::ports::{Level, Outbound, Outgoing, SendOptions};
use penstock_message::{Body, Headers, Message, Method};
use serde_json::json;

use crate::config::Dashboard;
use crate::log::Log;

/// The first heartbeat is sent after this time.
const FIRST: Duration = Duration::from_secs(1);

/// A dashboard that responds later is not there.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The heartbeats of this server.
pub(super) struct Heartbeat {
    url: Arc<str>,
    interval: Duration,
    body: String,
}

impl Heartbeat {
    /// `None` when no dashboard is configured.
    pub(super) fn new(dashboard: &Dashboard, host: &str, port: u16) -> Option<Heartbeat> {
        let url = format!("{}/heartbeat", dashboard.url.as_ref()?).into();
        let host = dashboard.host.as_deref().unwrap_or(host);
        let port = dashboard.port.unwrap_or(port);
        let body = json!({
            "product": "mi",
            "groupId": dashboard.group,
            "nodeId": dashboard.node.clone().unwrap_or_else(penstock_engine::clock::uuid),
            "interval": dashboard.interval.as_secs(),
            "mgtApiUrl": format!("https://{host}:{port}/management/"),
        });
        Some(Heartbeat { url, interval: dashboard.interval, body: body.to_string() })
    }

    /// Sends heartbeats. A failure is logged once until one succeeds again; it never ends them.
    pub(super) async fn run(self, sender: Rc<dyn Outbound>, log: Arc<Log>) {
        let mut fails = false;
        tokio::time::sleep(FIRST).await;
        loop {
            let failure = self.send(&*sender).await.err();
            match (&failure, fails) {
                (Some(why), false) => {
                    log.say(Level::Error, "HeartBeat", &format!("no heartbeat to `{}`: {why}", self.url))
                }
                (None, true) => log.say(Level::Info, "HeartBeat", &format!("heartbeats to `{}` succeed", self.url)),
                _ => {}
            }
            fails = failure.is_some();
            tokio::time::sleep(self.interval).await;
        }
    }

    async fn send(&self, sender: &dyn Outbound) -> Result<(), String> {
        let mut headers = Headers::new();
        headers.set("Content-Type", "application/json");
        let body = Body::bytes(self.body.clone());
        let message = Message { headers, body, method: Method::Post, ..Message::default() };
        let options = SendOptions::within(TIMEOUT);
        let outgoing = Outgoing { url: self.url.clone(), method: Method::Post, message, options };
        let reply = sender.send(outgoing).await.map_err(|fault| fault.message.to_string())?;
        match reply.status {
            200..300 => Ok(()),
            status => Err(format!("the dashboard responded with {status}")),
        }
    }
}
