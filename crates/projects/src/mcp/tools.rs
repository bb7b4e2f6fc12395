//! The tools of an MCP server: what each of them calls, its arguments, and its description.

use std::collections::HashSet;
use std::sync::Arc;

use penstock_catalog::{
    ApiReference, Endpoints, MCP_PATH, Operation, ParameterPlace, Tool, ToolParameter, ToolRequest, ToolTarget,
};
use serde_json::{Map, Value};

use super::backends::Backend;
use super::{Subtype, generate, schema};
use crate::descriptor::operations;
use crate::document::Item;
use crate::openapi::METHODS;
use crate::{Import, hint, is_field_name};

/// Tools of one server.
const TOOLS_MAX: usize = 20_000;

/// Members of a tool's description besides name and schema.
const TOLD: [&str; 6] = ["title", "description", "outputSchema", "annotations", "icons", "_meta"];

/// The tools of one server while they are read.
pub(super) struct Reading<'r, 'c> {
    pub import: &'r mut Import<'c>,
    pub subtype: Subtype,
    pub backends: Vec<Backend>,
    /// Whether arguments are checked against the schema.
    pub checks: bool,
    pub tools: Vec<Tool>,
}

/// What a tool calls, and what a definition says of it.
struct Called {
    api: Option<ApiReference>,
    method: Arc<str>,
    path: Arc<str>,
    endpoints: Option<Endpoints>,
    found: Option<generate::Found>,
}

impl Reading<'_, '_> {
    pub(super) fn tools(&mut self, data: &Item<'_>) {
        let list = data.get("operations");
        let mut names = HashSet::new();
        for item in list.iter().flat_map(|list| list.items()) {
            let Some(tool) = self.tool(&item) else { continue };
            if !names.insert(tool.name.clone()) {
                self.import.error(&tool.operation.at, format!("there are two tools `{}`", tool.name));
            }
            self.tools.push(tool);
        }
        if names.is_empty() && self.subtype == Subtype::Direct {
            self.of_definitions(data);
        }
        if self.tools.len() > TOOLS_MAX {
            self.import.error(&data.at(), format!("an MCP server has at most {TOOLS_MAX} tools"));
        }
        if self.tools.is_empty() && !self.import.failed() {
            self.import.warn(&data.at(), "the MCP server has no tools");
        }
    }

    /// Every operation of the backends' definitions, when no tool is named.
    fn of_definitions(&mut self, data: &Item<'_>) {
        let mut names = HashSet::new();
        for backend in std::mem::take(&mut self.backends) {
            for found in backend.definition.iter().flat_map(generate::operations) {
                let (method, path) = (found.method.as_str().into(), found.path.as_str().into());
                let name: Arc<str> = found.name.as_str().into();
                let at = data.at();
                if !names.insert(name.clone()) {
                    self.import.warn(&at, format!("{method} {path} is ignored: there is a tool `{name}` already"));
                    continue;
                }
                let rules = Operation { secured: true, at, ..Operation::default() };
                let endpoints = Some(backend.endpoints.clone());
                let called = Called { api: None, method, path, endpoints, found: Some(found) };
                let tool = self.over_http(name, rules, called, Map::new(), None);
                self.tools.push(tool);
            }
        }
    }

