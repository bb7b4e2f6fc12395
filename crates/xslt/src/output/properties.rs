//! Output properties by name, as `xsl:output` and `xsl:result-document` give them.

use super::{Charset, Method, OutputProperties};
use crate::read::values::{AttributeValue, yes_or_no};

/// Versions of XML and HTML that are written.
const VERSIONS: &[&str] = &["1.0", "1.1", "3.2", "4.0", "4.01", "4", "5.0", "5"];

/// An error: its code, and what is wrong.
pub(crate) type PropertyError = (&'static str, String);

impl OutputProperties {
    /// Sets a property from the text of an attribute. Lists of names are not set here: they need namespaces.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), PropertyError> {
        let value = value.trim();
        if let Some((accepted, _)) = AttributeValue::find("output", name)
            && !accepted.accepts(value)
        {
            return Err(("XTSE0020", format!("`{name}` is {}, not `{value}`", accepted.describe())));
        }
        let text = || Some(value.into());
        match name {
            "method" => self.method = Some(method(value)?),
            "version" => self.version = text(),
            "encoding" => self.encoding = text(),
            "doctype-public" => self.doctype_public = text(),
            "doctype-system" => self.doctype_system = text(),
            "media-type" => self.media_type = text(),
            "normalization-form" => self.normalization_form = text(),
            "omit-xml-declaration" => self.omit_xml_declaration = yes_or_no(value),
            "standalone" => self.standalone = yes_or_no(value),
            "indent" => self.indent = yes_or_no(value),
            "include-content-type" => self.include_content_type = yes_or_no(value),
            "byte-order-mark" => self.byte_order_mark = yes_or_no(value),
            "escape-uri-attributes" => self.escape_uri_attributes = yes_or_no(value),
            "undeclare-prefixes" => self.undeclare_prefixes = yes_or_no(value),
            _ => {}
        }
        Ok(())
    }

    /// Whether the properties can be followed, all together (XSLT and XQuery Serialization §3).
    pub fn check(&self) -> Result<(), PropertyError> {
        if let Some(encoding) = self.encoding.as_deref()
            && !Charset::is_known(encoding)
        {
            return Err(("SESU0007", format!("the encoding `{encoding}` is not supported")));
        }
        let version = self.version.as_deref();
        let xml = matches!(self.method, None | Some(Method::Xml | Method::Xhtml));
        if let Some(version) = version
            && self.method != Some(Method::Text)
            && (!VERSIONS.contains(&version) || (self.method == Some(Method::Xml) && !version.starts_with("1.")))
        {
            return Err(("SESU0013", format!("the version `{version}` is not supported")));
        }
        if let Some(form) = self.normalization_form.as_deref()
            && !matches!(form, "NFC" | "NFD" | "NFKC" | "NFKD" | "none")
        {
            return Err(("SESU0011", format!("the normalization form `{form}` is not supported")));
        }
        let undeclared = xml && self.omit_xml_declaration == Some(true);
        let newer = version.is_some_and(|version| version != "1.0") && self.doctype_system.is_some();
        if undeclared && (self.standalone.is_some() || newer) {
            return Err(("SEPM0009", "the XML declaration is omitted, but `standalone` or `version` needs it".into()));
        }
        if xml && self.undeclare_prefixes == Some(true) && version.is_none_or(|version| version == "1.0") {
            return Err(("SEPM0010", "XML 1.0 cannot undeclare prefixes".into()));
        }
        Ok(())
    }
}

fn method(value: &str) -> Result<Method, PropertyError> {
    match value {
        "xml" => Ok(Method::Xml),
        "xhtml" => Ok(Method::Xhtml),
        "html" => Ok(Method::Html),
        "text" => Ok(Method::Text),
        other => {
            let message = format!("unknown output method `{other}`; there are `xml`, `xhtml`, `html` and `text`");
            Err(("XTSE1570", message))
        }
    }
}
