//! A mail as a message.

use std::borrow::Cow;

use mail_parser::{MessageParser, MessagePart, MimeHeaders, PartType};
use penstock_message::{Body, Message, Method};

use crate::broker::body::is_field;

/// Header fields of one mail. Real ones have fewer than a hundred.
const HEADERS_MAX: usize = 1000;

/// Headers that describe the encoding of the mail, which the body of the message no longer has.
const OF_THE_MAIL: [&str; 3] = ["Content-Transfer-Encoding", "Content-Type", "MIME-Version"];

/// Which headers of a mail become headers of the message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Retain {
    /// All.
    All,
    /// `transport.mail.PreserveHeaders`: these.
    Only(Vec<String>),
    /// `transport.mail.RemoveHeaders`: all but these.
    Not(Vec<String>),
}

impl Retain {
    fn keeps(&self, name: &str) -> bool {
        let is_in = |names: &[String]| names.iter().any(|known| known.eq_ignore_ascii_case(name));
        match self {
            Retain::All => true,
            Retain::Only(names) => is_in(names),
            Retain::Not(names) => !is_in(names),
        }
    }
}

/// What a reply needs to know of the mail, whatever headers the message keeps.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// `Reply-To`, else `From`.
    pub reply_to: String,
    /// `Subject`, decoded.
    pub subject: String,
    /// `Message-ID`.
    pub id: String,
    /// Sent by a program (RFC 3834): it gets no reply, so that two programs do not write to each other for ever.
    pub is_automatic: bool,
}

/// Makes a message of a mail. The body is the part of the type `content_type`, else the first text, else the first part.
pub fn received(bytes: &[u8], content_type: Option<&str>, retain: &Retain) -> Result<(Message, Origin), String> {
    let mail = MessageParser::default().parse(bytes).ok_or("it is no mail")?;
    let mut message = Message { method: Method::Post, ..Message::default() };
    let mut origin = Origin { subject: mail.subject().unwrap_or_default().to_owned(), ..Origin::default() };
    let mut from = String::new();
    for (name, value) in mail.headers_raw().take(HEADERS_MAX) {
        let value = unfolded(value);
        match name.to_ascii_lowercase().as_str() {
            "reply-to" => origin.reply_to = value.clone(),
            "from" => from = value.clone(),
            "message-id" => origin.id = value.clone(),
            "auto-submitted" => origin.is_automatic |= !value.eq_ignore_ascii_case("no"),
            "precedence" => {
                origin.is_automatic |= ["bulk", "junk", "list"].iter().any(|word| value.eq_ignore_ascii_case(word));
            }
            _ => {}
        }
        let is_encoding = OF_THE_MAIL.iter().any(|known| known.eq_ignore_ascii_case(name));
        if !is_encoding && retain.keeps(name) && is_field(name, &value) {
            message.headers.set(name, value);
        }
    }
    if origin.reply_to.is_empty() {
        origin.reply_to = from;
    }
    let wanted = content_type.map(media_type);
    let leaves = || mail.parts.iter().filter(|part| !matches!(part.body, PartType::Multipart(_)));
    let of_type = wanted.as_deref().and_then(|wanted| leaves().find(|part| type_of(part) == wanted));
    let is_text = |part: &&MessagePart<'_>| matches!(part.body, PartType::Text(_) | PartType::Html(_));
    let is_attached = |part: &&MessagePart<'_>| part.attachment_name().is_some();
    let text = || leaves().filter(is_text).find(|part| !is_attached(part));
    let part = of_type.or_else(text).or_else(|| leaves().next());
    let Some(part) = part else { return Ok((message, origin)) };
    let body: Cow<'_, [u8]> = match &part.body {
        // The parser has converted it to UTF-8.
        PartType::Text(text) | PartType::Html(text) => Cow::Borrowed(text.as_bytes()),
        PartType::Binary(bytes) | PartType::InlineBinary(bytes) => Cow::Borrowed(bytes),
        PartType::Message(inner) => Cow::Borrowed(inner.raw_message()),
        PartType::Multipart(_) => Cow::Borrowed(&[]),
    };
    let charset = part.content_type().and_then(|found| found.attribute("charset"));
    let own = match (is_text(&part), charset) {
        (true, _) => format!("{}; charset=UTF-8", type_of(part)),
        (false, Some(charset)) => format!("{}; charset={charset}", type_of(part)),
        (false, None) => type_of(part),
    };
    let content_type = match content_type {
        Some(given) if is_text(&part) && !given.contains("charset") => format!("{given}; charset=UTF-8"),
        Some(given) => given.to_owned(),
        None => own,
    };
    message.headers.set("Content-Type", if is_field("x", &content_type) { &content_type } else { "text/plain" });
    message.body = Body::bytes(body.into_owned());
    Ok((message, origin))
}

