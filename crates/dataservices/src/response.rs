//! What a request gets: its format, and the writer of results.

use std::sync::Arc;

use penstock_message::MediaType;

use crate::model::{DEFAULT_NAMESPACE, Mapping};
use crate::node::{Node, write_json_text, write_members};
use crate::stream::Buffer;

/// In which format a response is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseFormat {
    /// An envelope of SOAP 1.1.
    Soap11,
    /// An envelope of SOAP 1.2.
    Soap12,
    /// XML without an envelope.
    Xml,
    /// JSON.
    Json,
}

impl ResponseFormat {
    /// The format for an Accept field, a Content-Type and whether the request is an envelope.
    pub fn choose(accept: Option<&str>, media: Option<MediaType>, is_envelope: bool) -> ResponseFormat {
        let accepted = accept.unwrap_or_default().split(',').map(|part| part.split(';').next().unwrap_or(part).trim());
        let mut accepts_json = accepted.clone().any(|part| part.eq_ignore_ascii_case("application/json"));
        accepts_json |= accepted.clone().any(|part| part.eq_ignore_ascii_case("text/json"));
        let accepts_xml = accepted.clone().any(|part| MediaType::parse(part).is_xml());
        match media {
            _ if accepts_json => ResponseFormat::Json,
            Some(MediaType::SoapXml) if is_envelope => ResponseFormat::Soap12,
            _ if is_envelope => ResponseFormat::Soap11,
            Some(MediaType::Json) if !accepts_xml => ResponseFormat::Json,
            _ => ResponseFormat::Xml,
        }
    }

    /// The Content-Type.
    pub fn content_type(self) -> &'static str {
        match self {
            ResponseFormat::Soap11 => "text/xml; charset=UTF-8",
            ResponseFormat::Soap12 => "application/soap+xml; charset=UTF-8",
            ResponseFormat::Xml => "application/xml; charset=UTF-8",
            ResponseFormat::Json => "application/json; charset=UTF-8",
        }
    }

    /// What stands before the result.
    pub fn opening(self) -> &'static str {
        match self {
            ResponseFormat::Soap11 => {
                "<?xml version='1.0' encoding='UTF-8'?>\
                 <soapenv:Envelope xmlns:soapenv=\"http://schemas.xmlsoap.org/soap/envelope/\"><soapenv:Body>"
            }
            ResponseFormat::Soap12 => {
                "<?xml version='1.0' encoding='UTF-8'?>\
                 <soapenv:Envelope xmlns:soapenv=\"http://www.w3.org/2003/05/soap-envelope\"><soapenv:Body>"
            }
            ResponseFormat::Xml | ResponseFormat::Json => "",
        }
    }

    /// What stands after it.
    pub fn closing(self) -> &'static str {
        match self {
            ResponseFormat::Soap11 | ResponseFormat::Soap12 => "</soapenv:Body></soapenv:Envelope>",
            ResponseFormat::Xml | ResponseFormat::Json => "",
        }
    }
}

/// Writes a result as its rows come.
pub struct Writer {
    /// Where bytes wait to be sent.
    pub buffer: Buffer,
    format: ResponseFormat,
    /// Whether the result may be sent while it is made.
    pub streams: bool,
    state: State,
    /// The default namespace around the rows.
    namespace: Arc<str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The result has no row yet.
    NoRows,
    /// Rows were written.
    Rows,
}

impl Writer {
    /// A writer that has written nothing.
    pub fn new(buffer: Buffer, format: ResponseFormat, streams: bool) -> Writer {
        Writer { buffer, format, streams, state: State::NoRows, namespace: "".into() }
    }

    fn is_json(&self) -> bool {
        self.format == ResponseFormat::Json
    }

    /// Begins the response, inside the element of a request box if it is one.
    pub fn begin(&mut self, is_box: bool) {
        let (format, is_json) = (self.format, self.is_json());
        self.namespace = if is_box { DEFAULT_NAMESPACE.into() } else { "".into() };
        self.buffer.write(|out| {
            out.extend_from_slice(format.opening().as_bytes());
            match (is_box, is_json) {
                (true, true) => out.extend_from_slice(b"{\"DATA_SERVICE_REQUEST_BOX_RESPONSE\":"),
                (true, false) => out.extend_from_slice(
                    format!("<DATA_SERVICE_REQUEST_BOX_RESPONSE xmlns=\"{DEFAULT_NAMESPACE}\">").as_bytes(),
                ),
                (false, _) => {}
            }
        });
    }

