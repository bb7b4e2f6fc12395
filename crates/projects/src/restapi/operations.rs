//! `operations` of a `RestApi`: method, path and header fields that requests must have, backends, timeouts, policies.

use std::sync::Arc;
use std::time::Duration;

use penstock_catalog::{At, ChainStep, Endpoints, HeaderMatch, Operation, Resilience};

use super::spec::at_of;
use super::{known_keys, list, mapping, steps, upstream};
use crate::document::Item;
use crate::duration::go_duration;
use crate::{Import, whole_value};

/// The methods an operation may have.
const METHODS: [&str; 7] = ["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"];

/// Operations of one API; what the largest definitions have is below a thousand.
const OPERATIONS_MAX: usize = 20_000;

/// Fields that one operation may ask for. The Gateway API of Kubernetes has 16.
const HEADER_MATCHES_MAX: usize = 16;

/// What operations inherit from their API.
pub(super) struct OfApi<'a> {
    pub chain: Vec<Arc<ChainStep>>,
    pub resilience: Resilience,
    pub endpoints: &'a Endpoints,
}

pub(super) fn read(import: &mut Import<'_>, spec: &Item<'_>, of_api: &OfApi<'_>) -> Vec<Arc<Operation>> {
    let Some(operations) = spec.get("operations").filter(|list| list.items().next().is_some()) else {
        import.error(&spec.at(), "`spec` needs `operations`, a list of at least one operation");
        return Vec::new();
    };
    if operations.items().count() > OPERATIONS_MAX {
        import.error(&operations.at(), format!("more than {OPERATIONS_MAX} operations"));
        return Vec::new();
    }
    let mut found: Vec<Arc<Operation>> = Vec::new();
    for item in operations.items() {
        let Some(operation) = operation(import, &item, of_api) else { continue };
        let same = |other: &&Arc<Operation>| {
            (&other.method, &other.path, &other.header_matches)
                == (&operation.method, &operation.path, &operation.header_matches)
        };
        if let Some(other) = found.iter().find(same) {
            let message = format!(
                "{} {} is given twice; the one at line {} is served",
                operation.method, operation.path, other.at.line
            );
            import.warn(&item.at(), message);
            continue;
        }
        found.push(Arc::new(operation));
    }
    found
}

/// The requests that an operation matches.
struct Matched {
    method: String,
    path: Arc<str>,
    at: At,
    headers: Vec<HeaderMatch>,
}

fn operation(import: &mut Import<'_>, item: &Item<'_>, of_api: &OfApi<'_>) -> Option<Operation> {
    if !item.is_map() {
        import.error(&item.at(), format!("an operation must be a mapping, not {}", item.kind()));
        return None;
    }
    const KEYS: [&str; 9] =
        ["method", "path", "match", "matchHeaders", "policies", "resilience", "upstream", "description", "summary"];
    known_keys(import, item, &KEYS);
    let Matched { method, path, at, headers } = matched(import, item)?;
    let method = method.to_ascii_uppercase();
    if !METHODS.contains(&&*method) {
        import.error(&at_of(item, "method"), format!("`method` must be one of {}, not `{method}`", list(&METHODS)));
        return None;
    }
    if !path.starts_with('/') {
        import.error(&at, format!("`path` must begin with `/`, not `{path}`"));
        return None;
    }
    if path.matches('{').count() != path.matches('}').count() {
        import.error(&at, format!("the braces of `{path}` do not fit together"));
        return None;
    }
    if path.bytes().any(|byte| byte <= b' ' || byte == 0x7f || byte == b'?' || byte == b'#') {
        import.error(&at, format!("`{path}` is not a path"));
        return None;
    }
    let own = steps::read(import, item, false);
    Some(Operation {
        method: method.into(),
        path,
        header_matches: headers,
        chain: of_api.chain.iter().cloned().chain(own).collect(),
        resilience: resilience(import, item, of_api.resilience),
        endpoints: upstream::of_operation(import, item, of_api.endpoints),
        at: item.at(),
        ..Operation::default()
    })
}

