//! A JMeter plan as a tree of elements with their lines.
use crate::error::Error;
use quick_xml::events::{BytesStart, Event};

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

/// Plans nest a dozen levels deep; one deeper than this is none.
const DEPTH_MAX: usize = 200;

impl Element {
    /// Parses a file and answers its root.
    pub fn parse(name: &str, text: &str) -> Result<Element, Error> {
        let mut reader = quick_xml::Reader::from_str(text);
        let mut open = vec![Element::default()];
        let mut lines = Lines { text, position: 0, line: 1 };
        loop {
            let line = lines.of_next_after(usize::try_from(reader.buffer_position()).unwrap_or(usize::MAX));
            let wrong = |why: &dyn std::fmt::Display| Error::Input(format!("{name}:{line}: {why}"));
            let event = reader.read_event().map_err(|error| wrong(&error))?;
            match event {
                Event::Start(start) => {
                    if open.len() > DEPTH_MAX {
                        return Err(wrong(&"elements are nested too deep"));
                    }
                    open.push(element(&start, line).map_err(|why| wrong(&why))?);
                }
                Event::Empty(start) => {
                    let element = element(&start, line).map_err(|why| wrong(&why))?;
                    if let Some(parent) = open.last_mut() {
                        parent.children.push(element);
                    }
                }
                Event::End(_) => {
                    let closed = open.pop().unwrap_or_default();
                    let parent = open.last_mut().ok_or_else(|| wrong(&"an end tag without a start tag"))?;
                    parent.children.push(closed);
                }
                Event::Text(part) => push_text(&mut open, &part),
                Event::CData(part) => push_text(&mut open, &part),
                Event::GeneralRef(reference) => {
                    let resolved = resolve(&reference).ok_or_else(|| wrong(&"an unknown entity"))?;
                    push_text(&mut open, &resolved);
                }
                Event::Eof if open.len() > 1 => return Err(wrong(&"the file ends inside an element")),
                Event::Eof => break,
                _ => {}
            }
        }
        let roots = open.pop().map(|root| root.children).unwrap_or_default();
        roots.into_iter().next().ok_or_else(|| Error::Input(format!("{name}: the file holds no element")))
    }

    /// An attribute.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The child with this `name` attribute: how JMeter writes properties.
    pub fn property(&self, name: &str) -> Option<&Element> {
        self.children.iter().find(|child| child.attribute("name") == Some(name))
    }
}

fn push_text(open: &mut [Element], text: &str) {
    if let Some(element) = open.last_mut() {
        element.text.push_str(text);
    }
}

/// The five entities of XML and references to characters.
fn resolve(reference: &str) -> Option<String> {
    let character = match reference {
        "lt" => '<',
        "gt" => '>',
        "amp" => '&',
        "quot" => '"',
        "apos" => '\'',
        other => {
            let number = other.strip_prefix('#')?;
            let code = match number.strip_prefix('x') {
                Some(digits) => u32::from_str_radix(digits, 16),
                None => number.parse(),
            };
            char::from_u32(code.ok()?)?
        }
    };
    Some(character.to_string())
}

fn element(start: &BytesStart<'_>, line: usize) -> Result<Element, String> {
    let mut element = Element { name: start.name().as_ref().to_owned(), line, ..Element::default() };
    for attribute in start.attributes() {
        let attribute = attribute.map_err(|error| error.to_string())?;
        let value = quick_xml::escape::unescape(&attribute.value).map_err(|error| error.to_string())?;
        element.attributes.push((attribute.key.as_ref().to_owned(), value.into_owned()));
    }
    Ok(element)
}

/// Counts lines along with the reader.
struct Lines<'a> {
    text: &'a str,
    position: usize,
    line: usize,
}

impl Lines<'_> {
    /// The line of what follows a position, past the white space before it. Positions never go back.
    fn of_next_after(&mut self, position: usize) -> usize {
        let bytes = self.text.as_bytes();
        let passed = bytes.get(self.position..position).unwrap_or_default();
        self.line += passed.iter().filter(|byte| **byte == b'\n').count();
        self.position = position;
        let ahead = bytes.get(position..).unwrap_or_default();
        let blank = ahead.iter().take_while(|byte| byte.is_ascii_whitespace());
        self.line + blank.filter(|byte| **byte == b'\n').count()
    }
}
