//! From an MCP server to sequences.

use std::collections::HashMap;
use std::sync::Arc;

use penstock_catalog::{
    Api, ApiKind, ApiReference, Operation as Described, Requirement, Tool, ToolRequest, ToolTarget,
};
use penstock_engine::route::Operation;
use penstock_engine::{Mediator, SequenceId, Step};
use serde_json::json;

use super::dispatch::{Dispatch, PAGE, Route};
use super::fault::{AnswerFault, OnFault};
use super::pages::{
    AnswerKnown, EndSession, EnterApi, Forward, ForwardOther, LeaveApi, Left, Metadata, NoStream, NoTarget, TakeAnswer,
};
use super::request::MakeRequest;
use super::result::MakeResult;
use super::{METADATA_PATH, PATH};
use crate::assemble::Assembly;
use crate::observe::OperationObserver;
use crate::place;
use crate::policy::{POLICIES, PolicyKind, Respond, Site, body_limit, operation};
use crate::router::Target;

/// The largest message. It is read before it is known who sent it.
const MESSAGE_BYTES_MAX: u64 = 4 << 20;

/// The policies before which a message may not be looked into: who calls, and whether they may.
const ABOUT_CALLERS: [&str; 11] = [
    "explain",
    "trace",
    "compress",
    "cors",
    "availability",
    "authenticate",
    "subscription",
    "scopes",
    "deny",
    "key-type",
    "rate-limit",
];

/// Those of messages that need no credentials. They are counted before it is known who sent them, so that only the plan of
/// the API counts.
const ABOUT_ANYBODY: [&[&str]; 3] = [
    &["explain", "trace", "compress", "cors", "availability"],
    &["rate-limit"],
    &["authenticate", "subscription", "deny"],
];

/// What an API behind a tool leaves to the tool: it was asked for once.
const ONCE: [&str; 4] = ["explain", "trace", "compress", "cors"];

fn about_callers(kind: &&PolicyKind) -> bool {
    ABOUT_CALLERS.contains(&kind.name)
}

fn about_anybody(kind: &&PolicyKind) -> bool {
    ABOUT_ANYBODY.concat().contains(&kind.name)
}

/// The request steps of messages that need no credentials.
fn for_anybody(assembly: &mut Assembly<'_, '_, '_>, site: &Arc<Site>) -> Vec<Step> {
    let mut steps = Vec::new();
    for names in ABOUT_ANYBODY {
        steps.extend(of(assembly, site, |kind| names.contains(&kind.name)));
    }
    steps
}

fn about_requests(kind: &&PolicyKind) -> bool {
    !about_callers(kind)
}

