//! CSV (RFC 4180): the first line has the names.

use serde_json::{Map, Value as Json};

use super::input::{inner, items, typed};

/// Rows as a list of objects.
pub(super) fn read(text: &str, schema: &Json) -> Json {
    let mut rows = rows(text).into_iter();
    let Some(header) = rows.next() else { return Json::Array(Vec::new()) };
    let names: Vec<String> = header.iter().map(|name| super::identifier(name.trim())).collect();
    let shape = items(schema);
    let row = |fields: Vec<String>| {
        let members = names.iter().zip(fields).map(|(name, field)| {
            let value = typed(&field, inner(shape, name).unwrap_or(&Json::Null));
            (name.clone(), value)
        });
        Json::Object(members.collect::<Map<_, _>>())
    };
    Json::Array(rows.map(row).collect())
}

fn rows(text: &str) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    let mut row = Vec::new();
    let mut field = String::new();
    let mut quoted = false;
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if quoted && letters.next_if_eq(&'"').is_some() => field.push('"'),
            '"' if quoted => quoted = false,
            '"' if field.is_empty() => quoted = true,
            ',' if !quoted => row.push(std::mem::take(&mut field)),
            '\r' if !quoted && letters.peek() == Some(&'\n') => {}
            '\n' if !quoted => {
                row.push(std::mem::take(&mut field));
                rows.push(std::mem::take(&mut row));
            }
            other => field.push(other),
        }
    }
    if !field.is_empty() || !row.is_empty() {
        row.push(field);
        rows.push(row);
    }
    rows.retain(|row| row.len() > 1 || row.first().is_some_and(|field| !field.is_empty()));
    rows
}

/// A list of objects (or the first list inside the value) as rows with a header.
pub(super) fn write(value: &Json) -> String {
    let list = match value {
        Json::Array(all) => all.as_slice(),
        Json::Object(members) => match members.values().find_map(Json::as_array) {
            Some(all) => all.as_slice(),
            None => std::slice::from_ref(value),
        },
        _ => std::slice::from_ref(value),
    };
    let mut names: Vec<&str> = Vec::new();
    for name in list.iter().filter_map(Json::as_object).flat_map(Map::keys) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let mut out = String::new();
    line(&mut out, names.iter().map(|name| (*name).to_owned()));
    for row in list {
        let field = |name: &&str| match row.get(*name) {
            None | Some(Json::Null) => String::new(),
            Some(Json::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        };
        line(&mut out, names.iter().map(field));
    }
    out
}

fn line(out: &mut String, fields: impl Iterator<Item = String>) {
    for (index, field) in fields.enumerate() {
        if index > 0 {
            out.push(',');
        }
        if field.contains([',', '"', '\n', '\r']) {
            out.push_str(&format!("\"{}\"", field.replace('"', "\"\"")));
        } else {
            out.push_str(&field);
        }
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_back() {
        let schema = serde_json::json!({"items": [{"properties": {"count": {"type": "number"}}}]});
        let value = read("name,count\r\n\"a, \"\"b\"\"\",2\n\nc,\n", &schema);
        assert_eq!(value, serde_json::json!([{"name": "a, \"b\"", "count": 2}, {"name": "c", "count": null}]));
        assert_eq!(write(&value), "name,count\n\"a, \"\"b\"\"\",2\nc,\n");
    }
}
