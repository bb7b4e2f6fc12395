//! APIs and their resources.

use std::sync::Arc;

use penstock_message::Method;

use super::template::Variables;
use super::{Switch, UriTemplate, mapping};
use crate::Place;
use crate::mediator::SequenceId;

/// A REST API.
#[derive(Default)]
pub struct Api {
    /// The name, `name:vVERSION` when it has a version.
    pub name: Arc<str>,
    /// `{api:NAME}`, for log lines.
    pub label: Arc<str>,
    /// The context with a leading and no trailing slash; the version is part of it.
    pub context: Arc<str>,
    /// The version.
    pub version: Option<Version>,
    /// Only requests for this host, when given.
    pub host: Option<Arc<str>>,
    /// Only requests that name this port in their Host, when given.
    pub port: Option<u16>,
    /// `transports`: only over HTTP (`false`) or HTTPS.
    pub secure: Option<bool>,
    /// `binds-to`: the inbound endpoints it is offered over, `default` for the HTTP and HTTPS listeners. Empty: those.
    pub binds_to: Vec<Arc<str>>,
    /// The resources in the order they were written.
    pub resources: Vec<Resource>,
    /// What runs before any resource (`handlers`, `cors`).
    pub handlers: Vec<SequenceId>,
    /// Published definition (`publishSwagger`).
    pub swagger: Option<Arc<str>>,
    /// Whether each of its requests has log lines.
    pub is_traced: Switch,
    /// Where it was written.
    pub at: Place,
}

/// An API's version.
#[derive(Debug, Clone)]
pub struct Version {
    /// The text.
    pub text: Arc<str>,
}

/// A resource of an API.
pub struct Resource {
    /// Methods; empty means any.
    pub methods: Vec<Method>,
    /// The path it answers.
    pub pattern: Pattern,
    /// What requests run.
    pub in_sequence: Option<SequenceId>,
    /// What answers run.
    pub out_sequence: Option<SequenceId>,
    /// The handler of faults.
    pub fault_sequence: Option<SequenceId>,
    /// `protocol`: only over HTTP (`false`) or HTTPS.
    pub secure: Option<bool>,
    /// `content-type`: only bodies that say exactly this.
    pub content_type: Option<Arc<str>>,
    /// `user-agent`: only clients whose name fits.
    pub user_agent: Option<TextTest>,
    /// Where it was written.
    pub at: Place,
}

/// Whether a text fits.
pub type TextTest = Box<dyn Fn(&str) -> bool + Send + Sync>;

/// The properties of a request that select a resource.
pub struct ResourceQuery<'a> {
    /// Its method.
    pub method: &'a Method,
    /// Whether it came over TLS.
    pub secure: bool,
    /// Its Content-Type; only a body has one that counts.
    pub content_type: Option<&'a str>,
    /// Whether it has a body.
    pub has_body: bool,
    /// Its User-Agent.
    pub user_agent: Option<&'a str>,
}

/// How a resource is found.
pub enum Pattern {
    /// No pattern: matches what no other resource matches.
    Default,
    /// `url-mapping`: exact, `prefix/*` or `*.ext`.
    Mapping(Arc<str>),
    /// `uri-template`.
    Template(UriTemplate),
}

/// What became of looking for a resource.
pub enum ResourceMatch {
    /// Found, with the variables of its path.
    Found(usize, Variables),
    /// No resource takes requests with that method; the path fits one.
    MethodNotAllowed,
    /// The path fits a resource that takes the method, but not such a request.
    BadRequest,
    /// No path matched.
    NotFound,
}

/// What `Allow` says for a resource without methods of its own, as Micro Integrator says it.
const ALL_METHODS: &str = "GET, POST, PUT, DELETE";

impl Api {
    /// Whether it is offered over an inbound endpoint, or over `default`.
    pub(super) fn is_bound_to(&self, name: &str) -> bool {
        match self.binds_to.as_slice() {
            [] => name == super::DEFAULT_BINDING,
            bound => bound.iter().any(|endpoint| **endpoint == *name),
        }
    }

