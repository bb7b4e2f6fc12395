//! `<template name="…">`: of a sequence, or of an endpoint.

use std::rc::Rc;
use std::sync::Arc;

use penstock_engine::{Template, TemplateParameter};

use super::kind::{ArtifactKind, ArtifactName};
use super::sequence;
use crate::compiler::{Compiler, NameKind};
use crate::element::{Element, SourceDocument};

/// The kind.
pub(super) const KIND: ArtifactKind =
    ArtifactKind { element: "template", name: ArtifactName::Attribute("name"), declare, build, withdraw };

/// Reserves the template's name.
fn declare(cx: &mut Compiler<'_>, name: &str, el: &Element<'_>) {
    if el.child("sequence").is_none() && el.child("endpoint").is_some() {
        if cx.declare(NameKind::ENDPOINT_TEMPLATE, name, el.place()) {
            let source = SourceDocument::new(el.source.file.clone(), el.source.document.clone());
            // The template's element is found again by its name when it is used.
            cx.endpoint_templates.insert(name.into(), Rc::new(source));
        }
        el.accept_all();
        return;
    }
    if !cx.declare(NameKind::TEMPLATE, name, el.place()) {
        el.accept_all();
    } else {
        let sequence = cx.reserve_sequence(Some(name.into()));
        let parameters = parameters(el);
        cx.program.templates.insert(name.into(), Template { sequence, parameters });
    }
}

fn parameters(el: &Element<'_>) -> Vec<TemplateParameter> {
    el.elements("parameter")
        .filter_map(|parameter| {
            Some(TemplateParameter {
                name: parameter.attribute("name")?.into(),
                mandatory: parameter.flag("isMandatory", false),
                default: parameter.attribute("defaultValue").map(Arc::from),
            })
        })
        .collect()
}

/// Fills the template's sequence.
fn build(cx: &mut Compiler<'_>, name: &str, el: &Element<'_>) {
    let Some(template) = cx.program.templates.get(name) else { return };
    let id = template.sequence;
    if !cx.is_compiling(id) {
        return el.accept_all();
    }
    parameters(el);
    match el.child("sequence") {
        Some(sequence) => sequence::fill(cx, &sequence, id),
        None => cx.error(el.place(), "<template> needs a <sequence> or an <endpoint>"),
    }
    el.finish(cx);
}

fn withdraw(cx: &mut Compiler<'_>, name: &str, el: &Element<'_>) {
    if let Some(id) = cx.program.templates.get(name).map(|template| template.sequence) {
        sequence::replace_by_fault(cx, id, name, el);
    }
}
