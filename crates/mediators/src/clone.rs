//! `<clone>`: one branch for each target, each with a copy of the message.

use std::sync::Arc;

use penstock_compile::{Compiler, Element, MediatorKind};
use penstock_engine::{Exchange, Fault, Flow, Fork, Mediator, Needs};

use crate::split::{Target, number};
use crate::template::Template;
use penstock_engine::payload::copy_of;

/// The kind.
pub const KIND: MediatorKind = MediatorKind { name: "clone", compile };

struct Clone {
    id: Option<Arc<str>>,
    targets: Vec<Target>,
    /// How many copies of the first target, when the configuration says.
    iterations: Option<Template>,
    parallel: bool,
    continue_parent: bool,
}

fn compile(el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    let mut targets = Vec::new();
    for target in el.elements("target") {
        targets.push(Target::compile(&target, cx));
    }
    if targets.is_empty() {
        cx.error(el.place(), "<clone> needs a <target>");
        return None;
    }
    let iterations = match el.attribute("iterations").filter(|text| !text.is_empty()) {
        Some(text) => {
            let at = el.attribute_place("iterations");
            Some(match penstock_compile::expression::braced(text) {
                Some(expression) => Template::expression(cx, el, expression, at)?,
                None => Template::constant(text),
            })
        }
        None => None,
    };
    Some(Box::new(Clone {
        id: el.attribute("id").filter(|id| !id.is_empty()).map(Arc::from),
        targets,
        iterations,
        parallel: !el.flag("sequential", false),
        continue_parent: el.flag("continueParent", false),
    }))
}

impl Mediator for Clone {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let times = match &self.iterations {
            None => 1,
            Some(iterations) => {
                let text = iterations.text(exchange)?;
                text.trim()
                    .parse::<usize>()
                    .map_err(|_| Fault::new(format!("`{text}` is not a number of iterations")))?
            }
        };
        let count = self.targets.len() * times;
        let limit = exchange.program().limits.branches_max;
        if count > limit {
            return Err(Fault::new(format!("<clone> makes {count} copies, more than {limit}")));
        }
        let targets = self.targets.iter().flat_map(|target| std::iter::repeat_n(target, times));
        let branches = targets
            .enumerate()
            .map(|(index, target)| {
                let mut message = copy_of(&exchange.message);
                number(&mut message, self.id.as_deref(), index, count);
                target.branch(message)
            })
            .collect();
        Ok(Flow::Fork(Box::new(Fork {
            branches,
            parallel: self.parallel,
            join: None,
            continue_parent: self.continue_parent,
            id: self.id.clone(),
        })))
    }

    fn needs(&self) -> Needs {
        Needs::Whole
    }
}
