//! The keys of managed APIs: `[gateway]` and `[adapter]`.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use penstock_gateway::{ErrorStyle, GatewayConfig};

use super::keys::{FLAG, Key, LIST, PORT, SIZE, TEXT, TIME};
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
            of(settings).http_port = value.port()?;
            settings.named_ports.gateway_http = true;
            Ok(())
        },
    },
    Key {
        name: "gateway.https_port",
        kind: PORT,
        set: |settings, value| {
            of(settings).https_port = value.port()?;
            settings.named_ports.gateway_https = true;
            Ok(())
        },
    },
    Key {
        name: "gateway.error_style",
        kind: TEXT,
        set: |settings, value| {
            of(settings).error_style = match value.text() {
                "choreo-connect" => ErrorStyle::ChoreoConnect,
                "apim" => ErrorStyle::ApiManager,
                other => return Err(format!("must be `choreo-connect` or `apim`, not `{other}`")),
            };
            Ok(())
        },
    },
    Key {
        name: "gateway.soap_errors",
        kind: FLAG,
        set: |settings, value| {
            of(settings).soap_errors = value.flag()?;
            Ok(())
        },
    },
    Key {
        name: "gateway.compat",
        kind: TEXT,
        set: |settings, value| {
            of(settings).compat = match value.text() {
                "none" => false,
                "choreo-connect" => true,
                other => return Err(format!("must be `none` or `choreo-connect`, not `{other}`")),
            };
            Ok(())
        },
    },
    Key {
        name: "gateway.environment",
        kind: TEXT,
        set: |settings, value| {
            of(settings).environment = value.text().to_owned();
            Ok(())
        },
    },
    Key {
        name: "gateway.servers_base",
        kind: "a URL",
        set: |settings, value| {
            if !["http://", "https://"].iter().any(|scheme| value.text().starts_with(scheme)) {
                return Err(format!("must begin with `https://` or `http://`, not `{}`", value.text()));
            }
            of(settings).servers_base = Some(value.text().into());
            Ok(())
        },
    },
    Key {
        name: "gateway.default_vhost",
        kind: TEXT,
        set: |settings, value| {
            of(settings).default_vhost = value.text().to_ascii_lowercase();
            Ok(())
        },
    },
    Key {
        name: "gateway.route_timeout",
        kind: TIME,
        set: |settings, value| {
            of(settings).route_timeout = value.duration("s")?;
            Ok(())
        },
    },
    Key {
        name: "gateway.route_timeout_max",
        kind: TIME,
        set: |settings, value| {
            of(settings).route_timeout_max = Some(value.duration("s")?);
            Ok(())
        },
    },
    Key {
        name: "gateway.cors.enabled",
        kind: FLAG,
        set: |settings, value| {
            of(settings).cors.enabled = value.flag()?;
            Ok(())
        },
    },
    Key {
        name: "gateway.cors.origins",
        kind: LIST,
        set: |settings, value| {
            of(settings).cors.origins = value.list();
            Ok(())
        },
    },
    Key {
        name: "gateway.cors.methods",
        kind: LIST,
        set: |settings, value| {
            of(settings).cors.methods = value.list();
            Ok(())
        },
    },
    Key {
        name: "gateway.cors.headers",
        kind: LIST,
        set: |settings, value| {
            of(settings).cors.headers = value.list();
            Ok(())
        },
    },
    Key {
        name: "gateway.cors.expose_headers",
        kind: LIST,
        set: |settings, value| {
            of(settings).cors.expose_headers = value.list();
            Ok(())
        },
    },
    Key {
        name: "gateway.cors.credentials",
        kind: FLAG,
        set: |settings, value| {
            of(settings).cors.credentials = value.flag()?;
            Ok(())
        },
    },
    Key {
        name: "gateway.interceptors.timeout",
        kind: TIME,
        set: |settings, value| {
            of(settings).interceptors.timeout = value.duration("s")?;
            Ok(())
        },
    },
    Key {
        name: "gateway.interceptors.passthrough_on_error",
        kind: FLAG,
        set: |settings, value| {
            of(settings).interceptors.passthrough_on_error = value.flag()?;
            Ok(())
        },
    },
    Key {
        name: "gateway.interceptors.reply_size",
        kind: SIZE,
        set: |settings, value| {
            let bytes = usize::try_from(value.bytes()?).map_err(|_| "is too large".to_owned())?;
            of(settings).interceptors.reply_bytes_max = bytes;
            Ok(())
        },
    },
    Key {
        name: "adapter.enabled",
        kind: FLAG,
        set: |settings, value| {
            settings.adapter.enabled = value.flag()?;
            Ok(())
        },
    },
    Key {
        name: "adapter.host",
        kind: TEXT,
        set: |settings, value| {
            settings.adapter.host = value.number("an IP address")?;
            Ok(())
        },
    },
    Key {
        name: "adapter.port",
        kind: PORT,
        set: |settings, value| {
            settings.adapter.port = value.port()?;
            settings.named_ports.adapter = true;
            Ok(())
        },
    },
    Key {
        name: "adapter.state",
        kind: TEXT,
        set: |settings, value| {
            settings.adapter.state = PathBuf::from(value.text());
            Ok(())
        },
    },
    Key {
        name: "adapter.token_lifetime",
        kind: TIME,
        set: |settings, value| {
            settings.adapter.token_lifetime = value.duration("s")?;
            Ok(())
        },
    },
];

/// The gateway's part of the settings, to be changed.
fn of(settings: &mut Settings) -> &mut GatewayConfig {
    Arc::make_mut(&mut settings.gateway)
}

/// The host of a deployment environment.
pub(super) fn vhost(settings: &mut Settings, environment: &str, value: &Value) {
    of(settings).vhosts.push((environment.to_owned(), value.text().to_ascii_lowercase()));
}
