//! Media types: how the bytes of a body are to be read.

/// The types of a Content-Type that are treated differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MediaType {
    /// `text/xml`: a SOAP 1.1 envelope, or plain XML when the root is something else.
    TextXml,
    /// `application/soap+xml`: a SOAP 1.2 envelope.
    SoapXml,
    /// `application/xml`, `*+xml`: plain XML.
    Xml,
    /// `application/json`, `text/json`, `*+json`.
    Json,
    /// `application/x-www-form-urlencoded`.
    Form,
    /// `multipart/form-data`.
    MultipartForm,
    /// `multipart/related` and other multiparts.
    Multipart,
    /// `text/plain` and other text.
    Text,
    /// Everything else: opaque bytes.
    Binary,
}

impl MediaType {
    /// Classifies a Content-Type value; parameters are ignored.
    pub fn parse(content_type: &str) -> MediaType {
        const EXACT: [(&str, MediaType); 7] = [
            ("text/xml", MediaType::TextXml),
            ("application/soap+xml", MediaType::SoapXml),
            ("application/xml", MediaType::Xml),
            ("application/json", MediaType::Json),
            ("text/json", MediaType::Json),
            ("application/json/badgerfish", MediaType::Json),
            ("application/x-www-form-urlencoded", MediaType::Form),
        ];
        let end = content_type.bytes().position(|byte| byte == b';').unwrap_or(content_type.len());
        let essence = content_type[..end].trim();
        // Each message is classified, and most senders write lower case.
        match essence {
            "text/xml" => return MediaType::TextXml,
            "application/xml" => return MediaType::Xml,
            "application/json" => return MediaType::Json,
            _ => {}
        }
        if let Some((_, media)) = EXACT.iter().find(|(name, _)| essence.eq_ignore_ascii_case(name)) {
            return *media;
        }
        let starts = |prefix: &str| essence.get(..prefix.len()).is_some_and(|part| part.eq_ignore_ascii_case(prefix));
        let ends = |suffix: &str| {
            let part = essence.len().checked_sub(suffix.len()).and_then(|at| essence.get(at..));
            part.is_some_and(|part| part.eq_ignore_ascii_case(suffix))
        };
        if ends("+json") {
            MediaType::Json
        } else if ends("+xml") {
            MediaType::Xml
        } else if essence.eq_ignore_ascii_case("multipart/form-data") {
            MediaType::MultipartForm
        } else if starts("multipart/") {
            MediaType::Multipart
        } else if starts("text/") {
            MediaType::Text
        } else {
            MediaType::Binary
        }
    }

    /// The `charset` parameter, without quotes.
    pub fn charset(content_type: &str) -> Option<&str> {
        MediaType::parameter(content_type, "charset")
    }

    /// A parameter's value, without quotes.
    pub fn parameter<'a>(content_type: &'a str, name: &str) -> Option<&'a str> {
        content_type.split(';').skip(1).find_map(|parameter| {
            let (key, value) = parameter.split_once('=')?;
            key.trim().eq_ignore_ascii_case(name).then(|| value.trim().trim_matches('"'))
        })
    }

    /// Whether a charset belongs to the type.
    pub fn has_charset(self) -> bool {
        !matches!(self, MediaType::Binary | MediaType::Form | MediaType::Multipart | MediaType::MultipartForm)
    }

    /// Whether the body is read as an XML tree.
    pub fn is_xml(self) -> bool {
        matches!(self, MediaType::TextXml | MediaType::SoapXml | MediaType::Xml)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classifies_by_essence_and_suffix() {
        for (text, expected) in [
            ("text/xml; charset=UTF-8", MediaType::TextXml),
            ("Application/SOAP+XML;action=\"x\"", MediaType::SoapXml),
            ("application/atom+xml", MediaType::Xml),
            ("application/vnd.api+json", MediaType::Json),
            ("multipart/form-data; boundary=x", MediaType::MultipartForm),
            ("text/csv", MediaType::Text),
            ("image/png", MediaType::Binary),
            ("", MediaType::Binary),
        ] {
            assert_eq!(MediaType::parse(text), expected, "{text}");
        }
        assert_eq!(MediaType::charset("text/xml; charset=\"utf-16\""), Some("utf-16"));
    }
}
