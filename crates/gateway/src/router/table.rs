//! The operations below one base path, as a tree of segments.
//!
//! The most specific path that fits a request and has its method wins. Paths are compared segment by segment from the
//! left: a literal before parameters with text around them, those before a plain parameter, that before `/*`. The tree
//! holds the alternatives of each place in this order, so the first operation found is the one; nothing is allocated for
//! ordinary paths. A path that takes fewer requests than another therefore always wins over it, and an open operation
//! never answers for a protected one that is described more closely.

use std::cmp::Reverse;
use std::collections::HashMap;

use penstock_catalog::Operation;
use penstock_catalog::path::{PathPattern, Segment, Segments, escaped, mixed};
use penstock_message::Headers;

use super::header_match::HeaderConditions;

/// What was found for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// This operation, by the number it was added with.
    Operation(usize),
    /// A path fits, and none that fits has the method; the most specific of them.
    OtherMethod(usize),
    /// No path fits.
    Nothing,
}

/// A path with its methods.
#[derive(Debug)]
struct Path {
    /// Methods and the numbers of their operations.
    methods: Vec<(Box<str>, u32)>,
    /// Whether the template has a slash at its end.
    slash: bool,
}

/// A place in the tree: what may follow the segments that lead to it.
#[derive(Debug, Default)]
struct Node {
    /// By text, sorted.
    literals: Vec<(Box<str>, Node)>,
    /// Parameters between texts, the most specific first.
    mixed: Vec<(Box<[Box<str>]>, Node)>,
    /// Anything.
    parameter: Option<Box<Node>>,
    /// Paths that end here, in the order written. They differ by methods, by the names of parameters or by a slash.
    ends: Vec<u32>,
    /// Paths after which anything may follow.
    rests: Vec<u32>,
}

/// The operations below a base path.
#[derive(Debug, Default)]
pub(super) struct Table {
    paths: Vec<Path>,
    root: Node,
    /// What requests for an operation must have besides, by its number.
    conditions: HashMap<u32, HeaderConditions>,
}

/// What one walk looks for and what it found so far.
struct Search<'m> {
    method: &'m str,
    headers: &'m Headers,
    /// Whether the request's path has a slash at its end.
    slash: bool,
    /// Path and operation.
    found: Option<(usize, usize)>,
    /// The most specific path that fits but for its methods.
    other: Option<usize>,
}

