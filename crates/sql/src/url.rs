//! Addresses of databases, as Java, libpq and we write them.

use std::path::PathBuf;

use penstock_message::percent_decoded;
use tokio_postgres::config::SslMode;

use crate::tls::Verification;

/// What an address says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Address {
    /// A file of SQLite.
    Sqlite(PathBuf),
    /// SQLite without a file.
    Memory,
    /// PostgreSQL.
    Postgres,
    /// MySQL or MariaDB.
    Mysql,
    /// A database that Java programs carry along: H2, Derby, HSQLDB.
    Embedded(&'static str),
    /// A database there is no driver for.
    Foreign(String),
    /// Not an address.
    Nothing,
}

/// Reads an address.
pub(crate) fn read(url: &str) -> Address {
    let url = url.trim();
    let bare = url.strip_prefix("jdbc:").unwrap_or(url);
    let Some((scheme, rest)) = bare.split_once(':') else { return Address::Nothing };
    match scheme.to_ascii_lowercase().as_str() {
        "postgresql" | "postgres" => Address::Postgres,
        "mysql" | "mariadb" => Address::Mysql,
        "sqlite" => {
            let path = rest.split('?').next().unwrap_or_default();
            let path = path.strip_prefix("file:").unwrap_or(path);
            let path = path.strip_prefix("//").unwrap_or(path);
            match path {
                "" | ":memory:" => Address::Memory,
                path => Address::Sqlite(path.into()),
            }
        }
        "h2" => Address::Embedded("H2"),
        "derby" => Address::Embedded("Derby"),
        "hsqldb" => Address::Embedded("HSQLDB"),
        other if other.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') && url.starts_with("jdbc:") => {
            Address::Foreign(other.to_owned())
        }
        _ => Address::Nothing,
    }
}

/// The part of an embedded database's address that says which database it is.
pub(crate) fn embedded_name(url: &str) -> &str {
    url.split([';', '?']).next().unwrap_or(url)
}

/// Reads the address of a PostgreSQL server: that of libpq, or that of JDBC with its parameters. `user` and `password` hold
/// when the address names none.
pub(crate) fn postgres(
    url: &str,
    user: Option<&str>,
    password: Option<&str>,
) -> Result<(tokio_postgres::Config, Verification), String> {
    let bare = url.trim().strip_prefix("jdbc:").unwrap_or(url.trim());
    let (base, parameters) = bare.split_once('?').unwrap_or((bare, ""));
    let (_, rest) = base.split_once(':').unwrap_or_default();
    let base = match rest.strip_prefix("//") {
        Some(rest) => format!("postgresql://{rest}"),
        // `jdbc:postgresql:orders` is a database of the server on this machine.
        None => format!("postgresql://localhost/{}", rest.trim_start_matches('/')),
    };
    let mut config: tokio_postgres::Config = base.parse().map_err(|error| format!("{error}"))?;
    let mut verification = Verification::None;
    for parameter in parameters.split('&').filter(|parameter| !parameter.is_empty()) {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        apply(&mut config, &mut verification, name, &percent_decoded(value, false))?;
    }
    if let (None, Some(user)) = (config.get_user(), user) {
        config.user(user);
    }
    if let (None, Some(password)) = (config.get_password(), password) {
        config.password(password);
    }
    if config.get_hosts().is_empty() {
        config.host("localhost");
    }
    if config.get_application_name().is_none() {
        config.application_name("penstock");
    }
    Ok((config, verification))
}

/// A parameter of an address. Those that tune a Java driver mean nothing here.
fn apply(
    config: &mut tokio_postgres::Config,
    verification: &mut Verification,
    name: &str,
    value: &str,
) -> Result<(), String> {
    match name {
        "user" => drop(config.user(value)),
        "password" => drop(config.password(value)),
        "host" => drop(config.host(value)),
        "port" => drop(config.port(value.parse().map_err(|_| format!("`{value}` is not a port"))?)),
        "dbname" => drop(config.dbname(value)),
        "ApplicationName" | "application_name" => drop(config.application_name(value)),
        "currentSchema" => drop(config.options(format!("-c search_path={value}"))),
        "options" => drop(config.options(value)),
        "ssl" if value != "false" => drop(config.ssl_mode(SslMode::Require)),
        "sslmode" => {
            config.ssl_mode(match value {
                "disable" => SslMode::Disable,
                "allow" | "prefer" => SslMode::Prefer,
                "require" => SslMode::Require,
                "verify-ca" | "verify-full" => {
                    *verification = Verification::Certificate;
                    SslMode::Require
                }
                other => return Err(format!("`{other}` is not an sslmode")),
            });
        }
        _ => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_distinguished() {
        for (url, expected) in [
            ("jdbc:postgresql://h/d", Address::Postgres),
            ("postgres://h/d", Address::Postgres),
            ("jdbc:sqlite:/var/a.db", Address::Sqlite("/var/a.db".into())),
            ("sqlite:a.db?mode=rw", Address::Sqlite("a.db".into())),
            ("sqlite:///var/a.db", Address::Sqlite("/var/a.db".into())),
            ("jdbc:sqlite::memory:", Address::Memory),
            ("jdbc:h2:./x;AUTO_SERVER=TRUE", Address::Embedded("H2")),
            ("jdbc:derby://localhost:1527/x;create=true", Address::Embedded("Derby")),
            ("jdbc:mysql://h/d", Address::Mysql),
            ("mariadb://h/d", Address::Mysql),
            ("jdbc:oracle:thin:@h:1521:x", Address::Foreign("oracle".into())),
            ("$url", Address::Nothing),
            ("", Address::Nothing),
            ("http://x", Address::Nothing),
        ] {
            assert_eq!(read(url), expected, "{url}");
        }
    }

    #[test]
    fn parameters_of_jdbc_are_read() {
        let (config, verification) = postgres(
            "jdbc:postgresql://db.example:5433/orders?user=anna&password=a%26b&sslmode=verify-full&loginTimeout=3",
            Some("other"),
            Some("other"),
        )
        .unwrap();
        assert_eq!(config.get_user(), Some("anna"));
        assert_eq!(config.get_password(), Some(&b"a&b"[..]));
        assert_eq!(config.get_ports(), [5433]);
        assert_eq!(config.get_dbname(), Some("orders"));
        assert_eq!(config.get_ssl_mode(), SslMode::Require);
        assert_eq!(verification, Verification::Certificate);
        let (config, _) = postgres("jdbc:postgresql:orders", Some("anna"), None).unwrap();
        assert_eq!((config.get_user(), config.get_dbname()), (Some("anna"), Some("orders")));
        assert_eq!(config.get_hosts(), [tokio_postgres::config::Host::Tcp("localhost".into())]);
        assert!(postgres("jdbc:postgresql://h/d?sslmode=maybe", None, None).is_err());
    }
}
