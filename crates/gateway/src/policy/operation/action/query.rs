//! `ADD_QUERY`, `REMOVE_QUERY`.

use penstock_engine::{Exchange, Fault, Flow, Mediator};
use penstock_message::RESERVED;
use percent_encoding::{AsciiSet, utf8_percent_encode};

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
        Add { name: escaped(name), value: escaped(value) }
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
        let target = without_parameter(&now(exchange)?, &escaped(&self.name));
        put(exchange, target);
        Ok(Flow::Next)
    }
}

/// What is escaped in a part of a query (RFC 3986 §3.4): also what separates parameters.
const QUERY_PART: &AsciiSet = &RESERVED
    .remove(b'!')
    .remove(b'$')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b',')
    .remove(b';')
    .remove(b':')
    .remove(b'@')
    .remove(b'/')
    .remove(b'?');

fn escaped(text: &str) -> String {
    utf8_percent_encode(text, QUERY_PART).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_separates_parameters_is_escaped() {
        assert_eq!(escaped("a b&c=d/ü"), "a%20b%26c%3Dd/%C3%BC");
    }
}
