//! A compiled configuration: everything one deployment holds, resolved to indices.

use std::collections::HashMap;
use std::sync::Arc;

use penstock_message::Conversion;

use crate::database::DataSource;
use crate::endpoint::Endpoint;
use crate::mediator::{EndpointId, Sequence, SequenceId};
use crate::route::Routes;

/// All sequences, endpoints and services of a configuration. Immutable; a request keeps the one it
/// started with.
#[derive(Default)]
pub struct Program {
    /// Named and anonymous sequences.
    pub sequences: Vec<Sequence>,
    /// Named and inline endpoints.
    pub endpoints: Vec<Arc<Endpoint>>,
    /// Artifacts and API projects, each by the number of its unit, which the program after a change may hold too. Number 1
    /// stands first.
    pub units: Vec<Option<Arc<Unit>>>,
    /// Sequences by name, for keys that are only known at run time.
    pub sequence_names: HashMap<Arc<str>, SequenceId>,
    /// Endpoints by name.
    pub endpoint_names: HashMap<Arc<str>, EndpointId>,
    /// Sequence templates by name.
    pub templates: HashMap<Arc<str>, Template>,
    /// Proxy services and APIs.
    pub routes: Routes,
    /// `main`, when it is defined.
    pub main: Option<SequenceId>,
    /// `fault`, when it is defined.
    pub fault: Option<SequenceId>,
    /// Local entries and registry resources.
    pub resources: Resources,
    /// Databases the mediators name, and where.
    pub data_sources: Vec<(crate::Place, Arc<DataSource>)>,
    /// Data sources that artifacts define, by their names.
    pub data_source_definitions: HashMap<Arc<str>, Arc<DataSource>>,
    /// How bodies are converted.
    pub conversion: Conversion,
    /// Time and size limits.
    pub limits: Limits,
    /// What acts without a request: tasks, message processors, inbound endpoints.
    pub services: Vec<crate::background::BackgroundService>,
    /// What elements share by an `id`: counters, caches.
    pub shared: crate::Shared,
}

/// Sequences and endpoints that refer only to each other, so that a program made after a change can take them from the one
/// before.
#[derive(Default)]
pub struct Unit {
    /// Sequences.
    pub sequences: Vec<Sequence>,
    /// Endpoints.
    pub endpoints: Vec<Arc<Endpoint>>,
}

impl Unit {
    /// Numbers for units of artifacts. They differ from those of API projects, which are assigned apart from them.
    pub fn numbers_for_artifacts() -> impl Iterator<Item = u32> {
        (1..).step_by(2)
    }

    /// Numbers for units of API projects.
    pub fn numbers_for_projects() -> impl Iterator<Item = u32> {
        (2..).step_by(2)
    }
}

/// A sequence template.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Template {
    /// What it runs.
    pub sequence: SequenceId,
    /// Declared parameters.
    pub parameters: Vec<TemplateParameter>,
}

/// A declared parameter of a template.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TemplateParameter {
    /// Its name.
    pub name: Arc<str>,
    /// Whether a call must give it.
    pub mandatory: bool,
    /// What it is when a call does not give it.
    pub default: Option<Arc<str>>,
}

/// What one exchange may use up. Each has an error of its own.
#[derive(Debug, Clone)]
pub struct Limits {
    /// A buffered body.
    pub body_bytes_max: usize,
    /// Nested sequences, templates and branches.
    pub depth_max: usize,
    /// Mediators run for one message; stops configurations that enter themselves for ever.
    pub steps_max: u64,
    /// From the request's head to the answer's: after it the client gets an error.
    pub deadline: std::time::Duration,
    /// When an endpoint says nothing about a timeout.
    pub endpoint_timeout: std::time::Duration,
    /// Branches of one `iterate`, `clone` or `foreach`.
    pub branches_max: usize,
    /// What one message may hold in memory with all its branches, results and temporary values.
    pub memory_bytes_max: usize,
    /// Names of proxies and APIs, `main` for the main sequence, that answer 202 after a fault before any backend was called
    /// when no sequence answers, as in Micro Integrator.
    pub accepted_after_fault: Vec<Arc<str>>,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            // Larger messages are files; they should stream.
            body_bytes_max: 64 << 20,
            // Deeper nesting is a configuration that calls itself.
            depth_max: 256,
            steps_max: 10_000_000,
            // Micro Integrator's socket timeout, after which its clients give up.
            deadline: std::time::Duration::from_secs(180),
            endpoint_timeout: std::time::Duration::from_secs(120),
            branches_max: 100_000,
            // Eight times the largest body: enough for each conversion between XML and JSON.
            memory_bytes_max: 512 << 20,
            accepted_after_fault: Vec::new(),
        }
    }
}

