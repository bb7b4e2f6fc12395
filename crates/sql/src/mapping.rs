//! Which database a data source is: by the configuration, by its definition, by its address.

use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use penstock_engine::database::{
    DataSource, DatabaseError, DatabaseErrorKind, Isolation, Location, Secret, without_secrets,
};

use super::mysql::MysqlAddress;
use super::url::{self, Address};

/// Connections to one database at once, when nothing is said: what Micro Integrator's pools have.
const CONNECTIONS_MAX: usize = 8;

/// Establishing a connection, when nothing is said.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// One query, when nothing is said. Shorter than the deadline of a request, so that the flow can still handle the fault.
const QUERY_TIMEOUT: Duration = Duration::from_secs(60);

/// Waiting for a connection that others use, when nothing is said.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// Where PostgreSQL listens, when nothing is said.
const POSTGRESQL_PORT: u16 = 5432;

/// What the configuration says of databases.
#[derive(Debug, Clone, Default)]
pub struct Mapping {
    /// The entries.
    pub entries: Vec<DatabaseEntry>,
}

/// An entry: `[databases."jdbc/OrdersDB"]`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DatabaseEntry {
    /// The name of a data source, or how the address of one begins.
    pub name: String,
    /// Where it really is.
    pub url: String,
    /// The credentials.
    pub user: Option<String>,
    /// The password.
    pub password: Option<Secret>,
    /// Connections at once.
    pub connections_max: Option<usize>,
    /// Establishing a connection.
    pub connect_timeout: Option<Duration>,
    /// One query.
    pub query_timeout: Option<Duration>,
}

/// A database, as a pool is kept for it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Resolved {
    pub target: Target,
    /// The address of a server.
    pub url: String,
    pub user: Option<String>,
    pub password: Option<PasswordKey>,
    pub connections_max: usize,
    pub idle_max: usize,
    pub wait_max: Duration,
    pub connect_timeout: Duration,
    pub query_timeout: Duration,
    pub isolation: Option<Isolation>,
}

/// A password that can be compared and is not shown.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct PasswordKey(pub String);

impl std::fmt::Debug for PasswordKey {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("***")
    }
}

/// What kind of database.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Target {
    /// A file of SQLite.
    Sqlite(PathBuf),
    /// SQLite in a file of this process, which replaces an embedded Java database.
    StandIn(String),
    /// PostgreSQL.
    Postgres,
    /// MySQL or MariaDB.
    Mysql,
}

impl Target {
    /// Whether the database takes one writer at a time.
    pub(crate) fn has_single_writer(&self) -> bool {
        matches!(self, Target::Sqlite(_) | Target::StandIn(_))
    }
}

/// What there is to say about a data source before it is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    /// Whether statements will fail.
    pub fails: bool,
    /// What.
    pub text: String,
}

/// A database, or why there is none, and what to say about it.
pub(crate) struct Resolution {
    pub resolved: Result<Resolved, DatabaseError>,
    pub remark: Option<Remark>,
}

impl Resolved {
    /// Whether both lead to one database as one user. How a pool is kept makes other pools, not other databases.
    pub(crate) fn is_same_database(&self, other: &Resolved) -> bool {
        match (&self.target, &other.target) {
            (Target::Sqlite(one), Target::Sqlite(two)) => one == two || is_same_file(one, two),
            (Target::Postgres, Target::Postgres) => {
                (&self.url, &self.user) == (&other.url, &other.user) || is_same_server(self, other)
            }
            (Target::Mysql, Target::Mysql) => match (mysql_place(self), mysql_place(other)) {
                (Some(one), Some(two)) => one == two,
                _ => self.url == other.url,
            },
            (one, two) => one == two,
        }
    }
}

/// Whether two paths lead to one file that is there, through links say.
fn is_same_file(one: &Path, two: &Path) -> bool {
    matches!((one.canonicalize(), two.canonicalize()), (Ok(one), Ok(two)) if one == two)
}

/// Whether two addresses of PostgreSQL differ in their spelling only. `options` choose the schema, so they count.
fn is_same_server(one: &Resolved, two: &Resolved) -> bool {
    let read = |resolved: &Resolved| {
        let (config, _) = url::postgres(&resolved.url, resolved.user.as_deref(), None).ok()?;
        let ports = if config.get_ports().is_empty() { vec![POSTGRESQL_PORT] } else { config.get_ports().to_vec() };
        let text = |text: Option<&str>| text.map(str::to_owned);
        let (name, user, options) = (config.get_dbname(), config.get_user(), config.get_options());
        Some((config.get_hosts().to_vec(), ports, text(name), text(user), text(options)))
    };
    matches!((read(one), read(two)), (Some(one), Some(two)) if one == two)
}

/// What of the address of MySQL names a database and its user.
fn mysql_place(resolved: &Resolved) -> Option<impl PartialEq> {
    let address = MysqlAddress::parse(&resolved.url, resolved.user.as_deref(), None).ok()?;
    Some((address.host, address.port, address.socket, address.database, address.user))
}

