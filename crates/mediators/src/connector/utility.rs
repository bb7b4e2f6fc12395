//! The utility module: the length and the case of a text, a pattern, an identifier, the date, a random number, and signatures
//! with a shared secret. A result becomes a property.

use std::sync::Arc;

use penstock_compile::connector::Arguments;
use penstock_compile::{Compiler, ConnectorKind, Element};
use penstock_engine::ports::Level;
use penstock_engine::{Exchange, Fault, Flow, Mediator, Needs, clock};
use penstock_message::{Scope, Value};
use regex::Regex;
use ring::hmac;

use crate::reply::reply_value;

/// The kind.
pub const KIND: ConnectorKind = ConnectorKind {
    name: "Utility",
    operations: &[
        "date.GetDate",
        "math.GetRandomInt",
        "signature.Generate",
        "signature.Verify",
        "string.Length",
        "string.LowerCase",
        "string.RegexMatcher",
        "string.UUID",
        "string.UpperCase",
    ],
    compile,
    connection: |_, _, _| {},
};

const PARAMETERS: [&str; 12] = [
    "string",
    "inputString",
    "regex",
    "format",
    "lowerBound",
    "upperBound",
    "payload",
    "customPayload",
    "secret",
    "algorithm",
    "signature",
    "target",
];

/// The default format of a date.
const DATE_FORMAT: &str = "yyyy-MM-dd HH:mm:ss";

/// A pattern that needs more memory is a mistake.
const REGEX_BYTES_MAX: usize = 1 << 20;

struct Operation {
    compute: Compute,
    /// The property for the result, when `target` names none.
    property: &'static str,
    arguments: Arguments,
    reads_body: bool,
}

/// The result, or why there is none.
type Compute = fn(&Arguments, &mut Exchange) -> Result<Result<Value, String>, Fault>;

fn compile(el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    let arguments = Arguments::compile(el, cx, &PARAMETERS)?;
    let name = el.name().strip_prefix("Utility.").unwrap_or_default();
    let (compute, property): (Compute, _) = match name {
        "date.GetDate" => (date, "date"),
        "math.GetRandomInt" => (random, "random"),
        "signature.Generate" => (sign, "sign"),
        "signature.Verify" => (verify, "verify"),
        "string.Length" => (length, "length"),
        "string.LowerCase" => (lower_case, "lower"),
        "string.UpperCase" => (upper_case, "upper"),
        "string.RegexMatcher" => (matches, "match"),
        _ => (|_, _| Ok(Ok(Value::string(clock::uuid()))), "uuid"),
    };
    Some(Box::new(Operation { compute, property, arguments, reads_body: name.starts_with("signature.") }))
}

impl Mediator for Operation {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let target = self.arguments.text("target", exchange)?;
        match (self.compute)(&self.arguments, exchange)? {
            Ok(value) => exchange.set_property(Scope::Default, target.as_deref().unwrap_or(self.property), value),
            // As in Micro Integrator, the flow goes on without the property.
            Err(why) => exchange.log(Level::Error, "Utility", &why),
        }
        Ok(Flow::Next)
    }

    fn needs(&self) -> Needs {
        if self.reads_body { Needs::Whole } else { self.arguments.needs() }
    }
}

/// The text of an operation. Pages of Micro Integrator write the parameter with either name.
fn input(arguments: &Arguments, exchange: &mut Exchange) -> Result<String, Fault> {
    let name = if arguments.has("string") { "string" } else { "inputString" };
    Ok(arguments.text(name, exchange)?.unwrap_or_default())
}

fn length(arguments: &Arguments, exchange: &mut Exchange) -> Result<Result<Value, String>, Fault> {
    // Java counts UTF-16 units.
    let units = input(arguments, exchange)?.encode_utf16().count();
    Ok(Ok(Value::Integer(units as i64)))
}

fn lower_case(arguments: &Arguments, exchange: &mut Exchange) -> Result<Result<Value, String>, Fault> {
    Ok(Ok(Value::string(input(arguments, exchange)?.to_lowercase())))
}

