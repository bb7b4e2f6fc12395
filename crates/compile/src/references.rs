//! What an artifact refers to while it is compiled. Every lookup of a name goes through here and is recorded, so that a later
//! compilation knows whether the result of this one still holds. See [`crate::CompiledArtifacts`].

use std::any::Any;
use std::collections::HashSet;
use std::hash::{BuildHasher, Hash};
use std::rc::Rc;
use std::sync::Arc;

use penstock_engine::background::BackgroundService;
use penstock_engine::database::DataSource;
use penstock_engine::endpoint::Endpoint;
use penstock_engine::route::{Api, Proxy, Router};
use penstock_engine::{EndpointId, FindResource, Place, Resource, SequenceId, Template, Unit};

use crate::compiler::NameKind;
use crate::{Compiler, SourceDocument};

/// A name that was looked up, and what was found.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Reference {
    Sequence(Arc<str>, SequenceId),
    Endpoint(Arc<str>, EndpointId),
    Template(Arc<str>, Template),
    /// With a hash of its text.
    EndpointTemplate(Arc<str>, u64),
    /// With a hash of its content; `None` when there was none.
    Resource(Arc<str>, Option<u64>),
    /// A hash of all of them, where their keys are known only when messages arrive.
    AllResources(u64),
    /// A connection of a native connector: the unit of its endpoint, and a hash of the local entry.
    Connection(Arc<str>, u32, Option<u64>),
    Declared(NameKind, Arc<str>, bool),
    /// No artifact defines the data source.
    ForeignDataSource(Arc<str>),
}

/// What an artifact adds to the program beside its unit.
#[derive(Default, Clone)]
pub(crate) struct Additions {
    pub(crate) proxy: Option<Arc<Proxy>>,
    pub(crate) api: Option<Arc<Api>>,
    pub(crate) data_sources: Vec<(Place, Arc<DataSource>)>,
    /// Endpoints that only messages find by their names.
    pub(crate) endpoint_names: Vec<(Arc<str>, EndpointId)>,
}

/// What is recorded while an artifact is compiled.
#[derive(Default)]
pub(crate) struct Recording {
    pub(crate) references: HashSet<Reference>,
    pub(crate) additions: Additions,
    /// Its result must not be taken into the next program.
    pub(crate) is_for_one_program: bool,
}

impl Reference {
    /// Whether the lookup has the same result now.
    pub(crate) fn holds(&self, cx: &Compiler<'_>) -> bool {
        match self {
            Reference::Sequence(name, id) => cx.program.sequence_names.get(name) == Some(id),
            Reference::Endpoint(name, id) => cx.program.endpoint_names.get(name) == Some(id),
            Reference::Template(name, template) => cx.program.templates.get(name) == Some(template),
            Reference::EndpointTemplate(name, hash) => cx.endpoint_template_hash(name) == Some(*hash),
            Reference::Resource(key, hash) => cx.resource_hash(key) == *hash,
            Reference::AllResources(hash) => cx.hash_of_all_resources() == *hash,
            Reference::Connection(key, unit, hash) => {
                cx.connections.get(key).is_some_and(|(found, _)| found == unit) && cx.resource_hash(key) == *hash
            }
            Reference::Declared(kind, name, is_declared) => cx.has_declaration(*kind, name) == *is_declared,
            Reference::ForeignDataSource(name) => !cx.program.data_source_definitions.contains_key(name),
        }
    }
}

impl FindResource for Compiler<'_> {
    fn find(&self, key: &str) -> Option<Arc<Resource>> {
        self.resource(key)
    }
}

