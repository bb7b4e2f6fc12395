//! Which service a request is for: proxy services by name, APIs by context and version.

mod api;
mod managed;
mod mapping;
mod switch;
mod template;

use std::collections::HashMap;
use std::sync::Arc;

use crate::inject::Source;
use crate::mediator::{Destination, Mediator, SequenceId};
use crate::{Place, Program};

pub use api::{Api, Pattern, Resource, ResourceMatch, ResourceQuery, TextTest, Version};
pub use managed::{Finished, Observer, Operation, Routed, Router, ServiceListing, ServiceSummary};
pub use switch::Switch;
pub use template::{UriTemplate, UriTemplateError, Variables};

/// What `binds-to` calls the HTTP and HTTPS listeners.
const DEFAULT_BINDING: &str = "default";

/// What the endpoints of a service are called when their names do not begin with its own.
const ENDPOINTS: [&str; 3] = ["SOAP11Endpoint", "SOAP12Endpoint", "HTTPEndpoint"];

/// All services of a program.
#[derive(Default)]
pub struct Routes {
    proxies: HashMap<Arc<str>, Arc<Proxy>>,
    apis: Vec<Arc<Api>>,
    /// Managed APIs, which have precedence.
    pub router: Option<Arc<dyn Router>>,
}

/// A proxy service.
#[derive(Default)]
pub struct Proxy {
    /// The name; it is reached at `/services/NAME`.
    pub name: Arc<str>,
    /// `{proxy:NAME}`, for log lines.
    pub label: Arc<str>,
    /// What requests run.
    pub in_sequence: Option<SequenceId>,
    /// What answers run.
    pub out_sequence: Option<SequenceId>,
    /// The handler of faults.
    pub fault_sequence: Option<SequenceId>,
    /// Where a request goes when the in sequence ends without an answer.
    pub endpoint: Option<Destination>,
    /// Whether it is offered over HTTP.
    pub http: bool,
    /// Whether it is offered over HTTPS.
    pub https: bool,
    /// Whether services of this process may call it (`local:///services/NAME`) when it is not offered over HTTP.
    pub local: bool,
    /// Whether it is stopped, by `startOnLoad="false"` or by an operator: requests are refused.
    pub is_stopped: Switch,
    /// Whether each of its requests has log lines.
    pub is_traced: Switch,
    /// The WSDL that `?wsdl` answers with; addresses are rewritten when it is sent.
    pub wsdl: Option<Arc<crate::Resource>>,
    /// What the WSDL imports, by the location it writes.
    pub wsdl_imports: Vec<(Arc<str>, Arc<crate::Resource>)>,
    /// The OpenAPI definition of its resources.
    pub definition: Option<Definition>,
    /// The operations the WSDL names.
    pub operations: Vec<Arc<str>>,
    /// What must hold before a request is let in (`enableSec`).
    pub gate: Option<SequenceId>,
    /// What secures a response before it leaves (`enableSec`).
    pub seal: Option<Box<dyn Mediator>>,
    /// Service parameters.
    pub parameters: Vec<(Arc<str>, Arc<str>)>,
    /// Where it was written.
    pub at: Place,
}

/// The OpenAPI definition of a service.
pub enum Definition {
    /// As an artifact publishes it, in JSON or YAML.
    Published(Arc<crate::Resource>),
    /// Made from the resources; the address of the server is added when it is sent.
    Generated(Arc<serde_json::Value>),
}

/// The service an exchange came in by.
#[derive(Clone)]
pub enum Entry {
    /// A proxy service.
    Proxy(Arc<Proxy>),
    /// A resource of an API, by its index.
    Resource(Arc<Api>, usize),
    /// An API none of whose resources runs; its handlers do.
    Api(Arc<Api>, Unserved),
    /// An operation of a managed API.
    Operation(Arc<Operation>),
    /// A source of messages that is no HTTP listener: an inbound endpoint, a task.
    Source(Arc<Source>),
    /// No service: the `main` sequence.
    Main,
}

/// Why no resource of an API runs.
#[derive(Debug, Clone, Copy)]
pub enum Unserved {
    /// None takes the request: the status that says why.
    Refused(u16),
    /// OPTIONS, which is not one of the methods of this resource: the response has `Allow`.
    Options(usize),
}

/// The route of a request.
pub enum Dispatch {
    /// A proxy service, and the rest of the path after its name.
    Proxy(Arc<Proxy>),
    /// An API.
    Api(Arc<Api>),
    /// The sequence of an inbound endpoint, `main` without a name.
    Source(Arc<Source>, Option<Arc<str>>),
    /// Nothing: `main`.
    Main,
}

impl Routes {
    /// Adds a proxy service; `false` when the name is taken.
    pub fn add_proxy(&mut self, proxy: impl Into<Arc<Proxy>>) -> bool {
        let proxy = proxy.into();
        self.proxies.insert(proxy.name.clone(), proxy).is_none()
    }

    /// Adds an API. Longer contexts are tried first, versioned before unversioned.
    pub fn add_api(&mut self, api: impl Into<Arc<Api>>) {
        let api = api.into();
        let rank = |api: &Api| (api.version.is_some(), api.context.len());
        let at = self.apis.iter().position(|other| rank(other) < rank(&api)).unwrap_or(self.apis.len());
        self.apis.insert(at, api);
    }

