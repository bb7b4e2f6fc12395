//! A mail server and an account, from the parameters of JavaMail: `mail.PROTOCOL.host` and its like.

use std::fmt;
use std::time::Duration;

use crate::broker::lookup::Lookup;

/// How long a server may take to answer a command, in milliseconds, when `mail.PROTOCOL.timeout` is missing.
const TIMEOUT_MS: u64 = 60_000;

/// The protocols.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    Smtp,
    Pop3,
    Imap,
}

impl Protocol {
    fn name(self) -> &'static str {
        match self {
            Protocol::Smtp => "smtp",
            Protocol::Pop3 => "pop3",
            Protocol::Imap => "imap",
        }
    }

    fn port(self, security: Security) -> u16 {
        match (self, security) {
            (Protocol::Smtp, Security::Tls) => 465,
            (Protocol::Smtp, _) => 25,
            (Protocol::Pop3, Security::Tls) => 995,
            (Protocol::Pop3, _) => 110,
            (Protocol::Imap, Security::Tls) => 993,
            (Protocol::Imap, _) => 143,
        }
    }
}

/// When TLS begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Security {
    /// Never.
    Plain,
    /// With `STARTTLS`, when the server offers it.
    IfOffered,
    /// With `STARTTLS`; a server that does not offer it is not used.
    StartTls,
    /// With the connection.
    Tls,
}

/// A server, and an account.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Account {
    pub(super) protocol: Protocol,
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) security: Security,
    /// Accepts any certificate: `mail.PROTOCOL.ssl.trust` names the host, or is `*`.
    pub(super) trusts_any: bool,
    pub(super) login: Option<(String, String)>,
    pub(super) timeout: Duration,
}

impl Account {
    /// Reads the parameters. `is_tls`: the protocol was named with an `s` at its end.
    pub(super) fn parse(lookup: &Lookup, protocol: Protocol, is_tls: bool) -> Result<Account, String> {
        let name = protocol.name();
        // JavaMail reads those of the protocol as it is named, and those of all protocols last.
        let get = |key: &str| {
            let secure = is_tls.then(|| lookup.get(&format!("mail.{name}s.{key}"))).flatten();
            secure.or_else(|| lookup.get(&format!("mail.{name}.{key}"))).or_else(|| lookup.get(&format!("mail.{key}")))
        };
        let flag = |key: &str| get(key).is_some_and(|value| value.eq_ignore_ascii_case("true"));
        let number = |key: &str| -> Result<Option<u64>, String> {
            let Some(text) = get(key) else { return Ok(None) };
            text.parse().map(Some).map_err(|_| format!("the parameter `mail.{name}.{key}` is not a number: `{text}`"))
        };
        let host = get("host").ok_or_else(|| format!("the parameter `mail.{name}.host` is missing"))?.to_owned();
        let is_ssl_socket = get("socketFactory.class").is_some_and(|class| class.contains("SSLSocketFactory"));
        let security = if is_tls || flag("ssl.enable") || is_ssl_socket {
            Security::Tls
        } else if flag("starttls.required") {
            Security::StartTls
        } else if flag("starttls.enable") {
            Security::IfOffered
        } else {
            Security::Plain
        };
        let port = match number("port")? {
            Some(port) => u16::try_from(port).map_err(|_| format!("`mail.{name}.port` is not a port: `{port}`"))?,
            None => protocol.port(security),
        };
        // JavaMail has no timeout without the parameter; here a silent server must not hold a flow.
        let timeout = Duration::from_millis(number("timeout")?.unwrap_or(TIMEOUT_MS).max(1));
        let login = get("user").map(|user| (user.to_owned(), get("password").unwrap_or_default().to_owned()));
        let trust = get("ssl.trust").unwrap_or_default();
        Ok(Account {
            protocol,
            port,
            security,
            trusts_any: trust.split_whitespace().any(|name| name == "*" || name.eq_ignore_ascii_case(&host)),
            host,
            login,
            timeout,
        })
    }
}

/// Without credentials.
impl fmt::Display for Account {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "the mail server {}:{}", self.host, self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(protocol: Protocol, is_tls: bool, parameters: &[(&str, &str)]) -> Result<Account, String> {
        let entries: Vec<_> = parameters.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        Account::parse(&Lookup::new(&entries), protocol, is_tls)
    }

    #[test]
    fn the_port_depends_on_protocol_and_tls() {
        let security = |protocol, is_tls, parameters: &[(&str, &str)]| {
            let account = parse(protocol, is_tls, parameters).unwrap();
            (account.port, account.security)
        };
        let smtp = ("mail.smtp.host", "h");
        assert_eq!(security(Protocol::Smtp, false, &[smtp]), (25, Security::Plain));
        assert_eq!(
            security(Protocol::Smtp, false, &[smtp, ("mail.smtp.starttls.enable", "true")]),
            (25, Security::IfOffered)
        );
        assert_eq!(security(Protocol::Smtp, false, &[smtp, ("mail.smtp.ssl.enable", "true")]), (465, Security::Tls));
        assert_eq!(security(Protocol::Imap, true, &[("mail.imaps.host", "h")]), (993, Security::Tls));
        assert_eq!(security(Protocol::Imap, true, &[("mail.imap.host", "h")]), (993, Security::Tls));
        let socket = ("mail.pop3.socketFactory.class", "javax.net.ssl.SSLSocketFactory");
        assert_eq!(security(Protocol::Pop3, false, &[("mail.pop3.host", "h"), socket]), (995, Security::Tls));
        let required = ("mail.imap.starttls.required", "true");
        let port = ("mail.imap.port", "3143");
        assert_eq!(security(Protocol::Imap, false, &[("mail.host", "h"), required, port]), (3143, Security::StartTls));
    }

    #[test]
    fn what_is_missing_or_wrong_is_named() {
        let wrong = |parameters: &[(&str, &str)]| parse(Protocol::Imap, false, parameters).err().unwrap();
        assert_eq!(wrong(&[]), "the parameter `mail.imap.host` is missing");
        let host = ("mail.imap.host", "h");
        assert_eq!(wrong(&[host, ("mail.imap.port", "x")]), "the parameter `mail.imap.port` is not a number: `x`");
        assert_eq!(wrong(&[host, ("mail.imap.port", "70000")]), "`mail.imap.port` is not a port: `70000`");
    }

    #[test]
    fn certificates_of_named_hosts_are_trusted() {
        let host = ("mail.imap.host", "h");
        let trusts = |names| parse(Protocol::Imap, false, &[host, ("mail.imap.ssl.trust", names)]).unwrap().trusts_any;
        assert!(trusts("*") && trusts("a H"));
        assert!(!trusts("a hh"));
    }
}
