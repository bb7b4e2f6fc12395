//! A message as a mail.

use lettre::message::header::{ContentTransferEncoding, ContentType, HeaderName, HeaderValue};
use lettre::message::{Attachment, Body, Mailbox, MultiPart, SinglePart};
use penstock_message::Message;

use super::address;
use crate::broker::body::directive;

/// The text of a mail whose payload is an attachment, when the flow sets no other. Micro Integrator has this one.
const TEXT_OF_ATTACHMENT: &str = "Web Service Message Attached";

/// The file name of an attachment when the flow sets no other.
const FILE_NAME: &str = "attachment";

/// Headers that are not sent as they are: they describe the body, the connection the message came over, or are made anew.
/// Credentials of a client must not leave by mail.
const NOT_SENT: [&str; 26] = [
    "Accept",
    "Accept-Encoding",
    "Accept-Language",
    "Authorization",
    "Bcc",
    "Cc",
    "Connection",
    "Content-Encoding",
    "Content-Length",
    "Content-Transfer-Encoding",
    "Content-Type",
    "Cookie",
    "Date",
    "Expect",
    "From",
    "Host",
    "Message-ID",
    "MIME-Version",
    "Proxy-Authorization",
    "Return-Path",
    "SOAPAction",
    "Set-Cookie",
    "Subject",
    "To",
    "Transfer-Encoding",
    "User-Agent",
];

/// What the sender adds.
#[derive(Debug, Default)]
pub(super) struct Defaults {
    /// The addresses of the URL, for a message without the header `To`.
    pub(super) to: Vec<Mailbox>,
    /// For a message without the header `From`.
    pub(super) from: Option<Mailbox>,
    /// Added to each mail.
    pub(super) bcc: Vec<Mailbox>,
}

/// Where the payload stands in the mail: `transport.mail.Format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Text,
    Multipart,
    Attachment,
}

/// Makes the mail.
pub(super) fn mail(message: &Message, payload: Vec<u8>, defaults: Defaults) -> Result<lettre::Message, String> {
    let header = |name: &str| message.headers.get(name).map(one_line).filter(|text| !text.is_empty());
    let list = |name: &str| header(name).map(|text| address::parse_list(&text)).transpose();
    let mut builder = lettre::Message::builder().date_now().message_id(None);
    let to = list("To")?.filter(|to| !to.is_empty()).unwrap_or(defaults.to);
    for mailbox in to {
        builder = builder.to(mailbox);
    }
    for mailbox in list("Cc")?.unwrap_or_default() {
        builder = builder.cc(mailbox);
    }
    for mailbox in list("Bcc")?.unwrap_or_default().into_iter().chain(defaults.bcc) {
        builder = builder.bcc(mailbox);
    }
    let from = header("From").map(|text| address::parse(&text)).transpose()?.or(defaults.from);
    let from = from.ok_or("the mail has no sender: neither the header `From` nor the parameter `mail.smtp.from`")?;
    builder = builder.from(from);
    let action = message.headers.get("SOAPAction").map(|action| one_line(action.trim_matches('"')));
    let action = action.unwrap_or_default();
    builder = builder.subject(header("Subject").unwrap_or_else(|| format!("SOAPAction: {action}")));
    for (name, value) in message.headers.iter() {
        let (name, value) = (String::from_utf8_lossy(name), String::from_utf8_lossy(value));
        if NOT_SENT.iter().any(|known| known.eq_ignore_ascii_case(&name)) {
            continue;
        }
        if let Ok(name) = HeaderName::new_from_ascii(name.into_owned()) {
            builder = builder.raw_header(HeaderValue::new(name, one_line(&value)));
        }
    }
    let kind = message.headers.get("Content-Type").unwrap_or("text/plain; charset=UTF-8");
    let content_type = ContentType::parse(kind).map_err(|_| format!("`{kind}` is not a content type"))?;
    let body = body(kind, payload);
    let built = match format(message)? {
        Format::Text => builder.singlepart(part(content_type, body)),
        Format::Multipart => {
            builder.multipart(MultiPart::mixed().singlepart(text(message)).singlepart(part(content_type, body)))
        }
        Format::Attachment => {
            let name = directive(message, "transport.mail.AttachmentFile").unwrap_or_else(|| FILE_NAME.to_owned());
            let attachment = Attachment::new(one_line(&name)).body(body, content_type);
            builder.multipart(MultiPart::mixed().singlepart(text(message)).singlepart(attachment))
        }
    };
    built.map_err(|error| format!("no mail can be made of the message: {error}"))
}

fn format(message: &Message) -> Result<Format, String> {
    match directive(message, "transport.mail.Format").as_deref() {
        None => Ok(Format::Text),
        Some(word) if word.eq_ignore_ascii_case("Text") => Ok(Format::Text),
        Some(word) if word.eq_ignore_ascii_case("Multipart") => Ok(Format::Multipart),
        Some(word) if word.eq_ignore_ascii_case("Attachment") => Ok(Format::Attachment),
        Some(other) => {
            Err(format!("`transport.mail.Format` is `{other}`, which is none of `Text`, `Multipart` and `Attachment`"))
        }
    }
}