    /// Whether a request is this API's. `path` has no query; `host` is what the Host field says.
    pub(super) fn takes(&self, path: &str, host: Option<&str>, secure: bool) -> bool {
        let rest = if &*self.context == "/" { Some(path) } else { path.strip_prefix(&*self.context) };
        let Some(rest) = rest else { return false };
        (rest.is_empty() || rest.starts_with('/'))
            && self.secure.is_none_or(|wanted| wanted == secure)
            && ((self.host.is_none() && self.port.is_none()) || self.is_at(host, secure))
    }

    /// Whether the Host field names this API's host and port.
    fn is_at(&self, host: Option<&str>, secure: bool) -> bool {
        let Some(host) = host else { return false };
        let (name, port) = host.rsplit_once(':').map_or((host, None), |(name, port)| (name, Some(port)));
        let port = match port {
            Some(port) => port.parse().ok(),
            None => Some(if secure { 443 } else { 80 }),
        };
        self.host.as_deref().is_none_or(|wanted| wanted.eq_ignore_ascii_case(name))
            && self.port.is_none_or(|wanted| port == Some(wanted))
    }

    /// What stands after the context in a target, query included.
    pub fn sub_path<'t>(&self, target: &'t str) -> &'t str {
        if &*self.context == "/" { target } else { target.strip_prefix(&*self.context).unwrap_or(target) }
    }

    /// Finds the resource: url-mappings exact, by longest prefix, by extension; then templates in
    /// order; then the resource without a pattern. Only those that take such a request are looked at;
    /// why there was none is said of all, and only when the API has none for such a request at all.
    pub fn resource(&self, sub_path: &str, query: &ResourceQuery<'_>) -> ResourceMatch {
        let sub_path = if sub_path.is_empty() { "/" } else { sub_path };
        let takes = |resource: &Resource| resource.takes(query);
        if let Some((index, variables)) = self.find(sub_path, takes) {
            return ResourceMatch::Found(index, variables);
        }
        if self.resources.iter().any(takes) {
            return ResourceMatch::NotFound;
        }
        match self.find(sub_path, |_| true) {
            None => ResourceMatch::NotFound,
            Some((index, _)) if self.resources[index].has_method(query.method) => ResourceMatch::BadRequest,
            Some(_) => ResourceMatch::MethodNotAllowed,
        }
    }

    fn find(&self, sub_path: &str, wanted: impl Fn(&Resource) -> bool) -> Option<(usize, Variables)> {
        let among = || self.resources.iter().enumerate().filter(|(_, resource)| wanted(resource));
        let mappings = among().filter_map(|(index, resource)| match &resource.pattern {
            Pattern::Mapping(mapping) => Some((index, &**mapping)),
            _ => None,
        });
        if let Some(index) = mapping::find(mappings, sub_path) {
            return Some((index, Vec::new()));
        }
        let by_template = |path: &str| {
            among().find_map(|(index, resource)| match &resource.pattern {
                Pattern::Template(template) => Some((index, template.matches(path)?)),
                _ => None,
            })
        };
        let is_default = |(_, resource): &(usize, &Resource)| matches!(resource.pattern, Pattern::Default);
        by_template(sub_path)
            .or_else(|| among().find(is_default).map(|(index, _)| (index, Vec::new())))
            // Micro Integrator does not take `/context?a=1` for the resource `/`; here it does.
            .or_else(|| if sub_path.starts_with('?') { by_template(&format!("/{sub_path}")) } else { None })
    }
}

impl Resource {
    /// Whether the resource takes requests like that. OPTIONS is always welcome.
    fn takes(&self, query: &ResourceQuery<'_>) -> bool {
        let of_the_type = || match &self.content_type {
            Some(wanted) if query.has_body => query.content_type == Some(wanted),
            _ => true,
        };
        let from_the_agent = || match &self.user_agent {
            Some(fits) => query.user_agent.is_some_and(fits),
            None => true,
        };
        self.secure.is_none_or(|wanted| wanted == query.secure)
            && (*query.method == Method::Options || self.has_method(query.method) && of_the_type() && from_the_agent())
    }

    fn has_method(&self, method: &Method) -> bool {
        *method == Method::Options || self.methods.is_empty() || self.methods.contains(method)
    }

    /// Whether OPTIONS is one of its methods, so that its sequence answers.
    pub fn answers_options(&self) -> bool {
        self.methods.contains(&Method::Options)
    }

