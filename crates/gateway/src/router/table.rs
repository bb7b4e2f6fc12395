//! The operations below one base path, as a tree of segments.
//!
//! The originals try paths one after the other in an order of their own. The tree finds every path that fits by walking
//! once over the request's segments, and of those the one that stands first in that order; nothing is allocated.

use super::pattern::{PathPattern, Segment, Segments, mixed};

/// What was found for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// This operation, by the number it was added with.
    Operation(usize),
    /// A path fits, and none that fits has the method; the first of them.
    OtherMethod(usize),
    /// No path fits.
    Nothing,
}

/// A path with its methods.
#[derive(Debug)]
struct Path {
    /// Methods and the numbers of their operations.
    methods: Vec<(Box<str>, usize)>,
    pattern: PathPattern,
}

/// A place in the tree: what may follow the segments that lead to it.
#[derive(Debug, Default)]
struct Node {
    /// By text, sorted.
    literals: Vec<(Box<str>, Node)>,
    /// Parameters between texts.
    mixed: Vec<(Box<[Box<str>]>, Node)>,
    /// Anything.
    parameter: Option<Box<Node>>,
    /// Paths that end here, by rank.
    ends: Vec<usize>,
    /// Paths after which anything may follow.
    rests: Vec<usize>,
    /// The first rank below here.
    first: usize,
}

/// The operations below a base path. Ranks are positions in `paths`.
#[derive(Debug, Default)]
pub(super) struct Table {
    paths: Vec<Path>,
    root: Node,
}

/// What one walk looks for and what it found so far.
struct Search<'m> {
    method: &'m str,
    /// Rank and operation.
    best: Option<(usize, usize)>,
    /// The first rank that fits but for its methods.
    other: Option<usize>,
}

impl Table {
    /// Makes a table of (template, method) pairs; operations are known by their position.
    pub(super) fn new<'a>(operations: impl Iterator<Item = (&'a str, &'a str)>) -> Table {
        let mut paths: Vec<(&str, Path)> = Vec::new();
        let mut known = std::collections::HashMap::new();
        for (number, (template, method)) in operations.enumerate() {
            let index = *known.entry(template).or_insert_with(|| {
                paths.push((template, Path { methods: Vec::new(), pattern: PathPattern::parse(template) }));
                paths.len() - 1
            });
            let methods = &mut paths[index].1.methods;
            if methods.iter().all(|(other, _)| **other != *method) {
                methods.push((method.into(), number));
            }
        }
        // Stable, so what is alike stays in the order written.
        paths.sort_by_key(|(template, path)| {
            let pattern = &path.pattern;
            let rest_length = if pattern.rest { usize::MAX - pattern.segments.len() } else { 0 };
            let count = pattern.parameters.len();
            (pattern.rest, rest_length, count > 0, !template.contains('.'), count)
        });
        let paths: Vec<Path> = paths.into_iter().map(|(_, path)| path).collect();
        let mut root = Node { first: 0, ..Node::default() };
        for (rank, path) in paths.iter().enumerate() {
            root.add(&path.pattern, rank);
        }
        root.sort();
        Table { paths, root }
    }

    /// Finds the operation of a path below the base path.
    pub(super) fn find(&self, path: &str, method: &str) -> Found {
        let search = self.search(path, method);
        match (search.best, search.other) {
            (Some((_, operation)), _) => Found::Operation(operation),
            (None, Some(rank)) => Found::OtherMethod(rank),
            (None, None) => Found::Nothing,
        }
    }

    /// The rank of the path with the operation of a method.
    pub(super) fn rank(&self, path: &str, method: &str) -> Option<usize> {
        self.search(path, method).best.map(|(rank, _)| rank)
    }

    fn search<'m>(&self, path: &str, method: &'m str) -> Search<'m> {
        let mut search = Search { method, best: None, other: None };
        self.walk(&self.root, Segments::of(path), &mut search);
        search
    }

    fn walk(&self, node: &Node, rest: Segments<'_>, search: &mut Search<'_>) {
        // Ranks of a method that fits only get better; what is behind the best need not be looked at.
        if search.best.is_some_and(|(rank, _)| rank < node.first) {
            return;
        }
        self.take(&node.rests, search);
        let mut behind = rest.clone();
        let Some(segment) = behind.next() else { return self.take(&node.ends, search) };
        if let Ok(index) = node.literals.binary_search_by(|(text, _)| (**text).cmp(segment)) {
            self.walk(&node.literals[index].1, behind.clone(), search);
        }
        for (texts, next) in &node.mixed {
            if mixed_fits(texts, segment) {
                self.walk(next, behind.clone(), search);
            }
        }
        if let Some(next) = &node.parameter
            && !segment.is_empty()
        {
            self.walk(next, behind, search);
        }
    }

    fn take(&self, ranks: &[usize], search: &mut Search<'_>) {
        for rank in ranks {
            let methods = &self.paths[*rank].methods;
            match methods.iter().find(|(method, _)| **method == *search.method) {
                Some((_, operation)) => {
                    if search.best.is_none_or(|(best, _)| *rank < best) {
                        search.best = Some((*rank, *operation));
                    }
                }
                None => search.other = Some(search.other.map_or(*rank, |other| other.min(*rank))),
            }
        }
    }

    /// The number of paths; ranks are below it.
    pub(super) fn ranks(&self) -> usize {
        self.paths.len()
    }

    /// The operations on the path of a rank, with their methods.
    pub(super) fn methods(&self, rank: usize) -> impl Iterator<Item = (&str, usize)> {
        let methods = self.paths.get(rank).map(|path| path.methods.as_slice()).unwrap_or_default();
        methods.iter().map(|(method, operation)| (&**method, *operation))
    }
}

