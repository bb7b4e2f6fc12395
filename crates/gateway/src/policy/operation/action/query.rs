//! `ADD_QUERY`, `REMOVE_QUERY`.

use penstock_engine::{Exchange, Fault, Flow, Mediator};

use super::path::{now, put};
use crate::text::without_parameter;

/// Adds a parameter, in place of one that has its name.
pub(super) struct Add {
    name: String,
    value: String,
}

/// Removes all parameters of a name.
pub(super) struct Remove {
    pub(super) name: String,
}

impl Add {
    pub(super) fn new(name: &str, value: &str) -> Add {
        Add { name: encode(name), value: encode(value) }
    }
}

impl Mediator for Add {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let mut target = without_parameter(&now(exchange)?, &self.name);
        target.push(if target.contains('?') { '&' } else { '?' });
        target.push_str(&self.name);
        target.push('=');
        target.push_str(&self.value);
        put(exchange, target);
        Ok(Flow::Next)
    }
}

impl Mediator for Remove {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let target = without_parameter(&now(exchange)?, &encode(&self.name));
        put(exchange, target);
        Ok(Flow::Next)
    }
}

/// Text as part of a query (RFC 3986 §3.4), without what separates parameters.
fn encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~!$'()*,;:@/?".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_separates_parameters_is_escaped() {
        assert_eq!(encode("a b&c=d/ü"), "a%20b%26c%3Dd/%C3%BC");
    }
}
