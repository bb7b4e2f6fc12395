//! From artifacts to a program: names first, then bodies, so that order does not matter.

mod build;
mod declare;
mod input;
mod kind;

mod api;
mod data_source;
mod definitions;
mod endpoint;
mod local_entry;
mod proxy;
pub(crate) mod sequence;
mod template;
mod unsupported;

use penstock_engine::{Place, Program};

use crate::compiler::{CompileOptions, Compiler};
use crate::diagnostic::{Diagnostic, Severity};
use crate::registry::{Front, Registry};
use declare::{Artifact, ArtifactFile};

pub use input::{ApiFiles, FileSource, Input, InputKind};
pub use kind::{ArtifactKind, ArtifactName, declare_nothing, withdraw_nothing};

/// The artifact kinds that this crate compiles. Others come in [`Registry::artifacts`].
pub(crate) const KINDS: &[ArtifactKind] = &[
    api::KIND,
    data_source::KIND,
    definitions::KIND,
    endpoint::KIND,
    local_entry::KIND,
    proxy::KIND,
    sequence::KIND,
    template::KIND,
];

/// What became of one artifact.
#[derive(Debug, Clone)]
pub struct ArtifactStatus {
    /// `proxy`, `api`, `sequence`, …
    pub kind: &'static str,
    /// Its name or key.
    pub name: String,
    /// Where it stands.
    pub at: Place,
    /// Whether it can be served.
    pub good: bool,
}

/// The outcome of a compilation.
pub struct Compilation {
    /// What can be served. Artifacts with errors are left out.
    pub program: Program,
    /// Everything there is to say, in the order of the inputs.
    pub diagnostics: Vec<Diagnostic>,
    /// Every artifact that was found.
    pub artifacts: Vec<ArtifactStatus>,
}

impl Compilation {
    /// Whether anything is an error.
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error)
    }
}

/// Whether a root element of that name is compiled, or reported by the compiler: an artifact, or a whole configuration.
pub fn is_root_element(name: &str, registry: &Registry) -> bool {
    registry.artifact(name).is_some()
        || unsupported::find(name).is_some()
        || matches!(name, "import" | declare::DATA_SOURCES)
        || declare::IGNORED.contains(&name)
}

/// Compiles inputs to one program.
pub fn compile(inputs: &[Input], registry: &Registry, options: &CompileOptions) -> Compilation {
    compile_with(inputs, registry, options, &[])
}

/// Compiles inputs to one program, those that are not Synapse XML by fronts.
pub fn compile_with(
    inputs: &[Input],
    registry: &Registry,
    options: &CompileOptions,
    fronts: &[&dyn Front],
) -> Compilation {
    let mut known = options.compiled.as_ref().map(|compiled| compiled.take(options)).unwrap_or_default();
    let mut cx = Compiler::new(registry, options, known.hasher.clone());
    let mut statuses = Vec::new();
    let mut files = declare::read_resources(&mut cx, inputs);
    let mut artifacts = declare::artifacts(&mut cx, &mut files, &known, &mut statuses);
    connections(&mut cx, &files, &mut artifacts);
    let built = build::artifacts(&mut cx, files, artifacts, &mut known, &mut statuses);
    if let Some(compiled) = &options.compiled {
        compiled.replace(known.with(built));
    }
    for front in fronts {
        statuses.extend(front.compile(inputs, &mut cx));
    }
    crate::operation::report_unavailable(&mut cx);
    cx.program.main = cx.program.sequence_names.get("main").copied();
    cx.program.fault = cx.program.sequence_names.get("fault").copied();
    let (program, mut diagnostics) = cx.into_parts();
    let mut order = std::collections::HashMap::new();
    for (place, input) in inputs.iter().enumerate() {
        order.entry(&*input.file).or_insert(place);
    }
    let order = |file: &str| order.get(file).copied().unwrap_or(usize::MAX);
    diagnostics.sort_by_cached_key(|diagnostic| (order(&diagnostic.at.file), diagnostic.at.line, diagnostic.at.column));
    diagnostics.dedup();
    Compilation { program, diagnostics, artifacts: statuses }
}

/// Compiles the connections of native connectors before the artifacts that use them.
fn connections(cx: &mut Compiler<'_>, files: &[ArtifactFile<'_>], artifacts: &mut [Artifact]) {
    for artifact in artifacts.iter_mut().filter(|artifact| artifact.kind.element == local_entry::KIND.element) {
        let Some(element) = files[artifact.file].element(artifact.node) else { continue };
        let Some(init) = element.children().next() else { continue };
        let Some(connector) = init.name().strip_suffix(".init") else { continue };
        let Some(kind) = cx.registry.connector(connector) else { continue };
        let errors = cx.errors_so_far();
        cx.resume_unit(artifact.number, std::mem::take(&mut artifact.unit));
        (kind.connection)(&artifact.name, &init, cx);
        artifact.unit = cx.end_unit();
        artifact.is_reusable = false;
        artifact.is_broken |= cx.errors_so_far() > errors;
    }
}
