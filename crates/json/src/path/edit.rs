//! Changing a document at places a path found.

use std::rc::Rc;

use serde_json::Value;

use super::JsonPath;
use super::select::Trail;

/// One step of a location.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// The member of that name.
    Member(String),
    /// The element at that position.
    Element(usize),
}

/// Where a node is, from the root down. The root itself is empty.
pub type Location = Vec<Step>;

/// A location that grows backwards and shares what it has in common with others.
#[derive(Clone, Default)]
pub(super) struct Crumbs(Option<Rc<(Crumbs, Step)>>);

impl Trail for Crumbs {
    fn member(&self, name: &str) -> Crumbs {
        Crumbs(Some(Rc::new((self.clone(), Step::Member(name.to_owned())))))
    }

    fn element(&self, index: usize) -> Crumbs {
        Crumbs(Some(Rc::new((self.clone(), Step::Element(index)))))
    }
}

impl Crumbs {
    pub fn location(&self) -> Location {
        let mut steps = Vec::new();
        let mut crumbs = self;
        while let Some(crumb) = &crumbs.0 {
            steps.push(crumb.1.clone());
            crumbs = &crumb.0;
        }
        steps.reverse();
        steps
    }
}

/// The value at a location.
pub fn value_at<'d>(root: &'d mut Value, location: &[Step]) -> Option<&'d mut Value> {
    let mut node = root;
    for step in location {
        node = match step {
            Step::Member(name) => node.as_object_mut()?.get_mut(name)?,
            Step::Element(index) => node.as_array_mut()?.get_mut(*index)?,
        };
    }
    Some(node)
}

/// Puts `value` where the path finds something; says how many places that were.
pub fn replace(root: &mut Value, path: &JsonPath, value: &Value) -> usize {
    let locations = path.locate(root);
    let mut replaced = 0;
    for location in &locations {
        if let Some(place) = value_at(root, location) {
            *place = value.clone();
            replaced += 1;
        }
    }
    replaced
}

/// Removes what the path finds; says how many places that were. The root cannot be removed.
pub fn remove(root: &mut Value, path: &JsonPath) -> usize {
    let mut locations = path.locate(root);
    // From the back, so that the positions of what is still to be removed stay true.
    locations.sort();
    locations.dedup();
    let mut removed = 0;
    for location in locations.iter().rev() {
        let Some((last, above)) = location.split_last() else { continue };
        let Some(parent) = value_at(root, above) else { continue };
        let gone = match (parent, last) {
            (Value::Object(members), Step::Member(name)) => members.shift_remove(name),
            (Value::Array(elements), Step::Element(index)) if *index < elements.len() => Some(elements.remove(*index)),
            _ => None,
        };
        removed += usize::from(gone.is_some());
    }
    removed
}

/// Adds `child` to what the path finds: a list gets it as one more element, an object gets its
/// members when it is an object too. Says how many places took it.
pub fn insert_child(root: &mut Value, path: &JsonPath, child: &Value) -> usize {
    let mut taken = 0;
    for location in path.locate(root) {
        match (value_at(root, &location), child) {
            (Some(Value::Array(elements)), child) => elements.push(child.clone()),
            (Some(Value::Object(members)), Value::Object(more)) => {
                members.extend(more.iter().map(|(name, value)| (name.clone(), value.clone())));
            }
            _ => continue,
        }
        taken += 1;
    }
    taken
}
