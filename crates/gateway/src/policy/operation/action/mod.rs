//! Actions of Choreo Connect: small changes of a request or an answer, one mediator each.

mod claim;
mod header;
mod path;
mod query;

use std::sync::Arc;

use penstock_catalog::Interceptor;
use penstock_engine::{Exchange, Fault, Flow, Mediator};
use penstock_message::Method;

use super::opa;
use super::step::{ActionCall, PolicyStep, Problem, Rank, Stage};
use crate::{Gateway, Site};
use penstock_projects::interceptor_part;

/// Compiles an action. `None` when it is no step of its own: interceptor services are called in their own step.
pub(super) fn compile(
    gateway: &Gateway,
    site: &Arc<Site>,
    stage: Stage,
    call: &ActionCall,
) -> Result<Option<PolicyStep>, Problem> {
    let of_requests = |work: PolicyStep| match stage {
        Stage::Request => Ok(Some(work)),
        _ => Err(call.problem(format!(
            "the action `{}` is for requests, not for the {} flow",
            call.action,
            stage.name()
        ))),
    };
    match &*call.action {
        "SET_HEADER" => {
            let value = call.required("headerValue")?;
            if value.bytes().any(|byte| byte < 0x20 && byte != b'\t') {
                return Err(Problem::Skip("`headerValue` holds a control character".into()));
            }
            let mediator = header::Set { name: call.field("headerName")?, value: value.into() };
            Ok(Some(PolicyStep::action("SET_HEADER", Box::new(mediator))))
        }
        "REMOVE_HEADER" => {
            Ok(Some(PolicyStep::action("REMOVE_HEADER", Box::new(header::Remove { name: call.field("headerName")? }))))
        }
        "RENAME_HEADER" => {
            let (from, to) = (call.field("currentHeaderName")?, call.field("updatedHeaderName")?);
            Ok(Some(PolicyStep::action("RENAME_HEADER", Box::new(header::Rename { from, to }))))
        }
        "ADD_QUERY" => {
            let mediator = query::Add::new(call.required("queryParamName")?, call.required("queryParamValue")?);
            of_requests(PolicyStep::action("ADD_QUERY", Box::new(mediator)).ranked(Rank::AddsQuery))
        }
        "REMOVE_QUERY" => {
            let mediator = query::Remove { name: call.required("queryParamName")?.into() };
            of_requests(PolicyStep::action("REMOVE_QUERY", Box::new(mediator)).ranked(Rank::LeavesQuery))
        }
        "REWRITE_RESOURCE_METHOD" => {
            let from = call.get("currentMethod").map(|method| Method::parse(&method.to_ascii_uppercase()));
            let to = method(call.required("updatedMethod")?)?;
            of_requests(PolicyStep::action("REWRITE_RESOURCE_METHOD", Box::new(RewriteMethod { from, to })))
        }
        "REWRITE_RESOURCE_PATH" => {
            let template = call.required("resourcePath")?;
            let keeps_query = call.required("includeQueryParams")?.eq_ignore_ascii_case("true");
            let mediator = path::Rewrite::parse(template, keeps_query, &site.pattern.parameters)?;
            of_requests(PolicyStep::action("REWRITE_RESOURCE_PATH", Box::new(mediator)))
        }
        "CALL_INTERCEPTOR_SERVICE" => match stage {
            Stage::Fault => Err(Problem::Skip("interceptor services are not called in the fault flow".into())),
            Stage::Request | Stage::Response => interceptor(call).map(|_| None),
        },
        "VALIDATE_CLAIM" => {
            of_requests(PolicyStep::action("VALIDATE_CLAIM", Box::new(claim::Validate::compile(call)?)))
        }
        "OPA" => of_requests(PolicyStep::action("OPA", opa::compile(gateway, site, call)?)),
        other => Err(Problem::Unprotected(format!("the action `{other}` is not supported"))),
    }
}

/// The interceptor service an action names; `None` when it is another action.
pub(super) fn interceptor(call: &ActionCall) -> Result<Option<Interceptor>, Problem> {
    if call.action != "CALL_INTERCEPTOR_SERVICE" {
        return Ok(None);
    }
    let service_url = call.required("interceptorServiceURL")?;
    if crate::service::origin(service_url).is_none() {
        return Err(Problem::Unprotected(format!(
            "`interceptorServiceURL` is `{service_url}`, not an http or https URL"
        )));
    }
    let mut includes = Vec::new();
    for name in call.required("includes")?.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        match interceptor_part(name) {
            Some(part) => includes.push(part),
            None => {
                return Err(Problem::Unprotected(format!(
                    "`includes` names `{name}`, which is not a part of the exchange"
                )));
            }
        }
    }
    Ok(Some(Interceptor {
        service_url: service_url.into(),
        includes,
        passthrough_on_error: call.get("passthroughOnError").map(|flag| flag.eq_ignore_ascii_case("true")),
        at: call.at.clone(),
        ..Interceptor::default()
    }))
}

fn method(name: &str) -> Result<Method, Problem> {
    let name = name.trim().to_ascii_uppercase();
    match Method::parse(&name) {
        Method::Other(_) => Err(Problem::Skip(format!("`{name}` is not a method requests may be given"))),
        method => Ok(method),
    }
}

/// `REWRITE_RESOURCE_METHOD`: another method, for all requests or for those of one method.
struct RewriteMethod {
    from: Option<Method>,
    to: Method,
}

impl Mediator for RewriteMethod {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let method = &mut exchange.message.method;
        if self.from.as_ref().is_none_or(|from| from == method) {
            *method = self.to.clone();
        }
        Ok(Flow::Next)
    }
}
