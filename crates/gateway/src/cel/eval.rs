//! What an expression gives.

use std::borrow::Cow;
use std::cmp::Ordering;

use super::{Function, Node, Operator, Value};

type Outcome<'v> = Result<Value<'v>, String>;

pub(super) fn value<'v>(node: &'v Node, variable: &dyn Fn(&str) -> Value<'v>) -> Outcome<'v> {
    let of = |node: &'v Node| value(node, variable);
    Ok(match node {
        Node::Null => Value::Null,
        Node::Bool(flag) => Value::Bool(*flag),
        Node::Int(number) => Value::Int(*number),
        Node::Double(number) => Value::Double(*number),
        Node::Text(text) => Value::text(&**text),
        Node::Variable(name) => variable(name),
        Node::List(values) => Value::List(values.iter().map(of).collect::<Result<_, _>>()?),
        Node::Index(map, key) => {
            let (map, key) = (of(map)?, of(key)?);
            let missing = || format!("there is no `{}`", shown(&key));
            index(&map, &key).ok_or_else(missing)?
        }
        Node::Has(map, key) => Value::Bool(index(&of(map)?, &of(key)?).is_some()),
        Node::Not(inner) => match of(inner)? {
            Value::Bool(flag) => Value::Bool(!flag),
            other => return Err(format!("`!` of {}", other.kind())),
        },
        Node::Negate(inner) => match of(inner)? {
            Value::Int(number) => Value::Int(number.checked_neg().ok_or("a number is too large")?),
            Value::Double(number) => Value::Double(-number),
            other => return Err(format!("`-` of {}", other.kind())),
        },
        Node::Binary(operator @ (Operator::Or | Operator::And), left, right) => {
            logic(*operator == Operator::Or, of(left), || of(right))?
        }
        Node::Binary(operator, left, right) => binary(*operator, of(left)?, of(right)?)?,
        Node::Choice(parts) => {
            let [condition, yes, no] = &**parts;
            match of(condition)? {
                Value::Bool(true) => of(yes)?,
                Value::Bool(false) => of(no)?,
                other => return Err(format!("`?` of {}", other.kind())),
            }
        }
        Node::Call(function, values) => {
            let mut values = values.iter().map(of);
            let first = values.next().ok_or("a value is missing")??;
            call(*function, first, values.next().transpose()?)?
        }
        Node::Matches(text, pattern) => match of(text)? {
            Value::Text(text) => Value::Bool(pattern.is_match(&text)),
            other => return Err(format!("`matches` of {}", other.kind())),
        },
    })
}

/// Either side may decide, also when something is wrong with the other.
fn logic<'v>(decides: bool, left: Outcome<'v>, right: impl FnOnce() -> Outcome<'v>) -> Outcome<'v> {
    let flag = |outcome: Outcome<'v>| match outcome? {
        Value::Bool(flag) => Ok(flag),
        other => Err(format!("`&&` or `||` of {}", other.kind())),
    };
    match flag(left) {
        Ok(flag) if flag == decides => Ok(Value::Bool(decides)),
        left => match (left, flag(right())) {
            (_, Ok(flag)) if flag == decides => Ok(Value::Bool(decides)),
            (Ok(_), Ok(_)) => Ok(Value::Bool(!decides)),
            (Err(why), _) | (_, Err(why)) => Err(why),
        },
    }
}

/// A member of a map or list.
fn index<'v>(map: &Value<'v>, key: &Value<'v>) -> Option<Value<'v>> {
    match (map, key) {
        (Value::List(values), Value::Int(at)) => values.get(usize::try_from(*at).ok()?).cloned(),
        (Value::Fields(fields), Value::Text(name)) if !name.bytes().any(|byte| byte.is_ascii_uppercase()) => {
            let values: Vec<Value<'v>> = fields
                .iter()
                .filter(|(known, _)| known.eq_ignore_ascii_case(name.as_bytes()))
                .map(|(_, value)| Value::Text(String::from_utf8_lossy(value)))
                .collect();
            (!values.is_empty()).then_some(Value::List(values))
        }
        _ => None,
    }
}

