//! Lists: a page of entries, and where the next and the previous page are.

use serde_json::{Value, json};

use crate::http::{Parameters, encode};

/// Entries of a page by default.
const LIMIT: usize = 25;

/// The most entries of a page.
const LIMIT_MAX: usize = 10_000;

/// Which page is wanted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Page {
    pub(crate) offset: usize,
    pub(crate) limit: usize,
}

impl Page {
    /// `limit` and `offset` of a query.
    pub(crate) fn of(query: &Parameters) -> Page {
        Page::with_default(query, LIMIT)
    }

    /// The same, with another default size.
    pub(crate) fn with_default(query: &Parameters, default: usize) -> Page {
        let limit = query.number("limit").unwrap_or(default).min(LIMIT_MAX);
        Page { offset: query.number("offset").unwrap_or_default(), limit }
    }

    /// The body of a list. `path` is relative to the API, `extra` the other parameters that the links repeat where they have a
    /// value.
    pub(crate) fn body(self, path: &str, extra: &[(&str, &str)], list: Vec<Value>, total: usize) -> Value {
        let Page { offset, limit } = self;
        let link = |offset: usize| {
            let with_value = extra.iter().filter(|(_, value)| !value.is_empty());
            let more: String = with_value.map(|(name, value)| format!("&{name}={}", encode(value))).collect();
            format!("{path}?limit={limit}&offset={offset}{more}")
        };
        let next = if limit > 0 && offset.saturating_add(limit) < total { link(offset + limit) } else { String::new() };
        let previous = if offset > 0 { link(offset.saturating_sub(limit)) } else { String::new() };
        json!({
            "count": list.len(),
            "list": list,
            "pagination": {"offset": offset, "limit": limit, "total": total, "next": next, "previous": previous},
        })
    }

    /// A page of a list that is in memory.
    pub(crate) fn cut(self, path: &str, all: Vec<Value>) -> Value {
        let total = all.len();
        let list = all.into_iter().skip(self.offset).take(self.limit).collect();
        self.body(path, &[], list, total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_link_to_their_neighbours() {
        let page = Page::of(&Parameters::parse("limit=2&offset=2"));
        let body = page.body("/apis", &[("query", "name:a b")], vec![json!(1), json!(2)], 5);
        assert_eq!(body["count"], 2);
        assert_eq!(body["pagination"]["next"], "/apis?limit=2&offset=4&query=name%3Aa%20b");
        assert_eq!(body["pagination"]["previous"], "/apis?limit=2&offset=0&query=name%3Aa%20b");
        let all = Page::of(&Parameters::default()).cut("/x", vec![json!(1)]);
        assert_eq!((&all["pagination"]["next"], &all["pagination"]["limit"]), (&json!(""), &json!(25)));
    }
}