impl Table {
    /// Makes a table of operations with their patterns; they are known by their position.
    pub(super) fn new<'a>(operations: impl Iterator<Item = (&'a PathPattern, &'a Operation)>) -> Table {
        let mut table = Table::default();
        let mut known = HashMap::new();
        for (number, (pattern, operation)) in operations.enumerate() {
            let number = number as u32;
            let (template, method) = (&*operation.path, &*operation.method);
            let index = *known.entry(template).or_insert_with(|| {
                table.paths.push(Path { methods: Vec::new(), slash: pattern.has_slash() });
                table.root.add(pattern, table.paths.len() - 1);
                table.paths.len() - 1
            });
            let methods = &mut table.paths[index].methods;
            let conditions = &mut table.conditions;
            if !operation.header_matches.is_empty() {
                conditions.insert(number, HeaderConditions::new(&operation.header_matches));
            } else if methods.iter().any(|(other, known)| **other == *method && !conditions.contains_key(known)) {
                continue;
            }
            methods.push((method.into(), number));
        }
        if !table.conditions.is_empty() {
            for path in &mut table.paths {
                let order = |number: &u32| table.conditions.get(number).map(HeaderConditions::order);
                // Those without conditions last.
                path.methods.sort_by_key(|(_, number)| (order(number).is_none(), order(number)));
            }
        }
        table.root.finish();
        table
    }

    /// Finds the operation of a path below the base path.
    pub(super) fn find(&self, path: &str, method: &str, headers: &Headers) -> Found {
        let search = self.search(path, method, headers);
        match (search.found, search.other) {
            (Some((_, operation)), _) => Found::Operation(operation),
            (None, Some(index)) => Found::OtherMethod(index),
            (None, None) => Found::Nothing,
        }
    }

    /// The path with the operation of a method.
    pub(super) fn path(&self, path: &str, method: &str, headers: &Headers) -> Option<usize> {
        self.search(path, method, headers).found.map(|(index, _)| index)
    }

    fn search<'m>(&self, path: &str, method: &'m str, headers: &'m Headers) -> Search<'m> {
        let path = escaped(path);
        let mut search = Search { method, headers, slash: path.ends_with('/'), found: None, other: None };
        self.walk(&self.root, Segments::new(&path), &mut search);
        search
    }

    /// Visits every place that fits, the most specific first, until an operation is found. The tree has one way to each
    /// place, so no place is visited twice.
    fn walk(&self, node: &Node, rest: Segments<'_>, search: &mut Search<'_>) {
        let mut behind = rest.clone();
        match behind.next() {
            None => self.take(&node.ends, search),
            Some(segment) => {
                if let Ok(index) = node.literals.binary_search_by(|(text, _)| (**text).cmp(segment)) {
                    self.walk(&node.literals[index].1, behind.clone(), search);
                }
                for (texts, next) in &node.mixed {
                    if search.found.is_none() && mixed_fits(texts, segment) {
                        self.walk(next, behind.clone(), search);
                    }
                }
                if let Some(next) = &node.parameter
                    && search.found.is_none()
                    && !segment.is_empty()
                {
                    self.walk(next, behind, search);
                }
            }
        }
        if search.found.is_none() {
            self.take(&node.rests, search);
        }
    }

    /// Looks for the method among paths of one shape; those with the request's slash first.
    fn take(&self, indices: &[u32], search: &mut Search<'_>) {
        for same_slash in [true, false] {
            for index in indices.iter().map(|index| *index as usize) {
                let path = &self.paths[index];
                if (path.slash == search.slash) != same_slash {
                    continue;
                }
                let fits = |method: &str, operation: &u32| {
                    *method == *search.method
                        && (self.conditions.is_empty()
                            || self.conditions.get(operation).is_none_or(|wanted| wanted.hold(search.headers)))
                };
                if let Some((_, operation)) = path.methods.iter().find(|(method, operation)| fits(method, operation)) {
                    search.found = Some((index, *operation as usize));
                    return;
                }
                search.other = search.other.or(Some(index));
            }
        }
    }

    /// The number of paths; indices are below it.
    pub(super) fn paths(&self) -> usize {
        self.paths.len()
    }

    /// The first operation on a path.
    pub(super) fn first_operation(&self, index: usize) -> Option<usize> {
        self.paths.get(index)?.methods.first().map(|(_, operation)| *operation as usize)
    }
}

/// Whether a segment fits, without its values. Texts around one parameter, the common case, need no list of places.
fn mixed_fits(texts: &[Box<str>], segment: &str) -> bool {
    match texts {
        [before, after] => {
            segment.len() > before.len() + after.len() && segment.starts_with(&**before) && segment.ends_with(&**after)
        }
        _ => mixed(texts, segment, &mut |_| {}),
    }
}

/// What sorts segments with parameters between texts. When all that one takes is taken by another too, the one is before
/// it: it begins and ends with texts at least as long, and what it takes is at least as long.
fn specificity(texts: &[Box<str>]) -> impl Ord + use<> {
    let length = |text: Option<&Box<str>>| text.map_or(0, |text| text.len());
    let literal: usize = texts.iter().map(|text| text.len()).sum();
    Reverse((length(texts.first()), literal + texts.len(), literal, length(texts.last())))
}

impl Node {
    fn add(&mut self, pattern: &PathPattern, index: usize) {
        let mut node = self;
        for segment in &pattern.segments {
            node = match segment {
                Segment::Literal(text) => {
                    let index = position(&mut node.literals, text);
                    &mut node.literals[index].1
                }
                Segment::Mixed(texts) => {
                    let index = position(&mut node.mixed, texts);
                    &mut node.mixed[index].1
                }
                Segment::Parameter => node.parameter.get_or_insert_default(),
            };
        }
        if pattern.rest { node.rests.push(index as u32) } else { node.ends.push(index as u32) }
    }

