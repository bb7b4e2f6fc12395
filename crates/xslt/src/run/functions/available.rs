//! What the processor offers: `system-property()`, `element-available()`, `function-available()` and
//! `type-available()`, at run time and in `use-when`.

use penstock_xpath::{AtomicType, FUNCTION_NAMESPACE, HostCall, SCHEMA_NAMESPACE, Sequence, XPathError};

use super::{boolean, text};
use crate::compile::is_ncname;
use crate::read::{XSL, syntax};

/// One of the four functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Availability {
    SystemProperty = 0,
    Element = 1,
    Function = 2,
    Type = 3,
}

impl Availability {
    const ALL: [Availability; 4] =
        [Availability::SystemProperty, Availability::Element, Availability::Function, Availability::Type];

    pub fn from_name(local: &str) -> Option<Availability> {
        Some(match local {
            "system-property" => Availability::SystemProperty,
            "element-available" => Availability::Element,
            "function-available" => Availability::Function,
            "type-available" => Availability::Type,
            _ => return None,
        })
    }

    /// Whether the function takes so many arguments.
    pub fn takes(self, arity: usize) -> bool {
        arity == 1 || (arity == 2 && self == Availability::Function)
    }

    /// The error when the argument is not a name.
    fn code(self) -> &'static str {
        match self {
            Availability::SystemProperty => "XTDE1390",
            Availability::Element => "XTDE1440",
            Availability::Function => "XTDE1400",
            Availability::Type => "XTDE1428",
        }
    }
}

/// An expanded name from a lexical QName; prefixes mean what `namespace` says.
pub(crate) fn expand(lexical: &str, namespace: &dyn Fn(&str) -> Option<String>) -> Option<(String, String)> {
    let lexical = lexical.trim();
    let Some((prefix, local)) = lexical.split_once(':') else {
        return is_ncname(lexical).then(|| (String::new(), lexical.to_owned()));
    };
    if !is_ncname(prefix) || !is_ncname(local) {
        return None;
    }
    namespace(prefix).map(|namespace| (namespace, local.to_owned()))
}

/// Answers the call of [`Availability`] number `index`. `declared` knows the functions of the stylesheet.
pub(crate) fn answer(
    index: u32,
    call: &HostCall<'_>,
    namespace: &dyn Fn(&str) -> Option<String>,
    declared: &dyn Fn(&str, &str, Option<usize>) -> bool,
) -> Result<Sequence, XPathError> {
    let Some(function) = Availability::ALL.get(index as usize).copied() else { return Ok(Sequence::Empty) };
    let lexical = call.string(0);
    let Some((uri, local)) = expand(&lexical, namespace) else {
        let message = format!("`{lexical}` is not a name, or its prefix is not declared");
        return Err(XPathError::new(function.code(), message));
    };
    Ok(match function {
        Availability::SystemProperty => text(if uri == XSL { system_property(&local, call.compat) } else { "" }),
        Availability::Element => {
            // Names without a prefix are in the default namespace.
            let uri = if uri.is_empty() { namespace("").unwrap_or_default() } else { uri };
            let exslt_document = uri == super::EXSLT_COMMON && local == "document";
            boolean(exslt_document || (uri == XSL && syntax::is_instruction(&local)))
        }
        Availability::Function => {
            let arity = call.arguments.get(1).map(|_| call.string(1).parse::<f64>().unwrap_or(-1.0) as usize);
            boolean(function_exists(&uri, &local, arity) || declared(&uri, &local, arity))
        }
        Availability::Type => boolean(type_exists(&uri, &local)),
    })
}

fn system_property(local: &str, compat: bool) -> &'static str {
    match local {
        "version" if compat => "1.0",
        "version" => "2.0",
        "vendor" => "Penstock",
        "vendor-url" => "https://penstock.example/",
        "product-name" => "Penstock",
        "product-version" => env!("CARGO_PKG_VERSION"),
        "is-schema-aware" => "no",
        "supports-serialization" | "supports-backwards-compatibility" => "yes",
        _ => "",
    }
}

/// Whether XPath or XSLT has a function of this name: any, or one with so many arguments.
fn function_exists(namespace: &str, local: &str, arity: Option<usize>) -> bool {
    match namespace {
        SCHEMA_NAMESPACE => {
            arity.is_none_or(|arity| arity == 1)
                && AtomicType::from_local_name(local).is_some_and(AtomicType::is_constructible)
        }
        "" | FUNCTION_NAMESPACE => {
            penstock_xpath::is_standard_function(local, arity) || super::exists("", local, arity)
        }
        _ => super::exists(namespace, local, arity),
    }
}

/// Schema types that are no atomic types.
const OTHER_TYPES: &[&str] =
    &["anyType", "anySimpleType", "untyped", "NMTOKENS", "IDREFS", "ENTITIES", "anyAtomicType", "NOTATION"];

fn type_exists(namespace: &str, local: &str) -> bool {
    namespace == SCHEMA_NAMESPACE && (OTHER_TYPES.contains(&local) || AtomicType::from_local_name(local).is_some())
}
