//! APIs and their resources.

use std::sync::Arc;

use penstock_message::Method;

use super::UriTemplate;
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
    /// Only requests on this port, when given.
    pub port: Option<u16>,
    /// The resources in the order they were written.
    pub resources: Vec<Resource>,
    /// What runs before any resource (`handlers`, `cors`).
    pub handlers: Vec<SequenceId>,
    /// Published definition (`publishSwagger`).
    pub swagger: Option<Arc<str>>,
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
    /// `protocol`: only over HTTP or HTTPS.
    pub secure: Option<bool>,
    /// Where it was written.
    pub at: Place,
}

/// How a resource is found.
pub enum Pattern {
    /// No pattern: whatever nothing else takes.
    Default,
    /// `url-mapping`: exact, `prefix/*` or `*.ext`.
    Mapping(Arc<str>),
    /// `uri-template`.
    Template(UriTemplate),
}

/// A request matched an API; which resource is still open.
pub struct ApiMatch {
    /// The API.
    pub api: Arc<Api>,
    /// Path and no query after the context: starts with a slash or is empty.
    pub rest: String,
}

/// What became of looking for a resource.
pub enum ResourceMatch {
    /// Found, with path and query variables by name.
    Found(usize, Vec<(Arc<str>, String)>),
    /// A path matched, its methods did not.
    MethodNotAllowed,
    /// No path matched.
    NotFound,
}

impl Api {
    /// Whether a path is this API's.
    pub(super) fn matches(api: &Arc<Api>, path: &str, host: Option<&str>, port: u16) -> Option<ApiMatch> {
        if let Some(wanted) = &api.host {
            let host = host.unwrap_or_default();
            let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
            if !name.eq_ignore_ascii_case(wanted) {
                return None;
            }
        }
        if api.port.is_some_and(|wanted| wanted != port) {
            return None;
        }
        let rest = if &*api.context == "/" { path } else { path.strip_prefix(&*api.context)? };
        (rest.is_empty() || rest.starts_with('/')).then(|| ApiMatch { api: api.clone(), rest: rest.to_owned() })
    }

    /// Finds the resource: url-mappings exact, by longest prefix, by extension; then templates in
    /// order; then the resource without a pattern.
    pub fn resource(&self, rest: &str, query: Option<&str>, method: &Method, secure: bool) -> ResourceMatch {
        let usable = |resource: &Resource| {
            (resource.methods.is_empty() || resource.methods.contains(method) || *method == Method::Options)
                && resource.secure.is_none_or(|wanted| wanted == secure)
        };
        let path = if rest.is_empty() { "/" } else { rest };
        let mut path_matched = false;
        let mut best: Option<(u32, usize)> = None;
        for (index, resource) in self.resources.iter().enumerate() {
            let Pattern::Mapping(mapping) = &resource.pattern else { continue };
            let Some(rank) = mapping_rank(mapping, path) else { continue };
            path_matched = true;
            if usable(resource) && best.is_none_or(|(other, _)| rank > other) {
                best = Some((rank, index));
            }
        }
        if let Some((_, index)) = best {
            return ResourceMatch::Found(index, Vec::new());
        }
        for (index, resource) in self.resources.iter().enumerate() {
            let Pattern::Template(template) = &resource.pattern else { continue };
            let Some(variables) = template.matches(rest, query) else { continue };
            path_matched = true;
            if usable(resource) {
                return ResourceMatch::Found(index, variables);
            }
        }
        for (index, resource) in self.resources.iter().enumerate() {
            if matches!(resource.pattern, Pattern::Default) {
                path_matched = true;
                if usable(resource) {
                    return ResourceMatch::Found(index, Vec::new());
                }
            }
        }
        if path_matched { ResourceMatch::MethodNotAllowed } else { ResourceMatch::NotFound }
    }
}

/// How well a url-mapping fits: exact before prefix (longer first) before extension.
fn mapping_rank(mapping: &str, path: &str) -> Option<u32> {
    if mapping == path || mapping.trim_end_matches('/') == path.trim_end_matches('/') {
        return Some(u32::MAX);
    }
    if let Some(prefix) = mapping.strip_suffix("/*") {
        let fits = path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        return fits.then_some(prefix.len() as u32 + 1);
    }
    let extension = mapping.strip_prefix('*')?;
    path.ends_with(extension).then_some(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn api(patterns: &[(&str, &[Method])]) -> Api {
        let resources = patterns
            .iter()
            .map(|(pattern, methods)| Resource {
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
                at: Place::default(),
            })
            .collect();
        Api { context: "/a".into(), resources, ..Api::default() }
    }

    fn which(api: &Api, path: &str, method: Method) -> String {
        match api.resource(path, None, &method, false) {
            ResourceMatch::Found(index, _) => index.to_string(),
            ResourceMatch::MethodNotAllowed => "405".into(),
            ResourceMatch::NotFound => "404".into(),
        }
    }

    #[test]
    fn mappings_go_before_templates_and_the_longest_prefix_wins() {
        let api = api(&[
            ("/{x}/y", &[]),
            ("map:/orders/*", &[]),
            ("map:/orders/open/*", &[Method::Get]),
            ("map:*.json", &[]),
            ("map:/orders", &[]),
        ]);
        for (path, expected) in [
            ("/orders", "4"),
            ("/orders/7", "1"),
            ("/orders/open/7", "2"),
            ("/z.json", "3"),
            ("/q/y", "0"),
            ("/q", "404"),
        ] {
            assert_eq!(which(&api, path, Method::Get), expected, "{path}");
        }
    }

    #[test]
    fn a_known_path_with_another_method_is_405_and_options_is_always_taken() {
        let api = api(&[("/x", &[Method::Post])]);
        assert_eq!(which(&api, "/x", Method::Get), "405");
        assert_eq!(which(&api, "/x", Method::Options), "0");
        assert_eq!(which(&api, "/y", Method::Post), "404");
    }
}