impl Compiler<'_> {
    /// Begins to record what is referred to and added.
    pub(crate) fn begin_recording(&mut self) {
        self.recording.replace(Some(Recording::default()));
    }

    /// Ends it.
    pub(crate) fn end_recording(&mut self) -> Recording {
        self.recording.take().unwrap_or_default()
    }

    pub(crate) fn record(&self, reference: impl FnOnce() -> Reference) {
        if let Some(recording) = &mut *self.recording.borrow_mut() {
            recording.references.insert(reference());
        }
    }

    fn add(&self, add: impl FnOnce(&mut Additions)) {
        if let Some(recording) = &mut *self.recording.borrow_mut() {
            add(&mut recording.additions);
        }
    }

    /// Says that the next program must compile the artifact again: it uses what is not recorded.
    pub(crate) fn use_once(&self) {
        if let Some(recording) = &mut *self.recording.borrow_mut() {
            recording.is_for_one_program = true;
        }
    }

    /// The local entry or registry resource of a key.
    pub fn resource(&self, key: &str) -> Option<Arc<Resource>> {
        self.record(|| Reference::Resource(key.into(), self.resource_hash(key)));
        self.program.resources.get(key).cloned()
    }

    /// Says that the artifact keeps what it makes of resources whose keys messages name. It is compiled again after a change
    /// of any of them.
    pub fn depends_on_resources(&self) {
        self.record(|| Reference::AllResources(self.hash_of_all_resources()));
    }

    /// The sequence template of a name.
    pub fn template(&self, name: &str) -> Option<Template> {
        let found = self.program.templates.get(name).cloned();
        match &found {
            Some(template) => self.record(|| Reference::Template(name.into(), template.clone())),
            None => self.use_once(),
        }
        found
    }

    /// The file of the endpoint template of a name.
    pub(crate) fn endpoint_template(&self, name: &str) -> Option<Rc<SourceDocument>> {
        let found = self.endpoint_templates.get(name).cloned();
        match self.endpoint_template_hash(name) {
            Some(hash) => self.record(|| Reference::EndpointTemplate(name.into(), hash)),
            None => self.use_once(),
        }
        found
    }

    /// The endpoint of an id of this program.
    pub fn endpoint(&self, id: EndpointId) -> &Arc<Endpoint> {
        match &self.unit {
            Some((number, unit)) if *number == id.unit => &unit.endpoints[id.index as usize],
            _ => self.program.endpoint(id),
        }
    }

    /// Whether a name is declared.
    pub fn is_declared(&self, kind: NameKind, name: &str) -> bool {
        let is_declared = self.has_declaration(kind, name);
        self.record(|| Reference::Declared(kind, name.into(), is_declared));
        is_declared
    }

    /// The data source that an artifact defines under a name.
    pub fn data_source_definition(&self, name: &str) -> Option<Arc<DataSource>> {
        let found = self.program.data_source_definitions.get(name).cloned();
        match found {
            Some(_) => self.use_once(),
            None => self.record(|| Reference::ForeignDataSource(name.into())),
        }
        found
    }

    /// Adds the connection of a native connector; its type is the connector's own.
    pub fn declare_connection(&mut self, key: &str, connection: Arc<dyn Any + Send + Sync>) {
        let unit = self.unit.as_ref().map_or(0, |(number, _)| *number);
        self.connections.insert(key.into(), (unit, connection));
    }

    /// The connection of a local entry's key.
    pub fn connection(&self, key: &str) -> Option<Arc<dyn Any + Send + Sync>> {
        let (unit, connection) = self.connections.get(key)?;
        self.record(|| Reference::Connection(key.into(), *unit, self.resource_hash(key)));
        Some(connection.clone())
    }

    /// All connections with their keys.
    pub fn connections(&self) -> impl Iterator<Item = (&Arc<str>, &Arc<dyn Any + Send + Sync>)> {
        self.use_once();
        self.connections.iter().map(|(key, (_, connection))| (key, connection))
    }

    /// Adds what acts without a request.
    pub fn add_service(&mut self, service: BackgroundService) {
        self.use_once();
        self.program.services.push(service);
    }

    /// Adds a database that a mediator uses.
    pub fn add_data_source(&mut self, at: Place, source: Arc<DataSource>) {
        self.add(|additions| additions.data_sources.push((at.clone(), source.clone())));
        self.program.data_sources.push((at, source));
    }

    /// What elements of that kind and name share.
    pub fn shared<T: Any + Send + Sync>(&mut self, name: &str, make: impl FnOnce() -> T) -> Arc<T> {
        self.use_once();
        self.program.shared.get_or_make(name, make)
    }

    /// Adds a proxy service.
    pub fn add_proxy(&mut self, proxy: Arc<Proxy>) {
        self.add(|additions| additions.proxy = Some(proxy.clone()));
        self.program.routes.add_proxy(proxy);
    }

    /// Adds an API.
    pub fn add_api(&mut self, api: Arc<Api>) {
        self.add(|additions| additions.api = Some(api.clone()));
        self.program.routes.add_api(api);
    }

    /// Gives an endpoint a name.
    pub(crate) fn name_endpoint(&mut self, name: &str, id: EndpointId) {
        if self.unit.as_ref().is_some_and(|(number, _)| *number == id.unit) {
            self.add(|additions| additions.endpoint_names.push((name.into(), id)));
        }
        self.program.endpoint_names.insert(name.into(), id);
    }

    /// Adds what was added before by an artifact that did not change.
    pub(crate) fn add_again(&mut self, additions: &Additions) {
        if let Some(proxy) = &additions.proxy {
            self.program.routes.add_proxy(proxy.clone());
        }
        if let Some(api) = &additions.api {
            self.program.routes.add_api(api.clone());
        }
        self.program.data_sources.extend(additions.data_sources.iter().cloned());
        self.program.endpoint_names.extend(additions.endpoint_names.iter().cloned());
    }

    /// Puts a unit into the program.
    pub fn add_unit(&mut self, number: u32, unit: Arc<Unit>) {
        let units = &mut self.program.units;
        let place = number as usize;
        if units.len() < place {
            units.resize(place, None);
        }
        if let Some(slot) = place.checked_sub(1).and_then(|index| units.get_mut(index)) {
            *slot = Some(unit);
        }
    }

    /// Sets what finds managed APIs.
    pub fn set_router(&mut self, router: Arc<dyn Router>) {
        self.program.routes.router = Some(router);
    }

    fn resource_hash(&self, key: &str) -> Option<u64> {
        let resource = self.program.resources.get(key)?;
        let key = Arc::as_ptr(resource) as usize;
        // Resources are not removed while the program is compiled, so the address names one.
        Some(*self.resource_hashes.borrow_mut().entry(key).or_insert_with(|| {
            let Resource { bytes, media_type, is_xml, at, properties } = &**resource;
            self.hasher.hash_one((bytes, media_type, is_xml, &at.file, at.line, at.column, properties))
        }))
    }

    fn hash_of_all_resources(&self) -> u64 {
        let count = self.program.resources.keys().count();
        if let Some((of, hash)) = self.all_resources_hash.get()
            && of == count
        {
            return hash;
        }
        // The order of the keys is another one in each program.
        let hash = self
            .program
            .resources
            .keys()
            .map(|key| self.hasher.hash_one((key, self.resource_hash(key))))
            .fold(0_u64, u64::wrapping_add);
        self.all_resources_hash.set(Some((count, hash)));
        hash
    }

    pub(crate) fn endpoint_template_hash(&self, name: &str) -> Option<u64> {
        let source = self.endpoint_templates.get(name)?;
        Some(self.hash_of(&(&source.file, source.document.source())))
    }

    pub(crate) fn hash_of(&self, value: &impl Hash) -> u64 {
        self.hasher.hash_one(value)
    }
}
