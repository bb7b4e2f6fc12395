//! The keys of both dialects: what each is called, what it takes and what it sets.

use std::path::PathBuf;

use penstock_catalog::IpRange;
use penstock_engine::ForwardedField;
use penstock_engine::ports::Level;

use super::settings::{AccessTarget, Keystore, LogFormat, Settings};
use super::value::Value;

/// Whose configuration a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// `penstock.toml`. A key that is not known is an error.
    Penstock,
    /// `config.toml` of Choreo Connect, by the same rule.
    ChoreoConnect,
    /// `config.toml` of the API Platform's gateway. A key that has no meaning here is ignored and listed.
    ApiPlatform,
    /// `deployment.toml` of Micro Integrator. A key that has no meaning here is ignored and listed.
    MicroIntegrator,
}

/// One key.
pub(super) struct Key {
    /// Its path, with dots.
    pub(super) name: &'static str,
    /// What it takes, for a message.
    pub(super) kind: &'static str,
    /// Sets it; says what the value must be when it is not that.
    pub(super) set: fn(&mut Settings, &Value) -> Result<(), String>,
}

pub(super) const NUMBER: &str = "a whole number";
pub(super) const PORT: &str = "a port";
pub(super) const TIME: &str = "a time such as `30s`";
pub(super) const SIZE: &str = "a size such as `10MiB`";
pub(super) const TEXT: &str = "a text in quotes";
pub(super) const FLAG: &str = "`true` or `false`";
/// A list; one text stands for a list of it.
pub(super) const LIST: &str = "a list of texts";

/// The function that sets a field of the settings, or of what a function gives of them: `assign!(field = flag())`,
/// `assign!(keystore => alias = some verbatim)`. A reader that cannot fail has no parentheses.
macro_rules! assign {
    (@read $value:ident some $($read:tt)+) => { Some(assign!(@read $value $($read)+)) };
    (@read $value:ident $read:ident($($argument:expr)?)) => { $value.$read($($argument)?)? };
    (@read $value:ident $read:ident) => { $value.$read() };
    ($part:ident => $($field:tt).+ = $($read:tt)+) => {
        |settings, value| {
            $part(settings).$($field).+ = assign!(@read value $($read)+);
            Ok(())
        }
    };
    ($($field:tt).+ = $($read:tt)+) => {
        |settings, value| {
            settings.$($field).+ = assign!(@read value $($read)+);
            Ok(())
        }
    };
}
pub(super) use assign;