impl Mapping {
    /// What there is to say about a data source: that another database replaces it, or that there is none.
    pub fn remark(&self, source: &DataSource) -> Option<Remark> {
        self.resolve(source).remark
    }

    pub(crate) fn resolve(&self, source: &DataSource) -> Resolution {
        if let Some(entry) = self.entry(source) {
            return direct(&entry.url, source, Some(entry));
        }
        match (&source.location, &source.definition) {
            (Location::Url(url), _) => direct(url, source, None),
            (Location::Name(_), Some(definition)) => self.resolve(definition),
            (Location::Name(name), None) => {
                let text = format!(
                    "unknown data source `{name}`; an empty SQLite database of this process replaces it, \
                     `[databases.\"{name}\"]` in penstock.toml defines it"
                );
                let target = Target::StandIn(name.to_string());
                Resolution {
                    resolved: Ok(resolved(target, String::new(), source, None)),
                    remark: Some(Remark { fails: false, text }),
                }
            }
        }
    }

    /// The entry for a data source: its name with or without `jdbc/`, or the longest beginning of its address.
    fn entry(&self, source: &DataSource) -> Option<&DatabaseEntry> {
        match &source.location {
            Location::Name(name) => {
                let bare = |name: &str| name.strip_prefix("jdbc/").unwrap_or(name).to_owned();
                self.entries
                    .iter()
                    .find(|entry| *entry.name == **name)
                    .or_else(|| self.entries.iter().find(|entry| bare(&entry.name) == bare(name)))
            }
            Location::Url(url) => {
                self.entries.iter().filter(|entry| url.starts_with(&entry.name)).max_by_key(|entry| entry.name.len())
            }
        }
    }
}

/// What an address leads to.
fn direct(address: &str, source: &DataSource, entry: Option<&DatabaseEntry>) -> Resolution {
    let good = |target: Target| Ok(resolved(target, address.to_owned(), source, entry));
    let shown = without_secrets(address);
    match url::read(address) {
        Address::Sqlite(path) => {
            // `./a.db` is `a.db`.
            let path = path.components().filter(|part| *part != Component::CurDir).collect();
            Resolution { resolved: good(Target::Sqlite(path)), remark: None }
        }
        Address::Memory => Resolution { resolved: good(Target::StandIn(source.to_string())), remark: None },
        Address::Postgres => match url::postgres(address, None, None) {
            Ok(_) => Resolution { resolved: good(Target::Postgres), remark: None },
            Err(why) => nowhere(format!("the address `{shown}` is not understood: {why}")),
        },
        Address::Mysql => match MysqlAddress::parse(address, None, None) {
            Ok(_) => Resolution { resolved: good(Target::Mysql), remark: None },
            Err(why) => nowhere(format!("the address `{shown}` is not understood: {why}")),
        },
        Address::Embedded(product) => {
            let text = format!(
                "`{shown}` is a database of {product}, which runs in Java; an empty SQLite database of this process replaces it, `[databases.\"{}\"]` in penstock.toml defines it",
                url::embedded_name(&shown)
            );
            let target = Target::StandIn(url::embedded_name(address).to_owned());
            Resolution { resolved: good(target), remark: Some(Remark { fails: false, text }) }
        }
        Address::Foreign(product) => nowhere(format!(
            "there is no driver for `{product}`, only for PostgreSQL, MySQL, MariaDB and SQLite; `[databases.\"{}\"]` in penstock.toml says \
             where the data is now",
            url::embedded_name(&shown)
        )),
        Address::Nothing => nowhere(format!(
            "`{shown}` is not the address of a database, such as `jdbc:postgresql://host/name` or `jdbc:sqlite:file`"
        )),
    }
}

fn nowhere(text: String) -> Resolution {
    let error = DatabaseError::new(DatabaseErrorKind::Undefined, text.clone());
    Resolution { resolved: Err(error), remark: Some(Remark { fails: true, text }) }
}

fn resolved(target: Target, address: String, source: &DataSource, entry: Option<&DatabaseEntry>) -> Resolved {
    let is_server = matches!(target, Target::Postgres | Target::Mysql);
    let user = match entry {
        Some(entry) => entry.user.clone(),
        None => source.user.as_deref().map(str::to_owned),
    };
    let password = match entry {
        Some(entry) => entry.password.clone(),
        None => source.password.clone(),
    };
    let pool = &source.pool;
    let connections_max =
        entry.and_then(|entry| entry.connections_max).or(pool.connections_max).unwrap_or(CONNECTIONS_MAX);
    Resolved {
        target,
        // SQLite has no users: credentials must not select another database.
        url: if is_server { address } else { String::new() },
        user: user.filter(|user| is_server && !user.is_empty()),
        password: password.filter(|_| is_server).map(|password| PasswordKey(password.reveal().to_owned())),
        connections_max,
        idle_max: pool.idle_max.unwrap_or(connections_max),
        wait_max: pool.wait.unwrap_or(WAIT_MAX),
        connect_timeout: entry.and_then(|entry| entry.connect_timeout).unwrap_or(CONNECT_TIMEOUT),
        query_timeout: entry.and_then(|entry| entry.query_timeout).unwrap_or(QUERY_TIMEOUT),
        isolation: pool.isolation,
    }
}

