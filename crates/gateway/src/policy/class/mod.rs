//! Classes of Java that policies of API Manager name, written again: one file for each kind, and the list.
//!
//! `<class name="…">` in a policy's template is compiled by the `class` mediator, which asks here for what only a managed
//! API has: its operation, the caller's token, the gateway's words for errors.

mod binding;
mod guardrail;
mod json_threat;
mod masking;
mod one_time;
mod pattern_threat;
mod payload;
mod prompt;
mod xml_threat;

pub(crate) use json_threat::keeps_limits;

use std::sync::Arc;

use penstock_compile::{Classes, Compiler, Element};
use penstock_engine::{Exchange, Fault, Mediator};
use penstock_json::lenient;
use serde::de::DeserializeOwned;

use super::action::{self, Call};
use super::operation::{Problem, Stage};
use crate::error::{GatewayError, codes};
use crate::{Gateway, Site};

/// A class.
struct ClassKind {
    /// As templates name it.
    name: &'static str,
    compile: fn(&Settings, &PolicyClasses) -> Compiled,
}

/// The mediator, or what is wrong with the settings.
type Compiled = Result<Box<dyn Mediator>, String>;

/// The classes there are.
const CLASSES: &[ClassKind] = &[
    ClassKind {
        name: "org.wso2.carbon.apimgt.gateway.mediators.ClaimBasedResourceAccessValidationMediator",
        compile: claim,
    },
    ClassKind { name: "org.wso2.carbon.apimgt.gateway.mediators.QueryParamMediator", compile: query_parameter },
    ClassKind { name: "org.wso2.carbon.apimgt.gateway.mediators.ResourcePathRewriteMediator", compile: resource_path },
    ClassKind {
        name: "org.wso2.carbon.apimgt.gateway.mediators.CrossSiteRequestForgeryValidationMediator",
        compile: binding::compile,
    },
    ClassKind {
        name: "org.wso2.carbon.apimgt.gateway.mediators.OneTimeTokenRevocationMediator",
        compile: one_time::compile,
    },
    ClassKind { name: "org.wso2.carbon.apimgt.gateway.mediators.JsonSchemaValidator", compile: json_threat::compile },
    ClassKind { name: "org.wso2.carbon.apimgt.gateway.mediators.XMLSchemaValidator", compile: xml_threat::compile },
    ClassKind {
        name: "org.wso2.carbon.apimgt.gateway.mediators.RegularExpressionProtector",
        compile: pattern_threat::compile,
    },
    ClassKind {
        name: "org.wso2.apim.policies.mediation.ai.regex.guardrail.RegexGuardrail",
        compile: guardrail::pattern,
    },
    ClassKind {
        name: "org.wso2.apim.policies.mediation.ai.word.count.guardrail.WordCountGuardrail",
        compile: guardrail::words,
    },
    ClassKind {
        name: "org.wso2.apim.policies.mediation.ai.sentence.count.guardrail.SentenceCountGuardrail",
        compile: guardrail::sentences,
    },
    ClassKind {
        name: "org.wso2.apim.policies.mediation.ai.content.length.guardrail.ContentLengthGuardrail",
        compile: guardrail::bytes,
    },
    ClassKind {
        name: "org.wso2.apim.policies.mediation.ai.json.schema.guardrail.JSONSchemaGuardrail",
        compile: guardrail::schema,
    },
    ClassKind {
        name: "org.wso2.apim.policies.mediation.ai.pii.masking.regex.PIIMaskingRegex",
        compile: masking::compile,
    },
    ClassKind {
        name: "org.wso2.apim.policies.mediation.ai.prompt.decorator.PromptDecorator",
        compile: prompt::decorator,
    },
    ClassKind { name: "org.wso2.apim.policies.mediation.ai.prompt.template.PromptTemplate", compile: prompt::template },
];

/// The classes for the policies of one operation.
pub(super) struct PolicyClasses {
    gateway: Gateway,
    site: Arc<Site>,
}

impl PolicyClasses {
    pub(super) fn of(gateway: &Gateway, site: &Arc<Site>) -> PolicyClasses {
        PolicyClasses { gateway: gateway.clone(), site: site.clone() }
    }

    /// A class that does what an action does.
    fn action(&self, call: &Call) -> Compiled {
        match action::compile(&self.gateway, &self.site, Stage::Request, call) {
            Ok(Some(work)) => Ok(work.mediator),
            Ok(None) => Err(format!("`{}` is no step of its own", call.action)),
            Err(Problem::Skip(why) | Problem::Unprotected(why) | Problem::Refuse(why)) => Err(why),
        }
    }
}