/// Whether a segment fits, without its values. Texts around one parameter, the usual case, need no list of places.
fn mixed_fits(texts: &[Box<str>], segment: &str) -> bool {
    match texts {
        [before, after] => {
            segment.len() > before.len() + after.len() && segment.starts_with(&**before) && segment.ends_with(&**after)
        }
        _ => mixed(texts, segment, &mut |_| {}),
    }
}

impl Node {
    fn add(&mut self, pattern: &PathPattern, rank: usize) {
        let mut node = self;
        for segment in &pattern.segments {
            node = match segment {
                Segment::Literal(text) => {
                    let index = position(&mut node.literals, text, rank);
                    &mut node.literals[index].1
                }
                Segment::Mixed(texts) => {
                    let index = position(&mut node.mixed, texts, rank);
                    &mut node.mixed[index].1
                }
                Segment::Parameter => {
                    node.parameter.get_or_insert_with(|| Box::new(Node { first: rank, ..Node::default() }))
                }
            };
        }
        if pattern.rest { node.rests.push(rank) } else { node.ends.push(rank) }
    }

    fn sort(&mut self) {
        self.literals.sort_by(|left, right| left.0.cmp(&right.0));
        let literals = self.literals.iter_mut().map(|(_, node)| node);
        let mixed = self.mixed.iter_mut().map(|(_, node)| node);
        literals.chain(mixed).chain(self.parameter.as_deref_mut()).for_each(Node::sort);
    }
}

/// Where a key stands, which is added when it is new. Paths come by rank, so the first is the best.
fn position<K: PartialEq + Clone>(list: &mut Vec<(K, Node)>, key: &K, rank: usize) -> usize {
    list.iter().position(|(known, _)| known == key).unwrap_or_else(|| {
        list.push((key.clone(), Node { first: rank, ..Node::default() }));
        list.len() - 1
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_the_originals() {
        let operations = [
            ("/*", "GET"),
            ("/pet/{id}", "GET"),
            ("/pet/{id}", "DELETE"),
            ("/pet/findByStatus", "GET"),
            ("/pet/{a}/{b}", "GET"),
            ("/pet/{a}/orders", "GET"),
            ("/pet/{id}.json", "GET"),
            ("/pet/*", "POST"),
            ("/{any}/{id}", "PUT"),
            ("/a/{x}", "GET"),
            ("/a/{y}", "POST"),
        ];
        let table = Table::new(operations.into_iter());
        for (path, method, expected) in [
            ("/pet/findByStatus", "GET", Found::Operation(3)),
            ("/pet/findByStatus/", "GET", Found::Operation(3)),
            ("/pet/7", "GET", Found::Operation(1)),
            ("/pet/7", "DELETE", Found::Operation(2)),
            ("/pet/findByStatus", "DELETE", Found::Operation(2)),
            ("/pet/7.json", "GET", Found::Operation(6)),
            ("/pet/7/orders", "GET", Found::Operation(5)),
            ("/pet/7/8", "GET", Found::Operation(4)),
            ("/pet/7", "POST", Found::Operation(7)),
            ("/pet/7", "PUT", Found::Operation(8)),
            ("/a/1", "GET", Found::Operation(9)),
            ("/a/1", "POST", Found::Operation(10)),
            ("/elsewhere/a/b/c", "GET", Found::Operation(0)),
            ("", "GET", Found::Operation(0)),
        ] {
            assert_eq!(table.find(path, method), expected, "{method} {path}");
        }
        let Found::OtherMethod(rank) = table.find("/elsewhere/a/b/c", "POST") else { panic!("no other method") };
        assert_eq!(table.methods(rank).map(|(method, _)| method).collect::<Vec<_>>(), ["GET"]);
        assert_eq!(Table::new([("/x", "GET")].into_iter()).find("/y", "GET"), Found::Nothing);
    }

    #[test]
    fn every_path_is_found_as_one_after_the_other_would() {
        // All templates of a small alphabet against all paths of it, by the tree and by trying each in turn.
        let parts = ["a", "b", "{p}", "{p}.b", "a{p}"];
        let mut templates: Vec<String> = vec!["/".into(), "/*".into()];
        for first in parts {
            templates.push(format!("/{first}"));
            templates.push(format!("/{first}/*"));
            templates.extend(parts.iter().map(|second| format!("/{first}/{second}")));
        }
        let table = Table::new(templates.iter().map(|template| (template.as_str(), "GET")));
        let words = ["a", "b", "c", "x.b", "ab", "a.b"];
        let one = words.iter().map(|word| format!("/{word}"));
        let two = words.iter().flat_map(|first| words.iter().map(move |second| format!("/{first}/{second}")));
        for path in one.chain(two).chain(["/a/b/c".into(), "/".into()]) {
            let in_turn = table.paths.iter().find(|candidate| candidate.pattern.matches(&path).is_some());
            let expected = in_turn.map_or(Found::Nothing, |found| Found::Operation(found.methods[0].1));
            assert_eq!(table.find(&path, "GET"), expected, "{path}");
        }
    }
}