    /// What the resource says in `Allow`.
    pub fn allowed(&self) -> String {
        if self.methods.is_empty() {
            return ALL_METHODS.to_owned();
        }
        let names: Vec<&str> =
            self.methods.iter().filter(|method| **method != Method::Options).map(Method::as_str).collect();
        names.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(pattern: &str, methods: &[Method]) -> Resource {
        Resource {
            methods: methods.to_vec(),
            pattern: match pattern.strip_prefix("map:") {
                Some(mapping) => Pattern::Mapping(mapping.into()),
                None if pattern.is_empty() => Pattern::Default,
                None => Pattern::Template(UriTemplate::parse(pattern).unwrap()),
            },
            in_sequence: None,
            out_sequence: None,
            fault_sequence: None,
            secure: None,
            content_type: None,
            user_agent: None,
            at: Place::default(),
        }
    }

    fn api(patterns: &[(&str, &[Method])]) -> Api {
        let resources = patterns.iter().map(|(pattern, methods)| resource(pattern, methods)).collect();
        Api { context: "/a".into(), resources, ..Api::default() }
    }

    fn which(api: &Api, path: &str, method: Method) -> String {
        let query = ResourceQuery {
            method: &method,
            secure: false,
            content_type: Some("text/plain"),
            has_body: method == Method::Post,
            user_agent: None,
        };
        match api.resource(path, &query) {
            ResourceMatch::Found(index, _) => index.to_string(),
            ResourceMatch::MethodNotAllowed => "405".into(),
            ResourceMatch::BadRequest => "400".into(),
            ResourceMatch::NotFound => "404".into(),
        }
    }

    #[test]
    fn mappings_go_before_templates_and_these_before_the_default() {
        let api = api(&[("", &[]), ("/{x}/y", &[]), ("map:/orders/*", &[]), ("map:/orders", &[])]);
        for (path, expected) in [("/orders", "3"), ("/orders/y", "2"), ("/q/y?a=1", "1"), ("/q", "0"), ("", "0")] {
            assert_eq!(which(&api, path, Method::Get), expected, "{path}");
        }
    }

    #[test]
    fn a_path_that_no_resource_for_the_method_takes_is_405_only_when_there_is_no_resource_for_the_method() {
        let post = api(&[("/x", &[Method::Post])]);
        assert_eq!(which(&post, "/x", Method::Get), "405");
        assert_eq!(which(&post, "/x", Method::Options), "0");
        assert_eq!(which(&post, "/y", Method::Get), "404");
        let both = api(&[("/x", &[Method::Post]), ("/z", &[Method::Get])]);
        assert_eq!(which(&both, "/x", Method::Get), "404");
        assert_eq!(which(&both, "/x", Method::Put), "405");
    }

    #[test]
    fn resources_may_ask_for_a_type_of_body() {
        let mut api = api(&[("/x", &[Method::Post, Method::Get])]);
        api.resources[0].content_type = Some("application/json".into());
        assert_eq!(which(&api, "/x", Method::Post), "400");
        assert_eq!(which(&api, "/x", Method::Get), "0");
        api.resources[0].content_type = None;
        api.resources[0].user_agent = Some(Box::new(|agent| agent == "curl"));
        assert_eq!(which(&api, "/x", Method::Get), "400");
    }

    #[test]
    fn the_root_of_an_api_may_have_a_query() {
        let api = api(&[("/", &[]), ("/x", &[])]);
        assert_eq!(which(&api, "", Method::Get), "0");
        assert_eq!(which(&api, "?a=1", Method::Get), "0");
    }

    #[test]
    fn the_host_field_says_host_and_port() {
        let api = Api { context: "/a".into(), host: Some("h".into()), port: Some(8290), ..Api::default() };
        assert!(api.takes("/a", Some("H:8290"), false));
        assert!(!api.takes("/a", Some("h"), false));
        assert!(!api.takes("/a", Some("other:8290"), false));
        assert!(!api.takes("/a", None, false));
        let secure = Api { context: "/a".into(), port: Some(443), ..Api::default() };
        assert!(secure.takes("/a/b", Some("h"), true));
        assert!(!secure.takes("/ab", Some("h"), true));
    }
}
