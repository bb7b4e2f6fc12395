//! Bodies of any media type, read and written in every way.

use penstock_message::{Body, Conversion, Message, Shape};

/// Content types and what their bodies are made of.
pub const DICTIONARY: &[&str] = &[
    "application/json\n",
    "text/xml\n",
    "application/soap+xml; charset=utf-16\n",
    "application/x-www-form-urlencoded\n",
    "multipart/form-data; boundary=x\n",
    "--x\r\n",
    "--x--",
    "Content-Disposition: form-data; name=\"a\"\r\n\r\n",
    "%41",
    "&",
    "=",
    "<s:Envelope xmlns:s=\"http://schemas.xmlsoap.org/soap/envelope/\">",
    "<s:Body>",
    "<s:Fault>",
    "</s:Body></s:Envelope>",
];

/// The first line is a Content-Type, the rest the body.
pub fn body(data: &[u8]) {
    let split = data.iter().position(|byte| *byte == b'\n').unwrap_or(0);
    let (content_type, bytes) = data.split_at(split);
    let bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes).to_vec();
    let conversion = Conversion::default();
    let message = || {
        let mut message = Message { body: Body::bytes(bytes.clone()), ..Message::default() };
        message.headers.set("Content-Type", content_type);
        message
    };
    let _ =
        (message().json(&conversion).is_ok(), message().xml(&conversion).is_ok(), message().text(&conversion).is_ok());
    for shape in [Shape::Same, Shape::Soap11, Shape::Soap12, Shape::Pox, Shape::Reply] {
        let _ = message().output(&conversion, shape).is_ok();
    }
    for kind in
        ["application/json", "text/xml", "application/x-www-form-urlencoded", "multipart/form-data", "text/plain"]
    {
        let mut message = message();
        message.set_message_type(kind);
        let _ = message.output(&conversion, Shape::Same).is_ok();
    }
}