/// `match`, or `method` and `path` where there is none, as the API Platform reads them.
fn matched(import: &mut Import<'_>, item: &Item<'_>) -> Option<Matched> {
    let mut headers = headers(import, item, "matchHeaders");
    if item.get("match").is_none() {
        let (method, path) = (import.some_text_of(item, "method"), import.some_text_of(item, "path"));
        let (Some(method), Some(path)) = (method, path) else {
            import.error(&item.at(), "an operation needs `method` and `path`, or `match` with both");
            return None;
        };
        return Some(Matched { method: method.to_string(), path, at: at_of(item, "path"), headers });
    }
    let wanted = mapping(import, item, "match", item.at())?;
    known_keys(import, &wanted, &["method", "path", "headers"]);
    headers.extend(self::headers(import, &wanted, "headers"));
    let Some(method) = import.some_text_of(&wanted, "method") else {
        import.error(&wanted.at(), "`match` needs `method`");
        return None;
    };
    let path = mapping(import, &wanted, "path", wanted.at())?;
    known_keys(import, &path, &["value", "type"]);
    let Some(value) = import.some_text_of(&path, "value") else {
        import.error(&path.at(), "`path` needs `value`");
        return None;
    };
    let value = match import.text_of(&path, "type").as_deref() {
        None | Some("Exact") => value,
        Some("PathPrefix") if value.ends_with("/*") => value,
        Some("PathPrefix") => format!("{}/*", value.trim_end_matches('/')).into(),
        Some(other) => {
            import.error(&at_of(&path, "type"), format!("`type` must be `Exact` or `PathPrefix`, not `{other}`"));
            return None;
        }
    };
    Some(Matched { method: method.to_string(), path: value, at: at_of(&path, "value"), headers })
}

fn headers(import: &mut Import<'_>, map: &Item<'_>, key: &str) -> Vec<HeaderMatch> {
    let Some(found) = map.get(key) else { return Vec::new() };
    if !found.is_list() {
        import.error(&found.at(), format!("`{key}` must be a list, not {}", found.kind()));
        return Vec::new();
    }
    let items: Vec<Item<'_>> = found.items().collect();
    if items.len() > HEADER_MATCHES_MAX {
        import.error(&found.at(), format!("more than {HEADER_MATCHES_MAX} header fields"));
        return Vec::new();
    }
    items.iter().filter_map(|item| header(import, item)).collect()
}

fn header(import: &mut Import<'_>, item: &Item<'_>) -> Option<HeaderMatch> {
    known_keys(import, item, &["name", "value", "type"]);
    let (name, value) = (import.some_text_of(item, "name"), import.text_of(item, "value"));
    let (Some(name), Some(value)) = (name, value) else {
        import.error(&item.at(), "a header field needs `name` and `value`");
        return None;
    };
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if !name.bytes().all(is_token) {
        import.error(&at_of(item, "name"), format!("`{name}` is not a header name"));
        return None;
    }
    let is_pattern = match import.text_of(item, "type").as_deref() {
        None | Some("Exact") => false,
        Some("RegularExpression") => true,
        Some(other) => {
            let message = format!("`type` must be `Exact` or `RegularExpression`, not `{other}`");
            import.error(&at_of(item, "type"), message);
            return None;
        }
    };
    if is_pattern && whole_value(&value).is_none() {
        import.error(&at_of(item, "value"), format!("`{value}` is not a regular expression"));
        return None;
    }
    Some(HeaderMatch { name, value, is_pattern })
}

/// `resilience`: each timeout that is given takes the place of the one before.
pub(super) fn resilience(import: &mut Import<'_>, map: &Item<'_>, before: Resilience) -> Resilience {
    if map.get("resilience").is_none() {
        return before;
    }
    let Some(found) = mapping(import, map, "resilience", map.at()) else { return before };
    known_keys(import, &found, &["timeout", "idleTimeout"]);
    let mut time = |key: &str| -> Option<Duration> {
        let text = import.some_text_of(&found, key)?;
        let time = single_unit(&text);
        if time.is_none() {
            let message = format!("`{key}` must be a number with one unit, as `30s`, `500ms` or `1.5m`, not `{text}`");
            import.error(&at_of(&found, key), message);
        }
        time
    };
    let (timeout, idle_timeout) = (time("timeout"), time("idleTimeout"));
    Resilience { timeout: timeout.or(before.timeout), idle_timeout: idle_timeout.or(before.idle_timeout) }
}

/// A time with one unit. Times of several units, without one or with a sign are refused, as in the API Platform.
pub(super) fn single_unit(text: &str) -> Option<Duration> {
    let number = ["ms", "s", "m", "h"].iter().find_map(|unit| text.strip_suffix(unit))?;
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let is_number = match number.split_once('.') {
        Some((whole, fraction)) => digits(whole) && digits(fraction),
        None => digits(number),
    };
    if is_number { go_duration(text) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_one_unit() {
        for (text, expected) in [
            ("0s", Some(0)),
            ("1.5m", Some(90_000)),
            ("500ms", Some(500)),
            ("2h", Some(7_200_000)),
            ("1h30m", None),
            ("-30s", None),
            ("30", None),
            ("0", None),
            (".5s", None),
            ("s", None),
        ] {
            assert_eq!(single_unit(text), expected.map(Duration::from_millis), "{text}");
        }
    }
}