fn text(message: &Message) -> SinglePart {
    let text = directive(message, "transport.mail.bodyWhenAttached").or_else(|| directive(message, "bodyWhenAttached"));
    SinglePart::plain(text.unwrap_or_else(|| TEXT_OF_ATTACHMENT.to_owned()))
}

fn part(content_type: ContentType, body: Body) -> SinglePart {
    SinglePart::builder().header(content_type).body(body)
}

/// Text is quoted-printable or plain, and can be read in any mail program; anything else is base64.
fn body(content_type: &str, payload: Vec<u8>) -> Body {
    let kind = content_type.trim().to_ascii_lowercase();
    let is_text = ["text/", "application/xml", "application/soap+xml", "application/json"];
    match String::from_utf8(payload) {
        Ok(text) if is_text.iter().any(|known| kind.starts_with(known)) => match text.is_ascii() {
            true => Body::new(text),
            false => Body::new_with_encoding(text, ContentTransferEncoding::QuotedPrintable).unwrap_or_else(Body::new),
        },
        Ok(text) => Body::new(text.into_bytes()),
        Err(error) => Body::new(error.into_bytes()),
    }
}

/// A header has one line: what a message holds must not begin another header.
fn one_line(text: &str) -> String {
    text.replace(|letter: char| letter.is_control(), " ").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use penstock_message::Value;

    use super::*;

    fn defaults() -> Defaults {
        Defaults {
            to: address::parse_list("receiver@example.com").unwrap(),
            from: Some(address::parse("penstock@example.com").unwrap()),
            bcc: address::parse_list("archive@example.com").unwrap(),
        }
    }

    fn recipients(mail: &lettre::Message) -> Vec<String> {
        mail.envelope().to().iter().map(ToString::to_string).collect()
    }

    fn made(message: &Message, payload: &str) -> (Vec<String>, String) {
        let mail = mail(message, payload.into(), defaults()).unwrap();
        (recipients(&mail), String::from_utf8(mail.formatted()).unwrap())
    }

    #[test]
    fn headers_of_the_message_are_headers_of_the_mail() {
        let mut message = Message::default();
        for (name, value) in [
            ("Content-Type", "text/plain; charset=UTF-8"),
            ("Subject", "Bestellung für alle"),
            ("To", "a@example.com, B <b@example.com>"),
            ("Cc", "c@example.com"),
            ("Reply-To", "r@example.com"),
            ("X-Order", "7\r\nX-Evil: 1"),
            ("Authorization", "Basic secret"),
            ("Host", "localhost"),
        ] {
            message.headers.set(name, value);
        }
        let (to, text) = made(&message, "grün");
        assert_eq!(to, ["a@example.com", "b@example.com", "c@example.com", "archive@example.com"]);
        for line in
            ["To: a@example.com, B <b@example.com>", "Cc: c@example.com", "Reply-To: r@example.com", "X-Order: 7"]
        {
            assert!(text.contains(line), "{line} in {text}");
        }
        assert!(text.contains("Subject: Bestellung =?utf-8?b?"), "{text}");
        assert!(text.contains("quoted-printable") && text.contains("gr=C3=BCn"), "{text}");
        for absent in ["secret", "Host:", "archive@", "\r\nX-Evil"] {
            assert!(!text.contains(absent), "{absent} in {text}");
        }
    }

    #[test]
    fn a_message_without_headers_has_the_addresses_of_the_sender() {
        let mut message = Message::default();
        message.headers.set("SOAPAction", "\"urn:order\"");
        let (to, text) = made(&message, "x");
        assert_eq!(to, ["receiver@example.com", "archive@example.com"]);
        assert!(
            text.contains("From: penstock@example.com") && text.contains("Subject: SOAPAction: urn:order"),
            "{text}"
        );
        let nobody = Defaults { from: None, ..defaults() };
        assert!(mail(&message, Vec::new(), nobody).unwrap_err().contains("mail.smtp.from"));
        let nowhere = Defaults { to: Vec::new(), bcc: Vec::new(), ..defaults() };
        assert!(mail(&message, Vec::new(), nowhere).is_err());
    }

    #[test]
    fn a_payload_can_be_an_attachment() {
        let mut message = Message::default();
        message.headers.set("Content-Type", "application/xml");
        message.axis2.set("transport.mail.Format", Value::string("Attachment"));
        message.axis2.set("transport.mail.AttachmentFile", Value::string("order.xml"));
        let (_, text) = made(&message, "<a/>");
        for expected in ["multipart/mixed", TEXT_OF_ATTACHMENT, "filename=\"order.xml\"", "<a/>"] {
            assert!(text.contains(expected), "{expected} in {text}");
        }
        message.axis2.set("transport.mail.Format", Value::string("Multipart"));
        message.axis2.set("bodyWhenAttached", Value::string("see below"));
        let (_, text) = made(&message, "<a/>");
        assert!(text.contains("see below") && !text.contains("attachment;"), "{text}");
        message.axis2.set("transport.mail.Format", Value::string("Fax"));
        assert!(mail(&message, Vec::new(), defaults()).unwrap_err().contains("`Fax`"));
    }
}
