//! The second pass: artifacts are compiled into their units, or taken from the program before.

use std::collections::HashMap;
use std::sync::Arc;

use penstock_engine::Unit;

use super::declare::{Artifact, ArtifactFile, unread};
use super::{ArtifactStatus, api};
use crate::compiled::{ArtifactKey, CompiledArtifact, CompiledUnit, Known};
use crate::compiler::Compiler;

/// Compiles the artifacts in their order; gives what a later compilation may take.
pub(super) fn artifacts(
    cx: &mut Compiler<'_>,
    mut files: Vec<ArtifactFile<'_>>,
    artifacts: Vec<Artifact>,
    known: &mut Known,
    statuses: &mut Vec<ArtifactStatus>,
) -> HashMap<ArtifactKey, CompiledArtifact> {
    let mut built = HashMap::with_capacity(artifacts.len());
    let mut artifacts = artifacts.into_iter().peekable();
    while let Some(artifact) = artifacts.next() {
        let (key, index) = (artifact.key(), artifact.file);
        let (kind, name, at) = (artifact.kind.element, artifact.name.to_string(), artifact.at.clone());
        let before = known.take(&key).and_then(|before| before.result).filter(|_| artifact.is_unchanged);
        let reused = before.filter(|result| holds(cx, result));
        let (number, input) = (artifact.number, artifact.input);
        let (result, good) = match reused {
            Some(result) => {
                take(cx, number, &result);
                (Some(result), true)
            }
            None => match files[index].open() {
                Ok(()) => build(cx, artifact, &files[index]),
                Err(error) => {
                    statuses.push(unread(files[index].report_unreadable(&error, cx)));
                    continue;
                }
            },
        };
        statuses.push(ArtifactStatus { kind, name, at, good });
        built.entry(key).or_insert(CompiledArtifact { number, input, result });
        if artifacts.peek().is_none_or(|next| next.file != index) {
            files[index].close();
        }
    }
    built
}

/// Whether a result of the last compilation is the one that this compilation would have.
fn holds(cx: &Compiler<'_>, result: &CompiledUnit) -> bool {
    let is_hidden = || result.additions.api.as_ref().is_some_and(|api| api::hidden_by(cx, api).is_some());
    result.references.iter().all(|reference| reference.holds(cx)) && !is_hidden()
}

fn take(cx: &mut Compiler<'_>, number: u32, result: &CompiledUnit) {
    cx.add_unit(number, result.unit.clone());
    cx.add_again(&result.additions);
    result.diagnostics.iter().for_each(|diagnostic| cx.report(diagnostic.clone()));
}

/// Compiles an artifact; the result is there when it may be taken later. Also whether it can be served.
fn build(cx: &mut Compiler<'_>, artifact: Artifact, file: &ArtifactFile<'_>) -> (Option<CompiledUnit>, bool) {
    let Some(element) = file.element(artifact.node) else { return (None, false) };
    let (errors, before) = (cx.errors_so_far(), cx.diagnostics_so_far());
    // The file may have been parsed again since the name was read.
    artifact.kind.name.read(&element);
    cx.begin_artifact(&artifact.name);
    cx.resume_unit(artifact.number, artifact.unit);
    cx.begin_recording();
    cx.guarded(&element.place(), |cx| (artifact.kind.build)(cx, &artifact.name, &element));
    let recording = cx.end_recording();
    let good = !artifact.is_broken && cx.errors_so_far() == errors;
    if !good {
        (artifact.kind.withdraw)(cx, &artifact.name, &element);
    }
    let Unit { mut sequences, mut endpoints } = cx.end_unit();
    sequences.shrink_to_fit();
    endpoints.shrink_to_fit();
    let unit = Arc::new(Unit { sequences, endpoints });
    cx.add_unit(artifact.number, unit.clone());
    if !good || !artifact.is_reusable || recording.is_for_one_program || cx.options.compiled.is_none() {
        return (None, good);
    }
    let diagnostics = cx.diagnostics_since(before).to_vec();
    let references = recording.references.into_iter().collect();
    (Some(CompiledUnit { unit, references, additions: recording.additions, diagnostics }), good)
}
