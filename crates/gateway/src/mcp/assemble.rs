//! From an MCP server to sequences.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use penstock_catalog::{
    Api, ApiKind, ApiReference, MCP_METADATA_PATH, MCP_PATH, Operation as Described, Requirement, Tool, ToolRequest,
    ToolTarget,
};
use penstock_engine::route::Operation;
use penstock_engine::{Mediator, SequenceId, Step};
use penstock_projects::place;
use serde_json::json;

use super::dispatch::{Dispatch, PAGE, Route};
use super::fault::{AnswerFault, OnFault};
use super::pages::{
    AnswerKnown, EndSession, EnterApi, Forward, ForwardOther, LeaveApi, Left, Metadata, NoStream, NoTarget, TakeAnswer,
};
use super::request::MakeRequest;
use super::result::MakeResult;
use crate::Site;
use crate::assemble::Assembly;
use crate::observe::OperationObserver;
use crate::policy::{ApiKinds, Phase, body_limit, operation};
use crate::router::Target;
use crate::steps::Respond;

/// The largest message. It is read before it is known who sent it.
const MESSAGE_BYTES_MAX: u64 = 4 << 20;

/// The policies before a message is read: who calls, and whether they may.
const CALLER: RangeInclusive<Phase> = Phase::Client..=Phase::Limits;

/// The policies of the request that a message becomes.
const REQUEST: RangeInclusive<Phase> = Phase::Message..=Phase::Backend;

/// An API behind a tool leaves the first phase to the tool.
const BEHIND: RangeInclusive<Phase> = Phase::Admission..=Phase::Backend;

/// The request steps of messages that need no credentials. They are counted before their caller is known, so that only the
/// plan of the API counts.
fn open_steps(assembly: &mut Assembly<'_, '_, '_>, site: &Arc<Site>) -> Vec<Step> {
    let phases =
        [Phase::Client..=Phase::Admission, Phase::Limits..=Phase::Limits, Phase::Authentication..=Phase::Authorization];
    phases.into_iter().flat_map(|phases| assembly.request_steps(site, ApiKinds::MCP_OPEN, phases)).collect()
}

/// The operations of an MCP server at a base path.
pub(crate) fn targets(assembly: &mut Assembly<'_, '_, '_>, known: &[Arc<Api>]) -> Vec<Target> {
    let api = assembly.api;
    let operations: Vec<_> = api.operations.to_vec();
    let proxy = api.mcp.as_ref().is_some_and(|server| server.proxy);
    let one = |operation: &Arc<Described>| {
        let site = assembly.site(operation);
        match (&*operation.method, &*operation.path) {
            ("POST", MCP_PATH) => messages(assembly, site, known),
            ("GET", MCP_METADATA_PATH) => {
                let issuers = issuers(assembly);
                let trusts_forwarded = assembly.gateway.config.trusts_forwarded;
                let metadata = Metadata { site: site.clone(), issuers, trusts_forwarded };
                page(assembly, site, Box::new(metadata))
            }
            _ if proxy => {
                let mut steps = assembly.request_steps(&site, ApiKinds::MCP, CALLER);
                steps.push(step(&site, "mcp", Box::new(ForwardOther)));
                steps.extend(assembly.request_steps(&site, ApiKinds::MCP, REQUEST));
                let response = assembly.response_steps(&site, ApiKinds::MCP, REQUEST);
                let response = answers(assembly, &site, ApiKinds::MCP, response);
                target(assembly, site, steps, response)
            }
            ("DELETE", _) => {
                let sessions = assembly.gateway.state.get();
                let end = EndSession { sessions, base_path: site.base_path.clone() };
                page(assembly, site, Box::new(end))
            }
            _ => page(assembly, site, Box::new(NoStream)),
        }
    };
    operations.iter().map(one).collect()
}

fn step(site: &Site, kind: &'static str, mediator: Box<dyn Mediator>) -> Step {
    Step { mediator, kind, at: place(&site.operation.at) }
}

/// Response steps, then those between the message and the client.
fn answers(assembly: &mut Assembly<'_, '_, '_>, site: &Arc<Site>, kind: ApiKinds, mut steps: Vec<Step>) -> Vec<Step> {
    steps.extend(assembly.response_steps(site, kind, CALLER));
    steps.push(step(site, "respond", Box::new(Respond)));
    steps
}

/// An operation that answers by itself.
fn page(assembly: &mut Assembly<'_, '_, '_>, site: Arc<Site>, answer: Box<dyn Mediator>) -> Target {
    let open = assembly.site(&open(&site.operation));
    let mut steps = open_steps(assembly, &open);
    steps.push(step(&site, "mcp", answer));
    target(assembly, site, steps, Vec::new())
}

