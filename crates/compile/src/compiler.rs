//! The state of one compilation: names, the program that grows, and everything there is to say.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::hash::RandomState;
use std::rc::Rc;
use std::sync::Arc;

use penstock_engine::endpoint::Endpoint;
use penstock_engine::{Destination, EndpointId, Mediator, Place, Program, Sequence, SequenceId, Step, Unit};

use crate::compiled::CompiledArtifacts;
use crate::diagnostic::{Diagnostic, Severity, suggestion};
use crate::element::Element;
use crate::guard::guarded;
use crate::operation::Unavailable;
use crate::references::{Recording, Reference};
use crate::registry::{Classes, Effect, Registry, Unsupported};
use crate::{Expression, endpoint};

/// How a configuration is compiled.
#[derive(Debug, Clone, Default)]
pub struct CompileOptions {
    /// A name that nothing defines is an error instead of a warning.
    pub strict: bool,
    /// Values for `$SYSTEM:NAME` and `$FILE:NAME` in attributes of endpoints and for `${configs.NAME}`.
    pub configurables: HashMap<String, String>,
    /// No user is configured, so every check of a password rejects the request.
    pub without_users: bool,
    /// WebAssembly modules that stand for classes, by the names of the classes.
    pub modules: HashMap<String, bytes::Bytes>,
    /// Artifacts that are served although their protection cannot be enforced.
    pub serve_unprotected: Vec<Arc<str>>,
    /// Keys for the security of messages, or why they cannot be read. `None` when no keystore is configured.
    pub message_keys: Option<Result<Arc<MessageKeys>, String>>,
    /// What earlier compilations made, which this one reuses where nothing changed, and extends.
    pub compiled: Option<Arc<CompiledArtifacts>>,
}

/// The keys that sign and decrypt messages, in DER.
#[derive(PartialEq, Eq, Hash)]
pub struct MessageKeys {
    /// The own certificate.
    pub certificate: Vec<u8>,
    /// The private key, in PKCS #8 or PKCS #1.
    pub key: Vec<u8>,
    /// Certificates that are trusted, and those of authorities.
    pub trusted: Vec<Vec<u8>>,
}

impl std::fmt::Debug for MessageKeys {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "MessageKeys({} trusted)", self.trusted.len())
    }
}

/// What a name stands for. Names of different kinds do not meet. The text is the noun that diagnostics use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NameKind(pub &'static str);

impl NameKind {
    /// A sequence.
    pub const SEQUENCE: NameKind = NameKind("sequence");
    /// An endpoint.
    pub const ENDPOINT: NameKind = NameKind("endpoint");
    /// A sequence template.
    pub const TEMPLATE: NameKind = NameKind("template");
    /// An endpoint template.
    pub const ENDPOINT_TEMPLATE: NameKind = NameKind("endpoint template");
    /// A local entry or registry resource.
    pub const RESOURCE: NameKind = NameKind("local entry or registry resource");
    /// A proxy service.
    pub const PROXY: NameKind = NameKind("proxy service");
    /// An API.
    pub const API: NameKind = NameKind("API");

    /// What diagnostics call it.
    pub fn noun(self) -> &'static str {
        self.0
    }
}

/// One compilation.
pub struct Compiler<'r> {
    /// The mediators there are.
    pub registry: &'r Registry,
    /// How to compile.
    pub options: &'r CompileOptions,
    /// The program that grows. Lookups in it go through `references.rs`, which records them.
    pub(crate) program: Program,
    /// Source elements of endpoint templates by name, instantiated where they are used.
    pub(crate) endpoint_templates: HashMap<Arc<str>, Rc<crate::SourceDocument>>,
    /// Classes that are known only where a front compiles its own mediators.
    pub classes: Option<Rc<dyn Classes>>,
    /// Connections of native connectors by the keys of their local entries, with the units of their endpoints.
    pub(crate) connections: HashMap<Arc<str>, (u32, Arc<dyn Any + Send + Sync>)>,
    /// Connectors whose operations cannot run, and why.
    pub(crate) unusable_connectors: HashMap<String, String>,
    /// Operations that artifacts call and no connector can run, by connector.
    pub(crate) unavailable_operations: BTreeMap<String, Unavailable>,
    /// What is compiled at present, when it can outlive the program.
    pub(crate) unit: Option<(u32, Unit)>,
    pub(crate) recording: RefCell<Option<Recording>>,
    pub(crate) hasher: RandomState,
    /// By the addresses of the resources.
    pub(crate) resource_hashes: RefCell<HashMap<usize, u64>>,
    /// With their count.
    pub(crate) all_resources_hash: Cell<Option<(usize, u64)>>,
    diagnostics: Vec<Diagnostic>,
    errors: usize,
    declared: BTreeMap<(NameKind, Arc<str>), Place>,
    duplicates: usize,
    depth: usize,
    artifact: String,
}

