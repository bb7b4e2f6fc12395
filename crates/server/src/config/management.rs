//! `[management]`: the management API of Micro Integrator, its users and tokens.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::time::Duration;

use super::keys::{FLAG, Key, NUMBER, PORT, TEXT, TIME, assign};
use super::settings::Settings;
use super::value::Value;

/// How long a token is valid in Micro Integrator.
const TOKEN_LIFETIME: Duration = Duration::from_secs(3600);

/// Tokens at once in Micro Integrator.
const TOKENS_MAX: usize = 200;

/// More tokens than this are a script that logs in for every call.
const TOKENS_LIMIT: usize = 100_000;

/// The management API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Management {
    /// Whether it is served; with users it is, when this is not given.
    pub enabled: Option<bool>,
    /// The address of its port.
    pub host: IpAddr,
    /// Its port, when it is given.
    pub port: Option<u16>,
    /// The users of the configuration.
    pub users: Vec<ManagementUser>,
    /// How long a token is valid.
    pub token_lifetime: Duration,
    /// Tokens at once.
    pub tokens_max: usize,
    /// Whether a login beyond `tokens_max` ends the oldest token; otherwise it is refused.
    pub replaces_oldest_token: bool,
    /// Whether name and password are accepted in place of a token.
    pub accepts_passwords: bool,
    /// Whether users who are no administrators may change nothing.
    pub read_only_users: bool,
    /// The folder where users are kept that were added by the API.
    pub state: PathBuf,
    /// The folder where applications are put that are deployed by the API.
    pub applications: Option<PathBuf>,
    /// The home of the Micro Integrator whose configuration this is.
    pub home: Option<PathBuf>,
    /// The dashboard that gets heartbeats.
    pub dashboard: Dashboard,
}

/// The dashboard of Micro Integrator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dashboard {
    /// Its address; none is no heartbeats.
    pub url: Option<String>,
    /// The group of this server.
    pub group: String,
    /// The name of this server in its group; generated when there is none.
    pub node: Option<String>,
    /// The time between heartbeats.
    pub interval: Duration,
    /// The host of the management API as the dashboard reaches it.
    pub host: Option<String>,
    /// Its port as the dashboard reaches it.
    pub port: Option<u16>,
}

impl Default for Dashboard {
    fn default() -> Dashboard {
        let interval = Duration::from_secs(10);
        Dashboard { url: None, group: "default".to_owned(), node: None, interval, host: None, port: None }
    }
}

/// A user of the management API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManagementUser {
    /// The name.
    pub name: String,
    /// The password, or its hash with Argon2id (`$argon2id$…`).
    pub password: String,
    /// Whether the user may manage users, roles and settings.
    pub is_admin: bool,
}

impl Default for Management {
    fn default() -> Management {
        Management {
            enabled: None,
            host: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            port: None,
            users: Vec::new(),
            token_lifetime: TOKEN_LIFETIME,
            tokens_max: TOKENS_MAX,
            replaces_oldest_token: true,
            accepts_passwords: true,
            read_only_users: false,
            state: PathBuf::from("penstock-management"),
            applications: None,
            home: None,
            dashboard: Dashboard::default(),
        }
    }
}

impl Management {
    /// What does not go together.
    pub(super) fn check(&self) -> Vec<String> {
        let mut mistakes = Vec::new();
        if self.enabled == Some(true) && self.users.is_empty() {
            mistakes.push("`management.enabled` needs a user (`[management.users.NAME]`)".to_owned());
        }
        for user in self.users.iter().filter(|user| user.password.is_empty()) {
            mistakes.push(format!("the user `{}` of the management API has no password", user.name));
        }
        mistakes
    }
}

fn tokens_max(settings: &mut Settings, value: &Value) -> Result<(), String> {
    settings.management.tokens_max = value.positive()?.min(TOKENS_LIMIT);
    Ok(())
}