    /// Ends it.
    pub fn end(&mut self, is_box: bool) {
        let (format, is_json) = (self.format, self.is_json());
        self.buffer.write(|out| {
            match (is_box, is_json) {
                (true, true) => out.push(b'}'),
                (true, false) => out.extend_from_slice(b"</DATA_SERVICE_REQUEST_BOX_RESPONSE>"),
                (false, _) => {}
            }
            out.extend_from_slice(format.closing().as_bytes());
        });
    }

    /// Begins the result of a query.
    pub fn open(&mut self, mapping: &Mapping, namespace: &Arc<str>) {
        let inherited = self.namespace.clone();
        self.namespace = mapping.namespace.clone().unwrap_or_else(|| namespace.clone());
        let (is_json, namespace) = (self.is_json(), self.namespace.clone());
        self.state = State::NoRows;
        self.buffer.write(|out| {
            if is_json {
                out.push(b'{');
                if !mapping.element.is_empty() {
                    write_json_text(out, &mapping.element);
                    out.extend_from_slice(b":{");
                }
            } else if !mapping.element.is_empty() {
                out.push(b'<');
                out.extend_from_slice(mapping.element.as_bytes());
                if *namespace != *inherited {
                    out.extend_from_slice(b" xmlns=\"");
                    penstock_xml::escape_attribute(out, &namespace);
                    out.push(b'"');
                }
                out.push(b'>');
            }
        });
    }

    /// Writes a row that has an element of its own.
    pub fn row(&mut self, row: &Node) {
        let (is_json, state, namespace) = (self.is_json(), self.state, self.namespace.clone());
        self.buffer.write(|out| match (is_json, state) {
            (false, _) => row.write_xml(out, &namespace),
            (true, State::NoRows) => {
                write_json_text(out, &row.name);
                out.extend_from_slice(b":[");
                row.write_json(out);
            }
            (true, State::Rows) => {
                out.push(b',');
                row.write_json(out);
            }
        });
        self.state = State::Rows;
    }

    /// Writes rows that have no element of their own.
    pub fn contents(&mut self, children: &[Node]) {
        let (is_json, namespace) = (self.is_json(), self.namespace.clone());
        self.buffer.write(|out| match is_json {
            true => write_members(out, children, true),
            false => children.iter().for_each(|child| child.write_xml(out, &namespace)),
        });
    }

    /// Ends the result of a query.
    pub fn close(&mut self, mapping: &Mapping) {
        let (is_json, state) = (self.is_json(), self.state);
        self.buffer.write(|out| {
            if is_json {
                if state == State::Rows {
                    out.push(b']');
                }
                out.extend_from_slice(if mapping.element.is_empty() { b"}" } else { b"}}" });
            } else if !mapping.element.is_empty() {
                out.extend_from_slice(b"</");
                out.extend_from_slice(mapping.element.as_bytes());
                out.push(b'>');
            }
        });
    }

    /// Acknowledges a request without a result.
    pub fn status(&mut self) {
        let is_json = self.is_json();
        self.buffer.write(|out| match is_json {
            true => out.extend_from_slice(b"{\"REQUEST_STATUS\":\"SUCCESSFUL\"}"),
            false => out.extend_from_slice(
                format!(
                    "<axis2ns1:REQUEST_STATUS xmlns:axis2ns1=\"{DEFAULT_NAMESPACE}\">SUCCESSFUL</axis2ns1:REQUEST_STATUS>"
                )
                .as_bytes(),
            ),
        });
    }

    /// The result of a box whose last request returns nothing.
    pub fn nothing(&mut self) {
        if self.is_json() {
            self.buffer.write(|out| out.extend_from_slice(b"{}"));
        }
    }

    /// Waits until what was written is sent, when it is much and the result may be sent while it is made.
    pub async fn pause(&self) {
        if self.streams && self.buffer.is_full() {
            self.buffer.taken().await;
        }
    }
}