impl Classes for PolicyClasses {
    fn compile(&self, name: &str, el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Option<Box<dyn Mediator>>> {
        let class = CLASSES.iter().find(|class| class.name == name)?;
        let compiled = Settings::read(el).and_then(|settings| (class.compile)(&settings, self));
        Some(compiled.map_err(|why| cx.error(el.place(), format!("the class `{name}`: {why}"))).ok())
    }
}

/// The `<property>`s of a class. They come from a template, so they are known when it is compiled.
struct Settings(Vec<(String, String)>);

impl Settings {
    fn read(el: &Element<'_>) -> Result<Settings, String> {
        let mut all = Vec::new();
        for property in el.elements("property") {
            let name = property.attribute("name").unwrap_or_default();
            match property.attribute("value") {
                Some(value) => all.push((name.to_owned(), value.to_owned())),
                None if property.attribute("expression").is_some() => {
                    return Err(format!("`{name}` must have a `value`, not an expression"));
                }
                None => all.push((name.to_owned(), property.text())),
            }
        }
        Ok(Settings(all))
    }

    /// A setting that is not empty.
    fn text(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.trim().is_empty())
    }

    fn required(&self, name: &str) -> Result<&str, String> {
        self.text(name).ok_or_else(|| format!("it needs the property `{name}`"))
    }

    /// A property written in JSON. Publishers' portals write single quotes for double ones, so that the JSON can stand
    /// in an attribute: what is not JSON is read as a forgiving reader takes it.
    fn json<T: DeserializeOwned>(&self, name: &str) -> Result<T, String> {
        let text = self.required(name)?;
        serde_json::from_str(text).or_else(|strict| {
            let lenient = text.trim_start().starts_with(['{', '[']).then(|| lenient::parse(text)).flatten();
            lenient
                .and_then(|value| serde_json::from_value(value).ok())
                .ok_or_else(|| format!("`{name}` is not the JSON it is to be: {strict}"))
        })
    }

    fn flag(&self, name: &str) -> bool {
        self.text(name).is_some_and(|value| value.trim().eq_ignore_ascii_case("true"))
    }

    fn number(&self, name: &str) -> Result<usize, String> {
        let text = self.required(name)?;
        text.trim().parse().map_err(|_| format!("`{name}` is `{text}`, not a whole number"))
    }
}

fn claim(settings: &Settings, classes: &PolicyClasses) -> Compiled {
    classes.action(&Call::of(
        "VALIDATE_CLAIM",
        [
            ("claim", settings.text("accessVerificationClaim")),
            ("value", settings.text("accessVerificationClaimValue")),
            ("pattern", settings.text("accessVerificationClaimValueRegex")),
            ("allow", Some(if settings.flag("shouldAllowValidation") { "true" } else { "false" })),
        ],
    ))
}

fn query_parameter(settings: &Settings, classes: &PolicyClasses) -> Compiled {
    classes.action(&Call::of("REMOVE_QUERY", [("queryParamName", settings.text("queryParamToRemove"))]))
}

fn resource_path(settings: &Settings, classes: &PolicyClasses) -> Compiled {
    let keeps_query = settings.text("includeQueryParams").unwrap_or("true");
    classes.action(&Call::of(
        "REWRITE_RESOURCE_PATH",
        [("resourcePath", settings.text("resourcePath")), ("includeQueryParams", Some(keeps_query))],
    ))
}

/// What a client is told whose message is not let through.
fn threat(description: impl Into<Arc<str>>) -> Fault {
    GatewayError::described(codes::SCHEMA_REQUEST, description).into()
}

/// A limit that the template sets as a property of the message.
fn limit(exchange: &Exchange, name: &str) -> Result<usize, Fault> {
    let text = exchange.message.property_text(name);
    let number = text.as_deref().and_then(|text| text.trim().parse().ok());
    number.ok_or_else(|| threat(format!("The limit {name} of the policy is missing or not a number")))
}

/// Whether a property of the message is the word `true`; `otherwise` when it is not there.
fn is_on(exchange: &Exchange, name: &str, otherwise: bool) -> bool {
    exchange.message.property_text(name).map_or(otherwise, |text| text.trim().eq_ignore_ascii_case("true"))
}
