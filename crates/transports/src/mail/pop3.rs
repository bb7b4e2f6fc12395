//! A POP3 client (RFC 1939, RFC 2449, RFC 2595): what a listener needs of it. No crate for it is kept.

use std::io;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

use super::account::{Account, Security};
use super::connection::{Connection, MAIL_BYTES_MAX};
use super::mailbox::{Listed, in_time};

/// The longest line. RFC 2449 §4 has 512 bytes for answers, RFC 5322 998 for mails; some senders write longer ones.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// Mails that are listed. The others are listed when these are gone.
const LISTED_MAX: usize = 10_000;

/// A session.
pub(super) struct Pop3 {
    socket: BufReader<Connection>,
    account: Account,
}

impl Pop3 {
    pub(super) async fn open(account: &Account) -> io::Result<Pop3> {
        let mut connection = Connection::open(account).await?;
        if account.security == Security::Tls {
            connection = connection.with_tls(account).await?;
        }
        let mut session = Pop3 { socket: BufReader::new(connection), account: account.clone() };
        session.answer().await?;
        if matches!(account.security, Security::StartTls | Security::IfOffered) {
            session = session.start_tls().await?;
        }
        let (user, password) = account.login.clone().unwrap_or_default();
        session.command("USER", &user).await?;
        session.command("PASS", &password).await?;
        Ok(session)
    }

    async fn start_tls(mut self) -> io::Result<Pop3> {
        match self.command("STLS", "").await {
            Ok(_) => {
                // What came before TLS could be an attacker's.
                if !self.socket.buffer().is_empty() {
                    return Err(io::Error::other("the server sent data before TLS began"));
                }
                let connection = self.socket.into_inner().with_tls(&self.account).await?;
                Ok(Pop3 { socket: BufReader::new(connection), account: self.account })
            }
            Err(error) if is_refusal(&error) && self.account.security == Security::IfOffered => Ok(self),
            Err(error) => Err(error),
        }
    }

    pub(super) async fn list(&mut self) -> io::Result<Vec<Listed>> {
        self.command("UIDL", "").await?;
        let ids = self.lines(parse_id).await?;
        self.command("LIST", "").await?;
        let sizes = self.lines(parse_size).await?;
        // Both are in the order of numbers.
        let mut sizes = sizes.into_iter().peekable();
        Ok(ids
            .into_iter()
            .filter_map(|(number, id)| {
                while sizes.next_if(|(of, _)| *of < number).is_some() {}
                sizes.next_if(|(of, _)| *of == number).map(|(_, bytes)| Listed { id, number, bytes })
            })
            .collect())
    }

    pub(super) async fn fetch(&mut self, mail: &Listed) -> io::Result<Option<Vec<u8>>> {
        match self.command("RETR", &mail.number.to_string()).await {
            Ok(_) => {}
            // Another session deleted it.
            Err(error) if is_refusal(&error) => return Ok(None),
            Err(error) => return Err(error),
        }
        self.socket.get_mut().allow(mail.bytes);
        let mut text = Vec::new();
        loop {
            let line = self.line().await?;
            let Some(line) = unstuffed(&line) else { return Ok(Some(text)) };
            if text.len() + line.len() > MAIL_BYTES_MAX {
                return Err(io::Error::other("the mail is larger than the server said"));
            }
            text.extend_from_slice(line);
        }
    }

    pub(super) async fn delete(&mut self, mail: &Listed) -> io::Result<()> {
        self.command("DELE", &mail.number.to_string()).await.map(drop)
    }

    pub(super) async fn quit(mut self) -> io::Result<()> {
        self.command("QUIT", "").await.map(drop)
    }

    /// Sends a command; a refusal is an error.
    async fn command(&mut self, word: &str, argument: &str) -> io::Result<String> {
        if argument.contains(['\r', '\n']) {
            return Err(io::Error::other("user and password have one line"));
        }
        let line = if argument.is_empty() { format!("{word}\r\n") } else { format!("{word} {argument}\r\n") };
        let account = self.account.clone();
        in_time(&account, async {
            self.socket.write_all(line.as_bytes()).await?;
            self.socket.flush().await
        })
        .await?;
        let answer = self.answer().await;
        answer.map_err(|error| match is_refusal(&error) {
            true => io::Error::new(io::ErrorKind::PermissionDenied, format!("{word}: {error}")),
            false => error,
        })
    }

