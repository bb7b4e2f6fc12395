//! Arguments, values and variables: what may be sent for what, and what the sent ones say about the size of an answer.

use std::collections::HashSet;

use serde_json::Value as Json;

use super::document::Variable;
use super::lexer::short;
use super::schema::{Inputs, Kind, Literal, TypeRef};
use super::syntax::{Argument, TypeName, Value};
use super::walk::Checker;

/// Arguments with a number of results, which multiplies the complexity.
const HOW_MANY: [&str; 3] = ["first", "last", "limit"];

impl<'c, 't> Checker<'c, 't> {
    /// Checks the arguments of a field or directive, or the fields of a value.
    pub(super) fn arguments(&mut self, arguments: &'c [Argument<'t>], inputs: &'c Inputs, of: &str) {
        let mut given = HashSet::new();
        for argument in arguments {
            let name = argument.name.text;
            if !given.insert(name) {
                self.problem(|| format!("There can be only one argument named '{}'", short(name)));
            }
            match inputs.get(name) {
                Some(input) => self.value(&argument.value, &input.kind),
                None => self.problem(|| format!("Unknown argument '{}' of '{}'", short(name), short(of))),
            }
        }
        if given.len() < inputs.len() {
            for (name, _) in inputs.iter().filter(|(name, input)| input.is_required() && !given.contains(&***name)) {
                self.problem(|| format!("Missing argument '{name}' of '{}'", short(of)));
            }
        }
    }

    fn value(&mut self, value: &'c Value<'t>, wanted: &'c TypeRef) {
        let schema = self.schema;
        let named = match (value, wanted) {
            (Value::Variable(name), _) => {
                self.uses(name.text);
                return;
            }
            (Value::Null, TypeRef::NonNull(_)) => return self.wrong(wanted),
            (Value::Null, _) => return,
            (_, TypeRef::NonNull(inner)) => return self.value(value, inner),
            (Value::List(items), TypeRef::List(inner)) => {
                items.iter().for_each(|item| self.value(item, inner));
                return;
            }
            // One stands for a list of it.
            (_, TypeRef::List(inner)) => return self.value(value, inner),
            (_, TypeRef::Named(named)) => *named,
        };
        let fits = match (&schema.types[named].kind, value) {
            (Kind::Scalar(fits), Value::List(_) | Value::Object(_)) => {
                self.variables_in(value);
                fits(Literal::Other)
            }
            (Kind::Scalar(fits), value) => fits(match value {
                Value::Int(_) => Literal::Int,
                Value::Float => Literal::Float,
                Value::Text => Literal::Text,
                Value::Flag(_) => Literal::Flag,
                _ => Literal::Other,
            }),
            (Kind::Enum(values), Value::Enum(name)) => values.contains(name.text),
            (Kind::Input(inputs), Value::Object(fields)) => {
                self.arguments(fields, inputs, &schema.types[named].name);
                true
            }
            _ => false,
        };
        if !fits {
            self.wrong(wanted);
        }
    }

    /// Values of scalars that only the backend knows may hold variables too.
    fn variables_in(&mut self, value: &'c Value<'t>) {
        match value {
            Value::Variable(name) => self.uses(name.text),
            Value::List(items) => items.iter().for_each(|item| self.variables_in(item)),
            Value::Object(fields) => fields.iter().for_each(|field| self.variables_in(&field.value)),
            _ => {}
        }
    }

    fn wrong(&mut self, wanted: &TypeRef) {
        let name = &self.schema.types[wanted.named()].name;
        self.problem(|| format!("A value is not of the expected type '{name}'"));
    }

    /// Checks the declaration of a variable.
    pub(super) fn variable(&mut self, variable: &'c Variable<'t>) {
        let schema = self.schema;
        let named = variable.kind.named();
        let kind = schema.by_name.get(named.text).map(|id| &schema.types[*id].kind);
        if !matches!(kind, Some(Kind::Scalar(_) | Kind::Enum(_) | Kind::Input(_))) {
            self.problem(|| {
                format!("Unknown type '{}' of variable '{}'", short(named.text), short(variable.name.text))
            });
        }
        let not_null = matches!(variable.kind, TypeName::NonNull(_));
        if not_null && matches!(variable.default, Some(Value::Null)) {
            self.problem(|| format!("The variable '{}' cannot be null", short(variable.name.text)));
        }
        self.directives(&variable.directives);
    }

    /// What a variable stands for: what was sent, else what the query says.
    fn variable_value(&self, name: &str) -> (Option<&'c Json>, Option<&'c Value<'t>>) {
        let sent = self.sent.and_then(|sent| sent.get(name));
        let default = || self.declared.iter().find(|variable| variable.name.text == name)?.default.as_ref();
        match sent {
            Some(sent) => (Some(sent), None),
            None => (None, default()),
        }
    }

    /// What a condition says, when it is known here.
    pub(super) fn flag(&self, value: &'c Value<'t>) -> Option<bool> {
        match value {
            Value::Flag(flag) => Some(*flag),
            Value::Variable(name) => match self.variable_value(name.text) {
                (Some(sent), _) => sent.as_bool(),
                (None, Some(Value::Flag(flag))) => Some(*flag),
                _ => None,
            },
            _ => None,
        }
    }

    /// How many times a field counts, by its arguments: those that say how many are wanted add what they say, every
    /// other one adds one, as in API Manager. Unlike there, variables count as what they stand for, and what is less
    /// than one as one.
    pub(super) fn factor(&self, arguments: &'c [Argument<'t>]) -> u64 {
        let of = |argument: &'c Argument<'t>| {
            let says_how_many = HOW_MANY.iter().any(|name| argument.name.text.eq_ignore_ascii_case(name));
            if says_how_many { self.how_many(&argument.value) } else { 1 }
        };
        arguments.iter().map(of).fold(0, u64::saturating_add).max(1)
    }

    fn how_many(&self, value: &'c Value<'t>) -> u64 {
        match value {
            Value::Int(digits) => of_digits(digits),
            Value::Variable(name) => match self.variable_value(name.text) {
                (Some(Json::Number(number)), _) => of_digits(&number.to_string()),
                // Some backends take numbers as texts.
                (Some(Json::String(text)), _) => of_digits(text),
                (None, Some(Value::Int(digits))) => of_digits(digits),
                _ => 1,
            },
            _ => 1,
        }
    }
}

/// A number that may be too large for any type, and is at least one.
fn of_digits(digits: &str) -> u64 {
    match digits.parse::<u64>() {
        Ok(number) => number.max(1),
        // A cast of a float to a whole number ends at the largest one.
        Err(_) => digits.parse::<f64>().map_or(1, |number| (number.ceil() as u64).max(1)),
    }
}
