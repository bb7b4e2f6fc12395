//! The operations, and the indices they are made of.

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
    /// Children of the element just opened do not inherit its namespaces.
    IsolateNamespaces,
    /// A shallow copy of the context item; jumps there when the item has no content to run.
    Copy { jump: Pc, namespaces: bool },
    /// Closes the element that [`Op::Copy`] opened.
    EndCopy,
    /// `xsl:copy-of`.
    CopyOf { select: ExprId, namespaces: bool },
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
    /// Output goes to a string until the matching end; the flag puts spaces between adjacent values.
    BeginText { spaced: bool },
    /// Output goes to a new tree.
    BeginTree,
    /// Output goes to a new sequence.
    BeginSequence,
    /// The same, for the result of a template.
    BeginTypedResult,
    /// Output goes to a new tree that becomes a result document.
    BeginResultDocument,
    /// The result document ends: `results`.
    EndResultDocument(u32),
    /// The tree is the value of a variable.
    EndTree { slot: Slot },
    /// The sequence, converted as the type says, is the value of a variable: `types`, or `NONE`.
    EndSequence { slot: Slot, as_type: u32 },
    /// The sequence, converted as the type says, is the result of a template: `types`.
    EndTypedResult { as_type: u32 },
    /// The sequence becomes one text with the separator between items: `separators`.
    EndJoined { separator: u32, raw: bool },
    /// … the value of an attribute: `computed_names`.
    EndJoinedAttribute { separator: u32, name: u32 },
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