#[cfg(test)]
mod tests {
    use penstock_engine::database::PoolSettings;

    use super::*;

    fn source(location: Location) -> DataSource {
        DataSource { location, definition: None, user: None, password: None, pool: PoolSettings::default() }
    }

    fn mapping() -> Mapping {
        let entry = |name: &str, url: &str| DatabaseEntry { name: name.into(), url: url.into(), ..Default::default() };
        Mapping {
            entries: vec![
                entry("jdbc/Orders", "sqlite:orders.db"),
                entry("jdbc:mysql:", "postgresql://h/all"),
                entry("jdbc:mysql://h/stock", "sqlite:stock.db"),
            ],
        }
    }

    fn target(location: Location) -> (Option<Target>, bool) {
        let resolution = mapping().resolve(&source(location));
        (resolution.resolved.ok().map(|resolved| resolved.target), resolution.remark.is_some())
    }

    #[test]
    fn a_data_source_leads_to_a_database() {
        let name = |text: &str| Location::Name(text.into());
        let url = |text: &str| Location::Url(text.into());
        for (location, expected, remarked) in [
            (name("jdbc/Orders"), Some(Target::Sqlite("orders.db".into())), false),
            (name("Orders"), Some(Target::Sqlite("orders.db".into())), false),
            (name("jdbc/Other"), Some(Target::StandIn("jdbc/Other".into())), true),
            (url("jdbc:mysql://x/y"), Some(Target::Postgres), false),
            (url("jdbc:mysql://h/stock?a=b"), Some(Target::Sqlite("stock.db".into())), false),
            (url("jdbc:h2:./a;IFEXISTS=TRUE"), Some(Target::StandIn("jdbc:h2:./a".into())), true),
            (url("jdbc:oracle:thin:@h"), None, true),
            (url("jdbc:mariadb://h/shop"), Some(Target::Mysql), false),
            (url("jdbc:mariadb:sequential://h,i/shop"), None, true),
            (url("$url"), None, true),
            (url("jdbc:sqlite:a.db"), Some(Target::Sqlite("a.db".into())), false),
        ] {
            assert_eq!(target(location.clone()), (expected, remarked), "{location:?}");
        }
    }

    #[test]
    fn databases_are_the_same_however_their_pools_are_kept() {
        let resolved = |url: &str, user: &str, connections_max: usize| {
            let pool = PoolSettings { connections_max: Some(connections_max), ..PoolSettings::default() };
            let source = DataSource { user: Some(user.into()), pool, ..source(Location::Url(url.into())) };
            Mapping::default().resolve(&source).resolved.unwrap()
        };
        for (one, two, same) in [
            (("jdbc:sqlite:a.db", "x"), ("sqlite:./a.db", "y"), true),
            (("jdbc:sqlite:a.db", ""), ("jdbc:sqlite:b.db", ""), false),
            (("jdbc:h2:./a;IFEXISTS=TRUE", "x"), ("jdbc:h2:./a", "y"), true),
            (("jdbc:postgresql://h/d", "x"), ("jdbc:postgresql://h/d", "x"), true),
            (("jdbc:postgresql://h/d", "x"), ("postgresql://x@h:5432/d?ApplicationName=b", ""), true),
            (("jdbc:postgresql://h/d", "x"), ("jdbc:postgresql://h/d", "y"), false),
            (("jdbc:postgresql://h/d", "x"), ("jdbc:postgresql://h/d?currentSchema=s", "x"), false),
            (("jdbc:postgresql://h/d", "x"), ("jdbc:postgresql://h/e", "x"), false),
            (("jdbc:postgresql://h/d", "x"), ("jdbc:sqlite:d", "x"), false),
            (("jdbc:mysql://h/d?useSSL=false", "x"), ("mysql://x@h:3306/d", ""), true),
            (("jdbc:mysql://h/d", "x"), ("jdbc:mariadb://h/e", "x"), false),
            (("jdbc:mysql://h/d", "x"), ("jdbc:postgresql://h/d", "x"), false),
        ] {
            let both = (resolved(one.0, one.1, 1), resolved(two.0, two.1, 2));
            assert_eq!(both.0.is_same_database(&both.1), same, "{one:?} {two:?}");
            assert_ne!(both.0, both.1, "pools are kept apart");
        }
    }

    #[test]
    fn remarks_hide_passwords() {
        let remark = mapping().remark(&source(Location::Url("jdbc:db2://h/d?password=x".into()))).unwrap();
        assert!(remark.fails && !remark.text.contains("=x"), "{}", remark.text);
    }
}
