//! What operations go over and where they go on: loops, groups, applications of templates, calls, parameters.

use penstock_xpath::collation::Collation;

use super::content::Avt;
use super::op::{ExprId, NameRef, Pc, Slot};

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
    /// The URI of the collation that compares keys.
    pub collation: Option<Avt>,
    /// The default collation, for keys without one.
    pub default_collation: Collation,
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

/// Where the value of a sort key comes from.
#[derive(Debug, Clone, Copy)]
pub(crate) enum SortBy {
    Expr(ExprId),
    /// Operations that leave it in a sequence and return.
    Body(Pc),
}

#[derive(Debug)]
pub(crate) struct SortKey {
    pub value: SortBy,
    /// The URI of a collation; empty for the default one.
    pub collation: Avt,
    /// The default collation where the key is declared.
    pub default_collation: Collation,
    pub lang: Avt,
    pub order: Avt,
    pub data_type: Avt,
    pub case_order: Avt,
    pub stable: Avt,
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