/// Whether `security.serve_unprotected` lists an artifact. A managed API is called `NAME:VERSION` or `NAME`.
pub fn is_served_unprotected(listed: &[Arc<str>], artifact: &str) -> bool {
    let name = artifact.split_once(':').map_or(artifact, |(name, _)| name);
    listed.iter().any(|one| **one == *artifact || **one == *name)
}

/// What is reported of protection that cannot be enforced.
pub fn unprotected(is_listed: bool, artifact: &str, at: Place, message: &str) -> Diagnostic {
    if is_listed {
        let message = format!("{message}; `{artifact}` is served without it (`security.serve_unprotected`)");
        return Diagnostic { severity: Severity::Warning, at, message };
    }
    let message =
        format!("{message}; `{artifact}` is not served, unless `security.serve_unprotected` in penstock.toml lists it");
    Diagnostic { severity: Severity::Error, at, message }
}

/// Whether two file names end alike, a mistyped letter aside.
fn is_same_format(left: &str, right: &str) -> bool {
    let ending =
        |name: &str| std::path::Path::new(name).extension().map(|ending| ending.to_string_lossy().into_owned());
    match (ending(left), ending(right)) {
        (Some(left), Some(right)) => left == right || suggestion(&left, std::iter::once(&*right)).is_some(),
        _ => true,
    }
}

/// Mediators inside mediators inside mediators: deeper is a mistake or an attack.
const MAX_DEPTH: usize = 128;