/// Keys of `penstock.toml`; docs/configuration.md explains every one.
const PENSTOCK: &[Key] = &[
    Key { name: "workers", kind: NUMBER, set: assign!(workers = some positive()) },
    Key { name: "watch", kind: FLAG, set: assign!(watch = flag()) },
    Key { name: "listener.offset", kind: NUMBER, set: assign!(offset = port()) },
    Key { name: "listener.host", kind: TEXT, set: assign!(host = number("an IP address")) },
    Key { name: "listener.http_port", kind: PORT, set: assign!(http_port = some port()) },
    Key { name: "listener.https_port", kind: PORT, set: assign!(https_port = some port()) },
    Key { name: "listener.https", kind: FLAG, set: assign!(https = flag()) },
    Key { name: "listener.http2", kind: FLAG, set: assign!(http2 = flag()) },
    Key { name: "listener.connections_max", kind: NUMBER, set: assign!(connections_max = positive()) },
    Key { name: "listener.trusted_proxies", kind: LIST, set: trusted_proxies },
    Key {
        name: "listener.forwarded_header",
        kind: TEXT,
        set: |settings, value| {
            settings.forwarded_field = match value.text().to_ascii_lowercase().as_str() {
                "any" => ForwardedField::Either,
                "x-forwarded-for" => ForwardedField::XForwardedFor,
                "forwarded" => ForwardedField::Forwarded,
                other => return Err(format!("must be `any`, `x-forwarded-for` or `forwarded`, not `{other}`")),
            };
            Ok(())
        },
    },
    Key { name: "listener.proxy_protocol", kind: FLAG, set: assign!(proxy_protocol = flag()) },
    Key { name: "gateway.proxy_protocol", kind: FLAG, set: assign!(gateway_proxy_protocol = flag()) },
    Key { name: "listener.hostname", kind: TEXT, set: hostname },
    Key { name: "listener.list_services", kind: FLAG, set: assign!(list_services = flag()) },
    Key { name: "message_stores.in_memory_database", kind: TEXT, set: assign!(in_memory_database = some string) },
    Key { name: "coordination.database", kind: TEXT, set: assign!(coordination.database = some string) },
    Key { name: "coordination.node", kind: TEXT, set: assign!(coordination.node = some string) },
    Key { name: "coordination.lease", kind: TIME, set: assign!(coordination.lease = duration("s")) },
    Key { name: "registry.folder", kind: TEXT, set: assign!(registry_folder = some path) },
    Key { name: "admin.host", kind: TEXT, set: assign!(admin_host = number("an IP address")) },
    Key { name: "admin.strict_ready", kind: FLAG, set: assign!(strict_ready = flag()) },
    Key { name: "admin.port", kind: PORT, set: assign!(admin_port = some port()) },
    Key { name: "tls.keystore", kind: TEXT, set: keystore_file },
    Key { name: "tls.certificate", kind: TEXT, set: keystore_file },
    Key { name: "tls.key", kind: TEXT, set: assign!(keystore => key = some path) },
    Key { name: "tls.password", kind: TEXT, set: assign!(keystore => password = verbatim) },
    Key { name: "tls.alias", kind: TEXT, set: assign!(keystore => alias = some verbatim) },
    Key { name: "tls.key_password", kind: TEXT, set: assign!(keystore => key_password = some verbatim) },
    Key { name: "tls.trust", kind: TEXT, set: assign!(trust = some path) },
    Key { name: "tls.trust_password", kind: TEXT, set: assign!(trust_password = verbatim) },
    Key { name: "tls.trust_all", kind: FLAG, set: assign!(trust_all = flag()) },
    Key { name: "limits.head", kind: SIZE, set: assign!(limits.head_bytes_max = size()) },
    Key { name: "limits.fields", kind: NUMBER, set: assign!(limits.fields_max = positive()) },
    Key { name: "limits.target", kind: SIZE, set: assign!(limits.target_bytes_max = size()) },
    Key { name: "limits.body", kind: SIZE, set: assign!(limits.body_bytes_max = bytes()) },
    Key {
        name: "limits.buffered_body",
        kind: SIZE,
        set: |settings, value| {
            settings.flow.body_bytes_max = value.bytes()? as usize;
            settings.limits.collected_bytes_max = settings.flow.body_bytes_max;
            Ok(())
        },
    },
    Key { name: "limits.depth", kind: NUMBER, set: assign!(flow.depth_max = positive()) },
    Key {
        name: "limits.steps",
        kind: NUMBER,
        set: |settings, value| {
            settings.flow.steps_max = value.positive()? as u64;
            Ok(())
        },
    },
    Key { name: "limits.branches", kind: NUMBER, set: assign!(flow.branches_max = positive()) },
    Key { name: "limits.memory", kind: SIZE, set: assign!(flow.memory_bytes_max = size()) },
    Key { name: "limits.total_memory", kind: SIZE, set: assign!(total_memory = some size()) },
    Key {
        name: "limits.nodes",
        kind: NUMBER,
        set: |settings, value| {
            let nodes = value.positive()?;
            settings.conversion.xml_limits.nodes_max = nodes;
            settings.conversion.json_values_max = nodes;
            Ok(())
        },
    },
    Key { name: "timeouts.idle", kind: TIME, set: assign!(timeouts.idle = duration("s")) },
    Key { name: "timeouts.head", kind: TIME, set: assign!(timeouts.head = duration("s")) },
    Key { name: "timeouts.body", kind: TIME, set: assign!(timeouts.body = duration("s")) },
    Key { name: "timeouts.write", kind: TIME, set: assign!(timeouts.write = duration("s")) },
    Key { name: "timeouts.handshake", kind: TIME, set: assign!(timeouts.handshake = duration("s")) },
    Key { name: "timeouts.connect", kind: TIME, set: assign!(timeouts.connect = duration("s")) },
    Key { name: "timeouts.reply_body", kind: TIME, set: assign!(timeouts.reply_body = duration("s")) },
    Key { name: "timeouts.pool_idle", kind: TIME, set: assign!(timeouts.pool_idle = duration("s")) },
    Key { name: "timeouts.websocket_idle", kind: TIME, set: assign!(timeouts.websocket_idle = duration("s")) },
    Key { name: "timeouts.drain", kind: TIME, set: assign!(timeouts.drain = duration("s")) },
    Key { name: "timeouts.endpoint", kind: TIME, set: assign!(flow.endpoint_timeout = duration("s")) },
    Key {
        name: "timeouts.deadline",
        kind: TIME,
        set: |settings, value| {
            settings.flow.deadline = value.duration("s")?;
            settings.timeouts.deadline = settings.flow.deadline;
            Ok(())
        },
    },
    Key { name: "timeouts.stream_idle", kind: TIME, set: assign!(timeouts.stream_idle = duration("s")) },
    Key { name: "mediation.accepted_after_fault", kind: LIST, set: assign!(flow.accepted_after_fault = list) },
    Key { name: "log.level", kind: TEXT, set: log_level },
    Key {
        name: "log.format",
        kind: TEXT,
        set: |settings, value| {
            settings.log_format = match value.text() {
                "text" => LogFormat::Text,
                "json" => LogFormat::Json,
                other => return Err(format!("must be `text` or `json`, not `{other}`")),
            };
            Ok(())
        },
    },
    Key { name: "log.file", kind: TEXT, set: assign!(log_file = some path) },
    Key {
        name: "access_log.to",
        kind: TEXT,
        set: |settings, value| {
            settings.access_log = match value.text() {
                "off" => None,
                "stderr" => Some(AccessTarget::Stderr),
                file => Some(AccessTarget::File(PathBuf::from(file))),
            };
            Ok(())
        },
    },
];

