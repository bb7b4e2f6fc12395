//! `<rewrite>`: changes parts of the address, rule by rule.

use penstock_compile::{Compiler, Element, Expression, MediatorKind};
use penstock_engine::{Exchange, Fault, Flow, Mediator, Needs};
use penstock_message::{Scope, Value};
use regex::Regex;

use crate::condition::Condition;
use crate::uri::{Fragment, Uri};

/// The kind.
pub const KIND: MediatorKind = MediatorKind { name: "rewrite", compile };

struct Rewrite {
    rules: Vec<Rule>,
    /// Properties that stand in for `To`.
    input: Option<String>,
    output: Option<String>,
}

struct Rule {
    condition: Option<Condition>,
    actions: Vec<Action>,
}

struct Action {
    kind: RuleAction,
    /// `None` is the whole address.
    fragment: Option<Fragment>,
    value: RuleValue,
}

enum RuleAction {
    Set,
    Append,
    Prepend,
    Replace(Regex),
    Remove,
}

enum RuleValue {
    None,
    Text(String),
    Computed(Expression),
}

fn compile(el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    let mut rules = Vec::new();
    for rule in el.elements("rewriterule") {
        let condition = match rule.child("condition") {
            Some(condition) => Some(Condition::inside(cx, &condition)?),
            None => None,
        };
        let mut actions = Vec::new();
        for action in rule.elements("action") {
            actions.push(compile_action(cx, &action)?);
        }
        if actions.is_empty() {
            cx.error(rule.place(), "<rewriterule> has no <action>");
            return None;
        }
        rule.finish(cx);
        rules.push(Rule { condition, actions });
    }
    let property = |name| el.attribute(name).map(str::to_owned);
    Some(Box::new(Rewrite { rules, input: property("inProperty"), output: property("outProperty") }))
}

fn compile_action(cx: &mut Compiler<'_>, el: &Element<'_>) -> Option<Action> {
    let fragment = match el.attribute("fragment").unwrap_or("full") {
        "full" => None,
        name => match Fragment::parse(name) {
            Some(fragment) => Some(fragment),
            None => {
                cx.error(el.attribute_place("fragment"), format!("`{name}` is not a part of an address"));
                return None;
            }
        },
    };
    let value = if let Some(expression) = cx.expression(el, "xpath") {
        RuleValue::Computed(expression)
    } else if el.attribute("xpath").is_some() {
        return None;
    } else {
        el.attribute("value").map_or(RuleValue::None, |value| RuleValue::Text(value.to_owned()))
    };
    let kind = match el.attribute("type").unwrap_or("set") {
        "set" => RuleAction::Set,
        "append" => RuleAction::Append,
        "prepend" => RuleAction::Prepend,
        "remove" => RuleAction::Remove,
        "replace" => {
            let pattern = el.required(cx, "regex")?;
            match Regex::new(pattern) {
                Ok(regex) => RuleAction::Replace(regex),
                Err(error) => {
                    let message = format!("the regular expression `{pattern}` is not valid: {error}");
                    cx.error(el.attribute_place("regex"), message);
                    return None;
                }
            }
        }
        other => {
            let message = format!("the action `{other}` is not one of set, append, prepend, replace, remove");
            cx.error(el.attribute_place("type"), message);
            return None;
        }
    };
    if matches!(
        (&kind, &value),
        (RuleAction::Set | RuleAction::Append | RuleAction::Prepend | RuleAction::Replace(_), RuleValue::None)
    ) {
        cx.error(el.place(), "<action> needs `value` or `xpath`");
        return None;
    }
    el.finish(cx);
    Some(Action { kind, fragment, value })
}

impl Action {
    fn apply(&self, uri: Uri, exchange: &mut Exchange) -> Result<Uri, Fault> {
        let value = match &self.value {
            RuleValue::None => String::new(),
            RuleValue::Text(text) => text.clone(),
            RuleValue::Computed(expression) => expression.text(exchange)?,
        };
        let old = match self.fragment {
            None => Some(uri.to_string()),
            Some(fragment) => uri.get(fragment).map(str::to_owned),
        };
        let old = old.unwrap_or_default();
        let new = match &self.kind {
            RuleAction::Remove => None,
            RuleAction::Set => Some(value),
            RuleAction::Append => Some(old + &value),
            RuleAction::Prepend => Some(value + &old),
            RuleAction::Replace(regex) => Some(regex.replace_all(&old, java_replacement(&value)).into_owned()),
        };
        Ok(match self.fragment {
            None => Uri::parse(&new.unwrap_or_default()),
            Some(fragment) => {
                let mut uri = uri;
                uri.set(fragment, new.as_deref().filter(|text| !text.is_empty()));
                uri
            }
        })
    }
}

/// `$1` of Java is `${1}` here, and a backslash makes the next letter a plain one.
fn java_replacement(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => match letters.next() {
                Some('$') => out.push_str("$$"),
                Some(plain) => out.push(plain),
                None => {}
            },
            '$' => match letters.next_if(char::is_ascii_digit) {
                Some(digit) => out.push_str(&format!("${{{digit}}}")),
                None => out.push_str("$$"),
            },
            other => out.push(other),
        }
    }
    out
}

impl Mediator for Rewrite {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let name = self.input.as_deref().unwrap_or("To");
        let address = exchange.property(Scope::Default, name).map(|value| value.to_text().into_owned());
        let mut uri = Uri::parse(&address.unwrap_or_default());
        for rule in &self.rules {
            if rule.condition.as_ref().is_none_or(|condition| condition.holds(&uri, exchange)) {
                for action in &rule.actions {
                    uri = action.apply(uri, exchange)?;
                }
            }
        }
        match &self.output {
            Some(property) => exchange.set_property(Scope::Default, property, Value::string(uri.to_string())),
            None => exchange.message.addressing_mut().to = Some(uri.to_string().into()),
        }
        Ok(Flow::Next)
    }

    fn needs(&self) -> Needs {
        let actions = self.rules.iter().flat_map(|rule| &rule.actions);
        let needs = actions.map(|action| match &action.value {
            RuleValue::Computed(expression) => expression.needs(),
            _ => Needs::Nothing,
        });
        needs.max().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replacements_are_those_of_java() {
        let regex = Regex::new("a(b)").unwrap();
        for (value, expected) in [("x$1y", "xby"), ("$2", ""), ("\\$1", "$1"), ("a\\\\b", "a\\b"), ("5$", "5$")] {
            let replaced = regex.replace_all("ab", java_replacement(value)).into_owned();
            assert_eq!(replaced, expected, "{value}");
        }
    }
}
