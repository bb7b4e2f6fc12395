//! From an API to sequences: each operation runs the policies that apply to it.

use std::collections::{HashMap, HashSet};
use std::ops::RangeInclusive;
use std::sync::Arc;

use penstock_catalog::path::PathPattern;
use penstock_catalog::{Api, ApiKind, Implementation, Operation as Described, Policies, Requirement};
use penstock_compile::Compiler;
use penstock_engine::route::Operation;
use penstock_engine::{Mediator, Step};
use penstock_projects::place;

use crate::observe::{OperationMetrics, OperationObserver};
use crate::policy::{ApiKinds, CompilePolicy, POLICIES, Phase, PolicyKind, graphql, operation};
use crate::router::{Base, Served, Target};
use crate::steps::{AnswerError, AnswerOptions, Respond};
use crate::{Gateway, Site, mcp, websub};

/// Compiles every operation of an API, at each of its base paths; `None` when there is an error, since an API is not
/// served in parts. `known` are all APIs there are.
pub(crate) fn api(
    gateway: &Gateway,
    api: &Arc<Api>,
    known: &[Arc<Api>],
    cx: &mut Compiler<'_>,
) -> Option<Vec<Arc<Served>>> {
    cx.guarded(&place(&api.at), |cx| bases(gateway, api, known, cx)).flatten()
}

fn bases(gateway: &Gateway, api: &Arc<Api>, known: &[Arc<Api>], cx: &mut Compiler<'_>) -> Option<Vec<Arc<Served>>> {
    let errors = cx.errors_so_far();
    cx.begin_artifact(&format!("{}:{}", api.name, api.version));
    let mut bases = Vec::new();
    for path in [Some(&api.base_path), api.default_path.as_ref()].into_iter().flatten() {
        let mut assembly = Assembly::new(gateway, api, path, cx);
        let operations = assembly.operations.clone();
        let targets: Vec<Target> = match (&api.mcp, &api.websub) {
            (Some(_), _) => mcp::targets(&mut assembly, known),
            (None, Some(_)) => websub::targets(&mut assembly),
            (None, None) => operations.iter().map(|operation| assembly.operation(operation)).collect(),
        };
        let options = assembly.options();
        let offered = |name: &str| api.transports.is_empty() || api.transports.iter().any(|known| &**known == name);
        let path: Arc<str> = path.trim_end_matches('/').into();
        let transports = (offered("http"), offered("https"));
        bases.push(Arc::new(Served::new(Base { path, hosts: api.vhosts.clone(), transports, targets, options })));
    }
    (cx.errors_so_far() == errors).then_some(bases)
}

/// What decides which policies an operation runs, when nothing in them is the operation's own: operations with the same
/// key share their sequences.
#[derive(PartialEq, Eq, Hash)]
enum Alike {
    Operation {
        secured: bool,
        forwards_credentials: Option<bool>,
        requirements: Vec<Requirement>,
        scopes: Vec<Arc<str>>,
        is_options: bool,
    },
    /// What answers OPTIONS on paths with these methods.
    Options(Arc<str>),
}

/// One API at one base path while it is put together.
pub(crate) struct Assembly<'a, 'c, 'r> {
    pub(crate) gateway: &'a Gateway,
    pub(crate) api: &'a Arc<Api>,
    base_path: Arc<str>,
    /// What requests are routed to: the operations of the API, unless it speaks GraphQL.
    operations: Vec<Arc<Described>>,
    graphql: Option<Arc<graphql::Definition>>,
    pub(crate) cx: &'c mut Compiler<'r>,
    /// The methods of each path, with blanks between.
    methods: HashMap<Arc<str>, Arc<str>>,
    /// The template of each path, compiled.
    patterns: HashMap<Arc<str>, Arc<PathPattern>>,
    /// What operations share that are alike.
    shared: HashMap<Alike, Arc<Operation>>,
    /// Shared by all operations.
    pub(crate) frame: Operation,
}

