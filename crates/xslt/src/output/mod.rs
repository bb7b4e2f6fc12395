//! What `xsl:output` says, and the writer that follows it.

mod encode;
pub(crate) mod escape;
mod html;
mod namespaces;
mod properties;
mod writer;

use std::borrow::Cow;

pub(crate) use encode::{Charset, encode};
pub(crate) use writer::{Buffers, Writer};

/// The output methods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// XML.
    Xml,
    /// XHTML: XML that HTML browsers read.
    Xhtml,
    /// HTML 4: no end tags for empty elements, no escaping in scripts.
    Html,
    /// The text of the result only.
    Text,
}

/// What the caller needs to know about a result to send it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputInfo {
    /// The method that was used: the declared one, or the one the result suggested.
    pub method: Method,
    /// The declared media type, or the default of the method.
    pub media_type: Cow<'static, str>,
    /// The encoding the bytes are in.
    pub encoding: Cow<'static, str>,
}

/// The merged `xsl:output` declarations; `None` is "not said".
#[derive(Debug, Clone, Default)]
pub(crate) struct OutputProperties {
    pub method: Option<Method>,
    pub version: Option<Box<str>>,
    pub encoding: Option<Box<str>>,
    pub omit_xml_declaration: Option<bool>,
    pub standalone: Option<bool>,
    pub doctype_public: Option<Box<str>>,
    pub doctype_system: Option<Box<str>>,
    pub indent: Option<bool>,
    pub media_type: Option<Box<str>>,
    pub include_content_type: Option<bool>,
    /// Namespace and local name.
    pub cdata_section_elements: Vec<(Box<str>, Box<str>)>,
    pub character_map: Vec<(char, Box<str>)>,
    /// Whether the rules of XSLT 2.0 choose the method.
    pub version_two: bool,
    pub byte_order_mark: Option<bool>,
    pub escape_uri_attributes: Option<bool>,
    pub undeclare_prefixes: Option<bool>,
    pub normalization_form: Option<Box<str>>,
}

impl OutputProperties {
    /// What to report to the caller once the method is known.
    pub fn info(&self, method: Method) -> OutputInfo {
        let usual = match method {
            Method::Xml => "application/xml",
            Method::Html | Method::Xhtml => "text/html",
            Method::Text => "text/plain",
        };
        OutputInfo {
            method,
            media_type: self.media_type.as_deref().map_or(Cow::Borrowed(usual), |said| said.to_owned().into()),
            encoding: match Charset::from_name(self.encoding.as_deref()) {
                Charset::Utf8 => Cow::Borrowed("UTF-8"),
                other => other.name().to_owned().into(),
            },
        }
    }
}
