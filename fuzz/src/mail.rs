//! Mails and lines of POP3 servers: none panics, and a header of a message has one line.

use penstock_transports::mail::{Retain, parse_mail, parse_pop3};

/// What mails are made of.
pub const DICTIONARY: &[&str] = &[
    "\r\n\r\n",
    "From: a@b.c\r\n",
    "Subject: =?utf-8?q?=C3=BC?=\r\n",
    "Content-Type: multipart/mixed; boundary=b\r\n",
    "Content-Transfer-Encoding: base64\r\n",
    "Content-Transfer-Encoding: quoted-printable\r\n",
    "charset=iso-8859-1",
    "\r\n--b\r\n",
    "\r\n--b--\r\n",
    "message/rfc822",
    "+OK ",
    "-ERR ",
];

/// Checks the properties for one input.
pub fn mail(data: &[u8]) {
    data.split_inclusive(|byte| *byte == b'\n').for_each(parse_pop3);
    if let Ok((message, _)) = parse_mail(data, Some("application/xml"), &Retain::All) {
        assert!(message.headers.contains("Content-Type") || message.body.is_empty());
        for (_, value) in message.headers.iter() {
            assert!(!value.contains(&b'\r') && !value.contains(&b'\n'));
        }
    }
}
