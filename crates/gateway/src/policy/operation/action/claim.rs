//! `VALIDATE_CLAIM`: whether a claim of the caller's token lets a request through.

use std::sync::Arc;

use penstock_engine::{Exchange, Fault, Flow, Mediator};
use regex::Regex;
use serde_json::Value;

use super::super::step::{ActionCall, Problem};
use crate::CallContext;
use crate::error::{GatewayError, codes};

/// Lets through those whose claim has the value, or those whose claim has not.
pub(super) struct Validate {
    claim: Arc<str>,
    wanted: Wanted,
    /// Whether the value lets through; otherwise it keeps out.
    allows: bool,
}

enum Wanted {
    Text(Arc<str>),
    Pattern(Regex),
    /// A value that does not fit its own pattern: no claim can be both.
    Nothing,
}

impl Validate {
    pub(super) fn compile(call: &ActionCall) -> Result<Validate, Problem> {
        let wanted = match call.get("pattern") {
            Some(pattern) => match Regex::new(&format!("^(?:{pattern})$")) {
                Ok(pattern) if call.get("value").is_none_or(|value| pattern.is_match(value)) => {
                    Wanted::Pattern(pattern)
                }
                Ok(_) => Wanted::Nothing,
                Err(_) => return Err(Problem::Refuse(format!("`{pattern}` is not a regular expression"))),
            },
            None => Wanted::Text(call.required("value")?.into()),
        };
        let allows = call.get("allow").is_none_or(|flag| flag.eq_ignore_ascii_case("true"));
        Ok(Validate { claim: call.required("claim")?.into(), wanted, allows })
    }

    fn fits(&self, claim: &Value) -> bool {
        match claim {
            Value::String(text) => self.fits_text(text),
            Value::Array(values) => values.iter().any(|value| self.fits(value)),
            Value::Null | Value::Object(_) => false,
            other => self.fits_text(&other.to_string()),
        }
    }

    fn fits_text(&self, text: &str) -> bool {
        match &self.wanted {
            Wanted::Text(wanted) => **wanted == *text,
            Wanted::Pattern(pattern) => pattern.is_match(text),
            Wanted::Nothing => false,
        }
    }
}

impl Mediator for Validate {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let context = CallContext::of(exchange)?;
        let caller = context.caller.borrow();
        // A token without the claim proves nothing, whichever way the value counts.
        let claim = caller.claims.as_ref().and_then(|claims| claims.get(&*self.claim));
        match claim.map(|claim| self.fits(claim)) {
            Some(fits) if fits == self.allows => Ok(Flow::Next),
            Some(_) => Err(GatewayError::new(codes::CLAIM_MISMATCH).into()),
            None => Err(GatewayError::new(codes::CLAIM_MISSING).into()),
        }
    }
}
