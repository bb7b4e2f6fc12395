//! Which objects a list has, and `query=` of the REST APIs.

use rusqlite::types::Value as Sql;

use super::{Kind, Order};

/// Which objects are wanted.
#[derive(Debug, Clone)]
pub(crate) struct Filter {
    pub(crate) kind: Kind,
    conditions: Vec<(String, Vec<Sql>)>,
    pub(crate) order: Order,
    pub(crate) limit: Option<usize>,
    pub(crate) offset: usize,
}

/// One `key:value` of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Term {
    /// The key; empty for words without one.
    pub(crate) key: String,
    /// The value, without quotes.
    pub(crate) value: String,
    /// Whether it was in quotes.
    pub(crate) exact: bool,
}

impl Filter {
    /// All objects of a kind of an organization, oldest first.
    pub(crate) fn new(kind: Kind, organization: &str) -> Filter {
        let mut filter = Filter {
            kind,
            conditions: Vec::new(),
            order: Order::Created { descending: false },
            limit: None,
            offset: 0,
        };
        filter.conditions.push((format!("kind = '{}'", kind.name()), Vec::new()));
        filter.is("organization", organization)
    }

    /// With a column that has a value. The name is one of ours, never of a client.
    fn is(mut self, column: &str, value: &str) -> Filter {
        self.conditions.push((format!("{column} = ?"), vec![text(value)]));
        self
    }

    /// Of an object.
    pub(crate) fn parent(self, parent: &str) -> Filter {
        self.is("parent", parent)
    }

    /// That refer to an object.
    pub(crate) fn target(self, target: &str) -> Filter {
        self.is("target", target)
    }

    /// Of a user.
    pub(crate) fn owner(self, owner: &str) -> Filter {
        self.is("owner", owner)
    }

    /// Of a name, whatever the case.
    pub(crate) fn named(mut self, name: &str) -> Filter {
        self.conditions.push(("name = ? COLLATE NOCASE".to_owned(), vec![text(name)]));
        self
    }

    /// With a unique key.
    pub(crate) fn keyed(self, key: &str) -> Filter {
        self.is("unique_key", key)
    }

    /// In one of these states.
    pub(crate) fn states(mut self, states: &[&str]) -> Filter {
        let marks = vec!["?"; states.len()].join(", ");
        self.conditions.push((format!("state IN ({marks})"), states.iter().map(|state| text(state)).collect()));
        self
    }

    /// With a member of the document that has one of these values.
    pub(crate) fn member(mut self, member: &str, values: &[&str]) -> Filter {
        let marks = vec!["?"; values.len()].join(", ");
        let condition = format!("{} IN ({marks})", expression(self.kind, member));
        self.conditions.push((condition, values.iter().map(|value| text(value)).collect()));
        self
    }

    /// With a member of the document that has none of these values.
    pub(crate) fn without_member(mut self, member: &str, values: &[&str]) -> Filter {
        let marks = vec!["?"; values.len()].join(", ");
        let condition = format!("coalesce({}, '') NOT IN ({marks})", expression(self.kind, member));
        self.conditions.push((condition, values.iter().map(|value| text(value)).collect()));
        self
    }

    /// APIs that a publisher may see by their access control.
    pub(crate) fn editable_by(mut self, user: &str, roles: &[String]) -> Filter {
        let marks = vec!["?"; roles.len()].join(", ");
        let condition = format!(
            "(coalesce(access, 'NONE') <> 'RESTRICTED' OR owner = ? OR EXISTS (SELECT 1 FROM json_each(access_roles) WHERE \
             value IN ({marks})))"
        );
        let mut values = vec![text(user)];
        values.extend(roles.iter().map(|role| text(&role.to_lowercase())));
        self.conditions.push((condition, values));
        self
    }

    /// With a name that contains a text.
    pub(crate) fn name_contains(mut self, part: &str) -> Filter {
        self.conditions.push(like("name", part));
        self
    }

    /// Those that a role of the reader may see in the developer portal.
    pub(crate) fn visible_to(mut self, roles: &[String]) -> Filter {
        let mut condition = "coalesce(visibility, 'PUBLIC') <> 'RESTRICTED'".to_owned();
        let mut values = Vec::new();
        if !roles.is_empty() {
            let marks = vec!["?"; roles.len()].join(", ");
            condition =
                format!("({condition} OR EXISTS (SELECT 1 FROM json_each(visible_roles) WHERE value IN ({marks})))");
            values = roles.iter().map(|role| text(&role.to_lowercase())).collect();
        }
        self.conditions.push((condition, values));
        self
    }