fn upper_case(arguments: &Arguments, exchange: &mut Exchange) -> Result<Result<Value, String>, Fault> {
    Ok(Ok(Value::string(input(arguments, exchange)?.to_uppercase())))
}

fn matches(arguments: &Arguments, exchange: &mut Exchange) -> Result<Result<Value, String>, Fault> {
    let pattern = arguments.text("regex", exchange)?.unwrap_or_default();
    let text = input(arguments, exchange)?;
    let pattern = regex::RegexBuilder::new(&format!("^(?:{pattern})$")).size_limit(REGEX_BYTES_MAX).build();
    let matches = |pattern: Regex| Value::string(if pattern.is_match(&text) { "true" } else { "false" });
    Ok(pattern.map(matches).map_err(|error| format!("`regex`: {error}")))
}

fn date(arguments: &Arguments, exchange: &mut Exchange) -> Result<Result<Value, String>, Fault> {
    let format = arguments.text("format", exchange)?;
    Ok(Ok(Value::string(clock::system_date(Some(format.as_deref().unwrap_or(DATE_FORMAT))))))
}

fn random(arguments: &Arguments, exchange: &mut Exchange) -> Result<Result<Value, String>, Fault> {
    // Like in Micro Integrator, what is not a number is the default.
    let lower: i32 = arguments.number("lowerBound", exchange)?.unwrap_or_default().unwrap_or(0);
    let upper: i32 = arguments.number("upperBound", exchange)?.unwrap_or_default().unwrap_or(i32::MAX);
    let Some(count) = i64::from(upper).checked_sub(lower.into()).filter(|count| *count > 0) else {
        return Ok(Err(format!("`upperBound` {upper} is not greater than `lowerBound` {lower}")));
    };
    let above = clock::random() % count.unsigned_abs();
    Ok(Ok(Value::Integer(i64::from(lower) + above as i64)))
}

/// The text that is signed, and the key.
fn signed(arguments: &Arguments, exchange: &mut Exchange) -> Result<Result<(String, hmac::Key), String>, Fault> {
    let payload = arguments.text("payload", exchange)?;
    let text = match payload.is_none_or(|word| word.eq_ignore_ascii_case("Body")) {
        true => reply_value(exchange)?.to_text().into_owned(),
        false => arguments.text("customPayload", exchange)?.unwrap_or_default(),
    };
    let algorithm = arguments.text("algorithm", exchange)?;
    let algorithm = match algorithm.as_deref().unwrap_or("HMACSHA1") {
        "HMACSHA1" => hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
        "HMACSHA256" => hmac::HMAC_SHA256,
        "HMACSHA384" => hmac::HMAC_SHA384,
        "HMACSHA512" => hmac::HMAC_SHA512,
        other => {
            let known = "HMACSHA1, HMACSHA256, HMACSHA384, HMACSHA512";
            return Ok(Err(format!("the `algorithm` `{other}` is not one of {known}")));
        }
    };
    let Some(secret) = arguments.text("secret", exchange)? else { return Ok(Err("there is no `secret`".to_owned())) };
    Ok(Ok((text, hmac::Key::new(algorithm, secret.as_bytes()))))
}

fn sign(arguments: &Arguments, exchange: &mut Exchange) -> Result<Result<Value, String>, Fault> {
    Ok(signed(arguments, exchange)?.map(|(text, key)| {
        let tag = hmac::sign(&key, text.as_bytes());
        let digits: Arc<str> = tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect::<String>().into();
        Value::String(digits)
    }))
}

fn verify(arguments: &Arguments, exchange: &mut Exchange) -> Result<Result<Value, String>, Fault> {
    let signature = arguments.text("signature", exchange)?.unwrap_or_default();
    Ok(signed(arguments, exchange)?.map(|(text, key)| {
        let tag = from_hexadecimal(signature.trim()).unwrap_or_default();
        Value::Boolean(hmac::verify(&key, text.as_bytes(), &tag).is_ok())
    }))
}

fn from_hexadecimal(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let pairs = text.as_bytes().chunks(2);
    pairs
        .map(|pair| match pair {
            [high, low] => u8::try_from(digit(*high)? * 16 + digit(*low)?).ok(),
            _ => None,
        })
        .collect()
}
