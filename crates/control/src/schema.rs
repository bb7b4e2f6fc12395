//! Bodies: which members they have and of which types.

use serde_json::{Map, Value};

use crate::http::Request;
use crate::problem::Problem;

/// What a member may be; `null` is always allowed, because responses have it for what is not set.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Is {
    Text,
    /// At most so many characters.
    Short(usize),
    /// One of these.
    OneOf(&'static [&'static str]),
    Flag,
    Number,
    Texts,
    List,
    Map,
    Any,
}

/// The members of a body.
pub(crate) type Members = &'static [(&'static str, Is)];

/// The JSON object of a request.
pub(crate) fn object(request: &Request) -> Result<Map<String, Value>, Problem> {
    if request.body.is_empty() {
        return Err(Problem::bad_request("Request payload cannot be empty."));
    }
    match serde_json::from_slice(&request.body) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) | Err(_) => Err(Problem::bad_request("Malformed request body.")),
    }
}

/// The JSON object of a request with these members and no others; `needed` must be there and not be empty.
pub(crate) fn body(request: &Request, members: Members, needed: &[&str]) -> Result<Map<String, Value>, Problem> {
    let body = object(request)?;
    check(&body, members, needed)?;
    Ok(body)
}

/// Checks an object.
pub(crate) fn check(body: &Map<String, Value>, members: Members, needed: &[&str]) -> Result<(), Problem> {
    let mut problem = Problem::bad_request("Validation Error");
    for (name, value) in body {
        let Some((_, is)) = members.iter().find(|(known, _)| known == name) else {
            return Err(Problem::bad_request(format!("Unrecognized property '{name}'")));
        };
        match why_not(*is, value) {
            None => {}
            Some(Mismatch::Type) => {
                let text = "One or more request body parameters contain disallowed values.";
                return Err(Problem::bad_request(text));
            }
            Some(Mismatch::Length(characters_max)) => {
                let text = format!("{name}: size must be between 0 and {characters_max}");
                problem.errors.push((format!("400_{name}"), text));
            }
        }
    }
    for name in needed {
        let is_missing = match body.get(*name) {
            None | Some(Value::Null) => true,
            Some(Value::String(text)) => text.trim().is_empty(),
            Some(_) => false,
        };
        if is_missing {
            problem.errors.push((format!("400_{name}"), format!("{name}: must not be null or empty")));
        }
    }
    if problem.errors.is_empty() { Ok(()) } else { Err(problem) }
}

enum Mismatch {
    Type,
    Length(usize),
}

fn why_not(is: Is, value: &Value) -> Option<Mismatch> {
    if value.is_null() {
        return None;
    }
    let fits = match is {
        Is::Text => value.is_string(),
        Is::Short(characters_max) => match value.as_str() {
            Some(text) if text.chars().count() > characters_max => return Some(Mismatch::Length(characters_max)),
            found => found.is_some(),
        },
        Is::OneOf(allowed) => value.as_str().is_some_and(|text| allowed.contains(&text)),
        Is::Flag => value.is_boolean(),
        Is::Number => value.is_number(),
        Is::Texts => value.as_array().is_some_and(|list| list.iter().all(Value::is_string)),
        Is::List => value.is_array(),
        Is::Map => value.is_object(),
        Is::Any => true,
    };
    (!fits).then_some(Mismatch::Type)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn bodies_are_checked() {
        const MEMBERS: Members = &[("name", Is::Short(3)), ("kind", Is::OneOf(&["A", "B"])), ("tags", Is::Texts)];
        for (body, expected) in [
            (json!({"name": "abc", "kind": null, "tags": ["x"]}), ""),
            (json!({"name": "abcd"}), "Validation Error"),
            (json!({"name": " "}), "Validation Error"),
            (json!({}), "Validation Error"),
            (json!({"name": "a", "other": 1}), "Unrecognized property 'other'"),
            (json!({"name": "a", "kind": "C"}), "One or more request body parameters contain disallowed values."),
            (json!({"name": "a", "tags": [1]}), "One or more request body parameters contain disallowed values."),
        ] {
            let got = check(body.as_object().unwrap(), MEMBERS, &["name"]);
            assert_eq!(got.err().map(|problem| problem.description).unwrap_or_default(), expected, "{body}");
        }
    }
}
