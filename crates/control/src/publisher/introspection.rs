//! The schema of a GraphQL server that describes itself: the response to the introspection query as schema text.

use bytes::Bytes;
use serde_json::{Value, json};

use crate::host::FetchRequest;
use crate::problem::Problem;
use crate::route::Call;

/// The largest response; schemas of public servers have up to 5 MB.
const BYTES_MAX: usize = 10 << 20;

/// Lists and required values around a type; real ones have at most five.
const WRAPPERS_MAX: usize = 16;

const QUERY: &str = "query IntrospectionQuery { __schema { queryType { name } mutationType { name } subscriptionType { name } \
types { kind name fields(includeDeprecated: true) { name args { name type { ...T } defaultValue } type { ...T } } \
inputFields { name type { ...T } defaultValue } interfaces { name } enumValues(includeDeprecated: true) { name } \
possibleTypes { name } } } } \
fragment T on __Type { kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name \
ofType { kind name ofType { kind name ofType { kind name } } } } } } } }";

/// Asks a server for its schema.
pub(super) fn schema(call: &Call<'_>, url: &str) -> Result<String, Problem> {
    let failed =
        |why: String| Problem::rejected(900_874, "Error while generating GraphQL schema from introspection", why);
    let headers = vec![("Content-Type", "application/json"), ("Accept", "application/json")];
    let body = Bytes::from(json!({"query": QUERY}).to_string());
    let request = FetchRequest { method: "POST", url, headers, body, bytes_max: BYTES_MAX };
    let fetched = call.control.host.fetch(&request).map_err(|error| failed(error.to_string()))?;
    if fetched.status != 200 {
        return Err(failed(format!("the server responds with {}", fetched.status)));
    }
    let parsed: Value =
        serde_json::from_slice(&fetched.body).map_err(|_| failed("the response is not JSON".to_owned()))?;
    written(&parsed["data"]["__schema"]).ok_or_else(|| failed("the response has no schema".to_owned()))
}

/// The scalars of the specification, which a schema does not define.
const BUILT_IN: [&str; 5] = ["Int", "Float", "String", "Boolean", "ID"];

/// A described schema as text.
fn written(schema: &Value) -> Option<String> {
    let types = schema["types"].as_array()?;
    let mut out = String::from("schema {\n");
    for (word, member) in [("query", "queryType"), ("mutation", "mutationType"), ("subscription", "subscriptionType")] {
        if let Some(name) = schema[member]["name"].as_str() {
            out.push_str(&format!("  {word}: {name}\n"));
        }
    }
    out.push_str("}\n");
    for kind in types {
        let name = kind["name"].as_str()?;
        if !name.starts_with("__") && !BUILT_IN.contains(&name) {
            write_type(&mut out, name, kind)?;
        }
    }
    Some(out)
}

fn write_type(out: &mut String, name: &str, kind: &Value) -> Option<()> {
    let names = |member: &str| -> Vec<&str> {
        let list = kind[member].as_array().into_iter().flatten();
        list.filter_map(|one| one["name"].as_str()).collect()
    };
    let word = match kind["kind"].as_str()? {
        "SCALAR" => {
            out.push_str(&format!("scalar {name}\n"));
            return Some(());
        }
        "UNION" => {
            out.push_str(&format!("union {name} = {}\n", names("possibleTypes").join(" | ")));
            return Some(());
        }
        "ENUM" => {
            out.push_str(&format!("enum {name} {{\n  {}\n}}\n", names("enumValues").join("\n  ")));
            return Some(());
        }
        "OBJECT" => "type",
        "INTERFACE" => "interface",
        "INPUT_OBJECT" => "input",
        _ => return None,
    };
    let implemented = match names("interfaces") {
        interfaces if interfaces.is_empty() => String::new(),
        interfaces => format!(" implements {}", interfaces.join(" & ")),
    };
    out.push_str(&format!("{word} {name}{implemented} {{\n"));
    let member = if word == "input" { "inputFields" } else { "fields" };
    for field in kind[member].as_array().into_iter().flatten() {
        let arguments = field["args"].as_array().map_or(&[][..], Vec::as_slice);
        let arguments = arguments.iter().map(input).collect::<Option<Vec<String>>>()?;
        let arguments = if arguments.is_empty() { String::new() } else { format!("({})", arguments.join(", ")) };
        match word {
            "input" => out.push_str(&format!("  {}\n", input(field)?)),
            _ => out.push_str(&format!("  {}{arguments}: {}\n", field["name"].as_str()?, type_text(&field["type"])?)),
        }
    }
    out.push_str("}\n");
    Some(())
}

/// An argument, or a field of an input type.
fn input(value: &Value) -> Option<String> {
    let default = value["defaultValue"].as_str().map(|default| format!(" = {default}")).unwrap_or_default();
    Some(format!("{}: {}{default}", value["name"].as_str()?, type_text(&value["type"])?))
}

fn type_text(mut kind: &Value) -> Option<String> {
    let mut wrappers = Vec::new();
    while let Some(wrapper @ ("LIST" | "NON_NULL")) = kind["kind"].as_str() {
        if wrappers.len() == WRAPPERS_MAX {
            return None;
        }
        wrappers.push(wrapper);
        kind = &kind["ofType"];
    }
    let named = kind["name"].as_str()?.to_owned();
    Some(wrappers.iter().rev().fold(named, |text, wrapper| match *wrapper {
        "LIST" => format!("[{text}]"),
        _ => format!("{text}!"),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_described_schema_is_written() {
        let text = |name: &str| json!({"kind": "SCALAR", "name": name});
        let described = json!({
            "queryType": {"name": "Query"}, "mutationType": null,
            "types": [
                {"kind": "OBJECT", "name": "Query", "interfaces": [{"name": "Node"}], "fields": [{
                    "name": "pets", "args": [{"name": "first", "type": text("Int"), "defaultValue": "10"}],
                    "type": {"kind": "NON_NULL", "ofType": {"kind": "LIST", "ofType": {"kind": "OBJECT", "name": "Pet"}}},
                }]},
                {"kind": "INPUT_OBJECT", "name": "New", "inputFields": [{"name": "name", "type": text("String")}]},
                {"kind": "ENUM", "name": "Size", "enumValues": [{"name": "BIG"}, {"name": "SMALL"}]},
                {"kind": "UNION", "name": "Any", "possibleTypes": [{"name": "Pet"}]},
                {"kind": "SCALAR", "name": "Date"}, {"kind": "SCALAR", "name": "Int"}, {"kind": "OBJECT", "name": "__Type"},
            ],
        });
        let expected = "schema {\n  query: Query\n}\ntype Query implements Node {\n  pets(first: Int = 10): [Pet]!\n}\n\
                        input New {\n  name: String\n}\nenum Size {\n  BIG\n  SMALL\n}\nunion Any = Pet\nscalar Date\n";
        assert_eq!(written(&described).unwrap(), expected);
        assert_eq!(written(&json!({})), None);
    }
}