/// `type/subtype` of a part, in lower case.
fn type_of(part: &MessagePart<'_>) -> String {
    let missing = if part.is_text() { "text/plain" } else { "application/octet-stream" };
    match part.content_type() {
        Some(found) => media_type(&format!("{}/{}", found.ctype(), found.subtype().unwrap_or("plain"))),
        None => missing.to_owned(),
    }
}

fn media_type(text: &str) -> String {
    text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// A header of several lines as one.
fn unfolded(value: &str) -> String {
    value.trim().replace("\r\n", "").replace(['\r', '\n'], "").replace('\t', " ")
}

#[cfg(test)]
mod tests {
    use penstock_message::Form;

    use super::*;

    const MULTIPART: &str = "From: Sales <sales@example.com>\r\nSubject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\r\n\
        Message-ID: <1@example.com>\r\nX-Long: one\r\n\ttwo\r\nMIME-Version: 1.0\r\n\
        Content-Type: multipart/mixed; boundary=b\r\n\r\n\
        --b\r\nContent-Type: text/plain; charset=ISO-8859-1\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n\
        gr=FCn\r\n--b\r\nContent-Type: application/xml\r\nContent-Transfer-Encoding: base64\r\n\
        Content-Disposition: attachment; filename=a.xml\r\n\r\nPGEvPg==\r\n--b--\r\n";

    fn body(message: &Message) -> String {
        match message.body.form() {
            Form::Bytes(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn headers_become_headers_of_the_message() {
        let (message, origin) = received(MULTIPART.as_bytes(), None, &Retain::All).unwrap();
        assert_eq!(message.headers.get("From"), Some("Sales <sales@example.com>"));
        assert_eq!(message.headers.get("Subject"), Some("=?utf-8?q?Gr=C3=BC=C3=9Fe?="));
        assert_eq!(message.headers.get("X-Long"), Some("one two"));
        assert_eq!(message.headers.get("MIME-Version"), None);
        assert_eq!(origin.subject, "Grüße");
        assert_eq!((origin.reply_to.as_str(), origin.id.as_str()), ("Sales <sales@example.com>", "<1@example.com>"));
        assert!(!origin.is_automatic);
        let only = Retain::Only(vec!["from".to_owned()]);
        let (message, origin) = received(MULTIPART.as_bytes(), None, &only).unwrap();
        assert_eq!((message.headers.contains("From"), message.headers.contains("X-Long")), (true, false));
        assert_eq!(origin.id, "<1@example.com>");
        let not = Retain::Not(vec!["X-LONG".to_owned()]);
        let (message, _) = received(MULTIPART.as_bytes(), None, &not).unwrap();
        assert_eq!((message.headers.contains("From"), message.headers.contains("X-Long")), (true, false));
    }

    #[test]
    fn the_body_is_the_part_of_the_wanted_type_or_the_first_text() {
        let check = |wanted, expected_type: &str, expected: &str| {
            let (message, _) = received(MULTIPART.as_bytes(), wanted, &Retain::All).unwrap();
            assert_eq!(message.headers.get("Content-Type"), Some(expected_type));
            assert_eq!(body(&message).trim_end(), expected);
        };
        check(None, "text/plain; charset=UTF-8", "grün");
        check(Some("application/xml"), "application/xml", "<a/>");
        check(Some("text/xml"), "text/xml; charset=UTF-8", "grün");
    }

    #[test]
    fn a_mail_of_one_part_is_its_body() {
        let (message, _) =
            received(b"Subject: a\r\nContent-Type: application/json\r\n\r\n{}", None, &Retain::All).unwrap();
        assert_eq!((message.headers.get("Content-Type"), body(&message).as_str()), (Some("application/json"), "{}"));
        let (message, _) = received(b"Subject: a\r\n\r\nhello", None, &Retain::All).unwrap();
        assert_eq!(message.headers.get("Content-Type"), Some("text/plain; charset=UTF-8"));
    }

    #[test]
    fn mails_of_programs_are_known() {
        for (header, expected) in [
            ("Auto-Submitted: auto-replied", true),
            ("Auto-Submitted: no", false),
            ("Precedence: bulk", true),
            ("X-A: b", false),
        ] {
            let mail = format!("From: a@b.c\r\n{header}\r\n\r\nx");
            assert_eq!(received(mail.as_bytes(), None, &Retain::All).unwrap().1.is_automatic, expected, "{header}");
        }
    }
}
