//! APIs as they were compiled last. After a change only those projects are read and compiled again whose files changed;
//! the program that is made takes the others as they are.

use std::any::Any;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use penstock_catalog::{Api, ApiKind, Implementation, Policies};
use penstock_compile::{ArtifactStatus, Compiler, Diagnostic, FileSource, Input, InputKind, guarded};
use penstock_engine::Unit;
use penstock_projects::{Import, ImportConfig, Imported, Project, ProjectFile};

use crate::policy::chain;
use crate::router::{Routes, Served};
use crate::{Gateway, GatewayConfig, assemble};

/// Projects read at the same time: each needs memory for its files and their trees.
const READERS_MAX: usize = 4;

/// See the module.
#[derive(Default)]
pub(crate) struct CompiledApis(Mutex<Projects>);

impl std::fmt::Debug for CompiledApis {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("CompiledApis")
    }
}

/// The projects of the last compilation, in the order of its inputs.
#[derive(Default)]
pub(crate) struct Projects {
    projects: Vec<Arc<CompiledProject>>,
    hasher: RandomState,
}

/// A project and what was made of it.
struct CompiledProject {
    name: Arc<str>,
    version: Version,
    imported: Option<Imported>,
    notes: Vec<Diagnostic>,
    unit: Mutex<Option<CompiledUnit>>,
}

/// What a project was compiled from.
#[derive(Clone)]
struct Version {
    config: Arc<GatewayConfig>,
    /// A hash of the environment.
    variables: u64,
    /// The files that were read, with their stamps.
    files: Vec<(String, Option<u64>)>,
    /// What had the files, when they could not change. While it is held, another one has another address.
    owner: Option<Arc<dyn Any + Send + Sync>>,
}

/// The operations of an API, compiled to a unit of their own.
#[derive(Clone)]
struct CompiledUnit {
    number: u32,
    unit: Arc<Unit>,
    served: Vec<Arc<Served>>,
    diagnostics: Vec<Diagnostic>,
}

/// Where the files of a project are.
enum Files {
    Read(Vec<ProjectFile>),
    Unread(Arc<dyn FileSource>),
}

impl GatewayConfig {
    /// The configuration of the importer, with the policies of the API Platform that are enforced here.
    pub fn import(&self) -> ImportConfig {
        ImportConfig {
            error_style: self.error_style,
            serve_unprotected: self.serve_unprotected.clone(),
            vhosts: self.vhosts.clone(),
            environment: self.environment.clone(),
            default_vhost: self.default_vhost.clone(),
            servers_base: self.servers_base.clone(),
            hosts: self.platform.hosts.clone(),
            chain_policies: Some(chain::names().collect()),
        }
    }
}

impl CompiledApis {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Projects> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Projects {
    /// Imports the projects among the inputs; changed ones are read.
    pub(crate) fn import(&mut self, gateway: &Gateway, inputs: &[Input], cx: &Compiler<'_>) {
        let mut variables: Vec<_> = cx.options.configurables.iter().collect();
        variables.sort();
        let version = Version {
            config: gateway.config.clone(),
            variables: self.hasher.hash_one(variables),
            files: Vec::new(),
            owner: None,
        };
        let found = projects(inputs);
        let known: HashMap<Arc<str>, Arc<CompiledProject>> =
            self.projects.drain(..).map(|project| (project.name.clone(), project)).collect();
        let kept: Vec<_> = found
            .iter()
            .map(|(name, files)| {
                let project = known.get(name)?;
                (project.version.is_of(&version) && files.are_unchanged(&project.version, &self.hasher))
                    .then(|| project.clone())
            })
            .collect();
        drop(known);
        let config = gateway.config.import();
        let read = |(name, files): &(Arc<str>, Files)| {
            let mut import = Import::new(&config, &cx.options.configurables);
            let (imported, used) =
                guarded(|| files.import(name, &mut import, &self.hasher)).unwrap_or_else(|message| {
                    import.unreadable(name, message);
                    (None, Vec::new())
                });
            let version = Version { files: used, owner: files.owner(), ..version.clone() };
            let notes = std::mem::take(&mut import.notes);
            Arc::new(CompiledProject { name: name.clone(), version, imported, notes, unit: Mutex::default() })
        };
        let wanted: Vec<_> = found.iter().zip(&kept).filter(|(_, kept)| kept.is_none()).map(|(one, _)| one).collect();
        let mut new = in_parallel(&wanted, |one| read(one)).into_iter();
        self.projects = kept.into_iter().filter_map(|kept| kept.or_else(|| new.next())).collect();
    }