/// Local entries and registry resources by key.
#[derive(Debug, Default)]
pub struct Resources {
    entries: HashMap<Arc<str>, Arc<Resource>>,
}

/// A local entry or registry resource.
#[derive(Debug)]
pub struct Resource {
    /// The bytes: text, or the XML as it stands in its file.
    pub bytes: bytes::Bytes,
    /// The media type, when one was given.
    pub media_type: Option<Arc<str>>,
    /// Whether the entry was written as an XML element.
    pub is_xml: bool,
    /// Where it stands.
    pub at: crate::Place,
    /// Registry properties.
    pub properties: Vec<(Arc<str>, Arc<str>)>,
}

impl Resource {
    /// The bytes as text; other encodings than UTF-8 lose what is not ASCII.
    pub fn text(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.bytes)
    }
}

impl Resources {
    /// Adds an entry; says whether the key was new.
    pub fn insert(&mut self, key: impl Into<Arc<str>>, resource: Resource) -> bool {
        self.entries.insert(key.into(), Arc::new(resource)).is_none()
    }

    /// The entry of a key as artifacts write it: `name`, `gov:path`, `conf:path`, `resources:path`,
    /// with or without a slash after the colon, or `/_system/governance/path` and `/_system/config/path`.
    pub fn get(&self, key: &str) -> Option<&Arc<Resource>> {
        if let Some(found) = self.entries.get(key) {
            return Some(found);
        }
        for (root, scheme) in [("/_system/governance/", "gov"), ("/_system/config/", "conf")] {
            if let Some(path) = key.strip_prefix(root) {
                return self.entries.get(format!("{scheme}:{path}").as_str());
            }
        }
        let (scheme, path) = key.split_once(':')?;
        let scheme = match scheme {
            "governance" => "gov",
            "config" => "conf",
            other => other,
        };
        self.entries.get(format!("{scheme}:{}", path.trim_start_matches('/')).as_str())
    }

    /// All keys.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(|key| &**key)
    }
}

/// Finds local entries and registry resources by their keys.
pub trait FindResource {
    /// The entry of a key as artifacts write it; see [`Resources::get`].
    fn find(&self, key: &str) -> Option<Arc<Resource>>;
}

impl FindResource for Resources {
    fn find(&self, key: &str) -> Option<Arc<Resource>> {
        self.get(key).cloned()
    }
}

impl Program {
    /// The sequence behind an id. Ids are made by the compiler for this program.
    pub fn sequence(&self, id: SequenceId) -> &Sequence {
        match self.unit(id.unit) {
            None => &self.sequences[id.index as usize],
            Some(unit) => &unit.sequences[id.index as usize],
        }
    }

    /// The endpoint behind an id.
    pub fn endpoint(&self, id: EndpointId) -> &Arc<Endpoint> {
        match self.unit(id.unit) {
            None => &self.endpoints[id.index as usize],
            Some(unit) => &unit.endpoints[id.index as usize],
        }
    }

    /// All sequences, except those of units that other programs hold too.
    pub fn sequences_mut(&mut self) -> impl Iterator<Item = &mut Sequence> {
        let units = self.units.iter_mut().flatten().filter_map(Arc::get_mut);
        self.sequences.iter_mut().chain(units.flat_map(|unit| &mut unit.sequences))
    }

    /// All endpoints, except those of units that other programs hold too.
    pub fn endpoints_mut(&mut self) -> impl Iterator<Item = &mut Arc<Endpoint>> {
        let units = self.units.iter_mut().flatten().filter_map(Arc::get_mut);
        self.endpoints.iter_mut().chain(units.flat_map(|unit| &mut unit.endpoints))
    }

    fn unit(&self, number: u32) -> Option<&Unit> {
        // What is compiled to no unit has the number 0.
        self.units.get((number as usize).wrapping_sub(1))?.as_deref()
    }
}
