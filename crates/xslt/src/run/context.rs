//! What the machines of one run share: documents, globals, keys, limits, and the answers to XPath's questions.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use penstock_xml::{Document, NameId, ParseOptions};
use penstock_xpath::{Host, HostCall, Item, Node, Sequence, Session, XPathError};

use super::dispatch::Dispatch;
use super::{Failure, Machine, Outcome, functions};
use crate::error::{Position, XsltError, codes};
use crate::program::{NONE, Place, Program};
use crate::read::join_uri;
use crate::resolver::Resolver;

/// Bounds on what one transformation may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Templates inside templates.
    pub depth_max: usize,
    /// Functions and global variables inside one another. The stack for them is taken from the heap.
    pub function_depth_max: usize,
    /// Bytes of the result, temporary trees included.
    pub output_bytes_max: usize,
    /// Steps: about one for each instruction carried out, node visited and item made.
    pub fuel: u64,
    /// Time.
    pub time_max: Option<Duration>,
}

impl Limits {
    /// Enough for every transformation of messages, little enough for one that never ends.
    pub const DEFAULT: Limits = Limits {
        // A recursive template that walks a list of ten thousand words is legal and exists.
        depth_max: 100_000,
        // Lists are walked by recursion here too. A level takes less than 8 KiB, so this is 400 MiB at most.
        function_depth_max: 50_000,
        // The largest body a gateway holds in memory.
        output_bytes_max: 256 << 20,
        // Some tens of seconds.
        fuel: 2_000_000_000,
        time_max: None,
    };
}

impl Default for Limits {
    fn default() -> Limits {
        Limits::DEFAULT
    }
}

/// What a caller decides about a run.
pub(crate) struct RunOptions<'a> {
    pub params: &'a [(String, Sequence)],
    pub resolver: &'a dyn Resolver,
    pub limits: Limits,
    pub messages: &'a dyn Fn(&str),
    pub documents: Option<&'a WriteDocument<'a>>,
}

/// Writes a result document: its `href`, and its bytes.
pub type WriteDocument<'a> = dyn Fn(&str, &[u8]) -> Result<(), String> + 'a;

enum Global {
    Unset,
    InProgress,
    Set(Sequence),
}

/// The state that is shared by the machines of a run. Machines nest (functions, globals), so everything here has
/// interior mutability.
pub(crate) struct Run<'a> {
    pub program: &'a Program,
    pub session: &'a Session,
    pub options: &'a RunOptions<'a>,
    /// The node global variables are computed for.
    pub initial: Option<Node>,
    globals: RefCell<Vec<Global>>,
    pub(super) keys: RefCell<HashMap<(u32, u32), Rc<super::keys::KeyIndex>>>,
    documents: RefCell<HashMap<String, Node>>,
    pub(super) dispatch: RefCell<Vec<Dispatch>>,
    /// Names of the program in each document, for documents beyond the first.
    names: RefCell<HashMap<u32, Rc<[Cell<Symbol>]>>>,
    first_names: OnceCell<Symbols>,
    pub(super) group: RefCell<Option<Rc<super::group::Group>>>,
    pub(super) regex_groups: RefCell<Option<Rc<[String]>>>,
    pub(super) depth: Cell<usize>,
    /// Bytes of the temporary trees, which live as long as the run.
    pub(super) temporary: Cell<usize>,
    ticks: Cell<u32>,
    deadline: Option<Instant>,
    now: OnceCell<SystemTime>,
    /// The `href` of every result document, and the one that is the principal result.
    pub(super) written: RefCell<HashSet<String>>,
    pub(crate) principal: RefCell<Option<super::results::PrincipalResult>>,
    /// The error of a function that was called from an expression, on its way through the XPath evaluator.
    pub(super) passing: RefCell<Option<Failure>>,
}

/// By symbol of the program: the name in a document.
type Symbols = Box<[Cell<Symbol>]>;