fn target(assembly: &mut Assembly<'_, '_, '_>, site: Arc<Site>, request: Vec<Step>, response: Vec<Step>) -> Target {
    let fault = AnswerFault { config: assembly.gateway.config.clone() };
    let on_fault = step(&site, "error", Box::new(OnFault(fault)));
    let operation = Operation {
        name: assembly.frame.name.clone(),
        label: assembly.frame.label.clone(),
        in_sequence: Some(assembly.cx.add_sequence(request)),
        out_sequence: Some(assembly.cx.add_sequence(response)),
        fault_sequence: Some(assembly.cx.add_sequence(vec![on_fault])),
        observer: Some(OperationObserver::shared(assembly.gateway)),
        at: place(&site.operation.at),
    };
    Target { site, operation: Arc::new(operation) }
}

/// An operation that accepts missing credentials and rejects wrong ones.
fn open(operation: &Described) -> Arc<Described> {
    let mut open = operation.clone();
    open.requirements.push(Requirement::Nothing);
    open.scopes.clear();
    open.into()
}

/// The issuers of tokens for the server that have an address.
fn issuers(assembly: &Assembly<'_, '_, '_>) -> Vec<String> {
    let issuers = assembly.gateway.config.security.issuers.iter().map(|issuer| issuer.issuer.to_string());
    let mut found: Vec<String> = issuers.filter(|issuer| issuer.starts_with("http")).collect();
    found.dedup();
    found
}

/// `POST …/mcp`.
fn messages(assembly: &mut Assembly<'_, '_, '_>, site: Arc<Site>, known: &[Arc<Api>]) -> Target {
    let api = assembly.api.clone();
    let server = api.mcp.clone().unwrap_or_default();
    let open_site = assembly.site(&open(&site.operation));
    let steps = open_steps(assembly, &open_site);
    let open = to_server(assembly, open_site, steps, ApiKinds::MCP_OPEN, server.proxy);
    let steps = assembly.request_steps(&site, ApiKinds::MCP, CALLER);
    let secured = to_server(assembly, site.clone(), steps, ApiKinds::MCP, server.proxy);
    let mut known = Known { apis: known, by_path: HashMap::new() };
    let mut tools = HashMap::new();
    for tool in &server.tools {
        let site = assembly.site(&tool.operation);
        let route = match &tool.target {
            ToolTarget::Tool(name) => {
                let steps = assembly.request_steps(&site, ApiKinds::MCP, CALLER);
                Route { renamed: Some(name.clone()), ..to_server(assembly, site, steps, ApiKinds::MCP, true) }
            }
            ToolTarget::Http(request) => to_operation(assembly, site, tool, request, &mut known),
        };
        tools.insert(tool.name.clone(), route);
    }
    let dispatch = Dispatch {
        sessions: assembly.gateway.state.get(),
        base_path: site.base_path.clone(),
        proxy: server.proxy,
        server: json!({ "name": &*api.name, "version": &*api.version, "description": "This is an MCP Server" }),
        pages: pages(&server.tools),
        tools,
        open,
        secured,
    };
    let limit = assembly.gateway.config.request_bytes_max.unwrap_or(u64::MAX).min(MESSAGE_BYTES_MAX);
    let request = vec![step(&site, "body-limit", body_limit::at_most(limit)), step(&site, "mcp", Box::new(dispatch))];
    let response = vec![step(&site, "mcp", Box::new(TakeAnswer))];
    target(assembly, site, request, response)
}

/// The pages of `tools/list`.
fn pages(tools: &[Arc<Tool>]) -> Vec<String> {
    let count = tools.len().div_ceil(PAGE).max(1);
    let page = |number: usize| {
        let listed: Vec<&str> = tools.iter().skip(number * PAGE).take(PAGE).map(|tool| &*tool.listed).collect();
        let next = if number + 1 < count { format!(",\"nextCursor\":\"{}\"", number + 1) } else { String::new() };
        format!("{{\"tools\":[{}]{next}}}", listed.join(","))
    };
    (0..count).map(page).collect()
}

/// For messages that this server answers itself, or the one behind it.
fn to_server(
    assembly: &mut Assembly<'_, '_, '_>,
    site: Arc<Site>,
    mut request: Vec<Step>,
    kind: ApiKinds,
    forwards: bool,
) -> Route {
    request.push(step(&site, "mcp", Box::new(AnswerKnown)));
    let mut response = Vec::new();
    if forwards {
        request.push(step(&site, "mcp", Box::new(Forward)));
        request.extend(assembly.request_steps(&site, ApiKinds::MCP, REQUEST));
        response = assembly.response_steps(&site, ApiKinds::MCP, REQUEST);
    }
    let response = answers(assembly, &site, kind, response);
    route(assembly, site, request, response, false)
}

