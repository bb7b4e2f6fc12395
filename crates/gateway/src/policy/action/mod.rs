//! Actions of Choreo Connect: small changes of a request or an answer, one mediator each.

mod claim;
mod header;
mod path;
mod query;

use std::sync::Arc;

use penstock_catalog::{At, Interceptor, PolicyUse};
use penstock_engine::{Exchange, Fault, Flow, Mediator};
use penstock_message::Method;

use super::opa;
use super::operation::{Problem, Stage};
use crate::text::is_field_name;
use crate::{Gateway, Site};
use penstock_projects::interceptor_part;

/// An action with its parameters.
#[derive(Debug, Clone, Default)]
pub(crate) struct Call {
    pub(crate) action: String,
    pub(crate) parameters: Vec<(String, String)>,
    pub(crate) at: At,
}

/// A mediator of an operation policy.
pub(crate) struct Work {
    pub(crate) kind: &'static str,
    pub(crate) mediator: Box<dyn Mediator>,
    rank: Rank,
}

/// When a policy runs among its neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// A sequence: nothing passes it.
    Fixed,
    /// An action that touches no query.
    Plain,
    LeavesQuery,
    AddsQuery,
}

impl Work {
    /// A sequence.
    pub(super) fn sequence(mediator: Box<dyn Mediator>) -> Work {
        Work { kind: "sequence", mediator, rank: Rank::Fixed }
    }

    fn action(kind: &'static str, mediator: Box<dyn Mediator>) -> Work {
        Work { kind, mediator, rank: Rank::Plain }
    }

    fn ranked(self, rank: Rank) -> Work {
        Work { rank, ..self }
    }
}

/// Puts neighbouring actions in the order in which Choreo Connect does them: the path, what leaves the query, what comes
/// to it. So a parameter that a policy adds stays, also when a later one discards the client's.
pub(super) fn order(works: &mut [(Work, &PolicyUse)]) {
    for run in works.chunk_by_mut(|(left, _), (right, _)| left.rank > Rank::Fixed && right.rank > Rank::Fixed) {
        run.sort_by_key(|(work, _)| work.rank);
    }
}

impl Call {
    /// An action with parameters that are not empty.
    pub(super) fn of<'p>(action: &str, parameters: impl IntoIterator<Item = (&'p str, Option<&'p str>)>) -> Call {
        let given = |(name, value): (&str, Option<&str>)| Some((name.to_owned(), value?.to_owned()));
        Call {
            action: action.to_owned(),
            parameters: parameters.into_iter().filter_map(given).collect(),
            ..Call::default()
        }
    }

    /// A parameter.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let found = self.parameters.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    /// Why the action cannot run: a rewrite is left out, everything else may be what keeps requests out.
    fn problem(&self, message: String) -> Problem {
        if REWRITES.contains(&&*self.action) { Problem::Skip(message) } else { Problem::Unprotected(message) }
    }

    pub(crate) fn required(&self, name: &str) -> Result<&str, Problem> {
        let missing = || self.problem(format!("the action `{}` needs the parameter `{name}`", self.action));
        self.get(name).ok_or_else(missing)
    }

    /// A parameter that is a header field's name.
    fn field(&self, name: &str) -> Result<Arc<str>, Problem> {
        let field = self.required(name)?.trim();
        match is_field_name(field) {
            true => Ok(field.into()),
            false => Err(Problem::Skip(format!("`{field}` is not a header name"))),
        }
    }
}

/// Actions that change a request or a response and keep none out.
const REWRITES: [&str; 7] = [
    "SET_HEADER",
    "REMOVE_HEADER",
    "RENAME_HEADER",
    "ADD_QUERY",
    "REMOVE_QUERY",
    "REWRITE_RESOURCE_METHOD",
    "REWRITE_RESOURCE_PATH",
];

/// Compiles an action. `None` when it is no step of its own: interceptor services are asked at their own place.
pub(super) fn compile(gateway: &Gateway, site: &Arc<Site>, stage: Stage, call: &Call) -> Result<Option<Work>, Problem> {
    let of_requests = |work: Work| match stage {
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
            Ok(Some(Work::action("SET_HEADER", Box::new(mediator))))
        }
        "REMOVE_HEADER" => {
            Ok(Some(Work::action("REMOVE_HEADER", Box::new(header::Remove { name: call.field("headerName")? }))))
        }
        "RENAME_HEADER" => {
            let (from, to) = (call.field("currentHeaderName")?, call.field("updatedHeaderName")?);
            Ok(Some(Work::action("RENAME_HEADER", Box::new(header::Rename { from, to }))))
        }
        "ADD_QUERY" => {
            let mediator = query::Add::new(call.required("queryParamName")?, call.required("queryParamValue")?);
            of_requests(Work::action("ADD_QUERY", Box::new(mediator)).ranked(Rank::AddsQuery))
        }
        "REMOVE_QUERY" => {
            let mediator = query::Remove { name: call.required("queryParamName")?.into() };
            of_requests(Work::action("REMOVE_QUERY", Box::new(mediator)).ranked(Rank::LeavesQuery))
        }
        "REWRITE_RESOURCE_METHOD" => {
            let from = call.get("currentMethod").map(|method| Method::parse(&method.to_ascii_uppercase()));
            let to = method(call.required("updatedMethod")?)?;
            of_requests(Work::action("REWRITE_RESOURCE_METHOD", Box::new(RewriteMethod { from, to })))
        }
        "REWRITE_RESOURCE_PATH" => {
            let template = call.required("resourcePath")?;
            let keeps_query = call.required("includeQueryParams")?.eq_ignore_ascii_case("true");
            let mediator = path::Rewrite::parse(template, keeps_query, &site.pattern.parameters)?;
            of_requests(Work::action("REWRITE_RESOURCE_PATH", Box::new(mediator)))
        }
        "CALL_INTERCEPTOR_SERVICE" => match stage {
            Stage::Fault => Err(Problem::Skip("interceptor services are not called in the fault flow".into())),
            Stage::Request | Stage::Response => interceptor(call).map(|_| None),
        },
        "VALIDATE_CLAIM" => of_requests(Work::action("VALIDATE_CLAIM", Box::new(claim::Validate::compile(call)?))),
        "OPA" => of_requests(Work::action("OPA", opa::compile(gateway, site, call)?)),
        other => Err(Problem::Unprotected(format!("the action `{other}` is not supported"))),
    }
}

/// The interceptor service an action names; `None` when it is another action.
pub(super) fn interceptor(call: &Call) -> Result<Option<Interceptor>, Problem> {
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
