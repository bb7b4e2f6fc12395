//! A JMeter plan as a tree of elements with their lines.
use crate::error::Error;
use penstock_xml::{DoctypePolicy, Document, Limits, NodeId, NodeKind, ParseOptions};

/// An element of the plan.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Element {
    /// Tag name.
    pub name: String,
    /// Attributes in order.
    pub attributes: Vec<(String, String)>,
    /// Text directly inside.
    pub text: String,
    /// Elements directly inside.
    pub children: Vec<Element>,
    /// Line of the start tag, from 1.
    pub line: usize,
}

/// The largest recorded plans have some ten megabytes; plans nest a few dozen levels deep. The tree is walked by recursion.
const LIMITS: Limits = Limits {
    source_bytes_max: 64 << 20,
    depth_max: 200,
    nodes_max: 4 << 20,
    entity_bytes_max: 1 << 20,
    ..Limits::DEFAULT
};

impl Element {
    /// Parses a file and returns its root.
    pub fn parse(name: &str, text: &[u8]) -> Result<Element, Error> {
        let options = ParseOptions { doctype: DoctypePolicy::Refuse, ..ParseOptions::with_limits(LIMITS) };
        let document = Document::parse(text.to_vec(), &options)
            .map_err(|error| Error::Input(format!("{name}:{}: {error}", error.position.line)))?;
        let root = document.root_element().ok_or_else(|| Error::Input(format!("{name}: the file holds no element")))?;
        Ok(element(&document, root))
    }

    /// An attribute.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The child with this `name` attribute: how JMeter writes properties.
    pub fn property(&self, name: &str) -> Option<&Element> {
        self.children.iter().find(|child| child.attribute("name") == Some(name))
    }

    /// The name that the plan's author gave the element.
    pub fn title(&self) -> &str {
        self.attribute("testname").unwrap_or(&self.name)
    }

    /// The items of a collection that stands in a property.
    pub fn items(&self, name: &str) -> &[Element] {
        self.property(name).map_or(&[], |list| list.children.as_slice())
    }

    /// Whether JMeter skips the element with all that is below it.
    pub fn disabled(&self) -> bool {
        self.attribute("enabled") == Some("false")
    }
}

fn element(document: &Document, id: NodeId) -> Element {
    let attribute = |id| (document.local_name(id).to_owned(), document.string_value(id).into_owned());
    let mut element = Element {
        name: document.local_name(id).to_owned(),
        attributes: document.attributes(id).map(attribute).collect(),
        line: usize::try_from(document.position(id).line).unwrap_or(0),
        ..Element::default()
    };
    for child in document.children(id) {
        match document.kind(child) {
            NodeKind::Element => element.children.push(self::element(document, child)),
            NodeKind::Text => element.text.push_str(&document.string_value(child)),
            _ => {}
        }
    }
    // Decimal properties carry their name and value as elements.
    if let [name, value, ..] = element.children.as_slice()
        && (name.name.as_str(), value.name.as_str()) == ("name", "value")
    {
        let (name, value) = (name.text.clone(), value.text.clone());
        element.attributes.push(("name".to_owned(), name));
        element.text = value;
        element.children.clear();
    }
    element
}
