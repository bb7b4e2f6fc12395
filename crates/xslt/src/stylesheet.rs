//! The compiled stylesheet and the ways to run it.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use penstock_xml::{Document, NodeId, TreeBuilder};
use penstock_xpath::{Atomic, Item, Node, Sequence, Session};

use crate::error::{Position, Warning, XsltError};
use crate::output::{Buffers, OutputInfo, Writer};
use crate::program::Program;
use crate::read::{self, Diagnostics};
use crate::resolver::{NoResolver, Resolver};
use crate::run::{Limits, Machine, Memory, Run, RunOptions, Sink, results};
use crate::{compile, strip};

/// How to compile a stylesheet.
pub struct CompileOptions<'a> {
    /// Where the stylesheet comes from: the base of what it imports, and the name in messages.
    pub base_uri: &'a str,
    /// Reads what it imports and includes.
    pub resolver: &'a dyn Resolver,
    /// Reads the external entities of its modules; without one they are left out.
    pub entities: Option<Arc<dyn penstock_xml::Resolver>>,
}

impl Default for CompileOptions<'_> {
    fn default() -> Self {
        CompileOptions { base_uri: "stylesheet", resolver: &NoResolver, entities: None }
    }
}

/// How to run a stylesheet.
pub struct TransformOptions<'a> {
    /// Stylesheet parameters by expanded name: `local` or `{namespace}local`.
    pub params: Vec<(String, Sequence)>,
    /// Reads documents for `document()`.
    pub resolver: &'a dyn Resolver,
    /// What the transformation may cost.
    pub limits: Limits,
    /// Begins with a named template instead of the rules; expanded name.
    pub initial_template: Option<&'a str>,
    /// Begins in a mode; expanded name.
    pub initial_mode: Option<&'a str>,
    /// Receives messages and warnings.
    pub messages: &'a dyn Fn(&str),
    /// Writes the documents of `xsl:result-document` that have an `href`; without it they are an error.
    pub documents: Option<&'a crate::WriteDocument<'a>>,
}

impl Default for TransformOptions<'_> {
    fn default() -> Self {
        TransformOptions {
            params: Vec::new(),
            resolver: &NoResolver,
            limits: Limits::DEFAULT,
            initial_template: None,
            initial_mode: None,
            messages: &|_| {},
            documents: None,
        }
    }
}

impl TransformOptions<'_> {
    /// Adds a parameter that is a string.
    pub fn string_param(&mut self, name: impl Into<String>, value: &str) {
        let value = Item::Atomic(Atomic::Untyped(value.into()));
        self.params.push((name.into(), Sequence::from(value)));
    }
}

/// A compiled stylesheet: made once, run many times, from any thread.
pub struct Stylesheet {
    program: Program,
    /// Buffers of finished runs, for the next ones.
    pool: Mutex<Vec<(Buffers, Memory)>>,
}

/// More buffers than threads that transform at once are of no use.
const POOL_MAX: usize = 64;

impl Stylesheet {
    /// Compiles a stylesheet; all static errors come at once where that is possible.
    ///
    /// # Errors
    /// What is wrong with the stylesheet or the modules it imports, in the order found.
    pub fn compile(
        source: impl Into<Bytes>,
        options: &CompileOptions<'_>,
    ) -> Result<(Stylesheet, Vec<Warning>), Vec<XsltError>> {
        let mut diagnostics = Diagnostics::default();
        let tree = read::read(source.into(), options, &mut diagnostics);
        let (program, warnings) = compile::compile(tree, diagnostics)?;
        Ok((Stylesheet { program, pool: Mutex::new(Vec::new()) }, warnings))
    }

    /// How the result is to be written when nothing in it decides otherwise (a result that begins with `html` does).
    pub fn declared_output(&self) -> OutputInfo {
        self.program.output.info(self.program.output.method.unwrap_or(crate::Method::Xml))
    }

    /// The expanded names of the stylesheet's parameters.
    pub fn parameters(&self) -> impl Iterator<Item = &str> {
        let params = self.program.globals.iter().filter(|global| global.is_param);
        params.map(|global| &*self.program.names[global.name as usize])
    }

    /// How to parse a source so that the white space the stylesheet strips never gets into the tree.
    pub fn strip_space(&self) -> Option<Arc<dyn penstock_xml::StripSpace>> {
        strip::strip_space(&self.program)
    }

    /// Transforms a document, or the subtree at an element as if it were the whole document, and appends the bytes
    /// of the result to `out`.
    ///
    /// # Errors
    /// A dynamic error or a limit; `out` is then as it was.
    pub fn transform(
        &self,
        document: &Arc<Document>,
        subject: NodeId,
        options: &TransformOptions<'_>,
        out: &mut Vec<u8>,
    ) -> Result<OutputInfo, XsltError> {
        let start = out.len();
        let result = self.transform_bytes(document, subject, options, out);
        if result.is_err() {
            out.truncate(start);
        }
        result
    }

    fn transform_bytes(
        &self,
        document: &Arc<Document>,
        subject: NodeId,
        options: &TransformOptions<'_>,
        out: &mut Vec<u8>,
    ) -> Result<OutputInfo, XsltError> {
        let pooled = self.pool.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let (buffers, mut memory) = pooled.unwrap_or_default();
        let start = out.len();
        let writer = Writer::new(out, &self.program.output, buffers);
        let (sink, principal) = self.run(document, subject, options, Sink::Bytes(Box::new(writer)), &mut memory)?;
        let Sink::Bytes(writer) = sink else { return Ok(self.declared_output()) };
        if let Some(principal) = principal {
            if !writer.is_empty() {
                return Err(twice_written());
            }
            let (_, buffers) = writer.finish();
            drop(buffers);
            out.truncate(start);
            return Ok(results::serialize(&principal.document, &principal.properties, out));
        }
        let (method, buffers) = writer.finish();
        let mut pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        if pool.len() < POOL_MAX {
            pool.push((buffers, memory));
        }
        Ok(self.program.output.info(method))
    }