impl<'r> Compiler<'r> {
    pub(crate) fn new(registry: &'r Registry, options: &'r CompileOptions, hasher: RandomState) -> Compiler<'r> {
        Compiler {
            registry,
            options,
            program: Program::default(),
            endpoint_templates: HashMap::new(),
            classes: None,
            connections: HashMap::new(),
            unusable_connectors: HashMap::new(),
            unavailable_operations: BTreeMap::new(),
            unit: None,
            recording: RefCell::default(),
            hasher,
            resource_hashes: RefCell::default(),
            all_resources_hash: Cell::default(),
            diagnostics: Vec::new(),
            errors: 0,
            declared: BTreeMap::new(),
            duplicates: 0,
            depth: 0,
            artifact: String::new(),
        }
    }

    /// Says that something cannot work.
    pub fn error(&mut self, at: Place, message: impl Into<String>) {
        self.report(Diagnostic { severity: Severity::Error, at, message: message.into() });
    }

    /// Says that something may not work as meant.
    pub fn warn(&mut self, at: Place, message: impl Into<String>) {
        self.report(Diagnostic { severity: Severity::Warning, at, message: message.into() });
    }

    /// Runs a step of the compilation; a panic in it is reported as an error.
    pub fn guarded<T>(&mut self, at: &Place, step: impl FnOnce(&mut Self) -> T) -> Option<T> {
        let depth = self.depth;
        guarded(|| step(self))
            .map_err(|message| {
                self.depth = depth;
                self.error(at.clone(), message);
            })
            .ok()
    }

    /// Reports that the protection of an artifact cannot be enforced: an error, so that the artifact is not served,
    /// unless the configuration lists it in `security.serve_unprotected`.
    pub fn unprotected(&mut self, at: Place, message: impl Into<String>) {
        let is_listed = is_served_unprotected(&self.options.serve_unprotected, &self.artifact);
        self.report(unprotected(is_listed, &self.artifact, at, &message.into()));
    }

    /// Names the artifact that is compiled from here on.
    pub fn begin_artifact(&mut self, name: &str) {
        self.artifact = name.to_owned();
    }

    /// How many errors were said.
    pub fn errors_so_far(&self) -> usize {
        self.errors
    }

    pub(crate) fn into_parts(self) -> (Program, Vec<Diagnostic>) {
        (self.program, self.diagnostics)
    }

    /// Declares a name; a second declaration of the same kind is a warning and does not count.
    pub fn declare(&mut self, kind: NameKind, name: &str, at: Place) -> bool {
        let key = (kind, Arc::from(name));
        if let Some(first) = self.declared.get(&key) {
            let message = format!("{} `{name}` is defined twice; the one at {first} is used", kind.noun());
            self.warn(at, message);
            self.duplicates += 1;
            return false;
        }
        self.declared.insert(key, at);
        true
    }

    pub(crate) fn has_declaration(&self, kind: NameKind, name: &str) -> bool {
        self.declared.contains_key(&(kind, Arc::from(name)))
    }

    /// How many names were declared that were declared before.
    pub(crate) fn duplicates_so_far(&self) -> usize {
        self.duplicates
    }

    /// Says that a name is defined nowhere, with the name that was probably meant.
    pub fn unknown(&mut self, kind: NameKind, name: &str, at: Place) {
        // Another name may be the better suggestion in the next program.
        self.use_once();
        let candidates = self.declared.keys().filter(|(other, _)| *other == kind).map(|(_, name)| &**name);
        // A schema is not what a reference to a data mapper's `.dmc` of the same name means.
        let candidates = candidates.filter(|candidate| kind != NameKind::RESOURCE || is_same_format(name, candidate));
        let hint = suggestion(name, candidates).map_or_else(String::new, |meant| format!(", did you mean `{meant}`?"));
        let message = format!("unknown {} `{name}`{hint}", kind.noun());
        if self.options.strict { self.error(at, message) } else { self.warn(at, message) }
    }

    /// A place for a sequence that is filled later.
    pub fn reserve_sequence(&mut self, name: Option<Arc<str>>) -> SequenceId {
        let (unit, sequences) = match &mut self.unit {
            Some((number, unit)) => (*number, &mut unit.sequences),
            None => (0, &mut self.program.sequences),
        };
        sequences.push(Sequence { name, ..Sequence::default() });
        SequenceId { unit, index: sequences.len() as u32 - 1 }
    }

    /// A sequence that was reserved.
    pub fn sequence_mut(&mut self, id: SequenceId) -> &mut Sequence {
        match &mut self.unit {
            Some((number, unit)) if *number == id.unit => &mut unit.sequences[id.index as usize],
            _ => &mut self.program.sequences[id.index as usize],
        }
    }

    /// Adds an endpoint.
    pub fn add_endpoint(&mut self, endpoint: Endpoint) -> EndpointId {
        let (unit, endpoints) = match &mut self.unit {
            Some((number, unit)) => (*number, &mut unit.endpoints),
            None => (0, &mut self.program.endpoints),
        };
        endpoints.push(Arc::new(endpoint));
        EndpointId { unit, index: endpoints.len() as u32 - 1 }
    }

    /// Puts what is compiled from now on into a unit of its own.
    pub fn begin_unit(&mut self, number: u32) {
        self.resume_unit(number, Unit::default());
    }

    /// Adds what is compiled from now on to a unit that was begun.
    pub(crate) fn resume_unit(&mut self, number: u32, unit: Unit) {
        self.unit = Some((number, unit));
    }

    /// Compiles what several artifacts may refer to, and none of them defines: it belongs to the program alone.
    fn outside_units<T>(&mut self, compile: impl FnOnce(&mut Self) -> T) -> T {
        let unit = self.unit.take();
        let result = compile(self);
        self.unit = unit;
        result
    }

    /// Whether a sequence is part of what is compiled at present.
    pub(crate) fn is_compiling(&self, id: SequenceId) -> bool {
        self.unit.as_ref().map_or(0, |(number, _)| *number) == id.unit
    }

    /// Replaces an endpoint that was reserved in what is compiled at present.
    pub(crate) fn set_endpoint(&mut self, id: EndpointId, endpoint: Endpoint) {
        let endpoints = match &mut self.unit {
            Some((number, unit)) if *number == id.unit => &mut unit.endpoints,
            None if id.unit == 0 => &mut self.program.endpoints,
            // That of another artifact of the same name, which counts.
            _ => return,
        };
        if let Some(slot) = endpoints.get_mut(id.index as usize) {
            *slot = Arc::new(endpoint);
        }
    }

    /// Ends a unit.
    pub fn end_unit(&mut self) -> Unit {
        self.unit.take().map(|(_, unit)| unit).unwrap_or_default()
    }

    /// Everything reported since so many diagnostics were there.
    pub fn diagnostics_since(&self, count: usize) -> &[Diagnostic] {
        self.diagnostics.get(count..).unwrap_or_default()
    }

    /// How many diagnostics there are.
    pub fn diagnostics_so_far(&self) -> usize {
        self.diagnostics.len()
    }

    /// Reports what was found out before.
    pub fn report(&mut self, diagnostic: Diagnostic) {
        self.errors += usize::from(diagnostic.severity == Severity::Error);
        self.diagnostics.push(diagnostic);
    }

    /// Compiles the mediators inside an element to a sequence of their own.
    pub fn sequence_of(&mut self, el: &Element<'_>) -> SequenceId {
        let id = self.reserve_sequence(None);
        let children: Vec<Element<'_>> = el.children().collect();
        self.fill_sequence(id, &children);
        id
    }

    /// Compiles given mediators to a sequence of their own.
    pub fn sequence_of_all(&mut self, children: &[Element<'_>]) -> SequenceId {
        let id = self.reserve_sequence(None);
        self.fill_sequence(id, children);
        id
    }

    /// Fills a reserved sequence.
    pub fn fill_sequence(&mut self, id: SequenceId, children: &[Element<'_>]) {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            if let Some(first) = children.first() {
                self.error(first.place(), format!("mediators are nested deeper than {MAX_DEPTH}"));
            }
        } else {
            let mut steps = Vec::with_capacity(children.len());
            for child in children {
                if let Some(step) = self.mediator(child) {
                    steps.push(step);
                }
            }
            self.sequence_mut(id).steps = steps;
        }
        self.depth -= 1;
    }

    /// Compiles one mediator.
    pub fn mediator(&mut self, el: &Element<'_>) -> Option<Step> {
        let at = el.place();
        if matches!(el.name(), "description" | "feature") {
            return None;
        }
        let registry = self.registry;
        if el.name().contains('.') {
            let mediator = crate::operation::compile(self, el)?;
            el.finish(self);
            return Some(Step { mediator, kind: "operation", at });
        }
        let Some(kind) = registry.mediator(el.name()) else {
            match registry.unsupported(el.name()) {
                Some(element) => self.unsupported(el, element),
                None => self.unknown_mediator(el),
            }
            return None;
        };
        let mediator = (kind.compile)(el, self)?;
        el.finish(self);
        Some(Step { mediator, kind: kind.name, at })
    }

    /// Says what an element is that does not run here, and what to do.
    fn unsupported(&mut self, el: &Element<'_>, element: &Unsupported) {
        let Unsupported { name, what, instead, effect } = element;
        el.accept_all();
        match effect {
            Effect::Refused => self.error(el.place(), format!("<{name}> {what}: {instead}")),
            Effect::LeftOut => self.warn(el.place(), format!("<{name}> is ignored, it {what}: {instead}")),
        }
    }

    fn unknown_mediator(&mut self, el: &Element<'_>) {
        let name = el.name();
        let message = if self.registry.is_known_element(name) {
            format!("mediator <{name}> is not supported yet")
        } else {
            let hint = suggestion(name, self.registry.names());
            let hint = hint.map_or_else(String::new, |meant| format!(", did you mean <{meant}>?"));
            format!("unknown mediator <{name}>{hint}")
        };
        self.error(el.place(), message);
        el.accept_all();
    }

    /// The sequence a static key names: declared here, or a place that faults when it is entered.
    pub fn sequence_ref(&mut self, key: &str, at: Place) -> SequenceId {
        let id = self.find_sequence(key, at);
        self.record(|| Reference::Sequence(key.into(), id));
        id
    }

    fn find_sequence(&mut self, key: &str, at: Place) -> SequenceId {
        if let Some(id) = self.program.sequence_names.get(key) {
            return *id;
        }
        if let Some(id) = self.sequence_resource(key) {
            return id;
        }
        // Micro Integrator comes with these two; a configuration that does not define them gets them.
        let mediator: Box<dyn Mediator> = match key {
            "fault" => Box::new(crate::missing::DefaultFault),
            "main" => Box::new(crate::missing::DefaultMain),
            _ => {
                self.unknown(NameKind::SEQUENCE, key, at.clone());
                Box::new(crate::missing::AlwaysFaults::missing("sequence", key))
            }
        };
        self.outside_units(|cx| {
            let id = cx.reserve_sequence(Some(key.into()));
            cx.sequence_mut(id).steps.push(Step { mediator, kind: "sequence", at });
            cx.program.sequence_names.insert(key.into(), id);
            id
        })
    }

    /// A sequence that is a registry resource or local entry: compiled on first use.
    fn sequence_resource(&mut self, key: &str) -> Option<SequenceId> {
        let resource = self.resource(key)?;
        let document =
            penstock_xml::Document::parse(resource.bytes.clone(), &penstock_xml::ParseOptions::default()).ok()?;
        let source = crate::SourceDocument::new(resource.at.file.clone(), Arc::new(document));
        let root = source.root().filter(|root| root.name() == "sequence")?;
        Some(self.outside_units(|cx| {
            let id = cx.reserve_sequence(Some(key.into()));
            cx.program.sequence_names.insert(key.into(), id);
            crate::artifact::sequence::fill(cx, &root, id);
            id
        }))
    }

    /// `key` and inline children of an element that holds an endpoint: `<send>`, `<call>`, targets.
    pub fn destination_of(&mut self, el: &Element<'_>) -> Destination {
        match el.child("endpoint") {
            Some(inner) => endpoint::destination(self, &inner),
            None => Destination::Implicit,
        }
    }

    /// The endpoint a static key names.
    pub fn endpoint_ref(&mut self, key: &str, at: Place) -> Destination {
        if let Some(id) = self.program.endpoint_names.get(key).copied() {
            self.record(|| Reference::Endpoint(key.into(), id));
            return Destination::Endpoint(id);
        }
        if let Some(resource) = self.resource(key)
            && let Some(id) = self.outside_units(|cx| endpoint::from_resource(cx, key, &resource))
        {
            self.record(|| Reference::Endpoint(key.into(), id));
            return Destination::Endpoint(id);
        }
        self.unknown(NameKind::ENDPOINT, key, at);
        Destination::Named(key.into())
    }

    /// A sequence of one mediator that has no element of its own.
    pub(crate) fn sequence_of_one(&mut self, mediator: Box<dyn Mediator>, kind: &'static str, at: Place) -> SequenceId {
        self.add_sequence(vec![Step { mediator, kind, at }])
    }

    /// A sequence of steps that a mediator made itself.
    pub fn add_sequence(&mut self, steps: Vec<Step>) -> SequenceId {
        let id = self.reserve_sequence(None);
        self.sequence_mut(id).steps = steps;
        id
    }

    /// A text with `$SYSTEM:NAME` and `$FILE:NAME` replaced.
    pub fn configured(&mut self, text: &str, at: &Place) -> String {
        endpoint::configured(self, text, at)
    }

    /// An attribute that is an expression; absent when the attribute is.
    pub fn expression(&mut self, el: &Element<'_>, attribute: &'static str) -> Option<Expression> {
        let text = el.attribute(attribute)?;
        Expression::compile(self, el, text, el.value_place(attribute))
    }

    /// An attribute that must be there and is an expression.
    pub fn required_expression(&mut self, el: &Element<'_>, attribute: &'static str) -> Option<Expression> {
        el.required(self, attribute)?;
        self.expression(el, attribute)
    }
}
