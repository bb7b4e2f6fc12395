//! What a response must look like to count as a success.

/// A rule on the text of a response, as JMeter's response assertion states it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextRule {
    /// Which text is looked at.
    pub field: Field,
    /// What it is compared with.
    pub pattern: String,
    /// Whether the whole text must equal the pattern; otherwise it must contain it.
    pub equals: bool,
    /// Whether the rule is turned round.
    pub negated: bool,
}

/// A part of the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// The body.
    Body,
    /// The status code in decimal.
    Status,
}

/// All rules together. The default accepts every status from 200 to 399, as JMeter does.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Expect {
    /// The one accepted status code.
    pub status: Option<u16>,
    /// Every status code is accepted; the rules alone decide. JMeter calls this "ignore status".
    pub any_status: bool,
    /// The response body must have as many bytes as the request body.
    pub same_size: bool,
    /// The response body must be the request body, byte for byte.
    pub same_body: bool,
    /// Rules on the text; every one must hold.
    pub rules: Vec<TextRule>,
}

/// Why a complete response is not a success.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unexpected {
    /// The status code is another one.
    Status(u16),
    /// The body has another size than was sent.
    Size {
        /// Bytes sent.
        sent: u64,
        /// Bytes received.
        received: u64,
    },
    /// The body is not the one that was sent.
    Body,
    /// A text rule does not hold; its index in [`Expect::rules`].
    Rule(usize),
}

/// Bodies are kept for text rules up to this size; a longer one is searched in its first part only.
const SEARCHED_BYTES_MAX: usize = 16 * 1024 * 1024;

impl Expect {
    /// How much of a response body must be kept to decide.
    pub fn body_bytes_needed(&self) -> usize {
        let body_searched = self.rules.iter().any(|rule| rule.field == Field::Body);
        if body_searched || self.same_body { SEARCHED_BYTES_MAX } else { 0 }
    }

    /// Compares a response with the rules.
    pub fn check(&self, status: u16, sent: &[u8], received_bytes: u64, body: &[u8]) -> Result<(), Unexpected> {
        let status_accepted = match self.status {
            Some(expected) => status == expected,
            None => (200..400).contains(&status),
        };
        if !status_accepted && !self.any_status {
            return Err(Unexpected::Status(status));
        }
        let sent_bytes = sent.len() as u64;
        if (self.same_size || self.same_body) && sent_bytes != received_bytes {
            return Err(Unexpected::Size { sent: sent_bytes, received: received_bytes });
        }
        if self.same_body && !sent.starts_with(body) {
            return Err(Unexpected::Body);
        }
        for (index, rule) in self.rules.iter().enumerate() {
            if !rule.holds(status, body) {
                return Err(Unexpected::Rule(index));
            }
        }
        Ok(())
    }

    /// The reason as a text.
    pub fn explain(&self, unexpected: &Unexpected) -> String {
        match unexpected {
            Unexpected::Status(status) => match self.status {
                Some(expected) => format!("status {status} instead of {expected}"),
                None => format!("status {status} is not a success"),
            },
            Unexpected::Size { sent, received } => {
                format!("the response body has {received} bytes, the request body has {sent}")
            }
            Unexpected::Body => "the response body is not the request body".to_owned(),
            Unexpected::Rule(index) => match self.rules.get(*index) {
                Some(rule) => rule.explain(),
                None => "a response rule does not hold".to_owned(),
            },
        }
    }
}

impl TextRule {
    fn holds(&self, status: u16, body: &[u8]) -> bool {
        let status_text;
        let text = match self.field {
            Field::Body => body,
            Field::Status => {
                status_text = status.to_string();
                status_text.as_bytes()
            }
        };
        let pattern = self.pattern.as_bytes();
        let matches = if self.equals { text == pattern } else { memchr::memmem::find(text, pattern).is_some() };
        matches != self.negated
    }

    fn explain(&self) -> String {
        let field = match self.field {
            Field::Body => "the response body",
            Field::Status => "the status code",
        };
        let verb = match (self.equals, self.negated) {
            (true, false) => "does not equal",
            (true, true) => "equals",
            (false, false) => "does not contain",
            (false, true) => "contains",
        };
        format!("{field} {verb} `{}`", self.pattern)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(field: Field, pattern: &str, equals: bool, negated: bool) -> Expect {
        let rules = vec![TextRule { field, pattern: pattern.into(), equals, negated }];
        Expect { rules, any_status: true, ..Expect::default() }
    }

    #[test]
    fn rules_hold_or_say_why_not() {
        let sized = Expect { same_size: true, ..Expect::default() };
        let same = Expect { same_body: true, ..Expect::default() };
        let exact = Expect { status: Some(202), ..Expect::default() };
        for (expect, status, body, expected) in [
            (Expect::default(), 200, "", ""),
            (Expect::default(), 302, "", ""),
            (Expect::default(), 500, "", "status 500 is not a success"),
            (exact.clone(), 202, "", ""),
            (exact, 200, "", "status 200 instead of 202"),
            (sized.clone(), 200, "abc", ""),
            (sized, 200, "ab", "the response body has 2 bytes, the request body has 3"),
            (same.clone(), 200, "abc", ""),
            (same, 200, "abd", "the response body is not the request body"),
            (rule(Field::Body, "b", false, false), 200, "abc", ""),
            (rule(Field::Body, "b", true, false), 200, "abc", "the response body does not equal `b`"),
            (rule(Field::Body, "b", false, true), 200, "abc", "the response body contains `b`"),
            (rule(Field::Status, "404", true, false), 404, "", ""),
            (rule(Field::Status, "404", true, false), 200, "", "the status code does not equal `404`"),
        ] {
            let outcome = expect.check(status, b"abc", body.len() as u64, body.as_bytes());
            assert_eq!(outcome.map_err(|unexpected| expect.explain(&unexpected)).err().unwrap_or_default(), expected);
        }
    }
}
