//! Filters of lists (RFC 7644 §3.4.2.2): comparisons joined by `and`.

use serde_json::Value;

/// Conditions of one filter.
const CONDITIONS_MAX: usize = 16;

/// A comparison.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Condition {
    /// In lower case: names of attributes have no case.
    path: Vec<String>,
    operator: Operator,
    value: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Contains,
    StartsWith,
    EndsWith,
    Present,
}

impl Condition {
    /// The value that an attribute must have.
    pub(super) fn equals(&self, attribute: &str) -> Option<&str> {
        (self.operator == Operator::Equal && self.path == [attribute]).then_some(&*self.value)
    }

    /// Whether a resource fulfils it.
    pub(super) fn holds(&self, resource: &Value) -> bool {
        let mut found = Vec::new();
        values(resource, &self.path, &mut found);
        let any = |holds: &dyn Fn(&str) -> bool| found.iter().any(|value| holds(&value.to_lowercase()));
        let wanted = self.value.to_lowercase();
        match self.operator {
            Operator::Equal => any(&|value| value == wanted),
            Operator::NotEqual => !any(&|value| value == wanted),
            Operator::Contains => any(&|value| value.contains(&wanted)),
            Operator::StartsWith => any(&|value| value.starts_with(&wanted)),
            Operator::EndsWith => any(&|value| value.ends_with(&wanted)),
            Operator::Present => found.iter().any(|value| !value.is_empty()),
        }
    }
}

/// The values of an attribute; of a list without a sub-attribute, those called `value`.
fn values(of: &Value, path: &[String], found: &mut Vec<String>) {
    match (of, path) {
        (Value::Array(items), path) => items.iter().for_each(|item| values(item, path, found)),
        (Value::Object(members), [name, rest @ ..]) => {
            let member = members.iter().find(|(known, _)| known.to_lowercase() == *name);
            if let Some((_, member)) = member {
                values(member, rest, found);
            }
        }
        (Value::Object(members), []) => match members.get("value") {
            Some(value) => values(value, &[], found),
            None => found.push("present".to_owned()),
        },
        (Value::String(text), []) => found.push(text.clone()),
        (Value::Null, _) | (_, [_, ..]) => {}
        (other, []) => found.push(other.to_string()),
    }
}

/// Reads a filter.
pub(super) fn parse(text: &str) -> Result<Vec<Condition>, String> {
    let mut words = words(text)?.into_iter().peekable();
    let mut conditions = Vec::new();
    loop {
        let attribute = words.next().ok_or("the filter ends where an attribute is expected")?;
        let name = words.next().ok_or("the filter ends where an operator is expected")?;
        let operator = match name.to_lowercase().as_str() {
            "eq" => Operator::Equal,
            "ne" => Operator::NotEqual,
            "co" => Operator::Contains,
            "sw" => Operator::StartsWith,
            "ew" => Operator::EndsWith,
            "pr" => Operator::Present,
            _ => return Err(format!("the operator `{name}` is not supported")),
        };
        let value = match operator {
            Operator::Present => String::new(),
            _ => words.next().ok_or("the filter ends where a value is expected")?,
        };
        // The schema in front of a name is optional.
        let attribute = attribute.rsplit(':').next().unwrap_or(&attribute).to_lowercase();
        conditions.push(Condition { path: attribute.split('.').map(str::to_owned).collect(), operator, value });
        match words.next() {
            None => return Ok(conditions),
            Some(_) if conditions.len() >= CONDITIONS_MAX => {
                return Err(format!("a filter has at most {CONDITIONS_MAX} conditions"));
            }
            Some(word) if word.eq_ignore_ascii_case("and") => {}
            Some(word) => return Err(format!("`{word}` is not supported; conditions are joined by `and`")),
        }
    }
}

/// Words, and texts in quotes without these.
fn words(text: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.peek().copied() {
        match letter {
            ' ' => drop(letters.next()),
            '"' => {
                letters.next();
                let mut word = String::new();
                loop {
                    match letters.next() {
                        Some('"') => break,
                        Some('\\') => word.extend(letters.next()),
                        Some(letter) => word.push(letter),
                        None => return Err("a quote is not closed".to_owned()),
                    }
                }
                words.push(word);
            }
            '(' | ')' | '[' | ']' => return Err("groups are not supported in filters".to_owned()),
            _ => {
                let mut word = String::new();
                while let Some(letter) = letters.next_if(|letter| *letter != ' ') {
                    word.push(letter);
                }
                words.push(word);
            }
        }
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn resources_fulfil_filters() {
        let anna = json!({
            "userName": "anna", "active": true, "name": {"familyName": "Berg"},
            "emails": [{"value": "anna@mail.org", "type": "work"}, "second@mail.org"],
        });
        for (filter, expected) in [
            ("userName eq \"Anna\"", true),
            ("username ne anna", false),
            ("urn:ietf:params:scim:schemas:core:2.0:User:userName sw an", true),
            ("name.familyName co er and active eq true", true),
            ("name.familyName co er and active eq false", false),
            ("emails ew mail.org", true),
            ("emails.type eq work", true),
            ("title pr", false),
            ("name pr", true),
        ] {
            let conditions = parse(filter).unwrap();
            assert_eq!(conditions.iter().all(|condition| condition.holds(&anna)), expected, "{filter}");
        }
    }

    #[test]
    fn malformed_filters_are_refused() {
        for filter in ["", "userName", "userName eq", "userName gt x", "a eq b or c eq d", "(a eq b)", "a eq \"b"] {
            assert!(parse(filter).is_err(), "{filter}");
        }
    }
}