/// Keys of `deployment.toml` that mean something here.
pub(super) const MICRO_INTEGRATOR: &[Key] = &[
    Key { name: "server.hostname", kind: TEXT, set: hostname },
    Key { name: "cluster_config.node_id", kind: TEXT, set: assign!(coordination.node = some string) },
    Key { name: "server.offset", kind: NUMBER, set: assign!(offset = port()) },
    Key { name: "server.hot_deployment", kind: FLAG, set: assign!(watch = flag()) },
    Key {
        name: "transport.http.block_service_list",
        kind: FLAG,
        set: |settings, value| {
            settings.list_services = !value.flag()?;
            Ok(())
        },
    },
    Key { name: "transport.http.listener.port", kind: PORT, set: assign!(http_port_base = some port()) },
    Key { name: "transport.http.listener.parameter.port", kind: PORT, set: assign!(http_port_base = some port()) },
    Key { name: "transport.http.secured_listener.port", kind: PORT, set: assign!(https_port_base = some port()) },
    Key {
        name: "transport.http.secured_listener.parameter.port",
        kind: PORT,
        set: assign!(https_port_base = some port()),
    },
    Key {
        name: "transport.http.listener.enable",
        kind: FLAG,
        set: |_, value| match value.flag()? {
            true => Ok(()),
            false => Err("cannot be switched off".to_owned()),
        },
    },
    Key { name: "transport.http.secured_listener.enable", kind: FLAG, set: assign!(https = flag()) },
    Key { name: "transport.http.socket_timeout", kind: TIME, set: assign!(timeouts.idle = duration("ms")) },
    Key { name: "transport.http.connection_timeout", kind: TIME, set: assign!(timeouts.connect = duration("ms")) },
    Key {
        name: "transport.http.max_open_connections",
        kind: NUMBER,
        set: |settings, value| {
            // Micro Integrator writes -1 for no limit.
            if value.text() != "-1" {
                settings.connections_max = value.positive()?;
            }
            Ok(())
        },
    },
    Key { name: "keystore.tls.file_name", kind: TEXT, set: keystore_file },
    Key { name: "keystore.tls.password", kind: TEXT, set: assign!(keystore => password = verbatim) },
    Key {
        name: "keystore.primary.file_name",
        kind: TEXT,
        set: |settings, value| match &settings.keystore {
            // The one for TLS wins, wherever it stands.
            Some(known) if !known.file.as_os_str().is_empty() => Ok(()),
            _ => keystore_file(settings, value),
        },
    },
    Key {
        name: "keystore.primary.password",
        kind: TEXT,
        set: |settings, value| match &settings.keystore {
            Some(known) if !known.password.is_empty() => Ok(()),
            _ => {
                keystore(settings).password = value.verbatim();
                Ok(())
            }
        },
    },
    Key { name: "keystore.tls.alias", kind: TEXT, set: assign!(keystore => alias = some verbatim) },
    Key { name: "keystore.tls.key_password", kind: TEXT, set: assign!(keystore => key_password = some verbatim) },
    Key { name: "truststore.file_name", kind: TEXT, set: assign!(trust = some path) },
    Key { name: "truststore.password", kind: TEXT, set: assign!(trust_password = verbatim) },
    Key {
        name: "mediation.synapse.global_timeout_interval",
        kind: TIME,
        set: assign!(flow.endpoint_timeout = duration("ms")),
    },
];