    /// The proxy services.
    pub fn proxies(&self) -> impl Iterator<Item = &Arc<Proxy>> {
        self.proxies.values()
    }

    /// The proxy service of a name.
    pub fn proxy(&self, name: &str) -> Option<&Arc<Proxy>> {
        self.proxies.get(name)
    }

    /// The APIs in the order they are tried.
    pub fn apis(&self) -> &[Arc<Api>] {
        &self.apis
    }

    /// Finds the service of a path (without query), as sent.
    /// `host` is called only if needed.
    pub fn dispatch<'h>(&self, path: &str, host: impl FnOnce() -> Option<&'h str>, secure: bool) -> Dispatch {
        if let Some(rest) = path.strip_prefix("/services/")
            && let Some(proxy) = self.proxy_of(rest)
        {
            return Dispatch::Proxy(proxy.clone());
        }
        let host = if self.apis.is_empty() { None } else { host() };
        let found = self.apis.iter().find(|api| api.is_bound_to(DEFAULT_BINDING) && api.takes(path, host, secure));
        found.map_or(Dispatch::Main, |api| Dispatch::Api(api.clone()))
    }

    /// The API of a path that is bound to an inbound endpoint (`binds-to`).
    pub fn api_bound_to(&self, endpoint: &str, path: &str, host: Option<&str>, secure: bool) -> Option<&Arc<Api>> {
        let is_bound = |api: &&Arc<Api>| !api.binds_to.is_empty() && api.is_bound_to(endpoint);
        self.apis.iter().filter(is_bound).find(|api| api.takes(path, host, secure))
    }

    /// A service name may contain slashes (`folder/Name`), so longer names are tried first; a dot
    /// after the name starts an endpoint name of Micro Integrator (`Name.NameHttpSoap11Endpoint`).
    fn proxy_of(&self, rest: &str) -> Option<&Arc<Proxy>> {
        let mut name = rest.trim_end_matches('/');
        loop {
            if let Some(found) = self.proxies.get(name) {
                return Some(found);
            }
            match name.rfind('/') {
                Some(slash) => name = &name[..slash],
                None => break,
            }
        }
        let (service, endpoint) = name.split_once('.')?;
        let is_endpoint = endpoint.starts_with(service) || ENDPOINTS.contains(&endpoint);
        is_endpoint.then(|| self.proxies.get(service)).flatten()
    }
}

impl Entry {
    /// Handlers that every fault of this service may reach, outermost first.
    pub fn base_handlers(&self, program: &Program) -> impl Iterator<Item = SequenceId> {
        let own = match self {
            Entry::Proxy(proxy) => proxy.fault_sequence,
            Entry::Resource(api, index) => api.resources[*index].fault_sequence,
            Entry::Operation(operation) => operation.fault_sequence,
            // After `main`'s handler: the one of the endpoint is the innermost.
            Entry::Source(source) => {
                source.on_error.as_ref().and_then(|name| program.sequence_names.get(name)).copied()
            }
            Entry::Api(..) | Entry::Main => None,
        };
        let common = program.fault.filter(|_| !matches!(self, Entry::Operation(_) | Entry::Source(_)));
        common.into_iter().chain(own)
    }

    /// What requests run.
    pub fn in_sequence(&self, program: &Program) -> Option<SequenceId> {
        match self {
            Entry::Proxy(proxy) => proxy.in_sequence,
            Entry::Resource(api, index) => api.resources[*index].in_sequence,
            Entry::Operation(operation) => operation.in_sequence,
            Entry::Api(..) | Entry::Source(_) => None,
            Entry::Main => program.main,
        }
    }

    /// What answers run.
    pub fn out_sequence(&self, program: &Program) -> Option<SequenceId> {
        match self {
            Entry::Proxy(proxy) => proxy.out_sequence,
            Entry::Resource(api, index) => api.resources[*index].out_sequence,
            Entry::Operation(operation) => operation.out_sequence,
            Entry::Api(..) => None,
            Entry::Source(_) | Entry::Main => program.main,
        }
    }

    /// Where a request goes when the in sequence ends without an answer.
    pub fn endpoint(&self) -> Option<Destination> {
        match self {
            Entry::Proxy(proxy) => proxy.endpoint.clone(),
            _ => None,
        }
    }

    /// `{api:Name}`, `{proxy:Name}` or nothing.
    pub fn label(&self) -> &str {
        match self {
            Entry::Proxy(proxy) => &proxy.label,
            Entry::Resource(api, _) | Entry::Api(api, _) => &api.label,
            Entry::Operation(operation) => &operation.label,
            Entry::Source(source) => &source.label,
            Entry::Main => "",
        }
    }

    /// The kind and name that metrics are counted under.
    pub fn metric(&self) -> Option<(&'static str, &Arc<str>)> {
        match self {
            Entry::Proxy(proxy) => Some(("proxy", &proxy.name)),
            Entry::Resource(api, _) | Entry::Api(api, _) => Some(("api", &api.name)),
            Entry::Operation(operation) => Some(("managed-api", &operation.name)),
            // Counted by what injected the message.
            Entry::Source(_) | Entry::Main => None,
        }
    }
}
