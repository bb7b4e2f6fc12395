//! `REWRITE_RESOURCE_PATH`: another path, which may repeat parameters of the one that was called.

use std::sync::Arc;

use penstock_catalog::path::has_dot_segment;
use penstock_engine::{Exchange, Fault, Flow, Mediator};

use super::super::step::Problem;
use crate::error::{GatewayError, codes};
use crate::{CallContext, client_request, text};

/// Gives a request another path below its API.
#[derive(Debug)]
pub(super) struct Rewrite {
    parts: Vec<PathPart>,
    keeps_query: bool,
}

#[derive(Debug)]
enum PathPart {
    Text(String),
    /// A parameter of the path template, by its index.
    Parameter(usize),
}

impl Rewrite {
    /// Reads a path. A parameter that the called path does not have refuses the API: every request would go astray.
    pub(super) fn parse(template: &str, keeps_query: bool, known: &[Arc<str>]) -> Result<Rewrite, Problem> {
        let mut parts = Vec::new();
        let mut rest = template.trim();
        if !rest.starts_with('/') {
            parts.push(PathPart::Text("/".into()));
        }
        if rest.bytes().any(|byte| byte <= 0x20 || byte == 0x7f) {
            return Err(Problem::Refuse(format!("the path `{template}` holds white space")));
        }
        while let Some((text, after)) = rest.split_once('{') {
            let Some((name, after)) = after.split_once('}') else {
                return Err(Problem::Refuse(format!("the path `{template}` has `{{` without `}}`")));
            };
            let name = name.trim();
            let name = name.strip_prefix("uri.var.").unwrap_or(name);
            let Some(index) = known.iter().position(|known| **known == *name) else {
                return Err(Problem::Refuse(format!(
                    "the path `{template}` names the parameter `{name}`, which the operation's path does not have"
                )));
            };
            parts.push(PathPart::Text(text.to_owned()));
            parts.push(PathPart::Parameter(index));
            rest = after;
        }
        parts.push(PathPart::Text(rest.to_owned()));
        Ok(Rewrite { parts, keeps_query })
    }

    fn fill(&self, values: &[String], query: Option<&str>) -> String {
        let mut path = String::new();
        for part in &self.parts {
            match part {
                PathPart::Text(text) => path.push_str(text),
                PathPart::Parameter(index) => {
                    let in_query = path.contains('?');
                    text::push_path_value(&mut path, values.get(*index).map_or("", String::as_str), in_query);
                }
            }
        }
        if let Some(query) = query.filter(|query| self.keeps_query && !query.is_empty()) {
            path.push(if path.contains('?') { '&' } else { '?' });
            path.push_str(query);
        }
        path
    }
}

impl Mediator for Rewrite {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let target = now(exchange)?;
        let query = target.split_once('?').map(|(_, query)| query);
        let context = CallContext::of(exchange)?;
        let path = self.fill(&context.path_values, query);
        if has_dot_segment(path.split('?').next().unwrap_or_default()) {
            return Err(GatewayError::new(codes::NOT_FOUND).into());
        }
        put(exchange, path);
        Ok(Flow::Next)
    }
}

/// Path and query below the API, as policies before left them.
pub(super) fn now(exchange: &Exchange) -> Result<String, Fault> {
    let context = CallContext::of(exchange)?;
    Ok(client_request::below_now(exchange, &context.site).to_owned())
}

/// Replaces path and query.
pub(super) fn put(exchange: &mut Exchange, target: String) {
    exchange.message.url_postfix = Some(target.into());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_filled() {
        let known: Vec<Arc<str>> = vec!["x".into(), "y".into()];
        let values = ["1 2".replace(' ', "%20"), "b".into()];
        for (template, keeps, query, expected) in [
            ("/new", true, Some("a=1"), "/new?a=1"),
            ("/new", false, Some("a=1"), "/new"),
            ("new/{y}.z/{uri.var.x}", true, None, "/new/b.z/1%20"),
            ("/new?k=v", true, Some("a=1"), "/new?k=v&a=1"),
            ("/new?k={y}", true, Some("a=1"), "/new?k=b&a=1"),
        ] {
            let expected = expected.replace("1%20", "1%202");
            let rewrite = Rewrite::parse(template, keeps, &known).ok().expect(template);
            assert_eq!(rewrite.fill(&values, query), expected, "{template}");
        }
        let query = Rewrite::parse("/{x}?k={x}&l=1", false, &known).ok().expect("a template");
        assert_eq!(query.fill(&["1&l=2;m+n".into()], None), "/1&l=2;m+n?k=1%26l%3D2%3Bm%2Bn&l=1");
        for template in ["/a/{z}", "/a/{x", "/a b"] {
            assert!(matches!(Rewrite::parse(template, true, &known), Err(Problem::Refuse(_))), "{template}");
        }
    }
}
