//! A file as a message.

use std::time::UNIX_EPOCH;

use penstock_message::{Body, MediaType, Message, Method, Value};
use penstock_xml::root_name;

use super::settings::Settings;
use super::system::{Entry, folder_of};

/// So much of a file is searched for its root element.
const ROOT_BYTES_MAX: usize = 64 * 1024;

/// Makes a message of a file. The error says why its content is not what its type says.
pub(super) fn message_of(entry: &Entry, body: Body, settings: &Settings) -> Result<Message, String> {
    let mut message = Message { method: Method::Post, ..Message::default() };
    message.headers.set("Content-Type", content_type(entry, &body, settings)?);
    let fields = [
        ("FILE_PATH", entry.path.as_str()),
        ("FILE_NAME", entry.name.as_str()),
        ("FILE_URI", &format!("{}{}", settings.location.system, entry.path)),
        ("RELATIVE_PATH", relative_path(entry, settings)),
    ];
    for (name, value) in fields {
        // A header has one line.
        message.headers.set(name, value.replace(|letter: char| letter.is_control(), "?"));
    }
    message.headers.set("FILE_LENGTH", entry.size.to_string());
    let modified = entry.modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    message.headers.set("LAST_MODIFIED", modified.unwrap_or_default().as_millis().to_string());
    if let Some(name) = &settings.reply_name {
        message.axis2.set(super::sender::REPLY_FILE_NAME, Value::string(name.clone()));
    }
    message.body = body;
    Ok(message)
}

fn relative_path<'e>(entry: &'e Entry, settings: &Settings) -> &'e str {
    let below = entry.path.strip_prefix(settings.location.path.as_str()).unwrap_or(&entry.path);
    if settings.location.path == folder_of(&entry.path) { &entry.name } else { below.trim_start_matches('/') }
}

/// The type that a file is read as. `text/xml` is SOAP, as in Micro Integrator; so is a file of a type that has no builder,
/// when it has an envelope. Without one it stays bytes.
fn content_type(entry: &Entry, body: &Body, settings: &Settings) -> Result<String, String> {
    let ending = entry.name.rsplit_once('.').map_or("", |(_, ending)| ending).to_ascii_lowercase();
    let given = match (&settings.content_type, ending.as_str()) {
        (Some(given), _) => given.to_string(),
        (None, "xml") => "text/xml".to_owned(),
        (None, "txt") => "text/plain".to_owned(),
        (None, _) => "application/octet-stream".to_owned(),
    };
    let has_envelope = || {
        let bytes = body.available();
        root_name(bytes.get(..ROOT_BYTES_MAX).unwrap_or(&bytes)).is_some_and(|root| root == "Envelope")
    };
    match MediaType::parse(&given) {
        MediaType::TextXml | MediaType::SoapXml if !body.is_empty() && !has_envelope() => Err(format!(
            "the content type is `{given}` and the file has no SOAP envelope; plain XML is `application/xml`"
        )),
        MediaType::Binary if has_envelope() => Ok("text/xml".to_owned()),
        _ => Ok(given),
    }
}
