//! Policies that come with the product, for projects that use them without carrying their definition.

use penstock_catalog::PolicyAttribute;

/// A policy that comes with the product.
pub(super) struct Builtin {
    /// Its names: the same policy is called differently for different gateways.
    names: &'static [&'static str],
    /// Its parameters.
    pub(super) attributes: &'static [Attribute],
    /// What it does.
    pub(super) work: PolicyStep,
}

/// A parameter.
pub(super) struct Attribute {
    name: &'static str,
    required: bool,
    default: Option<&'static str>,
}

/// What a policy does.
pub(super) enum PolicyStep {
    /// An action: its name, and its parameters with the attributes they are taken from.
    Action(&'static str, &'static [(&'static str, &'static str)]),
    /// A template of a Synapse sequence.
    Synapse(&'static str),
    /// A class whose properties are the parameters.
    Class(&'static str),
}

impl Attribute {
    pub(super) fn to_catalog(&self) -> PolicyAttribute {
        PolicyAttribute {
            name: self.name.into(),
            required: self.required,
            default: self.default.map(Into::into),
            validation: None,
        }
    }
}

/// The policy of a name.
pub(super) fn find(name: &str) -> Option<&'static Builtin> {
    BUILTINS.iter().find(|builtin| builtin.names.contains(&name))
}

/// All names.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    BUILTINS.iter().flat_map(|builtin| builtin.names.iter().copied())
}

const fn required(name: &'static str) -> Attribute {
    Attribute { name, required: true, default: None }
}

const fn optional(name: &'static str) -> Attribute {
    Attribute { name, required: false, default: None }
}

const fn or(name: &'static str, default: &'static str) -> Attribute {
    Attribute { name, required: false, default: Some(default) }
}

const METHOD: &[(&str, &str)] =
    &[("currentMethod", "currentMethod"), ("updatedMethod", "updatedMethod"), ("updatedMethod", "httpMethod")];

/// The parameters of guardrails that count.
const COUNTED: &[Attribute] = &[
    required("name"),
    required("min"),
    required("max"),
    optional("jsonPath"),
    or("invert", "false"),
    or("showAssessment", "false"),
];

