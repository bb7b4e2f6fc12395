//! The compiled form of a stylesheet: a flat list of operations, and tables the operations refer to by index.
//!
//! An operation never nests: a body follows the operation that opens it and ends with the one that closes it, loops
//! and calls are jumps, so that the machine needs no recursion however deep templates call each other.
//!
//! The operations are in `op`, the entries of their tables in `content` (what they write) and `control` (where they go).

mod content;
mod control;
mod op;

use std::collections::HashMap;
use std::sync::Arc;

use penstock_xml::NodeId;
use penstock_xpath::ast::SequenceType;
use penstock_xpath::collation::Collation;
use penstock_xpath::{NamePool, Pattern, XPath};

use crate::output::OutputProperties;
use crate::read::ModuleTree;

pub(crate) use content::{
    Avt, ComputedName, Event, Fragment, Level, Literal, LiteralAttribute, Message, Number, OutName, Part,
    ResultDocument, SimpleAttribute, ValueOf, ValueSource,
};
pub(crate) use control::{
    Analysis, Application, Call, Continuation, GroupBy, Grouping, Loop, Parameter, Passed, Select, SortBy, SortKey,
};
pub(crate) use op::{ExprId, NONE, NameRef, Op, Pc, Slot};

/// Code with its own variables.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Block {
    pub entry: Pc,
    /// How many slots it needs.
    pub slots: u32,
}

#[derive(Debug)]
pub(crate) struct Template {
    pub block: Block,
    /// Precedence of its level, and the lowest precedence its level imports.
    pub precedence: u32,
    pub lowest_import: u32,
    /// Names of the parameters it declares without `tunnel`.
    pub params: Vec<u32>,
    /// Whether one of them must be passed.
    pub requires_params: bool,
    /// Names of those that must be passed and do not tunnel.
    pub required_params: Vec<u32>,
    /// It copies the node and goes on with attributes and children in the same mode, nothing else.
    pub identity: bool,
}

/// One branch of a match pattern with the template it leads to. Rules are in the order in which they win.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rule {
    pub template: u32,
    pub pattern: u32,
    /// Which of the pattern's alternatives.
    pub branch: u32,
    pub precedence: u32,
    pub priority: f64,
    /// Whether the dispatch table alone decides that it matches.
    pub certain: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Mode {
    pub rules: Vec<Rule>,
    /// Candidates, in order.
    pub lists: Vec<Vec<u32>>,
    /// For each kind of node its list.
    pub elements: u32,
    pub attributes: u32,
    pub text: u32,
    pub comments: u32,
    pub instructions: u32,
    pub documents: u32,
    pub namespaces: u32,
    /// The lists for elements and attributes of one name; they include the rules for any name.
    pub element_names: Vec<(NameRef, u32)>,
    pub attribute_names: Vec<(NameRef, u32)>,
}

#[derive(Debug)]
pub(crate) struct Global {
    pub name: u32,
    pub block: Block,
    /// Where the block leaves the value.
    pub slot: Slot,
    pub is_param: bool,
    pub required: bool,
    pub as_type: u32,
}

#[derive(Debug)]
pub(crate) struct Function {
    pub name: u32,
    /// The types of the parameters: `types`, or `NONE`.
    pub params: Vec<u32>,
    pub block: Block,
    pub as_type: u32,
}

#[derive(Debug)]
pub(crate) struct Key {
    pub pattern: u32,
    pub usage: KeyUse,
    /// What compares the values.
    pub collation: Collation,
}

#[derive(Debug)]
pub(crate) enum KeyUse {
    Expr(ExprId),
    Body(Block, Slot),
}

/// Where something was written, for messages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub module: u32,
    pub node: NodeId,
}

/// Everything a run needs to know.
#[derive(Default)]
pub(crate) struct Program {
    pub ops: Vec<Op>,
    /// A [`Op::Return`] outside of all bodies.
    pub stop: Pc,
    /// Where each operation was written.
    pub places: Vec<Place>,
    pub modules: ModuleTree,
    pub pool: Arc<NamePool>,
    pub expressions: Vec<XPath>,
    pub expression_places: Vec<Place>,
    pub patterns: Vec<Pattern>,
    pub pattern_places: Vec<Place>,
    pub types: Vec<SequenceType>,
    /// Element and attribute names that the code tests for: namespace and local part.
    pub symbols: Vec<(Box<str>, Box<str>)>,
    pub strings: Vec<Box<str>>,
    /// What stands between the items of `xsl:value-of` and `xsl:attribute` with content.
    pub separators: Vec<Avt>,
    pub fragments: Vec<Fragment>,
    pub literals: Vec<Literal>,
    pub literal_attributes: Vec<LiteralAttribute>,
    pub computed_names: Vec<ComputedName>,
    pub simple_attributes: Vec<SimpleAttribute>,
    pub values_of: Vec<ValueOf>,
    pub messages: Vec<Message>,
    pub loops: Vec<Loop>,
    pub groupings: Vec<Grouping>,
    pub analyses: Vec<Analysis>,
    pub applications: Vec<Application>,
    pub calls: Vec<Call>,
    pub attribute_sets: Vec<Vec<Block>>,
    pub continuations: Vec<Continuation>,
    pub parameters: Vec<Parameter>,
    pub numbers: Vec<Number>,
    pub deferred: Vec<(String, String)>,
    pub templates: Vec<Template>,
    /// Expanded names of variables, parameters, templates, modes, keys, functions: one list for all.
    pub names: Vec<Arc<str>>,
    pub template_names: HashMap<u32, u32>,
    /// Modes by name; index 0 is the unnamed mode.
    pub modes: Vec<Mode>,
    pub mode_names: HashMap<u32, u32>,
    pub globals: Vec<Global>,
    pub functions: Vec<Function>,
    pub keys: Vec<Key>,
    pub key_names: HashMap<u32, Vec<u32>>,
    /// Where functions are called whose argument is a lexical QName: module and element.
    pub scopes: Vec<(usize, NodeId)>,
    pub output: OutputProperties,
    /// The output definitions with a name.
    pub outputs: HashMap<u32, OutputProperties>,
    pub character_maps: HashMap<u32, Vec<(char, Box<str>)>>,
    pub results: Vec<ResultDocument>,
    /// `xsl:strip-space` and `xsl:preserve-space`, the strongest first.
    pub space_rules: Vec<SpaceRule>,
    /// Whether `last()` may ask for the size of what is being gone over.
    pub uses_last: bool,
    /// Whether an expression may leave the subtree of its context node (`/`, parents, siblings, `id()`).
    pub looks_up: bool,
    pub version_two: bool,
}

/// One name test of `xsl:strip-space` or `xsl:preserve-space`.
#[derive(Debug, Clone)]
pub(crate) struct SpaceRule {
    /// `None` is any namespace.
    pub namespace: Option<Box<str>>,
    /// `None` is any local name.
    pub local: Option<Box<str>>,
    pub strip: bool,
}
