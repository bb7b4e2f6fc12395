//! YAML, from the events of the parser crate.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use saphyr_parser::{Event, Parser, ScalarStyle, Span};

use super::{DEPTH_MAX, Entry, Malformed, NODES_MAX, Node, Scalar, Value};

/// A collection that is not closed yet.
struct Open {
    node: Node,
    anchor: usize,
    /// The key that waits for its value.
    key: Option<(Arc<str>, u32, u32)>,
    keys: HashSet<Arc<str>>,
}

/// How much a value is with everything in it.
#[derive(Clone, Copy)]
struct Size {
    nodes: usize,
    depth: usize,
}

/// The tree while it grows. Collections stand on a stack of our own, so that depth costs no stack of the thread.
#[derive(Default)]
struct Builder {
    open: Vec<Open>,
    root: Option<Node>,
    anchors: HashMap<usize, (Node, Size)>,
    nodes: usize,
}

/// Reads YAML. The parsers of API Manager and Choreo Connect do not mind a quoted text that goes on at the indentation of its key, which
/// the specification forbids (7.3.1); their own definitions are written so.
pub(super) fn parse(text: &str) -> Result<Node, Malformed> {
    strict(text).or_else(|error| match super::outdent::indented(text) {
        Some(text) => strict(&text).map_err(|_| error),
        None => Err(error),
    })
}

fn strict(text: &str) -> Result<Node, Malformed> {
    let mut builder = Builder::default();
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| {
            let marker = error.marker();
            Malformed::new(number(marker.line()), number(marker.col()) + 1, error.info())
        })?;
        builder.event(event, span)?;
    }
    builder.root.ok_or_else(|| Malformed::new(1, 1, "the document is empty"))
}

fn number(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

impl Builder {
    fn event(&mut self, event: Event<'_>, span: Span) -> Result<(), Malformed> {
        let (line, column) = (number(span.start.line()), number(span.start.col()) + 1);
        let node = |value| Node { line, column, value };
        match event {
            Event::Scalar(text, style, anchor, _) => {
                let quoted = style != ScalarStyle::Plain;
                self.finished(node(Value::Scalar(Scalar { text: text.as_ref().into(), quoted })), anchor, 1)
            }
            Event::SequenceStart(anchor, _) => self.opened(node(Value::List(Vec::new())), anchor),
            Event::MappingStart(anchor, _) => self.opened(node(Value::Map(Vec::new())), anchor),
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(open) => self.finished(open.node, open.anchor, 1),
                None => Ok(()),
            },
            Event::Alias(anchor) => {
                let Some((target, size)) = self.anchors.get(&anchor) else {
                    return Err(Malformed::new(line, column, "an alias stands for something that contains it"));
                };
                // Looked at before anything is copied.
                if self.nodes + size.nodes > NODES_MAX {
                    let message = format!("more than {NODES_MAX} values, aliases counted");
                    return Err(Malformed::new(line, column, message));
                }
                if self.open.len() + size.depth > DEPTH_MAX {
                    return Err(Malformed::new(line, column, format!("nested deeper than {DEPTH_MAX}")));
                }
                let (value, nodes) = (target.value.clone(), size.nodes);
                self.finished(Node { line, column, value }, 0, nodes)
            }
            Event::DocumentStart(_) if self.root.is_some() => {
                Err(Malformed::new(line, column, "a second document; only one is read"))
            }
            _ => Ok(()),
        }
    }

    fn opened(&mut self, node: Node, anchor: usize) -> Result<(), Malformed> {
        if self.open.len() >= DEPTH_MAX {
            return Err(Malformed::new(node.line, node.column, format!("nested deeper than {DEPTH_MAX}")));
        }
        // A collection where a key belongs would wait for its value forever.
        if let Some(open) = self.open.last()
            && matches!(open.node.value, Value::Map(_))
            && open.key.is_none()
        {
            return Err(Malformed::new(node.line, node.column, "a key of a mapping must be a text"));
        }
        self.open.push(Open { node, anchor, key: None, keys: HashSet::new() });
        Ok(())
    }

    /// A value is complete; `size` is how many nodes it is, which matters for aliases.
    fn finished(&mut self, node: Node, anchor: usize, size: usize) -> Result<(), Malformed> {
        self.nodes += size;
        if self.nodes > NODES_MAX {
            let message = format!("more than {NODES_MAX} values, aliases counted");
            return Err(Malformed::new(node.line, node.column, message));
        }
        if anchor != 0 {
            let size = measure(&node);
            // What an anchor names is kept a second time.
            self.nodes += size.nodes;
            self.anchors.insert(anchor, (node.clone(), size));
        }
        let Some(open) = self.open.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        match &mut open.node.value {
            Value::List(items) => items.push(node),
            Value::Map(entries) => match open.key.take() {
                Some((key, line, column)) => entries.push(Entry { key, line, column, value: node }),
                None => {
                    let Value::Scalar(scalar) = node.value else {
                        return Err(Malformed::new(node.line, node.column, "a key of a mapping must be a text"));
                    };
                    if !open.keys.insert(scalar.text.clone()) {
                        let first = entries.iter().find(|entry| entry.key == scalar.text).map_or(0, |entry| entry.line);
                        let message = format!("`{}` is given twice; the first is at line {first}", scalar.text);
                        return Err(Malformed::new(node.line, node.column, message));
                    }
                    open.key = Some((scalar.text, node.line, node.column));
                }
            },
            Value::Scalar(_) => {}
        }
        Ok(())
    }
}

fn measure(node: &Node) -> Size {
    let inside: Vec<Size> = match &node.value {
        Value::Scalar(_) => return Size { nodes: 1, depth: 1 },
        Value::List(items) => items.iter().map(measure).collect(),
        Value::Map(entries) => entries.iter().map(|entry| measure(&entry.value)).collect(),
    };
    let nodes = 1 + inside.iter().map(|size| size.nodes).sum::<usize>();
    Size { nodes, depth: 1 + inside.iter().map(|size| size.depth).max().unwrap_or(0) }
}
