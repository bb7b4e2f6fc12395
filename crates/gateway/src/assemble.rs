//! From an API to sequences: each operation runs the policies that apply to it.

use std::sync::Arc;

use penstock_catalog::Api;
use penstock_compile::Compiler;
use penstock_engine::Step;
use penstock_engine::route::Operation;

use crate::policy::{AnswerError, CompilePolicy, POLICIES, PolicyKind, Respond, Site};
use crate::router::{PathPattern, Routes};
use crate::{Gateway, place};

/// Compiles every operation of an API and adds its routes; whether nothing was wrong.
pub(crate) fn api(gateway: &Gateway, api: &Arc<Api>, cx: &mut Compiler<'_>, routes: &mut Routes) -> bool {
    let name: Arc<str> = format!("{}:{}", api.name, api.version).into();
    let label: Arc<str> = format!("{{api:{}}}", api.name).into();
    let answer = AnswerError { config: gateway.config.clone() };
    let fault_sequence = cx.add_sequence(vec![Step { mediator: Box::new(answer), kind: "error", at: place(&api.at) }]);
    for operation in &api.operations {
        let on_path = api.operations.iter().filter(|other| other.path == operation.path);
        let methods: Vec<&str> = on_path.map(|other| &*other.method).collect();
        let site = Arc::new(Site {
            api: api.clone(),
            operation: operation.clone(),
            pattern: PathPattern::parse(&operation.path),
            methods: methods.join(" ").into(),
        });
        let request_flow = steps(gateway, &site, cx, POLICIES.iter(), |kind| kind.request);
        let request_flow = cx.add_sequence(request_flow);
        let mut response_flow = steps(gateway, &site, cx, POLICIES.iter().rev(), |kind| kind.response);
        response_flow.push(Step { mediator: Box::new(Respond), kind: "respond", at: place(&operation.at) });
        let response_flow = cx.add_sequence(response_flow);
        let compiled = Arc::new(Operation {
            name: name.clone(),
            label: label.clone(),
            in_sequence: Some(request_flow),
            out_sequence: Some(response_flow),
            fault_sequence: Some(fault_sequence),
            observer: None,
            at: place(&operation.at),
        });
        for base in [Some(&api.base_path), api.default_path.as_ref()].into_iter().flatten() {
            routes.add(base.clone(), site.clone(), compiled.clone());
        }
    }
    true
}

/// The steps of one flow.
fn steps<'k>(
    gateway: &Gateway,
    site: &Arc<Site>,
    cx: &mut Compiler<'_>,
    kinds: impl Iterator<Item = &'k PolicyKind>,
    of: impl Fn(&PolicyKind) -> Option<CompilePolicy>,
) -> Vec<Step> {
    let mut steps = Vec::new();
    for kind in kinds {
        if let Some(mediator) = of(kind).and_then(|compile| compile(gateway, site, cx)) {
            steps.push(Step { mediator, kind: kind.name, at: place(&site.operation.at) });
        }
    }
    steps
}
