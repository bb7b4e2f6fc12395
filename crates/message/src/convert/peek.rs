//! Looking at an XML body without parsing it into a tree.

use super::build::root_name;
use crate::{Available, Form, MediaType, Message};

/// The bytes of an XML body as they are.
#[derive(Debug)]
pub struct RawXml<'m> {
    /// What has arrived.
    pub bytes: Available<'m>,
    /// Whether that is all of it.
    pub complete: bool,
    /// Whether the outermost element is an `Envelope`. Only known once its tag has begun.
    pub envelope: Option<bool>,
}

impl Message {
    /// The bytes of the body when it is unparsed XML without a content encoding.
    pub fn raw_xml(&self) -> Option<RawXml<'_>> {
        if !matches!(self.body.form(), Form::Bytes(_) | Form::Stream { .. }) {
            return None;
        }
        let media = self.source_media();
        if self.body.view_xml().is_some() || !media.is_xml() || self.headers.contains("Content-Encoding") {
            return None;
        }
        let plain_charset = self.source_charset().is_none_or(|charset| charset.eq_ignore_ascii_case("utf-8"));
        let bytes = self.body.available();
        let envelope = match media {
            // `application/xml` is a payload even when its root is called Envelope.
            MediaType::Xml => Some(false),
            _ => root_name(&bytes).map(|name| name == "Envelope"),
        };
        plain_charset.then_some(RawXml { bytes, complete: self.body.is_all_available(), envelope })
    }
}
