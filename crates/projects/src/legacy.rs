//! Descriptors of API Manager 2 and 3 (`Meta-information/api.json`, `Meta-information/api.yaml`), as descriptors of version 4.
//!
//! The members have other names and other forms there; what they mean is read by `descriptor/` once they are converted.
//! Every converted value keeps the place of the one it was made from.

use std::sync::Arc;

use super::Import;
use super::document::{self, Document, Entry, Item, Node, Scalar, Value};

/// Members that have the same name and form in both.
const SAME: [&str; 12] = [
    "type",
    "authorizationHeader",
    "apiKeyHeader",
    "corsConfiguration",
    "isDefaultVersion",
    "cacheTimeout",
    "keyManagers",
    "enableSchemaValidation",
    "tags",
    "visibility",
    "description",
    "accessControl",
];

/// Whether a document is such a descriptor.
pub(super) fn is_legacy(root: &Item<'_>) -> bool {
    root.get("id").is_some_and(|id| id.has("apiName"))
}

/// Converts one. What its backends say is JSON in a text, which may be wrong.
pub(super) fn convert(import: &mut Import<'_>, document: &Document) -> Document {
    let root = document.item();
    import.warn(
        &root.at(),
        "an export of API Manager 2 or 3: its descriptor is converted to the form of version 4; check the API before use",
    );
    let mut made = Made { at: &document.root, members: Vec::new() };
    let id = root.get("id");
    for (theirs, ours) in [("apiName", "name"), ("version", "version"), ("providerName", "provider")] {
        made.copy(ours, id.and_then(|id| id.get(theirs)));
    }
    // `/shop/{version}` is in the template, and in the context only what became of it.
    let template = root.get("contextTemplate").filter(|template| has_text(template, |text| text.contains("{version}")));
    made.copy("context", template.or_else(|| root.get("context")));
    for name in SAME {
        made.copy(name, root.get(name));
    }
    made.copy("lifeCycleStatus", root.get("status"));
    made.copy("endpointImplementationType", root.get("implementation"));
    made.copy("apiThrottlingPolicy", root.get("apiLevelPolicy"));
    made.list("transport", root.get("transports"));
    made.list("securityScheme", root.get("apiSecurity"));
    if let Some(cached) = root.get("responseCache") {
        let enabled = has_text(&cached, |text| text.eq_ignore_ascii_case("Enabled"));
        made.push("responseCachingEnabled", scalar(cached.node(), if enabled { "true" } else { "false" }, false));
    }
    if let Some(only) = root.get("advertiseOnly").filter(|only| has_text(only, |text| text == "true")) {
        made.push("advertiseInfo", map(only.node(), [("advertised", only.node().clone())]));
    }
    made.tiers(&root);
    made.policies(&root);
    made.operations(&root);
    made.rates(&root);
    if let Some(config) = endpoint_config(import, document, &root) {
        made.push("endpointConfig", config);
    }
    let data = Node { value: Value::Map(made.members), ..document.root.clone() };
    let kind = scalar(&document.root, "api", true);
    Document { file: document.file.clone(), root: map(&document.root, [("type", kind), ("data", data)]) }
}

struct Made<'n> {
    at: &'n Node,
    members: Vec<Entry>,
}