    /// All APIs without errors.
    pub(crate) fn apis(&self) -> impl Iterator<Item = &Arc<Api>> {
        self.projects.iter().filter_map(|project| project.imported.as_ref()?.api.as_ref())
    }

    /// Compiles the APIs that are not compiled yet and adds all of them to a program.
    pub(crate) fn assemble(
        &self,
        gateway: &Gateway,
        known: &[Arc<Api>],
        cx: &mut Compiler<'_>,
        routes: &mut Routes,
    ) -> Vec<ArtifactStatus> {
        let mut numbers = self.free_numbers();
        let mut statuses = Vec::with_capacity(self.projects.len());
        for project in &self.projects {
            project.notes.iter().for_each(|note| cx.report(note.clone()));
            let Some(imported) = &project.imported else { continue };
            let served = match &imported.api {
                Some(api) => project.served(gateway, api, known, cx, &mut numbers),
                None => None,
            };
            let good = match (served, &imported.api) {
                (Some(served), Some(api)) => routes.add_all(api, served, cx),
                _ => false,
            };
            let (name, at) = (imported.name.clone(), imported.at.clone());
            statuses.push(ArtifactStatus { kind: "managed-api", name, at, good });
        }
        statuses
    }

    /// Numbers for units that no project has.
    fn free_numbers(&self) -> impl Iterator<Item = u32> + use<> {
        let taken: std::collections::HashSet<u32> =
            self.projects.iter().filter_map(|project| Some(project.unit().as_ref()?.number)).collect();
        Unit::numbers_for_projects().filter(move |number| !taken.contains(number))
    }
}

impl CompiledProject {
    fn unit(&self) -> MutexGuard<'_, Option<CompiledUnit>> {
        self.unit.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The API at its base paths; `None` after an error was reported.
    fn served(
        &self,
        gateway: &Gateway,
        api: &Arc<Api>,
        known: &[Arc<Api>],
        cx: &mut Compiler<'_>,
        numbers: &mut impl Iterator<Item = u32>,
    ) -> Option<Vec<Arc<Served>>> {
        if !is_self_contained(api) {
            return assemble::api(gateway, api, known, cx);
        }
        let mut kept = self.unit();
        let compiled = match &*kept {
            Some(compiled) => {
                compiled.diagnostics.iter().for_each(|diagnostic| cx.report(diagnostic.clone()));
                compiled
            }
            None => {
                let number = numbers.next()?;
                let before = cx.diagnostics_so_far();
                cx.begin_unit(number);
                let served = assemble::api(gateway, api, known, cx);
                let unit = Arc::new(cx.end_unit());
                let diagnostics = cx.diagnostics_since(before).to_vec();
                kept.insert(CompiledUnit { number, unit, served: served?, diagnostics })
            }
        };
        cx.add_unit(compiled.number, compiled.unit.clone());
        Some(compiled.served.clone())
    }
}

/// Whether an API refers to nothing that other artifacts or APIs define.
fn is_self_contained(api: &Api) -> bool {
    let none =
        |policies: &Policies| policies.request.is_empty() && policies.response.is_empty() && policies.fault.is_empty();
    !matches!(api.kind, ApiKind::Mcp | ApiKind::WebSub)
        && api.mcp.is_none()
        && api.websub.is_none()
        && api.implementation != Implementation::Inline
        && none(&api.policies)
        && api.operations.iter().all(|operation| none(&operation.policies))
}

impl Version {
    /// Whether the settings are the same.
    fn is_of(&self, other: &Version) -> bool {
        Arc::ptr_eq(&self.config, &other.config) && self.variables == other.variables
    }
}

/// The projects among the inputs, in their order.
fn projects(inputs: &[Input]) -> Vec<(Arc<str>, Files)> {
    let mut projects: Vec<(Arc<str>, Files)> = Vec::new();
    let mut by_name: HashMap<Arc<str>, usize> = HashMap::new();
    for input in inputs {
        match &input.kind {
            InputKind::ApiFiles(files) => projects.push((input.file.clone(), Files::Unread(files.0.clone()))),
            InputKind::Api { project, path } => {
                let index = *by_name.entry(project.clone()).or_insert_with(|| {
                    projects.push((project.clone(), Files::Read(Vec::new())));
                    projects.len() - 1
                });
                let file = ProjectFile { file: input.file.clone(), path: path.clone(), bytes: input.bytes.clone() };
                if let Files::Read(files) = &mut projects[index].1 {
                    files.push(file);
                }
            }
            _ => {}
        }
    }
    projects
}

impl Files {
    fn owner(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        match self {
            Files::Read(_) => None,
            Files::Unread(source) => source.owner(),
        }
    }

