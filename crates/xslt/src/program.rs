//! The compiled form of a stylesheet: a flat list of operations, and tables the operations refer to by index.
//!
//! An operation never nests: a body follows the operation that opens it and ends with the one that closes it, loops
//! and calls are jumps, so that the machine needs no recursion however deep templates call each other.

use std::collections::HashMap;
use std::sync::Arc;

use penstock_xml::NodeId;
use penstock_xpath::ast::SequenceType;
use penstock_xpath::{NamePool, Pattern, XPath};

use crate::output::OutputProperties;
use crate::read::ModuleTree;
use crate::run::number_format::NumberFormat;

/// An index into [`Program::ops`].
pub(crate) type Pc = u32;
/// An index into [`Program::expressions`].
pub(crate) type ExprId = u32;
/// An index into [`Program::symbols`].
pub(crate) type NameRef = u32;
/// A variable's place in the frame of its template, function or global.
pub(crate) type Slot = u32;

/// One operation. The `u32`s without a name of their own index the table that the documentation names.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Op {
    /// Pre-escaped literal content: `fragments`.
    Fragment(u32),
    /// Text: `strings`.
    Text(u32),
    /// Text written without escaping: `strings`.
    RawText(u32),
    /// Opens a literal result element: `literals`.
    StartLiteral(u32),
    /// An attribute of the element just opened: `literal_attributes`.
    LiteralAttribute(u32),
    /// Opens an element with a computed name: `computed_names`. Without a usable name only the content appears.
    StartElement(u32),
    /// Closes what [`Op::StartElement`] opened, if it did.
    EndComputedElement,
    /// Closes a literal result element.
    EndElement,
    /// A shallow copy of the context item; jumps there when the item has no content to run.
    Copy { jump: Pc },
    /// Closes the element that [`Op::Copy`] opened.
    EndCopy,
    /// `xsl:copy-of`.
    CopyOf(ExprId),
    /// The string value of something: `values_of`.
    ValueOf(u32),
    /// An attribute whose value needs no body: `simple_attributes`.
    SimpleAttribute(u32),
    /// The text collected since [`Op::BeginText`] becomes an attribute: `computed_names`.
    EndAttribute(u32),
    /// … a comment.
    EndComment,
    /// … a processing instruction: `computed_names`.
    EndProcessingInstruction(u32),
    /// … a namespace node: `computed_names`.
    EndNamespace(u32),
    /// … text in the result (`xsl:value-of` with a body): the flag disables escaping.
    EndValueOf { raw: bool },
    /// Output goes to a string until the matching end.
    BeginText,
    /// Output goes to a new tree.
    BeginTree,
    /// Output goes to a new sequence.
    BeginSequence,
    /// The tree is the value of a variable.
    EndTree { slot: Slot },
    /// The sequence, converted as the type says, is the value of a variable: `types`, or `NONE`.
    EndSequence { slot: Slot, as_type: u32 },
    /// The tree is added to the output (`xsl:document`).
    EndDocument,
    /// The tree is a message: `messages`.
    EndMessage(u32),
    /// The value of an expression becomes that of a variable: `types`, or `NONE`.
    SetVariable { slot: Slot, expr: ExprId, as_type: u32 },
    /// Items added to the output as they are.
    Sequence(ExprId),
    /// A number of the source: `numbers`.
    Number(u32),
    /// Goes on elsewhere.
    Jump(Pc),
    /// Goes on elsewhere unless the expression holds.
    JumpUnless { test: ExprId, to: Pc },
    /// Runs the following operations up to [`Op::Next`] for each item: `loops`.
    ForEach(u32),
    /// Runs the following operations for each group: `groupings`.
    ForEachGroup(u32),
    /// The body of a loop ends.
    Next,
    /// Runs the bodies for substrings: `analyses`.
    AnalyzeString(u32),
    /// Sorts a sequence into the output: `loops`.
    PerformSort(u32),
    /// Applies templates: `applications`.
    ApplyTemplates(u32),
    /// Calls a template: `calls`.
    Call(u32),
    /// Runs the attribute set: `attribute_sets`.
    UseAttributeSet(u32),
    /// Goes on with the next template in precedence: `continuations`.
    Continue(u32),
    /// Takes a parameter, or goes on to compute its default: `parameters`.
    Param(u32),
    /// A template or a body ends.
    Return,
    /// An error that only matters when it is reached: `deferred`.
    Fail(u32),
}

/// No table entry.
pub(crate) const NONE: u32 = u32::MAX;

/// A name in the result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OutName {
    pub prefix: Box<str>,
    pub local: Box<str>,
    pub namespace: Box<str>,
}

impl OutName {
    /// `prefix:local`, as written in a tag.
    pub fn lexical(&self) -> String {
        if self.prefix.is_empty() { self.local.to_string() } else { format!("{}:{}", self.prefix, self.local) }
    }
}

/// A literal result element's start.
#[derive(Debug)]
pub(crate) struct Literal {
    pub name: OutName,
    /// Its namespace nodes: prefix and namespace.
    pub namespaces: Vec<(Box<str>, Box<str>)>,
}

#[derive(Debug)]
pub(crate) struct LiteralAttribute {
    pub name: OutName,
    pub value: Avt,
}

/// Literal content that was serialised at compile time.
#[derive(Debug, Default)]
pub(crate) struct Fragment {
    /// XML in UTF-8. An end tag at the very front is counted in `end_tag_bytes`; a start tag at the very end lacks its `>`.
    pub bytes: Vec<u8>,
    pub end_tag_bytes: usize,
    pub leaves_open: bool,
    /// Whether it holds only while no default namespace is in scope.
    pub needs_no_default: bool,
    /// How many more elements are open afterwards.
    pub depth_change: i32,
    /// The same as events, for sinks that are not plain XML.
    pub events: Vec<Event>,
}