impl Made<'_> {
    fn push(&mut self, key: &str, value: Node) {
        self.members.push(entry(key, value));
    }

    fn copy(&mut self, key: &str, item: Option<Item<'_>>) {
        if let Some(item) = item.filter(|item| !item.is_null()) {
            self.push(key, item.node().clone());
        }
    }

    /// A list that is written as a text with commas.
    fn list(&mut self, key: &str, item: Option<Item<'_>>) {
        let Some(item) = item else { return };
        match item.text() {
            None => self.copy(key, Some(item)),
            Some(text) => {
                let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
                let parts = parts.map(|part| scalar(item.node(), part, true)).collect();
                self.push(key, Node { value: Value::List(parts), ..item.node().clone() });
            }
        }
    }

    /// `availableTiers`: the plans by name.
    fn tiers(&mut self, root: &Item<'_>) {
        let Some(tiers) = root.get("availableTiers") else { return };
        let names = tiers.items().filter_map(|tier| Some(tier.get("name")?.node().clone())).collect();
        self.push("policies", Node { value: Value::List(names), ..tiers.node().clone() });
    }

    /// `inSequence`, `outSequence`, `faultSequence`.
    fn policies(&mut self, root: &Item<'_>) {
        let mut found = Vec::new();
        for (key, flow) in [("inSequence", "in"), ("outSequence", "out"), ("faultSequence", "fault")] {
            let Some(name) = root.get(key).filter(|name| has_text(name, |text| !text.trim().is_empty())) else {
                continue;
            };
            let kind = scalar(name.node(), flow, true);
            found.push(map(name.node(), [("name", name.node().clone()), ("type", kind)]));
        }
        if !found.is_empty() {
            self.push("mediationPolicies", Node { value: Value::List(found), ..self.at.clone() });
        }
    }

    /// `uriTemplates`.
    fn operations(&mut self, root: &Item<'_>) {
        let Some(templates) = root.get("uriTemplates") else { return };
        let operation = |template: Item<'_>| {
            let names = [
                ("uriTemplate", "target"),
                ("httpVerb", "verb"),
                ("authType", "authType"),
                ("throttlingTier", "throttlingPolicy"),
            ];
            let mut members: Vec<Entry> = names
                .into_iter()
                .filter_map(|(theirs, ours)| Some(entry(ours, template.get(theirs)?.node().clone())))
                .collect();
            let one = template.get("scope").filter(|scope| scope.is_map());
            let several = template.get("scopes").into_iter().flat_map(|scopes| scopes.items().collect::<Vec<_>>());
            let keys: Vec<Node> =
                one.into_iter().chain(several).filter_map(|scope| Some(scope.get("key")?.node().clone())).collect();
            if !keys.is_empty() {
                members.push(entry("scopes", Node { value: Value::List(keys), ..template.node().clone() }));
            }
            Node { value: Value::Map(members), ..template.node().clone() }
        };
        let operations = templates.items().map(operation).collect();
        self.push("operations", Node { value: Value::List(operations), ..templates.node().clone() });
    }

    /// `productionMaxTps` and `sandboxMaxTps`.
    fn rates(&mut self, root: &Item<'_>) {
        let of = |theirs: &str, ours: &'static str| Some((ours, root.get(theirs)?.node().clone()));
        let rates: Vec<_> =
            [of("productionMaxTps", "production"), of("sandboxMaxTps", "sandbox")].into_iter().flatten().collect();
        if !rates.is_empty() {
            self.push("maxTps", map(self.at, rates));
        }
    }
}

/// `endpointConfig`, which is JSON in a text, with what the descriptor says of the backends' security.
fn endpoint_config(import: &mut Import<'_>, document: &Document, root: &Item<'_>) -> Option<Node> {
    let item = root.get("endpointConfig").filter(|item| !item.is_null())?;
    let mut config = match item.text() {
        None => item.node().clone(),
        Some(text) if text.trim().is_empty() => return None,
        Some(text) => match document::parse(&document.file, text.as_bytes()) {
            Ok(parsed) => placed(parsed.root, item.node()),
            Err((_, message)) => {
                import.error(&item.at(), format!("`endpointConfig` is not JSON: {message}"));
                return None;
            }
        },
    };
    let secured = root.get("endpointSecured").filter(|secured| has_text(secured, |text| text == "true"));
    if let (Some(secured), Value::Map(members)) = (secured, &mut config.value)
        && members.iter().all(|member| &*member.key != "endpoint_security")
    {
        let at = secured.node();
        let digest = root.get("endpointAuthDigest").is_some_and(|digest| has_text(&digest, |text| text == "true"));
        let value = |key: &str| root.get(key).map_or_else(|| scalar(at, "", true), |item| item.node().clone());
        let security = map(
            at,
            [
                ("enabled", scalar(at, "true", false)),
                ("type", scalar(at, if digest { "DIGEST" } else { "BASIC" }, true)),
                ("username", value("endpointUTUsername")),
                ("password", value("endpointUTPassword")),
            ],
        );
        members.push(entry("endpoint_security", map(at, [("production", security.clone()), ("sandbox", security)])));
    }
    Some(config)
}

fn has_text(item: &Item<'_>, holds: impl Fn(&str) -> bool) -> bool {
    item.text().is_some_and(|text| holds(text))
}

fn scalar(at: &Node, text: &str, quoted: bool) -> Node {
    Node { line: at.line, column: at.column, value: Value::Scalar(Scalar { text: Arc::from(text), quoted }) }
}

fn entry(key: &str, value: Node) -> Entry {
    Entry { key: key.into(), line: value.line, column: value.column, value }
}

fn map(at: &Node, members: impl IntoIterator<Item = (&'static str, Node)>) -> Node {
    let members = members.into_iter().map(|(key, value)| entry(key, value)).collect();
    Node { line: at.line, column: at.column, value: Value::Map(members) }
}

/// A value with all its parts at the place of the text it was read from. The parser bounds how deep it is.
fn placed(mut node: Node, at: &Node) -> Node {
    (node.line, node.column) = (at.line, at.column);
    node.value = match node.value {
        Value::List(items) => Value::List(items.into_iter().map(|item| placed(item, at)).collect()),
        Value::Map(members) => {
            Value::Map(members.into_iter().map(|member| entry(&member.key, placed(member.value, at))).collect())
        }
        scalar => scalar,
    };
    node
}