impl<'a, 'c, 'r> Assembly<'a, 'c, 'r> {
    pub(crate) fn new(
        gateway: &'a Gateway,
        api: &'a Arc<Api>,
        base: &Arc<str>,
        cx: &'c mut Compiler<'r>,
    ) -> Assembly<'a, 'c, 'r> {
        let answer = AnswerError { config: gateway.config.clone() };
        let fault = vec![Step { mediator: Box::new(answer), kind: "error", at: place(&api.at) }];
        let frame = Operation {
            name: format!("{}:{}", api.name, api.version).into(),
            label: format!("{{api:{}}}", api.name).into(),
            fault_sequence: Some(cx.add_sequence(fault)),
            observer: Some(OperationObserver::shared(gateway)),
            at: place(&api.at),
            ..Operation::default()
        };
        let graphql = graphql::Definition::new(api, cx);
        let operations = if api.graphql.is_some() { graphql::addresses(api) } else { api.operations.clone() };
        let mut methods: HashMap<Arc<str>, String> = HashMap::new();
        for operation in &operations {
            let all = methods.entry(operation.path.clone()).or_default();
            if all.split(' ').any(|known| *known == *operation.method) {
                continue;
            }
            if !all.is_empty() {
                all.push(' ');
            }
            all.push_str(&operation.method);
        }
        let methods = methods.into_iter().map(|(path, all)| (path, all.into())).collect();
        let (patterns, shared) = (HashMap::new(), HashMap::new());
        Assembly { gateway, api, base_path: base.clone(), operations, graphql, cx, methods, patterns, shared, frame }
    }

    /// For the policies of one operation, whose path has these methods. It has no routes and no faults of its own.
    pub(crate) fn of_one(
        gateway: &'a Gateway,
        api: &'a Arc<Api>,
        (path, methods): (&Arc<str>, &str),
        cx: &'c mut Compiler<'r>,
    ) -> Assembly<'a, 'c, 'r> {
        Assembly {
            gateway,
            api,
            base_path: api.base_path.clone(),
            operations: Vec::new(),
            graphql: None,
            cx,
            methods: HashMap::from([(path.clone(), methods.into())]),
            patterns: HashMap::new(),
            shared: HashMap::new(),
            frame: Operation::default(),
        }
    }

    pub(crate) fn site(&mut self, operation: &Arc<Described>) -> Arc<Site> {
        let pattern = self.patterns.entry(operation.path.clone());
        let pattern = pattern.or_insert_with(|| Arc::new(PathPattern::parse(&operation.path))).clone();
        Arc::new(Site {
            api: self.api.clone(),
            base_path: self.base_path.clone(),
            operation: operation.clone(),
            pattern,
            methods: self.methods.get(&operation.path).cloned().unwrap_or_default(),
            graphql: self.graphql.clone(),
            counted_at: self.gateway.state.get::<OperationMetrics>().index_of(self.api, operation),
        })
    }

    fn operation(&mut self, operation: &Arc<Described>) -> Target {
        let site = self.site(operation);
        let alike = self.alike(&site);
        if let Some(shared) = alike.as_ref().and_then(|alike| self.shared.get(alike)) {
            return Target { site, operation: shared.clone() };
        }
        let target = self.own_operation(site);
        if let Some(alike) = alike {
            self.shared.insert(alike, target.operation.clone());
        }
        target
    }

    /// What an operation shares with others; `None` when something in its policies is its own.
    fn alike(&self, site: &Site) -> Option<Alike> {
        let (api, operation) = (self.api, &site.operation);
        let of_api = matches!(api.kind, ApiKind::Http | ApiKind::Soap)
            && api.implementation == Implementation::Endpoint
            && api.platform.is_none()
            && !api.schema_validation
            && api.response_cache.is_none()
            && is_empty(&api.policies)
            && self.gateway.config.limits.custom.is_empty();
        let has_own = operation.endpoints.is_some()
            || operation.lambda.is_some()
            || operation.request_interceptor.is_some()
            || operation.response_interceptor.is_some()
            || !is_empty(&operation.policies)
            || (operation.tier.is_some() && api.tier.is_none());
        (of_api && !has_own).then(|| Alike::Operation {
            secured: operation.secured,
            forwards_credentials: operation.forwards_credentials,
            requirements: operation.requirements.clone(),
            scopes: operation.scopes.clone(),
            is_options: &*operation.method == "OPTIONS",
        })
    }

    fn own_operation(&mut self, site: Arc<Site>) -> Target {
        let operation = site.operation.clone();
        let kind = ApiKinds::of_site(&site);
        let request_flow = self.request_steps(&site, kind, Phase::Client..=Phase::Backend);
        let mut response_flow = self.response_steps(&site, kind, Phase::Client..=Phase::Backend);
        response_flow.push(Step { mediator: Box::new(Respond), kind: "respond", at: place(&operation.at) });
        self.target(site, request_flow, response_flow)
    }

    /// What answers OPTIONS on each path that has no such operation.
    fn options(&mut self) -> Vec<Target> {
        if self.api.platform.is_some() {
            // There unknown operations have no handler.
            return Vec::new();
        }
        let mut seen = HashSet::new();
        let mut described = Vec::new();
        for operation in &self.operations {
            let has_options = || {
                self.methods.get(&operation.path).is_some_and(|methods| methods.split(' ').any(|one| one == "OPTIONS"))
            };
            if seen.insert(operation.path.clone()) && !has_options() {
                let (path, at) = (operation.path.clone(), operation.at.clone());
                described.push(Arc::new(Described { method: "OPTIONS".into(), path, at, ..Described::default() }));
            }
        }
        described.iter().map(|operation| self.answering_options(operation)).collect()
    }

    fn answering_options(&mut self, operation: &Arc<Described>) -> Target {
        let site = self.site(operation);
        let alike = Alike::Options(site.methods.clone());
        if let Some(shared) = self.shared.get(&alike) {
            return Target { site, operation: shared.clone() };
        }
        let mut request_flow = self.request_steps(&site, ApiKinds::OPTIONS, Phase::Client..=Phase::Backend);
        let allow = site.methods.replace(' ', ", ");
        let answer = AnswerOptions { allow: format!("OPTIONS, {allow}").into() };
        request_flow.push(Step { mediator: Box::new(answer), kind: "options", at: place(&operation.at) });
        let target = self.target(site, request_flow, Vec::new());
        self.shared.insert(alike, target.operation.clone());
        target
    }

    pub(crate) fn target(&mut self, site: Arc<Site>, request_flow: Vec<Step>, response_flow: Vec<Step>) -> Target {
        let config = &self.gateway.config;
        let answer = || -> Box<dyn Mediator> { Box::new(AnswerError { config: config.clone() }) };
        let own_faults = operation::fault_sequence(self.gateway, &site, answer, self.cx);
        let operation = Operation {
            name: self.frame.name.clone(),
            label: self.frame.label.clone(),
            in_sequence: Some(self.cx.add_sequence(request_flow)),
            out_sequence: Some(self.cx.add_sequence(response_flow)),
            fault_sequence: own_faults.or(self.frame.fault_sequence),
            observer: self.frame.observer.clone(),
            at: place(&site.operation.at),
        };
        Target { site, operation: Arc::new(operation) }
    }

    /// The steps of some phases in the request flow.
    pub(crate) fn request_steps(
        &mut self,
        site: &Arc<Site>,
        kind: ApiKinds,
        phases: RangeInclusive<Phase>,
    ) -> Vec<Step> {
        let policies = POLICIES.iter().filter(|policy| phases.contains(&policy.phase));
        policies.filter_map(|policy| self.step(site, kind, policy, policy.request)).collect()
    }

    /// The steps of the same phases in the response flow, which has the opposite order.
    pub(crate) fn response_steps(
        &mut self,
        site: &Arc<Site>,
        kind: ApiKinds,
        phases: RangeInclusive<Phase>,
    ) -> Vec<Step> {
        let policies = POLICIES.iter().rev().filter(|policy| phases.contains(&policy.phase));
        policies.filter_map(|policy| self.step(site, kind, policy, policy.response)).collect()
    }

    /// The step of a policy in one flow; `None` when it does not apply to the API or the operation does not configure it.
    pub(crate) fn step(
        &mut self,
        site: &Arc<Site>,
        kind: ApiKinds,
        policy: &PolicyKind,
        compile: Option<CompilePolicy>,
    ) -> Option<Step> {
        if !policy.applies_to.contains(kind) {
            return None;
        }
        let mut mediator = compile?(self.gateway, site, self.cx)?;
        if kind == ApiKinds::GRAPHQL {
            if policy.phase == Phase::Authentication {
                mediator = Box::new(graphql::WhenSecured(mediator));
            } else if !policy.applies_to.contains(ApiKinds::GRAPHQL_SOCKET) {
                mediator = Box::new(graphql::UnlessSocket(mediator));
            }
        }
        Some(Step { mediator, kind: policy.name, at: place(&site.operation.at) })
    }
}

fn is_empty(policies: &Policies) -> bool {
    policies.request.is_empty() && policies.response.is_empty() && policies.fault.is_empty()
}