    /// Whether the files are those that were read before.
    fn are_unchanged(&self, version: &Version, hasher: &RandomState) -> bool {
        let before = &version.files;
        if let Some((now, before)) = self.owner().zip(version.owner.as_ref()) {
            return std::ptr::addr_eq(Arc::as_ptr(&now), Arc::as_ptr(before));
        }
        match self {
            Files::Read(files) => {
                files.len() == before.len()
                    && files.iter().zip(before).all(|(file, (path, stamp))| {
                        file.path == *path && *stamp == Some(hasher.hash_one((&file.file, &file.bytes)))
                    })
            }
            Files::Unread(source) => {
                let belongs = |path: &String| before.iter().any(|(known, _)| known == path);
                source.paths().iter().all(belongs)
                    && before.iter().all(|(path, stamp)| stamp.is_some() && source.stamp(path) == *stamp)
            }
        }
    }

    /// Reads and imports a project; gives the files that were read, with their stamps.
    fn import(
        &self,
        name: &Arc<str>,
        import: &mut Import<'_>,
        hasher: &RandomState,
    ) -> (Option<Imported>, Vec<(String, Option<u64>)>) {
        match self {
            Files::Read(files) => {
                let stamp = |file: &ProjectFile| (file.path.clone(), Some(hasher.hash_one((&file.file, &file.bytes))));
                let used = files.iter().map(stamp).collect();
                (import.project(&Project { name: name.clone(), files: files.clone(), more: None }), used)
            }
            Files::Unread(source) => {
                // Before the bytes: a file that changes in between is read once more.
                let stamped = |path: String| (source.stamp(&path), path);
                let swapped = |(stamp, path)| (path, stamp);
                let mut used: Vec<_> = source.paths().into_iter().map(stamped).map(swapped).collect();
                let mut files = Vec::with_capacity(used.len());
                for (path, _) in &used {
                    match source.read(path) {
                        Some(Ok((file, bytes))) => files.push(ProjectFile { file, path: path.clone(), bytes }),
                        Some(Err(message)) => import.unreadable(name, message),
                        None => {}
                    }
                }
                let project = Project { name: name.clone(), files, more: Some(source.clone()) };
                let imported = import.project(&project);
                used.extend(std::mem::take(&mut import.included).into_iter().map(stamped).map(swapped));
                (imported, used)
            }
        }
    }
}

/// The results of a function for all items, in their order, computed by a few threads.
fn in_parallel<T: Sync, R: Send + Sync>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let threads = cores.min(READERS_MAX).min(items.len());
    if threads < 2 {
        return items.iter().map(work).collect();
    }
    let results: Vec<OnceLock<R>> = items.iter().map(|_| OnceLock::new()).collect();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some((item, result)) = {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    items.get(index).zip(results.get(index))
                } {
                    let _ = result.set(work(item));
                }
            });
        }
    });
    results.into_iter().filter_map(OnceLock::into_inner).collect()
}
