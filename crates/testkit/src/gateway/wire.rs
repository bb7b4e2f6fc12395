//! HTTP/1.1 as text over blocking sockets: sockets and text, nothing that could hide a mistake.

use std::io::{self, BufRead, Read, Write};
use std::net::TcpStream;

use rustls::{ClientConnection, ServerConnection, StreamOwned};

/// What tests ask of a request or a reply: a type with `headers` and `body`.
macro_rules! read_as {
    ($message:ident) => {
        impl $message {
            /// The first value of a header field.
            pub fn header(&self, name: &str) -> Option<&str> {
                self.headers.iter().find(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
            }

            /// The body as text.
            pub fn text(&self) -> String {
                String::from_utf8_lossy(&self.body).into_owned()
            }

            /// The body as JSON.
            pub fn json(&self) -> serde_json::Value {
                serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error} in `{}`", self.text()))
            }
        }
    };
}
pub(super) use read_as;

/// A connection of either side, with or without TLS.
pub(super) enum Socket {
    Plain(TcpStream),
    Client(Box<StreamOwned<ClientConnection, TcpStream>>),
    Server(Box<StreamOwned<ServerConnection, TcpStream>>),
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Plain(socket) => socket.read(buffer),
            Socket::Client(socket) => socket.read(buffer),
            Socket::Server(socket) => socket.read(buffer),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Plain(socket) => socket.write(bytes),
            Socket::Client(socket) => socket.write(bytes),
            Socket::Server(socket) => socket.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Socket::Plain(socket) => socket.flush(),
            Socket::Client(socket) => socket.flush(),
            Socket::Server(socket) => socket.flush(),
        }
    }
}

/// A request or a reply as it was on the wire, the body decoded of its framing.
#[derive(Debug, Clone, Default)]
pub(super) struct Raw {
    pub first_line: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    pub trailers: Vec<(String, String)>,
}

impl Raw {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

/// Reads a head; `None` at the end of the connection.
pub(super) fn read_head(reader: &mut impl BufRead) -> io::Result<Option<Raw>> {
    let mut raw = Raw::default();
    if line(reader, &mut raw.first_line)? == 0 {
        return Ok(None);
    }
    loop {
        let mut field = String::new();
        if line(reader, &mut field)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if field.is_empty() {
            return Ok(Some(raw));
        }
        raw.headers.push(pair(&field));
    }
}

fn pair(field: &str) -> (String, String) {
    let (name, value) = field.split_once(':').unwrap_or((field, ""));
    (name.to_owned(), value.trim().to_owned())
}

/// Reads the body a head announces; with `until_close`, to the end when it announces none.
pub(super) fn read_body(reader: &mut impl BufRead, raw: &mut Raw, until_close: bool) -> io::Result<()> {
    if raw.header("transfer-encoding").is_some_and(|coding| coding.eq_ignore_ascii_case("chunked")) {
        loop {
            let mut size = String::new();
            line(reader, &mut size)?;
            let size = usize::from_str_radix(&size, 16).map_err(|_| io::Error::other("not a chunk size"))?;
            let mut chunk = vec![0; size];
            reader.read_exact(&mut chunk)?;
            raw.body.extend_from_slice(&chunk);
            let mut end = String::new();
            while line(reader, &mut end)? > 0 && size == 0 && !end.is_empty() {
                raw.trailers.push(pair(&end));
                end.clear();
            }
            if size == 0 {
                return Ok(());
            }
        }
    }
    match raw.header("content-length").map(|length| length.parse::<usize>()) {
        Some(length) => {
            raw.body = vec![0; length.map_err(io::Error::other)?];
            reader.read_exact(&mut raw.body)
        }
        None if until_close => reader.read_to_end(&mut raw.body).map(drop),
        None => Ok(()),
    }
}

/// Reads a line without its end; how many bytes it took.
fn line(reader: &mut impl BufRead, into: &mut String) -> io::Result<usize> {
    let count = reader.read_line(into)?;
    into.truncate(into.trim_end_matches(['\r', '\n']).len());
    Ok(count)
}
