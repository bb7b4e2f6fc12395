//! References of a definition to other files of its project: path items, operations and security schemes that stand there
//! take the places of the references. Nothing outside the project's folder is read, and nothing over the network.

use std::collections::HashMap;

use penstock_catalog::At;

use super::document::{Document, Entry, Item, Node, Reading, Value, read};
use super::openapi::{METHODS, follow};
use super::{Import, Project};

/// References that lead to references: more is a circle.
const HOPS_MAX: usize = 16;

/// Files that one definition refers to.
const FILES_MAX: usize = 10_000;

/// The files that were read, by their paths inside the project.
struct Files<'p> {
    project: &'p Project,
    read: HashMap<String, Option<Document>>,
}

impl Import<'_> {
    /// Replaces references to other files by what they refer to.
    pub(super) fn include(&mut self, project: &Project, path: &str, document: &mut Document) {
        let mut files = Files { project, read: HashMap::new() };
        let file = document.file.clone();
        let mut including = Including { import: self, files: &mut files, file: &file, main: path };
        for (_, item) in members(&mut document.root, "paths") {
            let base = including.resolve(item, path);
            let base = base.as_deref().unwrap_or(path);
            for (method, operation) in entries(item) {
                if METHODS.contains(&&*method.to_ascii_lowercase()) {
                    including.resolve(operation, base);
                }
            }
        }
        for section in ["components", "securityDefinitions"] {
            let Some(schemes) = member(&mut document.root, section) else { continue };
            let schemes = if section == "components" { member(schemes, "securitySchemes") } else { Some(schemes) };
            for (_, scheme) in schemes.into_iter().flat_map(entries) {
                including.resolve(scheme, path);
            }
        }
    }
}

/// One pass over a definition.
struct Including<'a, 'p, 'c> {
    import: &'a mut Import<'c>,
    files: &'a mut Files<'p>,
    /// The definition in messages.
    file: &'a std::sync::Arc<str>,
    /// Its path inside the project.
    main: &'a str,
}

impl Including<'_, '_, '_> {
    /// Replaces a reference that leads to another file, seen from a file. Gives the file it was found in.
    fn resolve(&mut self, node: &mut Node, base: &str) -> Option<String> {
        let at = At { file: self.file.clone(), line: node.line, column: node.column };
        let mut base = base.to_owned();
        for hop in 0.. {
            let Some(reference) = reference(node) else { return Some(base) };
            let (file, pointer) = reference.split_once('#').unwrap_or((&reference, ""));
            // References inside the definition are followed where they are read.
            if file.is_empty() && base == self.main {
                return None;
            }
            if hop >= HOPS_MAX {
                self.import.error(&at, format!("references lead to each other more than {HOPS_MAX} times"));
                return None;
            }
            // Addresses are reported where references are followed.
            if file.contains("://") {
                return None;
            }
            if !file.is_empty() {
                let Some(inside) = joined(&base, file) else {
                    self.import.error(&at, format!("`{reference}` leads out of the folder of the project"));
                    return None;
                };
                base = inside;
            }
            let Some(document) = self.files.get(self.import, &base, &at) else {
                self.import.error(&at, format!("`{reference}` cannot be resolved: the project has no file `{base}`"));
                return None;
            };
            let root = document.item();
            let target = if pointer.is_empty() { Some(root) } else { follow(root, pointer) };
            let Some(target) = target.map(|item: Item<'_>| item.node().clone()) else {
                self.import.error(&at, format!("`{reference}` cannot be resolved"));
                return None;
            };
            node.value = target.value;
            place_at(node, at.line, at.column);
        }
        None
    }
}

impl Files<'_> {
    fn get(&mut self, import: &mut Import<'_>, path: &str, at: &At) -> Option<&Document> {
        if !self.read.contains_key(path) {
            if self.read.len() >= FILES_MAX {
                import.error(at, format!("references to more than {FILES_MAX} files"));
                return None;
            }
            let found = self.load(import, path);
            self.read.insert(path.to_owned(), found);
        }
        self.read.get(path)?.as_ref()
    }

    fn load(&self, import: &mut Import<'_>, path: &str) -> Option<Document> {
        let (file, bytes) = match (self.project.file(path), &self.project.more) {
            (Some(file), _) => (file.file.clone(), file.bytes.clone()),
            (None, Some(more)) => {
                import.included.push(path.to_owned());
                match more.read(path)? {
                    Ok(found) => found,
                    Err(message) => {
                        import.unreadable(&path.into(), message);
                        return None;
                    }
                }
            }
            (None, None) => return None,
        };
        match read(&file, &bytes, Reading::Skim) {
            Ok(document) => Some(document),
            Err((at, message)) => {
                import.error(&at, message);
                None
            }
        }
    }
}

/// The text of a reference.
fn reference(node: &Node) -> Option<String> {
    let Value::Map(entries) = &node.value else { return None };
    let found = entries.iter().find(|entry| &*entry.key == "$ref")?;
    match &found.value.value {
        Value::Scalar(scalar) => Some(scalar.text.to_string()),
        _ => None,
    }
}

/// A path inside the project as another file writes it; `None` when it leads out of the project.
fn joined(base: &str, reference: &str) -> Option<String> {
    if reference.starts_with('/') || reference.contains('\\') {
        return None;
    }
    let reference = percent_encoding::percent_decode_str(reference).decode_utf8_lossy();
    let mut segments: Vec<&str> = base.split('/').collect();
    segments.pop();
    for segment in reference.split('/') {
        match segment {
            "" | "." => {}
            ".." => drop(segments.pop()?),
            other => segments.push(other),
        }
    }
    Some(segments.join("/"))
}

/// Errors in what was included are reported at the reference.
fn place_at(node: &mut Node, line: u32, column: u32) {
    (node.line, node.column) = (line, column);
    match &mut node.value {
        Value::Scalar(_) => {}
        Value::List(items) => items.iter_mut().for_each(|item| place_at(item, line, column)),
        Value::Map(entries) => {
            for entry in entries {
                (entry.line, entry.column) = (line, column);
                place_at(&mut entry.value, line, column);
            }
        }
    }
}

fn entries(node: &mut Node) -> impl Iterator<Item = (std::sync::Arc<str>, &mut Node)> {
    let entries: &mut [Entry] = match &mut node.value {
        Value::Map(entries) => entries,
        _ => &mut [],
    };
    entries.iter_mut().map(|entry| (entry.key.clone(), &mut entry.value))
}

fn member<'n>(node: &'n mut Node, name: &str) -> Option<&'n mut Node> {
    entries(node).find(|(key, _)| &**key == name).map(|(_, value)| value)
}

fn members<'n>(node: &'n mut Node, name: &str) -> impl Iterator<Item = (std::sync::Arc<str>, &'n mut Node)> {
    member(node, name).into_iter().flat_map(entries)
}