    async fn answer(&mut self) -> io::Result<String> {
        self.socket.get_mut().allow(0);
        let line = self.line().await?;
        parse_status(&String::from_utf8_lossy(&line))
    }

    /// The lines of a list, up to the one that is a dot.
    async fn lines<T>(&mut self, parse: fn(&str) -> Option<T>) -> io::Result<Vec<T>> {
        let mut found = Vec::new();
        loop {
            let line = self.line().await?;
            let Some(line) = unstuffed(&line) else { return Ok(found) };
            if found.len() < LISTED_MAX {
                found.extend(parse(&String::from_utf8_lossy(line)));
            }
        }
    }

    async fn line(&mut self) -> io::Result<Vec<u8>> {
        let account = self.account.clone();
        in_time(&account, async {
            let mut line = Vec::new();
            let mut limited = tokio::io::AsyncReadExt::take(&mut self.socket, LINE_BYTES_MAX);
            limited.read_until(b'\n', &mut line).await?;
            match line.last() {
                Some(b'\n') => Ok(line),
                Some(_) if line.len() as u64 == LINE_BYTES_MAX => Err(io::Error::other("a line is too long")),
                _ => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed the connection")),
            }
        })
        .await
    }
}

/// `+OK text` or `-ERR text`.
fn parse_status(line: &str) -> io::Result<String> {
    let line = line.trim_end();
    if let Some(text) = line.strip_prefix("+OK") {
        return Ok(text.trim_start().to_owned());
    }
    match line.strip_prefix("-ERR") {
        Some(text) => Err(io::Error::new(io::ErrorKind::PermissionDenied, text.trim_start().to_owned())),
        None => Err(io::Error::new(io::ErrorKind::InvalidData, "the server does not speak POP3")),
    }
}

fn is_refusal(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied
}

/// A line of `UIDL`: number and identifier.
fn parse_id(line: &str) -> Option<(u32, String)> {
    let (number, id) = line.trim_end().split_once(' ')?;
    Some((number.parse().ok()?, id.trim().to_owned())).filter(|(_, id)| !id.is_empty())
}

/// A line of `LIST`: number and bytes. Servers may add more.
fn parse_size(line: &str) -> Option<(u32, usize)> {
    let mut words = line.split_ascii_whitespace();
    Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
}

/// A line without the dot that protects a dot at its start. `None`: the line that ends the text.
fn unstuffed(line: &[u8]) -> Option<&[u8]> {
    match line {
        b".\r\n" | b".\n" => None,
        [b'.', rest @ ..] => Some(rest),
        _ => Some(line),
    }
}

/// Reads a line in each way, for the fuzz target.
#[doc(hidden)]
pub fn parse(line: &[u8]) {
    let text = String::from_utf8_lossy(line);
    let _ = (parse_status(&text), parse_id(&text), parse_size(&text), unstuffed(line).map(<[u8]>::len));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_server_are_read() {
        assert_eq!(parse_status("+OK ready\r\n").unwrap(), "ready");
        assert_eq!(parse_status("+OK\r\n").unwrap(), "");
        let refused = parse_status("-ERR [AUTH] wrong password\r\n").unwrap_err();
        assert!(is_refusal(&refused) && refused.to_string() == "[AUTH] wrong password");
        assert_eq!(parse_status("220 smtp").unwrap_err().kind(), io::ErrorKind::InvalidData);
        assert_eq!(parse_id("7 a.b c\r\n"), Some((7, "a.b c".to_owned())));
        assert_eq!(parse_id("7\r\n"), None);
        assert_eq!(parse_size("7 120 more\r\n"), Some((7, 120)));
        assert_eq!(parse_size("x 120"), None);
    }

    #[test]
    fn dots_at_the_start_of_a_line_are_protected() {
        assert_eq!(unstuffed(b".\r\n"), None);
        assert_eq!(unstuffed(b"..\r\n"), Some(&b".\r\n"[..]));
        assert_eq!(unstuffed(b"a.\r\n"), Some(&b"a.\r\n"[..]));
        assert_eq!(unstuffed(b""), Some(&b""[..]));
    }
}