/// What a run found out about the names of its first document.
#[derive(Debug)]
pub(crate) struct Known {
    symbols: Symbols,
    tables: Vec<Dispatch>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Symbol {
    Unknown,
    Absent,
    Found(NameId),
}

impl<'a> Run<'a> {
    pub fn new(
        program: &'a Program,
        session: &'a Session,
        options: &'a RunOptions<'a>,
        initial: Option<Node>,
    ) -> Run<'a> {
        session.set_fuel(options.limits.fuel);
        Run {
            program,
            session,
            options,
            initial,
            globals: RefCell::new(program.globals.iter().map(|_| Global::Unset).collect()),
            keys: RefCell::default(),
            documents: RefCell::default(),
            dispatch: RefCell::default(),
            names: RefCell::default(),
            first_names: OnceCell::new(),
            group: RefCell::new(None),
            regex_groups: RefCell::new(None),
            depth: Cell::new(0),
            temporary: Cell::new(0),
            ticks: Cell::new(0),
            deadline: options.limits.time_max.map(|time| Instant::now() + time),
            now: OnceCell::new(),
            written: RefCell::default(),
            principal: RefCell::new(None),
            passing: RefCell::new(None),
        }
    }

    /// Reuses the results of an earlier run for a document with the same names.
    pub fn know(&mut self, known: Known) {
        // No name was resolved yet.
        let _ = self.first_names.set(known.symbols);
        self.dispatch = RefCell::new(known.tables);
    }

    /// Hands on what was found out about the names of the first document.
    pub fn known(&mut self) -> Option<Known> {
        let mut tables = self.dispatch.take();
        tables.retain(|table| table.document == 0);
        Some(Known { symbols: self.first_names.take()?, tables })
    }

    /// Where something was written.
    pub fn position(&self, place: Place) -> Position {
        match self.program.modules.modules.get(place.module as usize) {
            Some(module) => module.position(place.node),
            None => Position::default(),
        }
    }

