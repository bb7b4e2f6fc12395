//! What was collected, and the message it becomes.

use std::cell::RefCell;
use std::sync::Arc;
use std::task::Waker;
use std::time::Instant;

use penstock_compile::Expression;
use penstock_engine::{Exchange, Family, Fault, Flow, SequenceId};
use penstock_message::{Scope, Value};
use penstock_xml::{Document, TreeBuilder};

use penstock_engine::payload;
use penstock_message::tree::{self, Content};

/// What happens when a group is complete.
pub struct Complete {
    /// What runs then.
    pub sequence: SequenceId,
    /// What each message contributes; without one its payload.
    pub expression: Option<Expression>,
    /// The property with what stands around all of it.
    pub enclosing: Option<Arc<str>>,
    /// `aggregateElementType="child"`: the children of what is found, not the found itself.
    pub children: bool,
}

/// What was collected so far.
#[derive(Default)]
pub struct Group {
    /// In the order they came.
    pub parts: Vec<Contribution>,
    /// Whether it went on; what comes later ends.
    pub complete: bool,
    /// When what is there is enough.
    pub expires: Option<Instant>,
    /// The waiter for the timeout.
    pub waiting: Option<Waker>,
}

/// What one message contributes.
pub enum Contribution {
    /// Of a tree, or text.
    Nodes(Vec<Content>),
    /// Values.
    Json(Vec<serde_json::Value>),
}

impl Complete {
    /// Makes the message that goes on.
    pub fn finish(&self, exchange: &mut Exchange, family: &Family, group: &RefCell<Group>) -> Result<Flow, Fault> {
        let parts = {
            let mut group = group.borrow_mut();
            group.complete = true;
            if let Some(waiting) = group.waiting.take() {
                waiting.wake();
            }
            family.completed.set(true);
            family.collected.update(|count| count.saturating_sub(group.parts.len()));
            std::mem::take(&mut group.parts)
        };
        // The joined message belongs to the family its parent belonged to.
        exchange.kinship = exchange.ancestry.pop();
        let enclosing =
            match &self.enclosing {
                Some(name) => {
                    let value = exchange.property(Scope::Default, name);
                    Some(value.ok_or_else(|| {
                        Fault::new(format!("the property `{name}` for the enclosing element is not set"))
                    })?)
                }
                None => None,
            };
        if parts.iter().any(|part| matches!(part, Contribution::Json(_))) {
            let elements = parts.into_iter().flat_map(Contribution::into_json).collect();
            payload::set_json(exchange, Arc::new(enclosed_json(elements, enclosing)));
        } else {
            let contents: Vec<Content> = parts.into_iter().flat_map(Contribution::into_nodes).collect();
            let contents = match enclosing {
                Some(value) => vec![enclosed_xml(&value, &contents)?],
                None => contents,
            };
            payload::replace_by_nodes(exchange, &contents)?;
        }
        Ok(Flow::Enter(self.sequence))
    }
}

impl Contribution {
    fn into_json(self) -> Vec<serde_json::Value> {
        match self {
            Contribution::Json(elements) => elements,
            Contribution::Nodes(contents) => contents
                .iter()
                .map(|content| serde_json::Value::String(tree::text_of(std::slice::from_ref(content))))
                .collect(),
        }
    }

    fn into_nodes(self) -> Vec<Content> {
        match self {
            Contribution::Nodes(contents) => contents,
            Contribution::Json(_) => Vec::new(),
        }
    }
}

/// The list, as the member that the property names when there is one.
fn enclosed_json(elements: Vec<serde_json::Value>, enclosing: Option<Value>) -> serde_json::Value {
    let list = serde_json::Value::Array(elements);
    // A property without a type may hold the object as text.
    let enclosing = enclosing.map(|value| match &value {
        Value::String(text) if text.trim_start().starts_with('{') => {
            serde_json::from_str(text).map_or(value, |json| Value::Json(Arc::new(json)))
        }
        _ => value,
    });
    let mut hull = serde_json::Map::new();
    match enclosing {
        None => return list,
        Some(Value::Json(json)) => match &*json {
            // An object with one member says how the list is called.
            serde_json::Value::Object(members) => {
                hull = members.clone();
                match members.keys().next_back() {
                    Some(last) => hull.insert(last.clone(), list),
                    None => return list,
                };
            }
            serde_json::Value::String(name) => {
                hull.insert(name.clone(), list);
            }
            _ => return list,
        },
        Some(Value::Xml(document, nodes)) => match nodes.first() {
            Some(node) => {
                hull.insert(document.local_name(*node).to_owned(), list);
            }
            None => return list,
        },
        Some(other) => {
            hull.insert(other.to_text().into_owned(), list);
        }
    }
    serde_json::Value::Object(hull)
}

/// A copy of the enclosing element with the parts after its own content.
fn enclosed_xml(enclosing: &Value, parts: &[Content]) -> Result<Content, Fault> {
    let hull = payload::contents_of(enclosing);
    let Some(Content::Node(document, node)) = hull.first() else {
        return Err(Fault::new("the property for the enclosing element is not XML"));
    };
    let mut builder = TreeBuilder::new();
    tree::open_copy(&mut builder, document, *node);
    builder.copy_children(document, *node);
    tree::insert(&mut builder, parts);
    builder.end_element();
    let document: Arc<Document> = Arc::new(builder.finish());
    let root = document
        .root_element()
        .ok_or_else(|| Fault::new("the property for the enclosing element is not an element"))?;
    Ok(Content::Node(document, root))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_get_the_name_the_property_gives_them() {
        let elements = || vec![serde_json::json!(1), serde_json::json!(2)];
        for (enclosing, expected) in [
            (None, "[1,2]"),
            (Some(Value::string("all")), r#"{"all":[1,2]}"#),
            (Some(Value::string(r#"{"root":[]}"#)), r#"{"root":[1,2]}"#),
            (Some(Value::Json(Arc::new(serde_json::json!({"n": 0, "all": null})))), r#"{"n":0,"all":[1,2]}"#),
        ] {
            assert_eq!(enclosed_json(elements(), enclosing).to_string(), expected);
        }
    }
}
