//! The keys of managed APIs: `[gateway]` and `[adapter]`.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use penstock_gateway::{ErrorStyle, GatewayConfig};

use super::keys::{FLAG, Key, LIST, PORT, SIZE, TEXT, TIME, assign};
use super::settings::Settings;
use super::value::Value;

/// Whether the ports of managed APIs are open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Opening {
    /// Once there is an API, or one may be deployed.
    #[default]
    WhenNeeded,
    /// From the start.
    Always,
    /// Never: API projects are checked, and not served.
    Never,
}

/// The adapter: deploying APIs over HTTPS.
#[derive(Debug, Clone)]
pub struct Adapter {
    /// Whether it is served.
    pub enabled: bool,
    /// Its address.
    pub host: IpAddr,
    /// Its port.
    pub port: u16,
    /// The folder deployed APIs are kept in.
    pub state: PathBuf,
    /// Who may deploy.
    pub users: Vec<(String, String)>,
    /// How long a token lives.
    pub token_lifetime: Duration,
}

impl Default for Adapter {
    fn default() -> Adapter {
        Adapter {
            enabled: false,
            host: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            port: 9843,
            state: PathBuf::from("penstock-state"),
            users: Vec::new(),
            token_lifetime: Duration::from_secs(3600),
        }
    }
}

/// The keys.
pub(super) const KEYS: &[Key] = &[
    Key {
        name: "gateway.enabled",
        kind: "`true`, `false` or `\"auto\"`",
        set: |settings, value| {
            settings.gateway_opening = match value.text() {
                "auto" => Opening::WhenNeeded,
                "true" => Opening::Always,
                "false" => Opening::Never,
                other => return Err(format!("must be `true`, `false` or `\"auto\"`, not `{other}`")),
            };
            Ok(())
        },
    },
    Key {
        name: "gateway.http_port",
        kind: PORT,
        set: |settings, value| {
            gateway(settings).http_port = value.port()?;
            settings.named_ports.gateway_http = true;
            Ok(())
        },
    },
    Key {
        name: "gateway.https_port",
        kind: PORT,
        set: |settings, value| {
            gateway(settings).https_port = value.port()?;
            settings.named_ports.gateway_https = true;
            Ok(())
        },
    },
    Key {
        name: "gateway.error_style",
        kind: TEXT,
        set: |settings, value| {
            gateway(settings).error_style = match value.text() {
                "choreo-connect" => ErrorStyle::ChoreoConnect,
                "apim" => ErrorStyle::ApiManager,
                other => return Err(format!("must be `choreo-connect` or `apim`, not `{other}`")),
            };
            Ok(())
        },
    },
    Key { name: "gateway.soap_errors", kind: FLAG, set: assign!(gateway => soap_errors = flag()) },
    Key {
        name: "gateway.compat",
        kind: TEXT,
        set: |settings, value| {
            gateway(settings).compat = match value.text() {
                "none" => false,
                "choreo-connect" => true,
                other => return Err(format!("must be `none` or `choreo-connect`, not `{other}`")),
            };
            Ok(())
        },
    },
    Key { name: "gateway.environment", kind: TEXT, set: assign!(gateway => environment = string) },
    Key {
        name: "gateway.servers_base",
        kind: "a URL",
        set: |settings, value| {
            if !["http://", "https://"].iter().any(|scheme| value.text().starts_with(scheme)) {
                return Err(format!("must begin with `https://` or `http://`, not `{}`", value.text()));
            }
            gateway(settings).servers_base = Some(value.text().into());
            Ok(())
        },
    },
    Key {
        name: "gateway.default_vhost",
        kind: TEXT,
        set: |settings, value| {
            gateway(settings).default_vhost = value.text().to_ascii_lowercase();
            Ok(())
        },
    },
    Key { name: "gateway.route_timeout", kind: TIME, set: assign!(gateway => route_timeout = duration("s")) },
    Key {
        name: "gateway.route_timeout_max",
        kind: TIME,
        set: assign!(gateway => route_timeout_max = some duration("s")),
    },
    Key { name: "gateway.cors.enabled", kind: FLAG, set: assign!(gateway => cors.enabled = flag()) },
    Key { name: "gateway.cors.origins", kind: LIST, set: assign!(gateway => cors.origins = list) },
    Key { name: "gateway.cors.methods", kind: LIST, set: assign!(gateway => cors.methods = list) },
    Key { name: "gateway.cors.headers", kind: LIST, set: assign!(gateway => cors.headers = list) },
    Key { name: "gateway.cors.expose_headers", kind: LIST, set: assign!(gateway => cors.expose_headers = list) },
    Key { name: "gateway.cors.credentials", kind: FLAG, set: assign!(gateway => cors.credentials = flag()) },
    Key {
        name: "gateway.interceptors.timeout",
        kind: TIME,
        set: assign!(gateway => interceptors.timeout = duration("s")),
    },
    Key {
        name: "gateway.interceptors.passthrough_on_error",
        kind: FLAG,
        set: assign!(gateway => interceptors.passthrough_on_error = flag()),
    },
    Key {
        name: "gateway.interceptors.reply_size",
        kind: SIZE,
        set: assign!(gateway => interceptors.reply_bytes_max = size()),
    },
    Key { name: "adapter.enabled", kind: FLAG, set: assign!(adapter.enabled = flag()) },
    Key { name: "adapter.host", kind: TEXT, set: assign!(adapter.host = number("an IP address")) },
    Key {
        name: "adapter.port",
        kind: PORT,
        set: |settings, value| {
            settings.adapter.port = value.port()?;
            settings.named_ports.adapter = true;
            Ok(())
        },
    },
    Key { name: "adapter.state", kind: TEXT, set: assign!(adapter.state = path) },
    Key { name: "adapter.token_lifetime", kind: TIME, set: assign!(adapter.token_lifetime = duration("s")) },
];

/// The gateway's part of the settings, to be changed.
pub(super) fn gateway(settings: &mut Settings) -> &mut GatewayConfig {
    Arc::make_mut(&mut settings.gateway)
}

/// The host of a deployment environment.
pub(super) fn vhost(settings: &mut Settings, environment: &str, value: &Value) {
    gateway(settings).vhosts.push((environment.to_owned(), value.text().to_ascii_lowercase()));
}
