//! `json-schema-guardrail`: a body must be what a JSON Schema says.

use penstock_json::schema::JsonSchema;
use serde_json::Value;

use super::{GuardrailKind, Look, made};
use crate::policy::chain::kind::{ChainPolicy, Made, Making};
use crate::policy::chain::params::Params;

/// The policy.
pub(in crate::policy::chain) const POLICY: ChainPolicy = ChainPolicy { name: "json-schema-guardrail", make };

const KIND: GuardrailKind = GuardrailKind {
    name: "json-schema-guardrail",
    type_name: "JSON_SCHEMA_GUARDRAIL",
    reason: "Violation of JSON schema detected",
    paths: ["", ""],
};

struct Schema(JsonSchema);

fn make(making: &Making<'_>, params: &Params<'_>) -> Option<Made> {
    made(making, params, &KIND, |flow| {
        let Some(text) = flow.text("schema") else {
            if flow.flag("enabled", true) {
                flow.error("`schema` is missing");
            }
            return None;
        };
        let schema = match serde_json::from_str::<Value>(&text) {
            Ok(schema) => schema,
            Err(error) => {
                flow.error(format!("`schema` is not JSON: {error}"));
                return None;
            }
        };
        match JsonSchema::compile(&schema) {
            Ok(schema) => Some(Box::new(Schema(schema)) as Box<dyn Look>),
            Err(errors) => {
                let why = errors.first().map(ToString::to_string).unwrap_or_default();
                flow.error(format!("`schema` cannot be used: {why}"));
                None
            }
        }
    })
}

impl Look for Schema {
    fn fits(&self, text: &str) -> bool {
        serde_json::from_str::<Value>(text).is_ok_and(|value| self.0.is_valid(&value))
    }

    fn reads_json(&self) -> bool {
        true
    }

    fn expected(&self, invert: bool) -> Value {
        let text =
            if invert { "JSON schema validation passed and was not to" } else { "JSON schema validation failed" };
        text.into()
    }
}
