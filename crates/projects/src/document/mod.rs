//! A YAML or JSON document as a tree that knows where everything was written.
//!
//! Start reading at [`parse`], then [`Item`], the cursor the importers read with.

mod item;
mod json;
mod outdent;
mod skim;
mod yaml;

use std::sync::Arc;

use penstock_catalog::At;

pub use item::Item;
pub(crate) use skim::Reading;

/// Definitions are generated, too: the largest public ones have 30 MB.
const BYTES_MAX: usize = 64 << 20;

/// Values inside values: schemas nest, and none as deep as this.
const DEPTH_MAX: usize = 200;

/// Values of one document, with what aliases stand for counted each time: an alias of an alias of
/// an alias must not fill the memory.
const NODES_MAX: usize = 2_000_000;

/// A value and its place.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub line: u32,
    pub column: u32,
    pub value: Value,
}

/// A value.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    /// A text, number, flag or null.
    Scalar(Scalar),
    /// A sequence.
    List(Vec<Node>),
    /// A mapping, in the order written.
    Map(Vec<Entry>),
}

/// A text, number, flag or null, as it was written.
#[derive(Debug, Clone)]
pub(crate) struct Scalar {
    pub text: Arc<str>,
    /// Whether it was quoted, and so is a text.
    pub quoted: bool,
}

/// A member of a mapping.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub key: Arc<str>,
    pub line: u32,
    pub column: u32,
    pub value: Node,
}

/// Why a text is no document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Malformed {
    pub line: u32,
    pub column: u32,
    pub message: String,
}

impl Malformed {
    fn new(line: u32, column: u32, message: impl Into<String>) -> Malformed {
        Malformed { line, column, message: message.into() }
    }
}

/// A document that was read.
#[derive(Debug, Clone)]
pub struct Document {
    pub(crate) file: Arc<str>,
    pub(crate) root: Node,
}

impl Document {
    /// The cursor at the root.
    pub fn item(&self) -> Item<'_> {
        Item::new(&self.file, &self.root)
    }
}

/// Reads a document. What begins with a brace or bracket is JSON, and YAML where JSON cannot be read: a flow mapping
/// of YAML looks the same.
pub fn parse(file: &Arc<str>, bytes: &[u8]) -> Result<Document, (At, String)> {
    read(file, bytes, Reading::Whole)
}

/// Reads a document, or what of it is about routing.
pub(crate) fn read(file: &Arc<str>, bytes: &[u8], reading: Reading) -> Result<Document, (At, String)> {
    let at = |line, column| At { file: file.clone(), line, column };
    if bytes.len() > BYTES_MAX {
        return Err((at(1, 1), format!("larger than {} MiB, the limit for one document", BYTES_MAX >> 20)));
    }
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text.trim_start_matches('\u{feff}'),
        Err(error) => {
            let line = bytes.iter().take(error.valid_up_to()).filter(|byte| **byte == b'\n').count() as u32 + 1;
            return Err((at(line, 1), "not UTF-8".to_owned()));
        }
    };
    let found = if text.trim_start().starts_with(['{', '[']) {
        json::parse(text, reading).or_else(|error| yaml::parse(text).map_err(|_| error))
    } else {
        yaml::parse(text)
    };
    match found {
        Ok(root) => Ok(Document { file: file.clone(), root }),
        Err(error) => Err((at(error.line, error.column), error.message)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(node: &Node) -> String {
        match &node.value {
            Value::Scalar(scalar) if scalar.quoted => format!("{:?}", scalar.text),
            Value::Scalar(scalar) => scalar.text.to_string(),
            Value::List(items) => format!("[{}]", items.iter().map(shown).collect::<Vec<_>>().join(",")),
            Value::Map(entries) => {
                let entries: Vec<String> =
                    entries.iter().map(|e| format!("{}@{}:{}={}", e.key, e.line, e.column, shown(&e.value))).collect();
                format!("{{{}}}", entries.join(","))
            }
        }
    }

    fn check(text: &str, expected: &str) {
        let got = match parse(&"f".into(), text.as_bytes()) {
            Ok(document) => shown(&document.root),
            Err((at, message)) => format!("{at}: {message}"),
        };
        assert_eq!(got, expected, "{text:?}");
    }

    #[test]
    fn both_syntaxes_with_places() {
        check("a: 1\nb:\n  - x\n  - 'y'\n", "{a@1:1=1,b@2:1=[x,\"y\"]}");
        check("{\"a\":\t1,\n\t\"b\": [true, \"\\ud83d\\ude00\\/\"]}", "{a@1:2=1,b@2:2=[true,\"😀/\"]}");
        check("{a: 1, b: c}", "{a@1:2=1,b@1:8=c}");
        check("a: &x [1]\nb: *x\n", "{a@1:1=[1],b@2:1=[1]}");
        check("\u{feff}a:\n", "{a@1:1=}");
        check("a:\n  - b: 'x\n    y'\n    c: \"p\n  q\"\nd: 1\n", "{a@1:1=[{b@2:5=\"x y\",c@4:5=\"p q\"}],d@6:1=1}");
    }

    #[test]
    fn mistakes_with_places() {
        check("a: 1\na: 2\n", "f:2:1: `a` is given twice; the first is at line 1");
        check("{\"a\": 1", "f:1:8: `,` or `}` is expected");
        check("a: [1", "f:2:1: while parsing a flow sequence, expected ',' or ']'");
        check("a: 1\n---\nb: 2\n", "f:2:1: a second document; only one is read");
        check("", "f:1:1: the document is empty");
    }

    #[test]
    fn bombs_are_refused() {
        let mut laughs = String::from("a0: &a0 [1,1,1,1,1,1,1,1,1,1]\n");
        for level in 1..10 {
            let before = format!("*a{}", level - 1);
            laughs += &format!("a{level}: &a{level} [{}]\n", vec![before; 10].join(","));
        }
        let (_, message) = parse(&"f".into(), laughs.as_bytes()).unwrap_err();
        assert_eq!(message, "more than 2000000 values, aliases counted");
        for deep in ["[".repeat(5_000), "{\"a\":".repeat(5_000), format!("- {}", "- ".repeat(5_000))] {
            let (_, message) = parse(&"f".into(), deep.as_bytes()).unwrap_err();
            assert_eq!(message, "nested deeper than 200", "{}", &deep[..10]);
        }
    }
}