/// The operations of an MCP server at a base path.
pub(crate) fn targets(assembly: &mut Assembly<'_, '_, '_>, known: &[Arc<Api>]) -> Vec<Target> {
    let api = assembly.api;
    let operations: Vec<_> = api.operations.to_vec();
    let proxy = api.mcp.as_ref().is_some_and(|server| server.proxy);
    let one = |operation: &Arc<Described>| {
        let site = assembly.site(operation);
        match (&*operation.method, &*operation.path) {
            ("POST", PATH) => messages(assembly, site, known),
            ("GET", METADATA_PATH) => {
                let issuers = issuers(assembly);
                let trusts_forwarded = assembly.gateway.config.trusts_forwarded;
                let metadata = Metadata { site: site.clone(), issuers, trusts_forwarded };
                page(assembly, site, Box::new(metadata))
            }
            _ if proxy => {
                let mut steps = of(assembly, &site, about_callers);
                steps.push(step(&site, "mcp", Box::new(ForwardOther)));
                steps.extend(of(assembly, &site, about_requests));
                let response = answers(assembly, &site, |_| true, Vec::new());
                target(assembly, site, steps, response)
            }
            ("DELETE", _) => {
                let end = EndSession { state: assembly.gateway.state.clone(), base_path: site.base_path.clone() };
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

/// The request steps of some policies.
fn of(assembly: &mut Assembly<'_, '_, '_>, site: &Arc<Site>, which: impl Fn(&&PolicyKind) -> bool) -> Vec<Step> {
    assembly.steps(site, POLICIES.iter().filter(which), |kind| kind.request)
}

/// The response steps of some policies, behind others, to the client.
fn answers(
    assembly: &mut Assembly<'_, '_, '_>,
    site: &Arc<Site>,
    which: impl Fn(&&PolicyKind) -> bool,
    mut steps: Vec<Step>,
) -> Vec<Step> {
    steps.extend(assembly.steps(site, POLICIES.iter().rev().filter(which), |kind| kind.response));
    steps.push(step(site, "respond", Box::new(Respond)));
    steps
}

/// An operation that answers by itself.
fn page(assembly: &mut Assembly<'_, '_, '_>, site: Arc<Site>, answer: Box<dyn Mediator>) -> Target {
    let open = assembly.site(&open(&site.operation));
    let mut steps = for_anybody(assembly, &open);
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

/// An operation that lets in who sends no credentials, and nobody whose credentials are wrong.
fn open(operation: &Described) -> Arc<Described> {
    let mut open = operation.clone();
    open.requirements.push(Requirement::Nothing);
    open.scopes.clear();
    open.into()
}

/// Those who issue tokens for the server, as far as they have an address.
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
    let steps = for_anybody(assembly, &open_site);
    let open = to_server(assembly, open_site, steps, about_anybody, server.proxy);
    let steps = of(assembly, &site, about_callers);
    let secured = to_server(assembly, site.clone(), steps, about_callers, server.proxy);
    let mut known = Known { apis: known, by_path: HashMap::new() };
    let mut tools = HashMap::new();
    for tool in &server.tools {
        let site = assembly.site(&tool.operation);
        let route = match &tool.target {
            ToolTarget::Tool(name) => {
                let steps = of(assembly, &site, about_callers);
                Route { renamed: Some(name.clone()), ..to_server(assembly, site, steps, about_callers, true) }
            }
            ToolTarget::Http(request) => to_operation(assembly, site, tool, request, &mut known),
        };
        tools.insert(tool.name.clone(), route);
    }
    let dispatch = Dispatch {
        state: assembly.gateway.state.clone(),
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
    callers: impl Fn(&&PolicyKind) -> bool,
    forwards: bool,
) -> Route {
    request.push(step(&site, "mcp", Box::new(AnswerKnown)));
    let mut response = Vec::new();
    if forwards {
        request.push(step(&site, "mcp", Box::new(Forward)));
        request.extend(of(assembly, &site, about_requests));
        response = assembly.steps(&site, POLICIES.iter().rev().filter(about_requests), |kind| kind.response);
    }
    let response = answers(assembly, &site, callers, response);
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
    let mut request = of(assembly, &site, about_callers);
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
            request.extend(of(assembly, &site, about_requests));
            response = assembly.steps(&site, POLICIES.iter().rev().filter(about_requests), |kind| kind.response);
        }
        Some(reference) => {
            request.extend(of(assembly, &site, |kind| about_requests(kind) && kind.name == operation::KIND.name));
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
                    let own = |kind: &&PolicyKind| kind.name == operation::KIND.name;
                    response.extend(assembly.steps(&site, POLICIES.iter().rev().filter(own), |kind| kind.response));
                }
            }
        }
    }
    response.push(step(&site, "mcp-result", Box::new(MakeResult { structured: described.structured })));
    let response = answers(assembly, &site, about_callers, response);
    route(assembly, site, request, response, true)
}

/// The way to the operation of an API that is served here, and back. Who calls was asked by the tool, so the API does
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
    let not_asked = |kind: &&PolicyKind| !ONCE.contains(&kind.name);
    let request = of(&mut assembly, &site, not_asked);
    let response = assembly.steps(&site, POLICIES.iter().rev().filter(not_asked), |kind| kind.response);
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
