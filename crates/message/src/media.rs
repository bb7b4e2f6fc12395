//! Media types: how the bytes of a body are to be read.

/// What a Content-Type says about a body, as far as anybody acts on it.
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
    /// Everything else: bytes nobody looks into.
    Binary,
}

impl MediaType {
    /// Classifies a Content-Type value; parameters are ignored.
    pub fn of(content_type: &str) -> MediaType {
        let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        match essence.as_str() {
            "text/xml" => MediaType::TextXml,
            "application/soap+xml" => MediaType::SoapXml,
            "application/xml" => MediaType::Xml,
            "application/json" | "text/json" | "application/json/badgerfish" => MediaType::Json,
            "application/x-www-form-urlencoded" => MediaType::Form,
            "multipart/form-data" => MediaType::MultipartForm,
            other if other.ends_with("+json") => MediaType::Json,
            other if other.ends_with("+xml") => MediaType::Xml,
            other if other.starts_with("multipart/") => MediaType::Multipart,
            other if other.starts_with("text/") => MediaType::Text,
            _ => MediaType::Binary,
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
            assert_eq!(MediaType::of(text), expected, "{text}");
        }
        assert_eq!(MediaType::charset("text/xml; charset=\"utf-16\""), Some("utf-16"));
    }
}
