//! From the modules of a stylesheet to a [`Program`].
//!
//! Two passes: the first gives numbers to everything that can be named (`declarations`), so that the second, which
//! compiles bodies and expressions, can refer to what is declared later.

mod body;
mod checks;
mod declarations;
mod expression;
mod instructions;
mod literal;
mod rules;
mod scope;
mod variables;

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use penstock_xml::NodeId;

use crate::error::{Position, Warning, XsltError};
use crate::program::{Fragment, Op, Pc, Place, Program};
use crate::read::{Diagnostics, ModuleTree};

pub(crate) use scope::{At, expanded_name, is_ncname};
use scope::{Frame, LiteralScope};

/// The state of a compilation.
pub(crate) struct Compiler<'t> {
    tree: &'t ModuleTree,
    program: Program,
    diagnostics: &'t mut Diagnostics,
    /// Numbers of expanded names: [`Program::names`] the other way round.
    name_numbers: HashMap<Arc<str>, u32>,
    global_numbers: HashMap<u32, u32>,
    function_numbers: HashMap<(u32, usize), u32>,
    attribute_set_numbers: HashMap<u32, u32>,
    symbols: HashMap<(String, String), u32>,
    aliases: HashMap<String, declarations::Alias>,
    decimal_formats: Vec<declarations::decimal_formats::NamedDecimalFormat>,
    frame: Frame,
    /// What the result looks like around the place being compiled, when that is known.
    literal: Option<LiteralScope>,
    /// The literal result elements open in fragments.
    open_literals: Vec<u32>,
    /// An error in an expression that only matters when the instruction is reached (forwards-compatible processing).
    pending_failure: Option<(String, String)>,
    pending_rules: Vec<rules::PendingRule>,
    /// Calls and the parameters they pass, to be checked when all templates are compiled.
    calls_to_check: Vec<(At, u32, Vec<u32>)>,
    /// The global variable whose definition is being compiled.
    defining: Option<u32>,
    /// Becomes [`Program::scopes`].
    scopes: RefCell<Vec<(usize, NodeId)>>,
    global_places: Vec<(u32, At)>,
    function_places: Vec<(u32, At)>,
    /// Whether the prefix of variables that no stylesheet can name is in scope.
    internal_prefix: bool,
    /// Where the operation being emitted was written.
    here: At,
    /// Operations before this one may be jumped behind, so nothing may be merged into them.
    barrier: Pc,
}

/// Compiles a stylesheet that was read.
pub(crate) fn compile(
    tree: ModuleTree,
    mut diagnostics: Diagnostics,
) -> Result<(Program, Vec<Warning>), Vec<XsltError>> {
    if tree.modules.is_empty() {
        return Err(diagnostics.errors);
    }
    let start = At { module: 0, node: penstock_xml::Document::ROOT };
    let mut compiler = Compiler {
        tree: &tree,
        program: Program::default(),
        diagnostics: &mut diagnostics,
        name_numbers: HashMap::new(),
        global_numbers: HashMap::new(),
        function_numbers: HashMap::new(),
        attribute_set_numbers: HashMap::new(),
        symbols: HashMap::new(),
        aliases: HashMap::new(),
        decimal_formats: Vec::new(),
        frame: Frame::default(),
        literal: None,
        open_literals: Vec::new(),
        pending_failure: None,
        pending_rules: Vec::new(),
        calls_to_check: Vec::new(),
        defining: None,
        scopes: RefCell::default(),
        global_places: Vec::new(),
        function_places: Vec::new(),
        internal_prefix: false,
        here: start,
        barrier: 0,
    };
    compiler.declarations();
    let mut program = compiler.program;
    program.scopes = compiler.scopes.into_inner();
    let errors = std::mem::take(&mut diagnostics.errors);
    if !errors.is_empty() {
        return Err(errors);
    }
    program.modules = tree;
    Ok((program, diagnostics.warnings))
}

impl Compiler<'_> {
    fn position(&self, at: At) -> Position {
        self.module(at).position(at.node)
    }

    fn error(&mut self, code: impl Into<std::borrow::Cow<'static, str>>, message: impl Into<String>, at: At) {
        let position = self.position(at);
        self.diagnostics.error(code, message, position);
    }

    fn warning(&mut self, message: impl Into<String>, at: At) {
        let position = self.position(at);
        self.diagnostics.warning(message, position);
    }

    fn place(&self) -> Place {
        Place { module: self.here.module as u32, node: self.here.node }
    }

    /// Appends an operation and returns where it is.
    fn emit(&mut self, op: Op) -> Pc {
        let at = self.program.ops.len() as Pc;
        self.program.ops.push(op);
        let place = self.place();
        self.program.places.push(place);
        at
    }

    /// Where the next operation will be; something may jump there.
    fn target(&mut self) -> Pc {
        self.barrier = self.program.ops.len() as Pc;
        self.barrier
    }

    /// The fragment at the end of the code, when it may still grow.
    fn open_fragment(&mut self) -> Option<&mut Fragment> {
        if self.program.ops.len() as Pc <= self.barrier {
            return None;
        }
        match self.program.ops.last() {
            Some(Op::Fragment(fragment)) => self.program.fragments.get_mut(*fragment as usize),
            _ => None,
        }
    }

    /// The number of an element or attribute name the code tests for.
    fn symbol(&mut self, namespace: &str, local: &str) -> u32 {
        let key = (namespace.to_owned(), local.to_owned());
        if let Some(number) = self.symbols.get(&key) {
            return *number;
        }
        let number = self.program.symbols.len() as u32;
        self.program.symbols.push((namespace.into(), local.into()));
        self.symbols.insert(key, number);
        number
    }

    fn string(&mut self, text: &str) -> u32 {
        self.program.strings.push(text.into());
        self.program.strings.len() as u32 - 1
    }
}