static BUILTINS: &[Builtin] = &[
    Builtin {
        names: &["addHeader", "setHeader", "ccAddHeader"],
        attributes: &[required("headerName"), required("headerValue")],
        work: PolicyStep::Action("SET_HEADER", &[("headerName", "headerName"), ("headerValue", "headerValue")]),
    },
    Builtin {
        names: &["removeHeader", "ccRemoveHeader"],
        attributes: &[required("headerName")],
        work: PolicyStep::Action("REMOVE_HEADER", &[("headerName", "headerName")]),
    },
    Builtin {
        names: &["renameHeader"],
        attributes: &[required("currentHeaderName"), required("updatedHeaderName")],
        work: PolicyStep::Action(
            "RENAME_HEADER",
            &[("currentHeaderName", "currentHeaderName"), ("updatedHeaderName", "updatedHeaderName")],
        ),
    },
    Builtin {
        names: &["addQueryParam", "addQueryParams"],
        attributes: &[required("paramKey"), required("paramValue")],
        work: PolicyStep::Action("ADD_QUERY", &[("queryParamName", "paramKey"), ("queryParamValue", "paramValue")]),
    },
    Builtin {
        names: &["removeQueryParam"],
        attributes: &[required("paramKey")],
        work: PolicyStep::Action("REMOVE_QUERY", &[("queryParamName", "paramKey")]),
    },
    Builtin {
        names: &["rewriteHTTPMethod", "ccChangeHTTPMethod"],
        attributes: &[optional("currentMethod"), required("updatedMethod")],
        work: PolicyStep::Action("REWRITE_RESOURCE_METHOD", METHOD),
    },
    Builtin {
        // Its parameter has one name for either gateway.
        names: &["changeHTTPMethod"],
        attributes: &[optional("currentMethod"), optional("updatedMethod"), optional("httpMethod")],
        work: PolicyStep::Action("REWRITE_RESOURCE_METHOD", METHOD),
    },
    Builtin {
        names: &["rewriteResourcePath", "ccRewriteResourcePath"],
        attributes: &[required("newResourcePath"), or("includeQueryParams", "true")],
        work: PolicyStep::Action(
            "REWRITE_RESOURCE_PATH",
            &[("resourcePath", "newResourcePath"), ("includeQueryParams", "includeQueryParams")],
        ),
    },
    Builtin {
        names: &["callInterceptorService", "ccCallInterceptorService"],
        attributes: &[required("interceptorServiceURL"), required("includes")],
        work: PolicyStep::Action(
            "CALL_INTERCEPTOR_SERVICE",
            &[("interceptorServiceURL", "interceptorServiceURL"), ("includes", "includes")],
        ),
    },
    Builtin {
        names: &["jwtClaimBasedAccessValidator"],
        attributes: &[
            required("accessVerificationClaim"),
            optional("accessVerificationClaimValue"),
            optional("accessVerificationClaimValueRegex"),
            or("shouldAllowValidation", "true"),
        ],
        work: PolicyStep::Action(
            "VALIDATE_CLAIM",
            &[
                ("claim", "accessVerificationClaim"),
                ("value", "accessVerificationClaimValue"),
                ("pattern", "accessVerificationClaimValueRegex"),
                ("allow", "shouldAllowValidation"),
            ],
        ),
    },
    Builtin {
        names: &["opaPolicy"],
        attributes: &[
            required("serverUrl"),
            optional("accessKey"),
            required("policy"),
            or("rule", "allow"),
            or("sendAccessToken", "false"),
            optional("additionalProperties"),
            or("connectionTimeout", "30"),
        ],
        work: PolicyStep::Action(
            "OPA",
            &[
                ("serverURL", "serverUrl"),
                ("accessKey", "accessKey"),
                ("policy", "policy"),
                ("rule", "rule"),
                ("sendAccessToken", "sendAccessToken"),
                ("additionalProperties", "additionalProperties"),
                ("connectionTimeout", "connectionTimeout"),
            ],
        ),
    },
    Builtin {
        names: &["jsonToXML", "jsonToXml"],
        attributes: &[],
        work: PolicyStep::Synapse(r#"<property name="messageType" value="application/xml" scope="axis2"/>"#),
    },
    Builtin {
        names: &["xmlToJson", "xmlToJSON"],
        attributes: &[],
        work: PolicyStep::Synapse(r#"<property name="messageType" value="application/json" scope="axis2"/>"#),
    },
    Builtin {
        names: &["jsonFault"],
        attributes: &[],
        work: PolicyStep::Synapse(
            r#"<payloadFactory media-type="json">
                 <format>{"code": "$1", "message": "$2", "description": "$3"}</format>
                 <args>
                   <arg expression="get-property('ERROR_CODE')"/>
                   <arg expression="get-property('ERROR_MESSAGE')"/>
                   <arg expression="get-property('ERROR_DETAIL')"/>
                 </args>
               </payloadFactory>"#,
        ),
    },
    Builtin {
        names: &["addLogMessage"],
        attributes: &[
            optional("logMessage"),
            optional("propertyName"),
            optional("propertyValue"),
            or("level", "simple"),
        ],
        work: PolicyStep::Synapse(
            r#"{% if logMessage or propertyName -%}
<log level="custom">
  {%- if logMessage %}<property name="message" value="{{ logMessage }}"/>{% endif %}
  {%- if propertyName %}<property name="{{ propertyName }}" value="{{ propertyValue }}"/>{% endif %}
</log>
{%- else -%}
<log level="{{ level }}"/>
{%- endif %}"#,
        ),
    },
    Builtin {
        names: &["disableChunking"],
        attributes: &[],
        work: PolicyStep::Synapse(r#"<property name="DISABLE_CHUNKING" value="true" scope="axis2"/>"#),
    },
    Builtin {
        names: &["preserveAcceptHeader"],
        attributes: &[],
        work: PolicyStep::Synapse(
            r#"<property name="WSO2_AM_API_ACCEPT_MESSAGE_TYPE" expression="get-property('transport', 'Accept')"/>
               <property name="Accept" scope="transport" action="remove"/>"#,
        ),
    },
    Builtin {
        names: &["applyAcceptHeader"],
        attributes: &[],
        work: PolicyStep::Synapse(
            r#"<property name="messageType" scope="axis2" expression="get-property('WSO2_AM_API_ACCEPT_MESSAGE_TYPE')"/>"#,
        ),
    },
    Builtin {
        names: &["setToHeader"],
        attributes: &[required("value")],
        work: PolicyStep::Synapse(r#"<header name="To" value="{{ value }}"/>"#),
    },
    Builtin {
        names: &["setToHeaderWS"],
        attributes: &[required("value")],
        work: PolicyStep::Synapse(
            r#"<header name="To" expression="fn:concat('{{ value }}', get-property('API_ELECTED_RESOURCE'))"/>"#,
        ),
    },
    Builtin {
        names: &["debugRequestFlow"],
        attributes: &[],
        work: PolicyStep::Synapse(
            r#"<log level="full"/>
               <log level="custom">
                 <property name="Method" expression="get-property('axis2', 'HTTP_METHOD')"/>
                 <property name="Resource" expression="get-property('axis2', 'REST_URL_POSTFIX')"/>
                 <property name="Host" expression="get-property('transport', 'Host')"/>
                 <property name="Content-Type" expression="get-property('transport', 'Content-Type')"/>
               </log>"#,
        ),
    },
    Builtin {
        names: &["debugResponseFlow"],
        attributes: &[],
        work: PolicyStep::Synapse(
            r#"<log level="full"/>
               <log level="custom">
                 <property name="Status" expression="get-property('axis2', 'HTTP_SC')"/>
                 <property name="Content-Type" expression="get-property('transport', 'Content-Type')"/>
               </log>"#,
        ),
    },
    Builtin {
        names: &["debugJsonFault"],
        attributes: &[],
        work: PolicyStep::Synapse(
            r#"<log level="custom">
                 <property name="ERROR_CODE" expression="get-property('ERROR_CODE')"/>
                 <property name="ERROR_MESSAGE" expression="get-property('ERROR_MESSAGE')"/>
                 <property name="ERROR_DETAIL" expression="get-property('ERROR_DETAIL')"/>
               </log>"#,
        ),
    },
    Builtin {
        names: &["jsonValidator"],
        attributes: &[
            or("maxPropertyCount", "100"),
            or("maxStringLength", "100"),
            or("maxArrayElementCount", "100"),
            or("maxKeyLength", "100"),
            or("maxJsonDepth", "100"),
        ],
        work: PolicyStep::Synapse(
            r#"{% for limit in [["maxPropertyCount", maxPropertyCount], ["maxStringLength", maxStringLength],
                ["maxArrayElementCount", maxArrayElementCount], ["maxKeyLength", maxKeyLength], ["maxJsonDepth", maxJsonDepth]] -%}
<property name="{{ limit[0] }}" value="{{ limit[1] }}"/>
{%- endfor %}
<class name="org.wso2.carbon.apimgt.gateway.mediators.JsonSchemaValidator"/>"#,
        ),
    },
    Builtin {
        names: &["xmlValidator"],
        attributes: &[
            or("dtdEnabled", "false"),
            or("maxXMLDepth", "100"),
            or("maxElementCount", "100"),
            or("maxAttributeCount", "100"),
            or("maxAttributeLength", "100"),
            or("maxChildrenPerElement", "100"),
        ],
        work: PolicyStep::Synapse(
            r#"<property name="xmlValidation" value="true"/>
{% for limit in [["dtdEnabled", dtdEnabled], ["maxXMLDepth", maxXMLDepth], ["maxElementCount", maxElementCount],
                ["maxAttributeCount", maxAttributeCount], ["maxAttributeLength", maxAttributeLength],
                ["maxChildrenPerElement", maxChildrenPerElement]] -%}
<property name="{{ limit[0] }}" value="{{ limit[1] }}"/>
{%- endfor %}
<class name="org.wso2.carbon.apimgt.gateway.mediators.XMLSchemaValidator"/>"#,
        ),
    },
    Builtin {
        names: &["regexPolicy"],
        attributes: &[
            or("threatType", "SQL-Injection"),
            or("regex", SQL),
            or("enabledCheckBody", "true"),
            or("enabledCheckHeaders", "true"),
            or("enabledCheckPathParams", "true"),
        ],
        work: PolicyStep::Synapse(
            r#"<property name="threatType" value="{{ threatType }}"/>
<property name="regex" value="{{ regex }}"/>
<property name="enabledCheckBody" value="{{ enabledCheckBody }}"/>
<property name="enabledCheckHeaders" value="{{ enabledCheckHeaders }}"/>
<property name="enabledCheckPathParams" value="{{ enabledCheckPathParams }}"/>
<class name="org.wso2.carbon.apimgt.gateway.mediators.RegularExpressionProtector"/>"#,
        ),
    },
    Builtin {
        names: &["validateCsrfCookie"],
        attributes: &[or("csrfCookieName", "atbv")],
        work: PolicyStep::Synapse(
            r#"<class name="org.wso2.carbon.apimgt.gateway.mediators.CrossSiteRequestForgeryValidationMediator">
                 <property name="csrfCookieName" value="{{ csrfCookieName }}"/></class>"#,
        ),
    },
    Builtin {
        names: &["revokeOneTimeToken"],
        attributes: &[or("scope", "OTT")],
        work: PolicyStep::Synapse(
            r#"<class name="org.wso2.carbon.apimgt.gateway.mediators.OneTimeTokenRevocationMediator">
                 <property name="scope" value="{{ scope }}"/></class>"#,
        ),
    },
    Builtin {
        names: &["RegexGuardrail"],
        attributes: &[
            required("name"),
            required("regex"),
            optional("jsonPath"),
            or("invert", "false"),
            or("showAssessment", "false"),
        ],
        work: PolicyStep::Class("org.wso2.apim.policies.mediation.ai.regex.guardrail.RegexGuardrail"),
    },
    Builtin {
        names: &["WordCountGuardrail"],
        attributes: COUNTED,
        work: PolicyStep::Class("org.wso2.apim.policies.mediation.ai.word.count.guardrail.WordCountGuardrail"),
    },
    Builtin {
        names: &["SentenceCountGuardrail"],
        attributes: COUNTED,
        work: PolicyStep::Class("org.wso2.apim.policies.mediation.ai.sentence.count.guardrail.SentenceCountGuardrail"),
    },
    Builtin {
        names: &["ContentLengthGuardrail"],
        attributes: COUNTED,
        work: PolicyStep::Class("org.wso2.apim.policies.mediation.ai.content.length.guardrail.ContentLengthGuardrail"),
    },
    Builtin {
        names: &["JSONSchemaGuardrail"],
        attributes: &[
            required("name"),
            required("schema"),
            optional("jsonPath"),
            or("invert", "false"),
            or("showAssessment", "false"),
        ],
        work: PolicyStep::Class("org.wso2.apim.policies.mediation.ai.json.schema.guardrail.JSONSchemaGuardrail"),
    },
    Builtin {
        names: &["PIIMaskingRegex"],
        attributes: &[required("name"), required("piiEntities"), optional("jsonPath"), or("redact", "false")],
        work: PolicyStep::Class("org.wso2.apim.policies.mediation.ai.pii.masking.regex.PIIMaskingRegex"),
    },
    Builtin {
        names: &["PromptDecorator"],
        attributes: &[required("name"), required("promptDecoratorConfig"), required("jsonPath"), or("append", "false")],
        work: PolicyStep::Class("org.wso2.apim.policies.mediation.ai.prompt.decorator.PromptDecorator"),
    },
    Builtin {
        names: &["PromptTemplate"],
        attributes: &[required("name"), required("promptTemplateConfig")],
        work: PolicyStep::Class("org.wso2.apim.policies.mediation.ai.prompt.template.PromptTemplate"),
    },
];

/// What statements of SQL begin with, and the quote that ends a text in one.
const SQL: &str = r"'|\b(?:alter|create|drop|truncate)\s+(?:table|view|database|procedure|schema)\b|\bdelete\s+from\b|\binsert\s+into\b|\bselect\s[\s\S]*\sfrom\b";