    /// The latest version of each name only, of those that the developer portal lists.
    pub(crate) fn latest(mut self) -> Filter {
        self.conditions.push(("superseded = 0".to_owned(), Vec::new()));
        self
    }

    /// APIs that define a scope.
    pub(crate) fn with_scope(mut self, name: &str) -> Filter {
        let condition =
            "EXISTS (SELECT 1 FROM json_each(document, '$.scopes') WHERE json_extract(value, '$.scope.name') = ?)";
        self.conditions.push((condition.to_owned(), vec![text(name)]));
        self
    }

    /// APIs with an operation of a throttling policy.
    pub(crate) fn with_operation_policy(mut self, name: &str) -> Filter {
        let condition = "EXISTS (SELECT 1 FROM json_each(document, '$.operations') WHERE json_extract(value, '$.throttlingPolicy') = ?)";
        self.conditions.push((condition.to_owned(), vec![text(name)]));
        self
    }

    /// Sorted otherwise.
    pub(crate) fn sorted(mut self, order: Order) -> Filter {
        self.order = order;
        self
    }

    /// A page only.
    pub(crate) fn page(mut self, offset: usize, limit: usize) -> Filter {
        (self.offset, self.limit) = (offset, Some(limit));
        self
    }

    /// What the terms of a query ask for: terms with the same key are alternatives, different keys must all fit.
    pub(crate) fn query(mut self, terms: &[Term]) -> Filter {
        let mut keys: Vec<&str> = terms.iter().map(|term| term.key.as_str()).collect();
        keys.dedup();
        keys.sort_unstable();
        keys.dedup();
        for key in keys {
            let (mut texts, mut values) = (Vec::new(), Vec::new());
            for term in terms.iter().filter(|term| term.key == key) {
                let (condition, more) = condition(self.kind, term);
                texts.push(condition);
                values.extend(more);
            }
            self.conditions.push((format!("({})", texts.join(" OR ")), values));
        }
        self
    }

    /// The condition, and its values.
    pub(super) fn sql(&self) -> (String, Vec<Sql>) {
        let texts: Vec<&str> = self.conditions.iter().map(|(condition, _)| condition.as_str()).collect();
        (texts.join(" AND "), self.conditions.iter().flat_map(|(_, values)| values.clone()).collect())
    }
}

fn text(value: &str) -> Sql {
    Sql::Text(value.to_owned())
}

/// A member of the document: of APIs, the column of those that indexes have.
fn expression(kind: Kind, member: &str) -> String {
    match (kind, member) {
        (Kind::Api, "context") => "api_context".to_owned(),
        (Kind::Api, "type") => "api_type".to_owned(),
        (Kind::Api, "version") => "api_version".to_owned(),
        (_, other) => format!("json_extract(document, '$.{other}')"),
    }
}

/// A text contains a part, whatever the case of its letters.
fn like(expression: &str, part: &str) -> (String, Vec<Sql>) {
    let escaped = part.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
    (format!("{expression} LIKE ? ESCAPE '\\'"), vec![text(&format!("%{escaped}%"))])
}

fn condition(kind: Kind, term: &Term) -> (String, Vec<Sql>) {
    let value = term.value.as_str();
    let of_list = |list: &str, expression: &str, value: String| {
        let condition = format!("EXISTS (SELECT 1 FROM json_each(document, '$.{list}') WHERE {expression})");
        (condition, vec![Sql::Text(value)])
    };
    let of = |expression: &str| match term.exact {
        true => (format!("{expression} = ? COLLATE NOCASE"), vec![text(value)]),
        false => like(expression, value),
    };
    match term.key.as_str() {
        "" | "name" => of("name"),
        "tag" | "tags" => of_list("tags", "value = ? COLLATE NOCASE", value.to_owned()),
        "label" => of_list("labels", "value = ?", value.to_owned()),
        "api-category" | "api-categories" => of_list("categories", "value = ? COLLATE NOCASE", value.to_owned()),
        "status" | "lcstate" => of("state"),
        "context" | "version" => of(&expression(kind, &term.key)),
        // The owner is kept without the organization, which clients write behind it.
        "provider" if value.contains('@') => of("owner || '@' || organization"),
        "provider" => of("owner"),
        "description" => of("json_extract(document, '$.description')"),
        "content" => content(value),
        "type" => {
            // An API has one of several types.
            let wanted = value.to_ascii_uppercase();
            let condition = "(api_type = ? OR (? = 'API' AND api_type NOT IN ('APIPRODUCT', 'MCP')))";
            (condition.to_owned(), vec![text(&wanted), text(&wanted)])
        }
        "vendor" => of("json_extract(document, '$.gatewayVendor')"),
        "display-name" => of("coalesce(json_extract(document, '$.displayName'), name)"),
        "doc" => {
            let (inner, values) = like("doc.name", value);
            let condition = format!(
                "EXISTS (SELECT 1 FROM object AS doc WHERE doc.kind = 'document' AND doc.parent = object.id AND {inner})"
            );
            (condition, values)
        }
        property => {
            let condition = "EXISTS (SELECT 1 FROM json_each(document, '$.additionalProperties') WHERE \
                             lower(json_extract(value, '$.name')) = ? AND json_extract(value, '$.value') LIKE ? ESCAPE '\\')";
            let (_, mut values) = like("x", value);
            values.insert(0, text(&property.to_lowercase()));
            (condition.to_owned(), values)
        }
    }
}

