//! Examples of answers, from which mocked APIs answer.

use std::sync::Arc;

use penstock_catalog::{MockExample, MockResponse};

use super::reference::resolve;
use crate::document::Item;
use crate::{Definition, Import};

/// The examples of an operation's answers by status.
pub(super) fn responses(
    import: &mut Import<'_>,
    root: Item<'_>,
    operation: &Item<'_>,
    kind: Definition,
) -> Vec<MockResponse> {
    let mut found = Vec::new();
    for (code, _, item) in operation.get("responses").iter().flat_map(|all| all.entries()) {
        if code.starts_with("x-") {
            continue;
        }
        let Some(item) = resolve(import, root, item) else { continue };
        let mut response = MockResponse { code: code.clone(), ..MockResponse::default() };
        for (name, _, header) in item.get("headers").iter().flat_map(|all| all.entries()) {
            let Some(header) = resolve(import, root, header) else { continue };
            let schema = header.get("schema");
            let value = header.get("example").or_else(|| schema.as_ref().and_then(|schema| schema.get("example")));
            if let Some(value) = value {
                response.headers.push((name.clone(), text(&value)));
            }
        }
        if kind == Definition::Swagger {
            for (media_type, _, example) in item.get("examples").iter().flat_map(|all| all.entries()) {
                response.examples.push(example_of("", media_type, &example));
            }
        }
        for (media_type, _, content) in item.get("content").iter().flat_map(|all| all.entries()) {
            let Some(content) = resolve(import, root, content) else { continue };
            if let Some(example) = content.get("example") {
                response.examples.push(example_of("", media_type, &example));
            }
            for (name, _, example) in content.get("examples").iter().flat_map(|all| all.entries()) {
                let Some(example) = resolve(import, root, example) else { continue };
                match example.get("value") {
                    Some(value) => response.examples.push(example_of(name, media_type, &value)),
                    None => import.warn(&example.at(), format!("the example `{name}` has no `value`")),
                }
            }
        }
        found.push(response);
    }
    found
}

fn example_of(name: &str, media_type: &Arc<str>, value: &Item<'_>) -> MockExample {
    let body = match value.text() {
        // A text that is no JSON becomes one where JSON is announced.
        Some(text) if is_json(media_type) && serde_json::from_str::<serde::de::IgnoredAny>(text).is_err() => {
            value.json().to_string().into()
        }
        _ => text(value),
    };
    MockExample { name: name.into(), media_type: media_type.clone(), body }
}

fn is_json(media_type: &str) -> bool {
    let essence = media_type.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("application/json") || essence.to_ascii_lowercase().ends_with("+json")
}

/// A text stays as it is; what has structure becomes JSON.
fn text(value: &Item<'_>) -> Arc<str> {
    match value.text() {
        Some(text) => text.clone(),
        None => value.json().to_string().into(),
    }
}
