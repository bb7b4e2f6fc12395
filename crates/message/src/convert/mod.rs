//! Builders and formatters: between the bytes of a body and its forms.
//!
//! Reading is in `build`, writing in `format`; the rest is one file per media type that needs one.

mod build;
mod charset;
mod encoding;
mod form;
mod format;
mod multipart;
mod peek;
mod soap;
#[cfg(test)]
mod tests;

use penstock_json::mapping;
use penstock_xml::Limits;

pub use format::{SOAP_DECLARATION, write_fragment};
pub use peek::RawXml;

use crate::{Body, Form, Headers};

/// The namespace of the elements that stand for text and bytes.
const PAYLOAD_NAMESPACE: &str = "http://ws.apache.org/commons/ns/payload";

/// What an encoded body may unfold to. As much as a transport buffers at most, so that an encoding is no way around it.
const DECODED_BYTES_MAX: usize = 64 << 20;

/// Nodes of a tree, or values of JSON. A body of 64 MiB has fewer unless nearly all of it is markup; ten million take some
/// hundreds of megabytes and a second or two.
const NODES_MAX: usize = 10_000_000;

/// How bodies are converted: limits and the flags of the configuration.
#[derive(Debug, Clone)]
pub struct Conversion {
    /// The mapping between JSON and XML.
    pub mapping: mapping::Options,
    /// What an XML body may cost.
    pub xml_limits: Limits,
    /// Values a JSON body may have. Those of an XML body are among `xml_limits`.
    pub json_values_max: usize,
    /// Bytes a body with a Content-Encoding may unfold to.
    pub decoded_bytes_max: usize,
}

impl Default for Conversion {
    fn default() -> Conversion {
        Conversion {
            mapping: mapping::Options::default(),
            xml_limits: Limits { nodes_max: NODES_MAX, ..Limits::DEFAULT },
            json_values_max: NODES_MAX,
            decoded_bytes_max: DECODED_BYTES_MAX,
        }
    }
}

/// What goes out: the bytes (or the untouched stream) and the Content-Type to say with them.
#[derive(Debug)]
pub struct Output {
    /// `Empty`, `Bytes` or `Stream`.
    pub form: Form,
    /// The Content-Type; `None` when the message's own header stays as it is.
    pub content_type: Option<String>,
    /// Whether a Content-Encoding was taken off the body.
    pub decoded: bool,
    /// Whether the body is a SOAP fault; it goes to a client with status 500.
    pub soap_fault: bool,
    /// The fields that follow the body, when it is what arrived.
    pub trailers: Option<Box<Headers>>,
}

impl Output {
    /// The body that goes out.
    #[inline]
    pub fn into_body(self) -> Body {
        Body::followed_by(self.form, self.trailers.map(|trailers| *trailers))
    }
}

/// In which shape a body goes out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Shape {
    /// As its media type says (`messageType`, else Content-Type).
    #[default]
    Same,
    /// A SOAP 1.1 envelope.
    Soap11,
    /// A SOAP 1.2 envelope.
    Soap12,
    /// The payload without an envelope, as `application/xml`.
    Pox,
    /// To a client: as its media type says; a SOAP fault goes to a client that did not speak SOAP
    /// as `<Exception>`. To such a client `text/xml` is the payload without an envelope.
    Reply,
}
