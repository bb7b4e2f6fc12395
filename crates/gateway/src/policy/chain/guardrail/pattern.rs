//! `regex-guardrail`: a text must fit a pattern, or must not.

use regex::Regex;
use serde_json::Value;

use super::{GuardrailKind, Look, OF_MODELS, made};
use crate::policy::chain::kind::{ChainPolicy, Made, Making};
use crate::policy::chain::params::Params;

/// The policy.
pub(in crate::policy::chain) const POLICY: ChainPolicy = ChainPolicy { name: "regex-guardrail", make };

const KIND: GuardrailKind = GuardrailKind {
    name: "regex-guardrail",
    type_name: "REGEX_GUARDRAIL",
    reason: "Violation of regular expression detected",
    paths: OF_MODELS,
};

struct Pattern(Regex);

fn make(making: &Making<'_>, params: &Params<'_>) -> Option<Made> {
    made(making, params, &KIND, |flow| {
        let pattern = flow.regex("regex").map(|regex| Box::new(Pattern(regex)) as Box<dyn Look>);
        if flow.get("regex").is_none() && flow.flag("enabled", true) {
            flow.error("`regex` is missing");
        }
        pattern
    })
}

impl Look for Pattern {
    fn fits(&self, text: &str) -> bool {
        self.0.is_match(text)
    }

    fn expected(&self, _invert: bool) -> Value {
        format!("Violated regular expression: {}", self.0.as_str()).into()
    }
}
