//! For whom a quota counts.

use std::sync::Arc;

use penstock_engine::{Exchange, Fault};
use regex::Regex;

use crate::CallContext;
use crate::cel::{Expression, Value};
use crate::policy::chain::params::{Param, Params};
use crate::policy::chain::variables::{OF_KEYS, evaluate};

/// As the API Platform's own definition of the policy says.
const PARTS_MAX: usize = 5;

/// What the key of a quota is made of.
#[derive(Clone)]
pub(super) struct Key(Arc<[KeyPart]>);

struct KeyPart {
    source: KeySource,
    /// The quota is not for requests whose part does not fit.
    fits: Option<Regex>,
}

/// Where a part comes from.
#[derive(Clone)]
enum KeySource {
    Header(Arc<str>),
    /// A claim of the caller's token.
    Claim(Arc<str>),
    /// What no policy here writes; the API Platform's stand-in.
    Metadata(Arc<str>),
    Constant(Arc<str>),
    Address,
    ApiName,
    ApiVersion,
    Route,
    Expression(Arc<Expression>),
}

impl Key {
    /// Requests of an operation, or of all operations together.
    pub(super) fn usual(of_api: bool) -> Key {
        let source = if of_api { KeySource::ApiName } else { KeySource::Route };
        Key([KeyPart { source, fits: None }].into())
    }

    /// Reads one; `None` when none is given.
    pub(super) fn read(params: &Params<'_>, name: &'static str) -> Option<Key> {
        let list = params.list(name);
        if list.len() > PARTS_MAX {
            params.error(format!("`{name}` has at most {PARTS_MAX} parts"));
        }
        let parts: Vec<KeyPart> = list.into_iter().filter_map(part).collect();
        (!parts.is_empty()).then(|| Key(parts.into()))
    }

    /// Whether all operations of an API share it.
    pub(super) fn is_of_whole_api(&self) -> bool {
        let has = |wanted: fn(&KeySource) -> bool| self.0.iter().any(|part| wanted(&part.source));
        has(|source| matches!(source, KeySource::ApiName)) && !has(|source| matches!(source, KeySource::Route))
    }

    /// The key of a request; `None` when the quota is not for it.
    pub(super) fn of(&self, exchange: &mut Exchange, context: &CallContext) -> Result<Option<String>, Fault> {
        let mut key = String::new();
        for (index, part) in self.0.iter().enumerate() {
            let value = part.source.of(exchange, context)?;
            if part.fits.as_ref().is_some_and(|fits| !fits.is_match(&value)) {
                return Ok(None);
            }
            if index > 0 {
                key.push(':');
            }
            key.push_str(&value);
        }
        Ok(Some(key))
    }

    /// Whether it reads fields of the request.
    pub(super) fn reads_sent(&self) -> bool {
        let reads = |part: &KeyPart| {
            matches!(part.source, KeySource::Header(_) | KeySource::Address | KeySource::Expression(_))
        };
        self.0.iter().any(reads)
    }
}

fn part(item: Param<'_>) -> Option<KeyPart> {
    let item = item.map("keyExtraction")?;
    #[derive(Clone, Copy)]
    enum Type {
        Named(fn(Arc<str>) -> KeySource),
        Alone(fn() -> KeySource),
        Expression,
    }
    let types = [
        ("header", Type::Named(KeySource::Header)),
        ("metadata", Type::Named(KeySource::Metadata)),
        ("authproperty", Type::Named(KeySource::Claim)),
        ("constant", Type::Named(KeySource::Constant)),
        ("ip", Type::Alone(|| KeySource::Address)),
        ("apiname", Type::Alone(|| KeySource::ApiName)),
        ("apiversion", Type::Alone(|| KeySource::ApiVersion)),
        ("routename", Type::Alone(|| KeySource::Route)),
        ("cel", Type::Expression),
    ];
    let fits = item.map("match").and_then(|fits| {
        fits.one_of("type", &[("regex", ())]);
        fits.regex("value")
    });
    let source = match item.one_of("type", &types) {
        Some(Type::Named(source)) => source(item.required_text("key")?),
        Some(Type::Alone(source)) => {
            let _ = item.text("key");
            source()
        }
        Some(Type::Expression) => {
            let _ = item.text("key");
            KeySource::Expression(item.expression("expression", OF_KEYS)?)
        }
        None => {
            item.error("a part of a key needs `type`");
            return None;
        }
    };
    Some(KeyPart { source, fits })
}

impl KeySource {
    fn of(&self, exchange: &mut Exchange, context: &CallContext) -> Result<String, Fault> {
        if let KeySource::Expression(expression) = self {
            return evaluate(expression, exchange, "request_headers", true, |value| match value {
                Ok(Value::Text(key)) => key.into_owned(),
                // As the API Platform has it.
                _ => "_cel_error_".to_owned(),
            });
        }
        let chain = context.chain.borrow();
        let headers = chain.sent.as_ref().unwrap_or(&exchange.message.headers);
        let api = &context.site.api;
        Ok(match self {
            KeySource::Header(name) => match headers.get(name).filter(|value| !value.is_empty()) {
                Some(value) => value.to_owned(),
                None => format!("_missing_header_{name}_"),
            },
            KeySource::Claim(name) => {
                let caller = context.caller.borrow();
                match caller.claims.as_ref().and_then(|claims| claims.get(&**name)) {
                    Some(serde_json::Value::String(text)) if !text.is_empty() => text.clone(),
                    Some(value) if !value.is_null() && !value.is_string() => value.to_string(),
                    _ => format!("_missing_authproperty_{name}_"),
                }
            }
            KeySource::Metadata(name) => format!("_missing_metadata_{name}_"),
            KeySource::Constant(text) => text.to_string(),
            KeySource::Address => exchange.client.address.to_string(),
            KeySource::ApiName => api.name.to_string(),
            KeySource::ApiVersion => api.version.to_string(),
            KeySource::Route | KeySource::Expression(_) => "route".to_owned(),
        })
    }
}
