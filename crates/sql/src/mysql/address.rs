//! Addresses of MySQL and MariaDB: `mysql://user:password@host:3306/name`, and those of their JDBC drivers.

use penstock_message::percent_decoded;

use crate::tls::Verification;

/// Where the server listens when the address names no port.
const PORT: u16 = 3306;

/// The parts of an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MysqlAddress {
    pub host: String,
    pub port: u16,
    pub socket: Option<String>,
    pub database: Option<String>,
    pub user: Option<String>,
    pub password: Option<String>,
    pub encryption: Encryption,
}

/// When TLS is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encryption {
    Never,
    /// When the server offers it, without a check of its certificate.
    Offered,
    Always(Verification),
}

impl MysqlAddress {
    /// Reads an address. `user` and `password` apply when the address has none.
    pub(crate) fn parse(url: &str, user: Option<&str>, password: Option<&str>) -> Result<MysqlAddress, String> {
        let bare = url.trim().strip_prefix("jdbc:").unwrap_or(url.trim());
        let (base, parameters) = bare.split_once('?').unwrap_or((bare, ""));
        let (scheme, rest) = base.split_once(':').unwrap_or_default();
        let rest = rest.strip_prefix("//").ok_or("addresses with a mode such as `replication` are not supported")?;
        let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
        let (credentials, server) = match authority.rsplit_once('@') {
            Some((credentials, server)) => (Some(credentials), server),
            None => (None, authority),
        };
        if server.contains([',', '(']) {
            return Err("several hosts, or hosts with properties, are not supported".to_owned());
        }
        let (host, port) = host_and_port(server)?;
        let (own_user, own_password) = match credentials.map(|text| text.split_once(':').unwrap_or((text, ""))) {
            Some((user, password)) => (Some(decoded(user)), Some(decoded(password)).filter(|text| !text.is_empty())),
            None => (None, None),
        };
        let mut address = MysqlAddress {
            host,
            port,
            socket: None,
            database: Some(decoded(database)).filter(|name| !name.is_empty()),
            user: own_user,
            password: own_password,
            // MySQL's driver prefers TLS; that of MariaDB uses it on demand.
            encryption: if scheme.eq_ignore_ascii_case("mariadb") { Encryption::Never } else { Encryption::Offered },
        };
        for parameter in parameters.split('&').filter(|parameter| !parameter.is_empty()) {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            address.apply(name, decoded(value))?;
        }
        address.user = address.user.or_else(|| user.map(str::to_owned));
        address.password = address.password.or_else(|| password.map(str::to_owned));
        Ok(address)
    }

    /// A parameter of an address. Those that tune a Java driver have no meaning here.
    fn apply(&mut self, name: &str, value: String) -> Result<(), String> {
        let is_true = value.eq_ignore_ascii_case("true");
        match name {
            "user" => self.user = Some(value),
            "password" => self.password = Some(value),
            "localSocket" | "socket" => self.socket = Some(value),
            "sslMode" | "ssl-mode" => self.encryption = encryption(&value)?,
            "useSSL" | "useSsl" if !is_true => self.encryption = Encryption::Never,
            "useSSL" | "useSsl" | "requireSSL" if is_true && !matches!(self.encryption, Encryption::Always(_)) => {
                self.encryption = Encryption::Always(Verification::None);
            }
            "verifyServerCertificate" if is_true => self.encryption = Encryption::Always(Verification::Certificate),
            _ => {}
        }
        Ok(())
    }
}

fn decoded(text: &str) -> String {
    percent_decoded(text, false).into_owned()
}

/// The modes of both drivers.
fn encryption(mode: &str) -> Result<Encryption, String> {
    Ok(match mode.to_ascii_lowercase().replace('_', "-").as_str() {
        "disable" | "disabled" => Encryption::Never,
        "preferred" => Encryption::Offered,
        "required" | "trust" => Encryption::Always(Verification::None),
        "verify-ca" | "verify-identity" | "verify-full" => Encryption::Always(Verification::Certificate),
        _ => return Err(format!("`{mode}` is not an sslMode")),
    })
}

fn host_and_port(server: &str) -> Result<(String, u16), String> {
    let (host, port) = match (server.rfind(':'), server.rfind(']')) {
        (Some(colon), bracket) if bracket.is_none_or(|bracket| bracket < colon) => {
            (&server[..colon], Some(&server[colon + 1..]))
        }
        _ => (server, None),
    };
    let port = match port {
        Some(port) => port.parse().map_err(|_| format!("`{port}` is not a port"))?,
        None => PORT,
    };
    let host = host.trim_matches(['[', ']']);
    Ok((if host.is_empty() { "localhost" } else { host }.to_owned(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `user:password@host:port/database socket encryption`
    fn shown(url: &str) -> String {
        match MysqlAddress::parse(url, Some("other"), None) {
            Err(error) => error,
            Ok(address) => {
                let or = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
                let (user, password) = (or(address.user), or(address.password));
                let (host, port, database) = (address.host, address.port, or(address.database));
                format!("{user}:{password}@{host}:{port}/{database} {} {:?}", or(address.socket), address.encryption)
            }
        }
    }

    #[test]
    fn addresses_of_both_drivers_are_read() {
        for (url, expected) in [
            ("jdbc:mysql://db/orders", "other:-@db:3306/orders - Offered"),
            ("jdbc:mariadb://db:3307/orders", "other:-@db:3307/orders - Never"),
            ("mysql://anna:a%26b@db/orders", "anna:a&b@db:3306/orders - Offered"),
            ("jdbc:mysql://[::1]:3307/a?user=anna&password=b&useSSL=false", "anna:b@::1:3307/a - Never"),
            ("jdbc:mysql://db/a?useSSL=true&serverTimezone=UTC", "other:-@db:3306/a - Always(None)"),
            ("jdbc:mysql://db/a?sslMode=VERIFY_IDENTITY", "other:-@db:3306/a - Always(Certificate)"),
            ("jdbc:mariadb://db/a?sslMode=verify-full", "other:-@db:3306/a - Always(Certificate)"),
            ("jdbc:mysql://db/a?useSSL=true&verifyServerCertificate=true", "other:-@db:3306/a - Always(Certificate)"),
            ("jdbc:mariadb:///a?localSocket=/run/db.sock", "other:-@localhost:3306/a /run/db.sock Never"),
            ("jdbc:mysql://db/a?sslMode=maybe", "`maybe` is not an sslMode"),
            ("jdbc:mysql://db:x/a", "`x` is not a port"),
            ("jdbc:mysql://one,two/a", "several hosts, or hosts with properties, are not supported"),
            ("jdbc:mysql:replication://one/a", "addresses with a mode such as `replication` are not supported"),
        ] {
            assert_eq!(shown(url), expected, "{url}");
        }
    }
}