    fn tool(&mut self, item: &Item<'_>) -> Option<Tool> {
        let import = &mut *self.import;
        let Some(name) = import.some_text_of(item, "target") else {
            import.error(&item.at(), "a tool needs `target`, its name");
            return None;
        };
        if let Some(feature) = import.some_text_of(item, "feature").filter(|feature| &**feature != "TOOL") {
            import.error(&item.at(), format!("the feature `{feature}` is not supported; `TOOL` is"));
            return None;
        }
        let kind = import.text_of(item, "authType");
        let rules = Operation {
            secured: !kind.is_some_and(|kind| kind.eq_ignore_ascii_case("None")),
            tier: import.some_text_of(item, "throttlingPolicy"),
            scopes: import.texts_of(item, "scopes"),
            policies: item.get("operationPolicies").map(|flows| operations::flows(import, &flows)).unwrap_or_default(),
            at: item.get("target").map_or_else(|| item.at(), |target| target.at()),
            ..Operation::default()
        };
        let (schema, mut told) = schema::unwrap(self.schema_of(item));
        for key in TOLD {
            if let Some(value) = item.get(key) {
                told.insert(key.to_owned(), value.json());
            }
        }
        if self.subtype == Subtype::Proxy {
            let target = self.operation_behind(item).and_then(|behind| self.import.some_text_of(&behind, "target"));
            let shown = if schema.is_object() { schema } else { schema::nothing() };
            let listed = listed(&name, &told, shown);
            let operation = with_path(rules, &name);
            return Some(Tool {
                target: ToolTarget::Tool(target.unwrap_or_else(|| name.clone())),
                listed,
                name,
                operation,
            });
        }
        let called = self.called(item)?;
        let schema = schema.is_object().then_some(schema);
        Some(self.over_http(name, rules, called, told, schema))
    }

    /// `schemaDefinition`: JSON in a text, or the mapping itself.
    fn schema_of(&mut self, item: &Item<'_>) -> Value {
        let Some(schema) = item.get("schemaDefinition") else { return Value::Null };
        let Some(text) = schema.text() else { return schema.json() };
        if text.trim().is_empty() {
            return Value::Null;
        }
        match serde_json::from_str(text) {
            Ok(value @ Value::Object(_)) => value,
            Ok(_) => {
                self.import.error(&schema.at(), "`schemaDefinition` must be a JSON object");
                Value::Null
            }
            Err(error) => {
                self.import.error(&schema.at(), format!("`schemaDefinition` is not JSON: {error}"));
                Value::Null
            }
        }
    }

