//! `<http method="…" uri-template="…">`.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use penstock_engine::endpoint::{Format, Leaf, Target, TokenSource};
use penstock_engine::{Exchange, Fault};
use penstock_message::Method;

use super::{UrlTemplate, url_check};
use crate::expression::Text;
use crate::{Compiler, Element};

struct Http {
    template: UrlTemplate,
    method: Option<Method>,
    basic: Option<(Text, Text)>,
}

/// Compiles an http endpoint, and where its tokens come from.
pub(super) fn compile(cx: &mut Compiler<'_>, el: &Element<'_>) -> Option<(Box<dyn Leaf>, Option<TokenSource>)> {
    let template = el.required(cx, "uri-template")?;
    let template = super::policy::configured(cx, template, &el.attribute_place("uri-template"));
    url_check::report(cx, &template, &el.attribute_place("uri-template"));
    let template = UrlTemplate::compile(cx, el, &template, el.attribute_place("uri-template"))?;
    let method =
        el.attribute("method").filter(|method| !method.is_empty()).map(|method| Method::parse(&method.to_uppercase()));
    el.attribute("statistics");
    let mut basic = None;
    let mut token = None;
    if let Some(authentication) = el.child("authentication") {
        for kind in authentication.children() {
            match kind.name() {
                "basicAuth" => {
                    let mut part = |name: &'static str| {
                        let text = kind.child_text(name).unwrap_or_default();
                        let text = super::policy::configured(cx, &text, &kind.place());
                        Text::compile(cx, &kind, &text, kind.place())
                    };
                    basic = part("username").zip(part("password"));
                }
                "oauth" => token = Some(super::oauth::compile(cx, &kind)?),
                other => {
                    kind.accept_all();
                    // A backend called without its credentials rejects requests without a clear reason.
                    cx.error(
                        kind.place(),
                        format!("the endpoint authentication <{other}> is not one of basicAuth, oauth"),
                    );
                }
            }
        }
    }
    Some((Box::new(Http { template, method, basic }), token))
}

impl Leaf for Http {
    fn target(&self, exchange: &mut Exchange) -> Result<Target, Fault> {
        let url: Arc<str> = self.template.expand(exchange)?.into();
        let mut headers = Vec::new();
        if let Some((user, password)) = &self.basic {
            let pair = format!("{}:{}", user.text(exchange)?, password.text(exchange)?);
            headers.push(("Authorization".into(), format!("Basic {}", BASE64.encode(pair)).into()));
        }
        // With a method of its own the endpoint is a resource of its own: no postfix.
        Ok(Target {
            url,
            method: self.method.clone(),
            format: Format::Rest,
            append_postfix: self.method.is_none(),
            headers,
            tls: None,
            addressing: None,
        })
    }
}
