//! Classes of Java that policies of API Manager name, written again: one file for each kind, and the list.
//!
//! `<class name="…">` in a policy's template is compiled by the `class` mediator, which gets here what only a managed
//! API has: its operation, the caller's token, the gateway's words for errors.

mod binding;
mod guardrail;
mod json_threat;
mod masking;
mod one_time;
mod pattern_threat;
mod payload;
mod prompt;
mod settings;
mod xml_threat;

pub(crate) use json_threat::keeps_limits;
pub(in crate::policy) use settings::PolicyClasses;

use penstock_compile::{Classes, Compiler, Element};
use penstock_engine::Mediator;

use self::settings::{Compiled, Settings};
use super::step::ActionCall;

/// A class.
struct ClassKind {
    /// As templates name it.
    name: &'static str,
    compile: fn(&Settings, &PolicyClasses) -> Compiled,
}

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

impl Classes for PolicyClasses {
    fn compile(&self, name: &str, el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Option<Box<dyn Mediator>>> {
        let class = CLASSES.iter().find(|class| class.name == name)?;
        let compiled = Settings::read(el).and_then(|settings| (class.compile)(&settings, self));
        Some(compiled.map_err(|why| cx.error(el.place(), format!("the class `{name}`: {why}"))).ok())
    }
}

fn claim(settings: &Settings, classes: &PolicyClasses) -> Compiled {
    classes.action(&ActionCall::new(
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
    classes.action(&ActionCall::new("REMOVE_QUERY", [("queryParamName", settings.text("queryParamToRemove"))]))
}

fn resource_path(settings: &Settings, classes: &PolicyClasses) -> Compiled {
    let keeps_query = settings.text("includeQueryParams").unwrap_or("true");
    classes.action(&ActionCall::new(
        "REWRITE_RESOURCE_PATH",
        [("resourcePath", settings.text("resourcePath")), ("includeQueryParams", Some(keeps_query))],
    ))
}
