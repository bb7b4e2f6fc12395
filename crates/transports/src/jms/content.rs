//! The content type of a received message: rules in their order, of which the first that fits counts.

use penstock_xml::{Document, ParseOptions};

use super::message::{Facts, MessageType};

/// One rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Rule {
    /// The value of a property of the message.
    Property(String),
    /// `JMSType`, when it is a media type.
    Type,
    /// What the sender put into the field of AMQP 1.0.
    Field,
    /// For messages of bytes.
    Bytes(String),
    /// For messages of text.
    Text(String),
    /// For all messages.
    All(String),
}

/// What a message is that no rule fits.
const FALLBACK: &str = "text/plain";

/// The content type of a message.
pub(super) fn content_type(rules: &[Rule], facts: &Facts) -> String {
    let found = rules.iter().find_map(|rule| match rule {
        Rule::Property(name) => {
            facts.properties.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
        }
        Rule::Type => facts.jms_type.clone().filter(|text| text.contains('/')),
        Rule::Field => facts.content_type.clone(),
        Rule::Bytes(text) => (facts.message_type == MessageType::Bytes).then(|| text.clone()),
        Rule::Text(text) => (facts.message_type == MessageType::Text).then(|| text.clone()),
        Rule::All(text) => Some(text.clone()),
    });
    match found {
        // Entries of a map have become elements, whatever the sender calls them.
        _ if facts.message_type == MessageType::Map => "application/xml".to_owned(),
        found => found.unwrap_or_else(|| FALLBACK.to_owned()),
    }
}

/// The value of `transport.jms.ContentType`: a content type, or
/// `<rules><jmsProperty/><bytesMessage/><textMessage/><default/></rules>`.
pub(super) fn parse(text: &str) -> Result<Vec<Rule>, String> {
    if !text.starts_with('<') {
        return Ok(vec![Rule::All(text.to_owned())]);
    }
    let wrong = |cause: &dyn std::fmt::Display| format!("the rules of `transport.jms.ContentType` are wrong: {cause}");
    let document = Document::parse(text.to_owned(), &ParseOptions::default()).map_err(|error| wrong(&error))?;
    let root = document.root_element().ok_or_else(|| wrong(&"there is no element"))?;
    let mut rules = Vec::new();
    for child in document.children(root).filter(|child| document.is_element(*child)) {
        let value = document.string_value(child).trim().to_owned();
        rules.push(match document.local_name(child) {
            "jmsProperty" => Rule::Property(value),
            "bytesMessage" => Rule::Bytes(value),
            "textMessage" => Rule::Text(value),
            "default" => Rule::All(value),
            other => return Err(wrong(&format_args!("there is no rule `{other}`"))),
        });
    }
    Ok(rules)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_rule_that_fits_counts() {
        let rules = parse(
            "<rules xmlns='urn:x'><jmsProperty>kind</jmsProperty><bytesMessage>application/octet-stream</bytesMessage>\
             <default>application/xml</default></rules>",
        )
        .unwrap();
        let mut facts = Facts { message_type: MessageType::Text, ..Facts::default() };
        assert_eq!(content_type(&rules, &facts), "application/xml");
        facts.message_type = MessageType::Bytes;
        assert_eq!(content_type(&rules, &facts), "application/octet-stream");
        facts.properties.push(("kind".into(), "application/json".into()));
        assert_eq!(content_type(&rules, &facts), "application/json");
        assert_eq!(parse("text/xml"), Ok(vec![Rule::All("text/xml".into())]));
        assert!(parse("<rules><other/></rules>").unwrap_err().contains("`other`"));
        assert!(parse("<rules>").is_err());
    }

    #[test]
    fn a_type_that_is_no_media_type_does_not_count() {
        let mut facts = Facts { jms_type: Some("order".into()), ..Facts::default() };
        let rules = [Rule::Type, Rule::All("text/xml".into())];
        assert_eq!(content_type(&rules, &facts), "text/xml");
        facts.jms_type = Some("application/json".into());
        assert_eq!(content_type(&rules, &facts), "application/json");
        assert_eq!(content_type(&[], &facts), "text/plain");
    }
}
