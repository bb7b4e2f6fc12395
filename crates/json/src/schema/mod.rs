//! JSON Schema, drafts 4 to 2020-12: compiled once, then evaluated on values.
//!
//! Nothing is fetched: a reference leads to another place of the schema or is a mistake. A schema that
//! does not say which draft it is written in is one of draft 4, as integrations expect.
//!
//! `compile` turns the text into nodes and checks, `evaluate` runs them, `message` has the wording that
//! flows may match on.

mod compile;
mod evaluate;
mod format;
mod message;
mod number;
mod reference;

use std::fmt;

use regex::Regex;
use serde_json::Value;

/// A draft of the specification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Draft {
    /// Draft 4, and what says nothing.
    Four,
    /// Draft 6.
    Six,
    /// Draft 7.
    Seven,
    /// 2019-09.
    Nineteen,
    /// 2020-12.
    Twenty,
}

impl Draft {
    fn from_uri(uri: &str) -> Option<Draft> {
        let uri = uri.trim_end_matches('#').trim_end_matches("/schema");
        Some(match uri.rsplit_once("json-schema.org/")?.1 {
            "draft-03" | "draft-04" | "schema" | "" => Draft::Four,
            "draft-06" => Draft::Six,
            "draft-07" => Draft::Seven,
            "draft/2019-09" => Draft::Nineteen,
            "draft/2020-12" => Draft::Twenty,
            _ => return None,
        })
    }
}

/// A mistake in a schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaError {
    /// Where in the schema, as a JSON pointer.
    pub pointer: String,
    /// What, lower case, without a full stop.
    pub message: String,
}

impl fmt::Display for SchemaError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "at `#{}`: {}", self.pointer, self.message)
    }
}

impl std::error::Error for SchemaError {}

/// Something in a value that its schema does not allow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Where in the value, as a JSON pointer.
    pub pointer: String,
    /// Where in the schema.
    pub schema_pointer: String,
    /// Which keyword said so.
    pub keyword: &'static str,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "error: {}\n    level: \"error\"\n    schema: {{\"loadingURI\":\"#\",\"pointer\":\"{}\"}}\n    instance: {{\"pointer\":\"{}\"}}\n    domain: \"validation\"\n    keyword: \"{}\"\n",
            self.message, self.schema_pointer, self.pointer, self.keyword
        )
    }
}

/// A compiled schema. Immutable; shared between threads.
#[derive(Debug)]
pub struct JsonSchema {
    nodes: Vec<Node>,
    resources: Vec<Resource>,
    /// Whether any node depends on what others have evaluated.
    tracks: bool,
    notes: Vec<SchemaError>,
}

/// A part of a schema with an identifier of its own, and its dynamic anchors.
#[derive(Debug, Default)]
struct Resource {
    dynamic: Vec<(String, NodeId)>,
    /// `$recursiveAnchor` at its root.
    recursive: Option<NodeId>,
}

type NodeId = usize;

#[derive(Debug)]
struct Node {
    pointer: String,
    resource: usize,
    checks: Vec<Check>,
}

/// One keyword, or a group of keywords that are decided together.
#[derive(Debug)]
enum Check {
    /// The schema `false`.
    Never,
    Type(Vec<ValueType>),
    Enum(Vec<Value>),
    Const(Value),
    Minimum {
        bound: Value,
        exclusive: bool,
    },
    Maximum {
        bound: Value,
        exclusive: bool,
    },
    MultipleOf(Value),
    Length {
        min: Option<usize>,
        max: Option<usize>,
    },
    Pattern(Regex, String),
    Format(String),
    ItemCount {
        min: Option<usize>,
        max: Option<usize>,
    },
    UniqueItems,
    Items {
        prefix: Vec<NodeId>,
        rest: Option<NodeId>,
        rest_keyword: &'static str,
    },
    Contains {
        schema: NodeId,
        min: usize,
        max: Option<usize>,
        evaluates: bool,
    },
    PropertyCount {
        min: Option<usize>,
        max: Option<usize>,
    },
    Required(Vec<String>),
    Properties {
        named: Vec<(String, NodeId)>,
        patterns: Vec<(Regex, NodeId)>,
        additional: Option<NodeId>,
    },
    PropertyNames(NodeId),
    DependentRequired(Vec<(String, Vec<String>)>),
    DependentSchemas(Vec<(String, NodeId)>),
    AllOf(Vec<NodeId>),
    AnyOf(Vec<NodeId>),
    OneOf(Vec<NodeId>),
    Not(NodeId),
    If {
        condition: NodeId,
        then: Option<NodeId>,
        otherwise: Option<NodeId>,
    },
    Reference(NodeId),
    Dynamic {
        anchor: String,
        fallback: NodeId,
    },
    Recursive(NodeId),
    UnevaluatedItems(NodeId),
    UnevaluatedProperties(NodeId),
}

/// The types a value can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ValueType {
    Null,
    Boolean,
    Object,
    Array,
    Number,
    /// With draft 4 a number written without a fraction, later any without a fractional part.
    Integer {
        as_written: bool,
    },
    String,
}

impl JsonSchema {
    /// Compiles a schema, all mistakes at once.
    pub fn compile(schema: &Value) -> Result<JsonSchema, Vec<SchemaError>> {
        compile::compile(schema)
    }

    /// What is no mistake and may still surprise: keywords that the draft does not have.
    pub fn notes(&self) -> &[SchemaError] {
        &self.notes
    }

    /// Whether a value is valid.
    pub fn is_valid(&self, value: &Value) -> bool {
        evaluate::is_valid(self, value)
    }

    /// What is wrong with a value; empty when it is valid. Stops at a hundred.
    pub fn validate(&self, value: &Value) -> Vec<Violation> {
        evaluate::validate(self, value)
    }
}