    /// Sorts the alternatives. What is equally specific stays in the order written.
    fn finish(&mut self) {
        self.mixed.sort_by_key(|(texts, _)| specificity(texts));
        self.literals.shrink_to_fit();
        self.mixed.shrink_to_fit();
        self.ends.shrink_to_fit();
        self.rests.shrink_to_fit();
        let literals = self.literals.iter_mut().map(|(_, node)| node);
        let mixed = self.mixed.iter_mut().map(|(_, node)| node);
        literals.chain(mixed).chain(self.parameter.as_deref_mut()).for_each(Node::finish);
    }
}

/// Where a text stands in a sorted list; it is added when it is new.
fn position<K: Ord + Clone>(list: &mut Vec<(K, Node)>, key: &K) -> usize {
    list.binary_search_by(|(known, _)| known.cmp(key)).unwrap_or_else(|index| {
        list.insert(index, (key.clone(), Node::default()));
        index
    })
}

#[cfg(test)]
mod tests {
    use penstock_catalog::HeaderMatch;

    use super::*;

    /// A table of methods and templates.
    fn table(operations: &[(&str, &str)]) -> Table {
        table_of(operations.iter().map(|(method, path)| operation(method, path, &[])).collect())
    }

    fn table_of(operations: Vec<Operation>) -> Table {
        let patterns: Vec<_> = operations.iter().map(|operation| PathPattern::parse(&operation.path)).collect();
        Table::new(patterns.iter().zip(&operations))
    }

    fn operation(method: &str, path: &str, matches: &[(&str, &str, bool)]) -> Operation {
        let header = |(name, value, is_pattern): &(&str, &str, bool)| HeaderMatch {
            name: (*name).into(),
            value: (*value).into(),
            is_pattern: *is_pattern,
        };
        let header_matches = matches.iter().map(header).collect();
        Operation { method: method.into(), path: path.into(), header_matches, ..Operation::default() }
    }

    #[test]
    fn fields_of_the_request_choose_among_operations_of_a_path() {
        let table = table_of(vec![
            operation("GET", "/pick", &[]),
            operation("GET", "/pick", &[("x-variant", "v[0-9]+", true)]),
            operation("GET", "/pick", &[("X-Variant", "v1", false)]),
            operation("GET", "/pick", &[("x-variant", "v1", false), ("x-more", "yes", false)]),
            operation("GET", "/only", &[("x-variant", "v1", false)]),
            operation("GET", "/*", &[]),
        ]);
        for (path, fields, expected) in [
            ("/pick", vec![], 0),
            ("/pick", vec![("x-variant", "v12")], 1),
            ("/pick", vec![("x-variant", "v1")], 2),
            ("/pick", vec![("x-more", "yes"), ("x-variant", "v1")], 3),
            ("/pick", vec![("x-variant", "xv12")], 0),
            ("/only", vec![("x-variant", "v1")], 4),
            // A path whose conditions do not hold leaves the request to a less specific one.
            ("/only", vec![], 5),
        ] {
            let mut headers = Headers::new();
            fields.iter().for_each(|(name, value)| headers.set(name, *value));
            assert_eq!(table.find(path, "GET", &headers), Found::Operation(expected), "{path} {fields:?}");
        }
    }