/// Keys of `penstock.toml`.
pub(super) const KEYS: &[Key] = &[
    Key { name: "management.enabled", kind: FLAG, set: assign!(management.enabled = some flag()) },
    Key { name: "management.host", kind: TEXT, set: assign!(management.host = number("an IP address")) },
    Key { name: "management.port", kind: PORT, set: assign!(management.port = some port()) },
    Key { name: "management.token_lifetime", kind: TIME, set: assign!(management.token_lifetime = duration("s")) },
    Key { name: "management.tokens_max", kind: NUMBER, set: tokens_max },
    Key {
        name: "management.replaces_oldest_token",
        kind: FLAG,
        set: assign!(management.replaces_oldest_token = flag()),
    },
    Key { name: "management.accepts_passwords", kind: FLAG, set: assign!(management.accepts_passwords = flag()) },
    Key { name: "management.read_only_users", kind: FLAG, set: assign!(management.read_only_users = flag()) },
    Key { name: "management.state", kind: TEXT, set: assign!(management.state = path) },
    Key { name: "management.applications", kind: TEXT, set: assign!(management.applications = some path) },
    Key { name: "management.dashboard.url", kind: TEXT, set: dashboard_url },
    Key { name: "management.dashboard.group", kind: TEXT, set: dashboard_group },
    Key { name: "management.dashboard.node", kind: TEXT, set: dashboard_node },
    Key { name: "management.dashboard.interval", kind: TIME, set: dashboard_interval },
    Key { name: "management.dashboard.host", kind: TEXT, set: dashboard_host },
    Key { name: "management.dashboard.port", kind: PORT, set: assign!(management.dashboard.port = some port()) },
];

/// Keys of `deployment.toml`.
pub(super) const MICRO_INTEGRATOR: &[Key] = &[
    Key {
        name: "management_api.basic_security_handler.enable",
        kind: FLAG,
        set: assign!(management.accepts_passwords = flag()),
    },
    Key {
        name: "management_api.jwt_token_security_handler.token_config.expiry",
        kind: TIME,
        set: assign!(management.token_lifetime = duration("s")),
    },
    Key {
        name: "management_api.jwt_token_security_handler.token_store_config.max_size",
        kind: NUMBER,
        set: tokens_max,
    },
    Key {
        name: "management_api.jwt_token_security_handler.token_store_config.remove_oldest_token_on_overflow",
        kind: FLAG,
        set: assign!(management.replaces_oldest_token = flag()),
    },
    Key {
        name: "user_access.make_non_admin_users_read_only",
        kind: FLAG,
        set: assign!(management.read_only_users = flag()),
    },
    Key { name: "dashboard_config.dashboard_url", kind: TEXT, set: dashboard_url },
    Key { name: "dashboard_config.group_id", kind: TEXT, set: dashboard_group },
    Key { name: "dashboard_config.node_id", kind: TEXT, set: dashboard_node },
    Key { name: "dashboard_config.heartbeat_interval", kind: TIME, set: dashboard_interval },
    Key { name: "dashboard_config.management_hostname", kind: TEXT, set: dashboard_host },
    Key { name: "dashboard_config.management_port", kind: PORT, set: assign!(management.dashboard.port = some port()) },
];

fn dashboard_url(settings: &mut Settings, value: &Value) -> Result<(), String> {
    let url = value.text().trim_end_matches('/');
    if !url.starts_with("http://") && !url.starts_with("https://") {
        return Err("must be an address with http or https".to_owned());
    }
    settings.management.dashboard.url = Some(url.to_owned());
    Ok(())
}

fn dashboard_group(settings: &mut Settings, value: &Value) -> Result<(), String> {
    settings.management.dashboard.group = value.text().to_owned();
    Ok(())
}

fn dashboard_node(settings: &mut Settings, value: &Value) -> Result<(), String> {
    settings.management.dashboard.node = Some(value.text().to_owned());
    Ok(())
}

fn dashboard_interval(settings: &mut Settings, value: &Value) -> Result<(), String> {
    let interval = value.duration("s")?;
    if interval < Duration::from_secs(1) {
        return Err("must be at least one second".to_owned());
    }
    settings.management.dashboard.interval = interval;
    Ok(())
}

fn dashboard_host(settings: &mut Settings, value: &Value) -> Result<(), String> {
    settings.management.dashboard.host = Some(value.text().to_owned());
    Ok(())
}

/// `management.users.NAME.password` and `.admin`.
pub(super) fn user(settings: &mut Settings, key: &str, value: &Value) -> Result<bool, String> {
    let Some((name, member)) = key.rsplit_once('.') else { return Ok(false) };
    let users = &mut settings.management.users;
    let at = users.iter().position(|user| user.name == name).unwrap_or_else(|| {
        users.push(ManagementUser { name: name.to_owned(), password: String::new(), is_admin: false });
        users.len() - 1
    });
    match member {
        "password" => users[at].password = value.0.clone(),
        "admin" => users[at].is_admin = value.flag()?,
        _ => return Ok(false),
    }
    Ok(true)
}