    /// What a tool is mapped to.
    fn operation_behind<'i>(&self, item: &Item<'i>) -> Option<Item<'i>> {
        let mapping = item.get("apiOperationMapping").or_else(|| item.get("backendOperationMapping"))?;
        mapping.get("backendOperation")
    }

    fn called(&mut self, item: &Item<'_>) -> Option<Called> {
        let (key, other) = match self.subtype {
            Subtype::Existing => ("apiOperationMapping", "backendOperationMapping"),
            _ => ("backendOperationMapping", "apiOperationMapping"),
        };
        let Some(mapping) = item.get(key) else {
            let meant = if item.has(other) { format!("; `{other}` belongs to another subtype") } else { String::new() };
            self.import.error(&item.at(), format!("a tool needs `{key}`{meant}"));
            return None;
        };
        let import = &mut *self.import;
        let Some(behind) = mapping.get("backendOperation") else {
            import.error(&mapping.at(), format!("`{key}` needs `backendOperation`"));
            return None;
        };
        let (path, method) = (import.some_text_of(&behind, "target"), import.some_text_of(&behind, "verb"));
        let (Some(path), Some(method)) = (path, method) else {
            import.error(&behind.at(), "`backendOperation` needs `target` and `verb`");
            return None;
        };
        if !METHODS.contains(&&*method.to_ascii_lowercase()) {
            let meant = hint(&method.to_ascii_lowercase(), METHODS.into_iter());
            import.error(&behind.at(), format!("unknown method `{method}`{meant}"));
            return None;
        }
        let method: Arc<str> = method.to_ascii_uppercase().into();
        let mut called = Called { api: None, method, path, endpoints: None, found: None };
        if self.subtype == Subtype::Existing {
            let mut text = |key: &str| import.some_text_of(&mapping, key).unwrap_or_default();
            let (name, version, context) = (text("apiName"), text("apiVersion"), text("apiContext"));
            if name.is_empty() && context.is_empty() {
                import.error(&mapping.at(), "`apiOperationMapping` needs `apiName` and `apiVersion`, or `apiContext`");
            }
            called.api = Some(ApiReference { name, version, context });
            return Some(called);
        }
        let id = import.some_text_of(&mapping, "backendId");
        let by_id = self.backends.iter().find(|backend| backend.id.is_some() && backend.id == id);
        let only = || self.backends.first().filter(|_| self.backends.len() == 1);
        if let Some(backend) = by_id.or_else(only) {
            called.endpoints = Some(backend.endpoints.clone());
            let definition = backend.definition.as_ref();
            called.found = definition.and_then(|all| generate::operation(all, &called.path, &called.method));
        } else if let Some(id) = id.filter(|_| !self.backends.is_empty()) {
            let known = self.backends.iter().filter_map(|backend| backend.id.as_deref());
            let meant = hint(&id, known);
            self.import.error(&mapping.at(), format!("there is no backend `{id}`{meant}"));
        }
        Some(called)
    }

    /// A tool that calls an operation over HTTP.
    fn over_http(
        &mut self,
        name: Arc<str>,
        rules: Operation,
        called: Called,
        mut told: Map<String, Value>,
        schema: Option<Value>,
    ) -> Tool {
        let Called { api, method, path, endpoints, found } = called;
        let found = found.map(|found| (found.schema, found.description));
        let (generated, description) = found.map_or((None, None), |(schema, described)| (Some(schema), described));
        if let Some(description) = description {
            told.entry("description").or_insert_with(|| description.into());
        }
        let mut taken = schema::split(schema.or(generated).unwrap_or_default());
        for parameter in path.split('{').skip(1).filter_map(|part| Some(part.split_once('}')?.0)) {
            let is_path = |one: &ToolParameter| one.place == ParameterPlace::Path && &*one.name == parameter;
            if !taken.parameters.iter().any(is_path) {
                let message =
                    format!("the schema of the tool `{name}` has no `path_{parameter}`, which its path needs");
                self.import.warn(&rules.at, message);
            }
        }
        taken.parameters.retain(|parameter| {
            let framing = ["host", "content-length", "transfer-encoding", "connection", "upgrade"];
            let is_framing = framing.iter().any(|own| parameter.name.eq_ignore_ascii_case(own));
            let sendable = parameter.place != ParameterPlace::Header || (is_field_name(&parameter.name) && !is_framing);
            if !sendable {
                let message = format!("the tool `{name}` cannot send the field `{}`, which is ignored", parameter.name);
                self.import.warn(&rules.at, message);
            }
            sendable
        });
        let listed = listed(&name, &told, taken.shown.clone());
        let request = ToolRequest {
            api,
            method,
            path,
            parameters: taken.parameters,
            body: taken.body,
            structured: told.contains_key("outputSchema"),
            checked: self.checks.then(|| taken.shown.to_string().into()),
        };
        let operation = with_path(Operation { endpoints, ..rules }, &name);
        Tool { target: ToolTarget::Http(Box::new(request)), listed, name, operation }
    }
}

/// The rules of a tool, for limits and reports.
fn with_path(rules: Operation, name: &str) -> Arc<Operation> {
    Arc::new(Operation { method: "POST".into(), path: format!("{MCP_PATH}/{name}").into(), ..rules })
}

/// How `tools/list` describes a tool.
fn listed(name: &str, told: &Map<String, Value>, schema: Value) -> Arc<str> {
    let mut listed = Map::new();
    listed.insert("name".to_owned(), name.into());
    for key in ["title", "description"] {
        if let Some(value) = told.get(key).filter(|value| value.is_string()) {
            listed.insert(key.to_owned(), value.clone());
        }
    }
    listed.insert("inputSchema".to_owned(), schema);
    for key in ["outputSchema", "annotations", "icons", "_meta"] {
        if let Some(value) = told.get(key).filter(|value| !value.is_null()) {
            listed.insert(key.to_owned(), value.clone());
        }
    }
    Value::Object(listed).to_string().into()
}