#[derive(Debug)]
pub(crate) enum Event {
    Start(u32),
    Attribute(OutName, Box<str>),
    Text(Box<str>),
    End,
}

/// An attribute value template, or anything else made of text and expressions.
#[derive(Debug, Default)]
pub(crate) struct Avt {
    pub parts: Vec<Part>,
}

#[derive(Debug)]
pub(crate) enum Part {
    Text(Box<str>),
    Value(ValueOf),
}

impl Avt {
    pub fn constant(text: &str) -> Avt {
        Avt { parts: if text.is_empty() { Vec::new() } else { vec![Part::Text(text.into())] } }
    }

    /// The text, when there is nothing to compute.
    pub fn as_constant(&self) -> Option<&str> {
        match &self.parts[..] {
            [] => Some(""),
            [Part::Text(text)] => Some(text),
            _ => None,
        }
    }
}

/// Something whose string value is wanted.
#[derive(Debug)]
pub(crate) struct ValueOf {
    pub source: ValueSource,
    /// What stands between several items; `None` takes the first only (the rule of 1.0).
    pub separator: Option<Avt>,
    pub raw: bool,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum ValueSource {
    /// `.`
    Context,
    /// The first child element of that name.
    Child(NameRef),
    /// `@name`
    Attribute(NameRef),
    Expr(ExprId),
}

/// What a loop or `xsl:apply-templates` goes over.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Select {
    /// `node()`, the default.
    Children,
    /// `@* | node()`
    AttributesAndChildren,
    /// `@*`
    Attributes,
    /// `*`
    ChildElements,
    /// `name`
    ChildrenNamed(NameRef),
    Expr(ExprId),
}

/// A name computed at run time, of an element, an attribute, a processing instruction.
#[derive(Debug)]
pub(crate) struct ComputedName {
    pub name: Avt,
    pub namespace: Option<Avt>,
    /// What prefixes mean there: the module and element whose namespaces are in scope.
    pub scope: (usize, NodeId),
}

#[derive(Debug)]
pub(crate) struct SimpleAttribute {
    pub name: ComputedName,
    /// The name when it is known already.
    pub fixed: Option<OutName>,
    pub value: Avt,
}

#[derive(Debug)]
pub(crate) struct Message {
    pub terminate: Avt,
}

#[derive(Debug)]
pub(crate) struct Loop {
    pub select: Select,
    pub sort: Vec<SortKey>,
    /// The operation after the loop.
    pub end: Pc,
}

#[derive(Debug)]
pub(crate) struct Grouping {
    pub select: ExprId,
    pub by: GroupBy,
    pub sort: Vec<SortKey>,
    pub end: Pc,
}

#[derive(Debug)]
pub(crate) enum GroupBy {
    Key(ExprId),
    Adjacent(ExprId),
    StartingWith(u32),
    EndingWith(u32),
}

#[derive(Debug)]
pub(crate) struct Analysis {
    pub select: ExprId,
    pub regex: Avt,
    pub flags: Avt,
    /// The body for matching substrings, and the one for the others.
    pub matching: Option<Pc>,
    pub non_matching: Option<Pc>,
    pub end: Pc,
}

#[derive(Debug)]
pub(crate) struct SortKey {
    pub select: ExprId,
    pub lang: Avt,
    pub order: Avt,
    pub data_type: Avt,
    pub case_order: Avt,
    /// XSLT 1.0 rules: everything is text unless `data-type` says otherwise.
    pub untyped: bool,
}

/// A parameter passed on: its name, whether it tunnels, and the slot that holds its value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Passed {
    pub name: u32,
    pub tunnel: bool,
    pub slot: Slot,
}

#[derive(Debug)]
pub(crate) struct Application {
    pub select: Select,
    /// The mode, or `NONE` for the current one.
    pub mode: u32,
    pub sort: Vec<SortKey>,
    pub params: Vec<Passed>,
}

#[derive(Debug)]
pub(crate) struct Call {
    /// Index into `templates`.
    pub template: u32,
    pub params: Vec<Passed>,
}

#[derive(Debug)]
pub(crate) struct Continuation {
    /// `xsl:apply-imports`: only what the module of the current template imports.
    pub imports_only: bool,
    pub params: Vec<Passed>,
}

#[derive(Debug)]
pub(crate) struct Parameter {
    pub name: u32,
    pub slot: Slot,
    pub tunnel: bool,
    pub required: bool,
    pub as_type: u32,
    /// The operation after the default value was computed.
    pub after: Pc,
}

#[derive(Debug)]
pub(crate) struct Number {
    pub value: Option<ExprId>,
    pub select: Option<ExprId>,
    pub level: Level,
    /// Patterns: `patterns`.
    pub count: Option<u32>,
    pub from: Option<u32>,
    pub format: Avt,
    /// The parsed format when it is constant.
    pub fixed_format: Option<NumberFormat>,
    pub letter_value: Avt,
    pub grouping_separator: Avt,
    pub grouping_size: Avt,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    Single,
    Multiple,
    Any,
}

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
    pub arity: usize,
    pub block: Block,
    pub as_type: u32,
}

#[derive(Debug)]
pub(crate) struct Key {
    pub pattern: u32,
    pub usage: KeyUse,
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
    pub output: OutputProperties,
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