/// For a tool that is an operation over HTTP.
fn to_operation(
    assembly: &mut Assembly<'_, '_, '_>,
    site: Arc<Site>,
    tool: &Tool,
    described: &ToolRequest,
    known: &mut Known<'_>,
) -> Route {
    let mut request = assembly.request_steps(&site, ApiKinds::MCP, CALLER);
    match MakeRequest::new(described) {
        Ok(make) => request.push(step(&site, "mcp-request", Box::new(make))),
        Err(problem) => {
            let message = format!("the arguments of the tool `{}` cannot be checked: {problem}", tool.name);
            assembly.cx.error(place(&site.operation.at), message);
        }
    }
    let mut response = Vec::new();
    match &described.api {
        None => {
            request.extend(assembly.request_steps(&site, ApiKinds::MCP, REQUEST));
            response = assembly.response_steps(&site, ApiKinds::MCP, REQUEST);
        }
        Some(reference) => {
            let own = &operation::KIND;
            request.extend(assembly.step(&site, ApiKinds::MCP, own, own.request));
            match behind(assembly, reference, described, known) {
                None => {
                    let message = format!(
                        "the tool `{}` calls {} {} of `{}:{}`, which is not served",
                        tool.name, described.method, described.path, reference.name, reference.version
                    );
                    let at = place(&site.operation.at);
                    let strict = assembly.cx.options.strict;
                    if strict {
                        assembly.cx.error(at, message)
                    } else {
                        assembly.cx.warn(at, message)
                    }
                    request.push(step(&site, "mcp", Box::new(NoTarget)));
                }
                Some((api, back)) => {
                    request.push(step(&site, "mcp-api", Box::new(api)));
                    response.push(step(&site, "mcp-api", Box::new(LeaveApi { response: back })));
                    response.push(step(&site, "mcp-api", Box::new(Left)));
                    response.extend(assembly.step(&site, ApiKinds::MCP, own, own.response));
                }
            }
        }
    }
    response.push(step(&site, "mcp-result", Box::new(MakeResult { structured: described.structured })));
    let response = answers(assembly, &site, ApiKinds::MCP, response);
    route(assembly, site, request, response, true)
}

/// The way to the operation of an API that is served here, and back. The tool has authenticated the caller, so the API does
/// not ask again; everything else of it applies.
fn behind(
    assembly: &mut Assembly<'_, '_, '_>,
    reference: &ApiReference,
    request: &ToolRequest,
    known: &mut Known<'_>,
) -> Option<(EnterApi, SequenceId)> {
    let api = find(reference, known.apis)?;
    let beside = known.operations_at(api, &request.path);
    let found = beside.iter().find(|one| one.method == request.method)?;
    let methods = beside.iter().filter(|one| one.path == found.path).map(|one| &*one.method).collect::<Vec<_>>();
    let operation = Arc::new(Described { secured: false, ..(***found).clone() });
    let mut assembly = Assembly::of_one(assembly.gateway, api, (&operation.path, &methods.join(" ")), assembly.cx);
    let site = assembly.site(&operation);
    let kind = ApiKinds::of_site(&site);
    let request = assembly.request_steps(&site, kind, BEHIND);
    let response = assembly.response_steps(&site, kind, BEHIND);
    let request = assembly.cx.add_sequence(request);
    Some((EnterApi { site, request }, assembly.cx.add_sequence(response)))
}

/// APIs, and their operations by path: a server may have as many tools as an API has operations.
struct Known<'k> {
    apis: &'k [Arc<Api>],
    by_path: HashMap<*const Api, HashMap<&'k str, Vec<&'k Arc<Described>>>>,
}

impl<'k> Known<'k> {
    /// The operations of an API at a path, with a slash at its end or without.
    fn operations_at(&mut self, api: &'k Arc<Api>, path: &str) -> &[&'k Arc<Described>] {
        let by_path = self.by_path.entry(Arc::as_ptr(api)).or_insert_with(|| {
            let mut by_path: HashMap<&str, Vec<_>> = HashMap::new();
            for operation in &api.operations {
                by_path.entry(operation.path.trim_end_matches('/')).or_default().push(operation);
            }
            by_path
        });
        by_path.get(path.trim_end_matches('/')).map_or(&[], Vec::as_slice)
    }
}

/// The API that is meant: by name and version, or by where it is served.
fn find<'k>(reference: &ApiReference, known: &'k [Arc<Api>]) -> Option<&'k Arc<Api>> {
    let mut apis = known.iter().filter(|api| matches!(api.kind, ApiKind::Http | ApiKind::Soap));
    let by_name = apis.clone().find(|api| api.name == reference.name && api.version == reference.version);
    let context = reference.context.trim_end_matches('/');
    let served_there = |api: &&Arc<Api>| {
        let versioned = || api.base_path.strip_prefix(context).is_some_and(|rest| rest == format!("/{}", api.version));
        !context.is_empty() && (*api.base_path == *context || (api.version == reference.version && versioned()))
    };
    by_name.or_else(|| apis.find(served_there))
}

fn route(
    assembly: &mut Assembly<'_, '_, '_>,
    site: Arc<Site>,
    request: Vec<Step>,
    response: Vec<Step>,
    is_http_tool: bool,
) -> Route {
    let config = &assembly.gateway.config;
    let answer = || -> Box<dyn Mediator> { Box::new(AnswerFault { config: config.clone() }) };
    let fault = operation::fault_sequence(assembly.gateway, &site, answer, assembly.cx);
    let request = assembly.cx.add_sequence(request);
    let response = assembly.cx.add_sequence(response);
    Route { site, request, response, fault, is_http_tool, renamed: None }
}