    /// Like [`Stylesheet::transform`], but the result is a tree.
    ///
    /// # Errors
    /// A dynamic error or a limit.
    pub fn transform_to_tree(
        &self,
        document: &Arc<Document>,
        subject: NodeId,
        options: &TransformOptions<'_>,
    ) -> Result<Document, XsltError> {
        match self.run(document, subject, options, Sink::Tree(Default::default()), &mut Memory::default())? {
            (Sink::Tree(tree), None) => Ok(tree.tree.finish()),
            (sink, Some(_)) if !sink.is_untouched() => Err(twice_written()),
            (_, Some(principal)) => Ok((*principal.document).clone()),
            _ => Ok(TreeBuilder::new().finish()),
        }
    }

    fn run<'o>(
        &'o self,
        document: &Arc<Document>,
        subject: NodeId,
        options: &TransformOptions<'_>,
        sink: Sink<'o>,
        memory: &mut Memory,
    ) -> Result<(Sink<'o>, Option<results::PrincipalResult>), XsltError> {
        let number = |name: &str| self.program.names.iter().position(|known| **known == *name).map(|n| n as u32);
        let missing = |code, message| XsltError::new(code, message, Position::default());
        let template = match options.initial_template {
            None => None,
            Some(name) => {
                let found = number(name).and_then(|number| self.program.template_names.get(&number));
                let message = || format!("there is no template named `{name}`");
                Some(*found.ok_or_else(|| missing("XTDE0040", message()))?)
            }
        };
        if self.program.version_two {
            self.program.output.check().map_err(|(code, message)| missing(code, message))?;
        }
        if let Some(template) = template.filter(|_| self.program.version_two)
            && self.program.templates[template as usize].requires_params
        {
            return Err(missing("XTDE0060", "the initial template has a parameter that is required".to_owned()));
        }
        self.check_parameters(options)?;
        let mode = match options.initial_mode {
            None => 0,
            Some(name) => {
                let found = number(name).and_then(|number| self.program.mode_names.get(&number));
                *found.ok_or_else(|| missing("XTDE0045", format!("there is no mode named `{name}`")))?
            }
        };
        let (document, start) = self.subject(document, subject, template.is_some());
        let session = Session::new();
        let root = session.add(document);
        let run_options = RunOptions {
            params: &options.params,
            resolver: options.resolver,
            limits: options.limits,
            messages: options.messages,
            documents: options.documents,
        };
        let start = Node { document: root.document, id: start };
        let mut run = Run::new(&self.program, &session, &run_options, Some(start));
        let table = session.document(root.document).name_table();
        let known = memory.names.take().filter(|(names, _)| *names == table);
        let same_names = known.is_some();
        if let Some((_, known)) = known {
            run.know(known);
        }
        let mut machine = Machine::new(&run, sink);
        machine.reuse(memory, same_names);
        machine.start(start, mode, template).map_err(|failure| *failure)?;
        machine.release(memory);
        let sink = machine.into_sink();
        let principal = run.principal.take();
        memory.names = run.known().map(|known| (table, known));
        Ok((sink, principal))
    }

    /// Parameters of the stylesheet that are required must be given, used or not (XSLT 2.0 §9.5).
    fn check_parameters(&self, options: &TransformOptions<'_>) -> Result<(), XsltError> {
        for global in self.program.globals.iter().filter(|global| global.required) {
            let name = &self.program.names[global.name as usize];
            if !options.params.iter().any(|(given, _)| **given == **name) {
                let message = format!("the parameter `{name}` is required and was not given");
                return Err(XsltError::new("XTDE0050", message, Position::default()));
            }
        }
        Ok(())
    }

    /// The document to run on and the node to begin with. A subtree becomes a document of its own unless nothing in
    /// the stylesheet can observe the difference.
    fn subject(&self, document: &Arc<Document>, subject: NodeId, named: bool) -> (Arc<Document>, NodeId) {
        if let Some(stripped) = strip::stripped(&self.program, document, subject) {
            return (Arc::new(stripped), Document::ROOT);
        }
        if subject == Document::ROOT {
            return (Arc::clone(document), subject);
        }
        let matches_documents = self.program.modes.iter().any(|mode| !mode.lists[mode.documents as usize].is_empty());
        // A named template begins at the document node.
        if !matches_documents && !self.program.looks_up && !named {
            return (Arc::clone(document), subject);
        }
        let mut tree = TreeBuilder::with_capacity(document.subtree(subject).len());
        if let Some(uri) = document.base_uri() {
            tree.set_base_uri(uri);
        }
        tree.copy(document, subject);
        (Arc::new(tree.finish()), Document::ROOT)
    }
}

/// A result document took the place of the principal result, which was written to as well.
fn twice_written() -> XsltError {
    XsltError::new("XTDE1490", "the principal result is written twice", Position::default())
}

impl std::fmt::Debug for Stylesheet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let uri = self.program.modules.modules.first().map(|module| &*module.uri);
        write!(f, "Stylesheet({}, {} operations)", uri.unwrap_or_default(), self.program.ops.len())
    }
}