fn binary<'v>(operator: Operator, left: Value<'v>, right: Value<'v>) -> Outcome<'v> {
    let wrong = || format!("{} and {} do not go together", left.kind(), right.kind());
    let compared =
        |fits: fn(Ordering) -> bool| order(&left, &right).map(|order| Value::Bool(fits(order))).ok_or_else(wrong);
    match operator {
        Operator::Equal => Ok(Value::Bool(equal(&left, &right))),
        Operator::Unequal => Ok(Value::Bool(!equal(&left, &right))),
        Operator::Less => compared(Ordering::is_lt),
        Operator::LessOrEqual => compared(Ordering::is_le),
        Operator::Greater => compared(Ordering::is_gt),
        Operator::GreaterOrEqual => compared(Ordering::is_ge),
        Operator::In => match &right {
            Value::List(values) => Ok(Value::Bool(values.iter().any(|value| equal(value, &left)))),
            Value::Fields(_) | Value::Nothing => Ok(Value::Bool(index(&right, &left).is_some())),
            _ => Err(wrong()),
        },
        Operator::Add => match (&left, &right) {
            (Value::Text(left), Value::Text(right)) => Ok(Value::text(format!("{left}{right}"))),
            (Value::List(left), Value::List(right)) => Ok(Value::List(left.iter().chain(right).cloned().collect())),
            _ => arithmetic(&left, &right, i64::checked_add, |left, right| left + right).ok_or_else(wrong),
        },
        Operator::Subtract => arithmetic(&left, &right, i64::checked_sub, |left, right| left - right).ok_or_else(wrong),
        Operator::Multiply => arithmetic(&left, &right, i64::checked_mul, |left, right| left * right).ok_or_else(wrong),
        Operator::Divide => arithmetic(&left, &right, i64::checked_div, |left, right| left / right).ok_or_else(wrong),
        Operator::Remainder => match (&left, &right) {
            (Value::Int(left), Value::Int(right)) => left.checked_rem(*right).map(Value::Int).ok_or_else(wrong),
            _ => Err(wrong()),
        },
        Operator::And | Operator::Or => Err(wrong()),
    }
}

fn arithmetic<'v>(
    left: &Value<'v>,
    right: &Value<'v>,
    whole: fn(i64, i64) -> Option<i64>,
    broken: fn(f64, f64) -> f64,
) -> Option<Value<'v>> {
    match (left, right) {
        (Value::Int(left), Value::Int(right)) => whole(*left, *right).map(Value::Int),
        _ => Some(Value::Double(broken(number(left)?, number(right)?))),
    }
}

fn number(value: &Value<'_>) -> Option<f64> {
    match value {
        Value::Int(number) => Some(*number as f64),
        Value::Double(number) => Some(*number),
        _ => None,
    }
}

fn equal(left: &Value<'_>, right: &Value<'_>) -> bool {
    match (left, right) {
        (Value::Null, Value::Null) => true,
        (Value::Bool(left), Value::Bool(right)) => left == right,
        (Value::Int(left), Value::Int(right)) => left == right,
        (Value::Text(left), Value::Text(right)) => left == right,
        (Value::Bytes(left), Value::Bytes(right)) => left == right,
        (Value::List(left), Value::List(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| equal(left, right))
        }
        _ => number(left).zip(number(right)).is_some_and(|(left, right)| left == right),
    }
}

fn order(left: &Value<'_>, right: &Value<'_>) -> Option<Ordering> {
    match (left, right) {
        (Value::Text(left), Value::Text(right)) => Some(left.cmp(right)),
        (Value::Bool(left), Value::Bool(right)) => Some(left.cmp(right)),
        (Value::Int(left), Value::Int(right)) => Some(left.cmp(right)),
        _ => number(left)?.partial_cmp(&number(right)?),
    }
}

fn call<'v>(function: Function, value: Value<'v>, with: Option<Value<'v>>) -> Outcome<'v> {
    let wrong = || format!("`{}` cannot be taken for that", shown(&value));
    Ok(match (function, &value, &with) {
        (Function::Size, Value::Text(text), _) => Value::Int(text.chars().count() as i64),
        (Function::Size, Value::Bytes(bytes), _) => Value::Int(bytes.len() as i64),
        (Function::Size, Value::List(values), _) => Value::Int(values.len() as i64),
        (Function::Int, Value::Int(number), _) => Value::Int(*number),
        (Function::Int, Value::Double(number), _) if number.abs() < i64::MAX as f64 => Value::Int(*number as i64),
        (Function::Int, Value::Text(text), _) => Value::Int(text.parse().map_err(|_| wrong())?),
        (Function::Double, Value::Int(number), _) => Value::Double(*number as f64),
        (Function::Double, Value::Double(number), _) => Value::Double(*number),
        (Function::Double, Value::Text(text), _) => Value::Double(text.parse().map_err(|_| wrong())?),
        (Function::Text, Value::Text(_), _) => value,
        (Function::Text, Value::Bytes(bytes), _) => Value::text(String::from_utf8_lossy(bytes).into_owned()),
        (Function::Text, Value::Bool(_) | Value::Int(_) | Value::Double(_), _) => {
            Value::text(shown(&value).into_owned())
        }
        (Function::StartsWith, Value::Text(text), Some(Value::Text(with))) => Value::Bool(text.starts_with(&**with)),
        (Function::EndsWith, Value::Text(text), Some(Value::Text(with))) => Value::Bool(text.ends_with(&**with)),
        (Function::Contains, Value::Text(text), Some(Value::Text(with))) => Value::Bool(text.contains(&**with)),
        _ => return Err(wrong()),
    })
}

fn shown<'s>(value: &'s Value<'_>) -> Cow<'s, str> {
    match value {
        Value::Text(text) => Cow::Borrowed(text),
        Value::Int(number) => number.to_string().into(),
        Value::Double(number) => number.to_string().into(),
        Value::Bool(flag) => flag.to_string().into(),
        other => other.kind().into(),
    }
}