/// A text in the name, the description, a definition or a document.
fn content(value: &str) -> (String, Vec<Sql>) {
    let of_file = "CAST(file.content AS TEXT)";
    let parts = [
        ("object.name", "{}"),
        ("json_extract(object.document, '$.description')", "{}"),
        (of_file, "EXISTS (SELECT 1 FROM file WHERE file.owner = object.id AND file.path LIKE 'Definitions/%' AND {})"),
        (
            "doc.name",
            "EXISTS (SELECT 1 FROM object AS doc WHERE doc.kind = 'document' AND doc.parent = object.id AND {})",
        ),
        (
            of_file,
            "EXISTS (SELECT 1 FROM object AS doc JOIN file ON file.owner = doc.id WHERE doc.kind = 'document' AND \
             doc.parent = object.id AND {})",
        ),
    ];
    let (mut texts, mut values) = (Vec::new(), Vec::new());
    for (expression, around) in parts {
        let (condition, more) = like(expression, value);
        texts.push(around.replace("{}", &condition));
        values.extend(more);
    }
    (format!("({})", texts.join(" OR ")), values)
}

impl Term {
    /// Reads a query: `key:value` separated by spaces. A word without a key belongs to the value before it.
    pub(crate) fn parse(query: &str) -> Vec<Term> {
        let mut terms: Vec<Term> = Vec::new();
        let mut rest = query.trim();
        while !rest.is_empty() {
            let word_end = rest.find(' ').unwrap_or(rest.len());
            let colon = rest[..word_end].find(':').filter(|colon| *colon > 0 && !rest.starts_with('"'));
            let (key, value) = match colon {
                Some(colon) => (Some(rest[..colon].to_lowercase()), &rest[colon + 1..]),
                None => (None, rest),
            };
            let (value, exact, behind) = match value.strip_prefix('"').and_then(|quoted| quoted.split_once('"')) {
                Some((quoted, behind)) => (quoted, true, behind),
                None => {
                    let end = value.find(' ').unwrap_or(value.len());
                    (&value[..end], false, &value[end..])
                }
            };
            match (key, terms.last_mut()) {
                (Some(key), _) => terms.push(Term { key, value: value.to_owned(), exact }),
                (None, Some(last)) if !last.exact => {
                    last.value.push(' ');
                    last.value.push_str(value);
                }
                (None, _) => terms.push(Term { key: String::new(), value: value.to_owned(), exact }),
            }
            rest = behind.trim_start();
        }
        // Clients write wildcards although every value is searched as a part.
        for term in &mut terms {
            if !term.exact {
                term.value = term.value.trim_matches('*').to_owned();
            }
        }
        terms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_terms() {
        let term = |key: &str, value: &str, exact| Term { key: key.into(), value: value.into(), exact };
        for (query, expected) in [
            ("name:echo$", vec![term("name", "echo$", false)]),
            ("Pizza Shack", vec![term("", "Pizza Shack", false)]),
            (
                "name:\"My API\" version:\"1.0\" type:API",
                vec![term("name", "My API", true), term("version", "1.0", true), term("type", "API", false)],
            ),
            ("tags:a tags:b c", vec![term("tags", "a", false), term("tags", "b c", false)]),
            ("name:*part*", vec![term("name", "part", false)]),
            ("  ", vec![]),
        ] {
            assert_eq!(Term::parse(query), expected, "{query}");
        }
    }
}
