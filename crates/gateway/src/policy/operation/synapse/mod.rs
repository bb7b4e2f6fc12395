//! Policies written in Synapse XML: a template, filled with parameters and compiled like every sequence.

mod properties;
mod render;

pub(crate) use render::fill;

use std::rc::Rc;
use std::sync::Arc;

use penstock_catalog::PolicyUse;
use penstock_compile::Compiler;
use penstock_engine::{Exchange, Fault, Flow, Mediator, SequenceId, Step};
use penstock_projects::place;

use self::properties::Properties;
use super::action;
use super::class::PolicyClasses;
use super::definition::Sequence;
use super::step::{PolicyStep, Problem, Stage};
use crate::{Gateway, Site};

/// Compiles a policy. Diagnostics name the template's file and the line of the filled text, which is the template's own
/// unless a loop or condition above it added or took lines.
pub(super) fn compile(
    gateway: &Gateway,
    site: &Arc<Site>,
    one: &PolicyUse,
    sequence: &Sequence,
    cx: &mut Compiler<'_>,
) -> Result<Option<PolicyStep>, Problem> {
    let text = fill(&sequence.template, &sequence.values)
        .map_err(|error| Problem::Refuse(format!("{}:{error}", sequence.file)))?;
    if let Some(call) = render::opa_call(&text, one) {
        return action::compile(gateway, site, Stage::Request, &call);
    }
    let outside = cx.classes.replace(Rc::new(PolicyClasses::new(gateway, site)));
    let mediators = cx.fragment(&sequence.file, &text);
    cx.classes = outside;
    let Some(mediators) = mediators else {
        return Err(Problem::Refuse("its sequence has errors".into()));
    };
    let prepare = Step { mediator: Box::new(Properties::from_site(site)), kind: "parameters", at: place(&one.at) };
    let prepared = cx.add_sequence(vec![
        prepare,
        Step { mediator: Box::new(Enter(mediators)), kind: "sequence", at: place(&one.at) },
    ]);
    Ok(Some(PolicyStep::sequence(Box::new(Enter(prepared)))))
}

/// A step that sets the properties sequences of API Manager find.
pub(in crate::policy) fn properties(site: &Site) -> Box<dyn Mediator> {
    Box::new(Properties::from_site(site))
}

/// Runs a sequence.
struct Enter(SequenceId);

impl Mediator for Enter {
    fn run(&self, _exchange: &mut Exchange) -> Result<Flow, Fault> {
        Ok(Flow::Enter(self.0))
    }
}