    /// Counts work; now and then looks at the clock.
    #[inline]
    pub fn tick(&self) -> Result<(), &'static str> {
        if self.session.charge(1).is_err() {
            return Err(codes::OUT_OF_FUEL);
        }
        self.ticks.set(self.ticks.get().wrapping_add(1));
        if self.ticks.get() & 0xfff == 0 && self.deadline.is_some_and(|deadline| Instant::now() > deadline) {
            return Err(codes::OUT_OF_TIME);
        }
        Ok(())
    }

    /// The number a name of the program has in a document.
    #[inline]
    pub fn name_in(&self, document: u32, symbol: u32) -> Option<NameId> {
        let unknown = || self.program.symbols.iter().map(|_| Cell::new(Symbol::Unknown)).collect::<Vec<_>>();
        let lookup = |slot: &Cell<Symbol>| match slot.get() {
            Symbol::Found(name) => Some(name),
            Symbol::Absent => None,
            Symbol::Unknown => {
                let (namespace, local) = &self.program.symbols[symbol as usize];
                let found = self.session.document(document).find_name(namespace, local);
                slot.set(found.map_or(Symbol::Absent, Symbol::Found));
                found
            }
        };
        if document == 0 {
            let names = self.first_names.get_or_init(|| unknown().into());
            return lookup(&names[symbol as usize]);
        }
        let names = Rc::clone(self.names.borrow_mut().entry(document).or_insert_with(|| unknown().into()));
        lookup(&names[symbol as usize])
    }

    /// The value of a global variable or parameter, computed on first use.
    pub fn global(&self, index: u32) -> Outcome<Sequence> {
        let global = &self.program.globals[index as usize];
        let place = self.program.places[global.block.entry as usize];
        let failure =
            |code: &'static str, message: String| Box::new(XsltError::new(code, message, self.position(place)));
        match &self.globals.borrow()[index as usize] {
            Global::Set(value) => return Ok(value.clone()),
            Global::InProgress => {
                let name = &self.program.names[global.name as usize];
                return Err(failure("XTDE0640", format!("the global variable `{name}` depends on itself")));
            }
            Global::Unset => {}
        }
        self.globals.borrow_mut()[index as usize] = Global::InProgress;
        let name = &self.program.names[global.name as usize];
        let given = self.options.params.iter().find(|(given, _)| global.is_param && **given == **name);
        let value = match given {
            Some((_, value)) if global.as_type == NONE => value.clone(),
            Some((_, value)) => {
                super::sequence::convert(self, value.clone(), global.as_type, "XTTE0590", "the parameter")
                    .map_err(|(code, message)| Box::new(XsltError::new(code, message, self.position(place))))?
            }
            None if global.required => {
                return Err(failure("XTDE0050", format!("the parameter `{name}` is required and was not given")));
            }
            None => Machine::value(self, global.block, global.slot, self.initial)?,
        };
        self.globals.borrow_mut()[index as usize] = Global::Set(value.clone());
        Ok(value)
    }

    /// Loads a document once.
    pub fn load(&self, reference: &str, base: &str) -> Result<Node, XPathError> {
        let wanted = join_uri(base, reference);
        let (wanted, fragment) = wanted.split_once('#').map_or((&wanted[..], None), |(uri, id)| (uri, Some(id)));
        let found = self.documents.borrow().get(wanted).copied();
        let root = match found {
            Some(root) => root,
            None => self.load_new(reference.split('#').next().unwrap_or(reference), base, wanted)?,
        };
        let Some(id) = fragment.filter(|id| !id.is_empty()) else { return Ok(root) };
        let document = self.session.document_of(root);
        Ok(document.element_by_id(id).map_or(root, |id| Node { document: root.document, id }))
    }

    fn load_new(&self, reference: &str, base: &str, wanted: &str) -> Result<Node, XPathError> {
        // The empty reference is the stylesheet module itself.
        let module = self.program.modules.modules.iter().find(|module| *module.uri == *wanted);
        let document = match module.filter(|_| reference.is_empty()) {
            Some(module) => module.document.clone(),
            None => {
                let resource = self.options.resolver.resolve(reference, base);
                let resource = resource.map_err(|message| XPathError::new("FODC0002", message))?;
                if let Some(root) = self.documents.borrow().get(&resource.uri) {
                    return Ok(*root);
                }
                let options = ParseOptions {
                    base_uri: Some(resource.uri.clone().into()),
                    strip_space: crate::strip::strip_space(self.program),
                    ..ParseOptions::default()
                };
                let parsed = Document::parse(resource.content, &options);
                let document = parsed.map_err(|error| {
                    XPathError::new("FODC0002", format!("`{}` is not well-formed: {error}", resource.uri))
                })?;
                let root = self.session.add(Arc::new(document));
                self.documents.borrow_mut().insert(resource.uri, root);
                self.documents.borrow_mut().insert(wanted.to_owned(), root);
                return Ok(root);
            }
        };
        let root = self.session.add(Arc::new(document));
        self.documents.borrow_mut().insert(wanted.to_owned(), root);
        Ok(root)
    }

    /// Lets a failure pass through the XPath evaluator.
    pub(super) fn smuggle(&self, failure: Failure) -> XPathError {
        let error = XPathError::new(failure.code.clone(), failure.message.clone());
        *self.passing.borrow_mut() = Some(failure);
        error
    }
}

impl Host for Run<'_> {
    fn variable_at(&self, index: u32, _session: &Session) -> Result<Sequence, XPathError> {
        self.global(index).map_err(|failure| self.smuggle(failure))
    }

    fn call(&self, call: &HostCall<'_>) -> Result<Sequence, XPathError> {
        if (functions::USER_BASE..functions::SCOPED).contains(&call.index) {
            let function = &self.program.functions[(call.index - functions::USER_BASE) as usize];
            return Machine::function(self, function, call.arguments).map_err(|failure| self.smuggle(failure));
        }
        functions::call(self, call)
    }

    fn now(&self) -> SystemTime {
        *self.now.get_or_init(SystemTime::now)
    }

    fn document(&self, uri: &str, base: Option<&str>, _session: &Session) -> Result<Node, XPathError> {
        self.load(uri, base.unwrap_or_default())
    }
}

/// An item as a node.
pub(super) fn as_node(item: &Item) -> Option<Node> {
    match item {
        Item::Node(node) => Some(*node),
        Item::Atomic(_) => None,
    }
}