    #[test]
    fn the_most_specific_path_with_the_method_wins() {
        let operations = [
            ("GET", "/*"),
            ("GET", "/pet/{id}"),
            ("DELETE", "/pet/{id}"),
            ("GET", "/pet/findByStatus"),
            ("GET", "/pet/{a}/{b}"),
            ("GET", "/pet/{a}/orders"),
            ("GET", "/pet/{id}.json"),
            ("POST", "/pet/*"),
            ("PUT", "/{any}/{id}"),
            ("GET", "/a/{x}"),
            ("POST", "/a/{y}"),
            ("GET", "/{x}/b/c"),
            ("GET", "/a/{y}/{z}"),
            ("GET", "/jobs/{id}"),
            ("GET", "/jobs/{id}:cancel"),
            ("GET", "/jobs/{id},{step}"),
            ("GET", "/jobs/draft-{id}"),
            ("GET", "/lists"),
            ("GET", "/lists/"),
        ];
        let table = table(&operations);
        for (path, method, expected) in [
            ("/pet/findByStatus", "GET", "/pet/findByStatus"),
            ("/pet/findByStatus/", "GET", "/pet/findByStatus"),
            ("/pet/7", "GET", "/pet/{id}"),
            ("/pet/7", "DELETE", "/pet/{id}"),
            ("/pet/findByStatus", "DELETE", "/pet/{id}"),
            ("/pet/7.json", "GET", "/pet/{id}.json"),
            ("/pet/7/orders", "GET", "/pet/{a}/orders"),
            ("/pet/7/8", "GET", "/pet/{a}/{b}"),
            ("/pet/7", "POST", "/pet/*"),
            ("/pet/7", "PUT", "/{any}/{id}"),
            ("/a/1", "GET", "/a/{x}"),
            ("/a/1", "POST", "/a/{y}"),
            ("/a/b/c", "GET", "/a/{y}/{z}"),
            ("/z/b/c", "GET", "/{x}/b/c"),
            ("/jobs/1", "GET", "/jobs/{id}"),
            ("/jobs/1:cancel", "GET", "/jobs/{id}:cancel"),
            ("/jobs/:cancel", "GET", "/jobs/{id}"),
            ("/jobs/1,2", "GET", "/jobs/{id},{step}"),
            ("/jobs/draft-1:cancel", "GET", "/jobs/draft-{id}"),
            ("/lists", "GET", "/lists"),
            ("/lists/", "GET", "/lists/"),
            ("/elsewhere/a/b/c", "GET", "/*"),
            ("", "GET", "/*"),
        ] {
            let Found::Operation(number) = table.find(path, method, &Headers::new()) else {
                panic!("{method} {path} is not found")
            };
            assert_eq!(operations[number], (method, expected), "{method} {path}");
        }
        let Found::OtherMethod(index) = table.find("/elsewhere/a/b/c", "POST", &Headers::new()) else {
            panic!("no other method")
        };
        assert_eq!(table.first_operation(index), Some(0));
        assert_eq!(self::table(&[("GET", "/x")]).find("/y", "GET", &Headers::new()), Found::Nothing);
    }

    /// All templates of a small alphabet against all paths of it: the path that is found fits, and no path that fits takes
    /// fewer of the alphabet's requests, all of which the found one takes too.
    #[test]
    fn no_path_answers_for_a_more_specific_one() {
        let parts = ["a", "b", "{p}", "{p}.b", "a{p}", "{p}.{q}", "{p}{q}", "a{p}b"];
        let mut templates: Vec<String> = vec!["/".into(), "/*".into()];
        for first in parts {
            templates.push(format!("/{first}"));
            templates.push(format!("/{first}/*"));
            templates.extend(parts.iter().map(|second| format!("/{first}/{second}")));
        }
        let operations: Vec<_> = templates.iter().map(|template| ("GET", template.as_str())).collect();
        let table = table(&operations);
        let words = ["a", "b", "c", "x.b", "ab", "a.b", "axb", "ax", "c.c", "cc", "a.bb"];
        let one = words.iter().map(|word| format!("/{word}"));
        let two = words.iter().flat_map(|first| words.iter().map(move |second| format!("/{first}/{second}")));
        let paths: Vec<String> = one.chain(two).chain(["/a/b/c".into(), "/".into()]).collect();
        let takes = |template: &str| -> Vec<bool> {
            let pattern = PathPattern::parse(template);
            paths.iter().map(|path| pattern.matches(path).is_some()).collect()
        };
        let all: Vec<Vec<bool>> = templates.iter().map(|template| takes(template)).collect();
        let narrower = |left: &[bool], right: &[bool]| left != right && left.iter().zip(right).all(|(l, r)| !l || *r);
        for (place, path) in paths.iter().enumerate() {
            let Found::Operation(found) = table.find(path, "GET", &Headers::new()) else {
                panic!("{path} is not found")
            };
            assert!(all[found][place], "{} does not fit {path}", templates[found]);
            for (other, taken) in all.iter().enumerate().filter(|(_, taken)| taken[place]) {
                assert!(!narrower(taken, &all[found]), "{path}: {} before {}", templates[found], templates[other]);
            }
        }
    }
}