fn trusted_proxies(settings: &mut Settings, value: &Value) -> Result<(), String> {
    let range = |text: &std::sync::Arc<str>| {
        let range =
            IpRange::parse(text).ok_or_else(|| format!("must name addresses such as `10.0.0.0/8`, not `{text}`"))?;
        Ok(range.first..=range.last)
    };
    settings.trusted_proxies = value.list().iter().map(range).collect::<Result<_, String>>()?;
    Ok(())
}

/// `[tls.hosts]`: one key of the certificate of a name, as `NAME.key`; whether there is such a key.
pub(super) fn tls_host(settings: &mut Settings, path: &str, value: &Value) -> Result<bool, String> {
    let Some((host, key)) = path.rsplit_once('.') else {
        return Err("must be a table with `certificate` and `key`, or `keystore` and `password`".to_owned());
    };
    let at = settings.tls_hosts.iter().position(|(known, _)| known == host).unwrap_or_else(|| {
        settings.tls_hosts.push((host.to_owned(), Keystore::default()));
        settings.tls_hosts.len() - 1
    });
    let Some((_, keystore)) = settings.tls_hosts.get_mut(at) else { return Ok(false) };
    match key {
        "keystore" | "certificate" => keystore.file = PathBuf::from(value.text()),
        "key" => keystore.key = Some(PathBuf::from(value.text())),
        "password" => keystore.password = value.0.clone(),
        "alias" => keystore.alias = Some(value.0.clone()),
        "key_password" => keystore.key_password = Some(value.0.clone()),
        _ => return Ok(false),
    }
    Ok(true)
}

fn hostname(settings: &mut Settings, value: &Value) -> Result<(), String> {
    value.text().clone_into(&mut settings.hostname);
    Ok(())
}

fn keystore(settings: &mut Settings) -> &mut Keystore {
    settings.keystore.get_or_insert_default()
}

fn keystore_file(settings: &mut Settings, value: &Value) -> Result<(), String> {
    let file = PathBuf::from(value.text());
    keystore(settings).file = file;
    Ok(())
}

fn log_level(settings: &mut Settings, value: &Value) -> Result<(), String> {
    settings.log_level = match value.text().to_ascii_lowercase().as_str() {
        "trace" => Level::Trace,
        "debug" => Level::Debug,
        "info" => Level::Info,
        "warn" => Level::Warn,
        "error" => Level::Error,
        other => return Err(format!("must be trace, debug, info, warn or error, not `{other}`")),
    };
    Ok(())
}

fn all(dialect: Dialect) -> impl Iterator<Item = &'static Key> {
    let tables: &[&'static [Key]] = match dialect {
        Dialect::Penstock => &[
            PENSTOCK,
            super::management::KEYS,
            super::gateway::KEYS,
            super::security::KEYS,
            super::traffic::KEYS,
            super::api_platform::KEYS,
        ],
        Dialect::MicroIntegrator => &[MICRO_INTEGRATOR, super::management::MICRO_INTEGRATOR],
        // Their keys are ours under other names.
        Dialect::ChoreoConnect | Dialect::ApiPlatform => &[],
    };
    tables.iter().flat_map(|table| table.iter())
}

/// The key of a path.
pub(super) fn find(path: &str, dialect: Dialect) -> Option<&'static Key> {
    all(dialect).find(|key| key.name == path)
}

/// All names.
pub(super) fn names(dialect: Dialect) -> impl Iterator<Item = &'static str> {
    all(dialect).map(|key| key.name)
}
