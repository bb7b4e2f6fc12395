//! Policies that come with the product, for projects that use them without carrying their definition.

use penstock_catalog::PolicyAttribute;

/// A policy that comes with the product.
pub(super) struct Builtin {
    /// Its names: the same policy is called differently for different gateways.
    names: &'static [&'static str],
    /// Its parameters.
    pub(super) attributes: &'static [Attribute],
    /// What it does.
    pub(super) work: Work,
}

/// A parameter.
pub(super) struct Attribute {
    name: &'static str,
    required: bool,
    default: Option<&'static str>,
}

/// What a policy does.
pub(super) enum Work {
    /// An action: its name, and its parameters with the attributes they are taken from.
    Action(&'static str, &'static [(&'static str, &'static str)]),
    /// A template of a Synapse sequence.
    Synapse(&'static str),
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

static BUILTINS: &[Builtin] = &[
    Builtin {
        names: &["addHeader", "setHeader", "ccAddHeader"],
        attributes: &[required("headerName"), required("headerValue")],
        work: Work::Action("SET_HEADER", &[("headerName", "headerName"), ("headerValue", "headerValue")]),
    },
    Builtin {
        names: &["removeHeader", "ccRemoveHeader"],
        attributes: &[required("headerName")],
        work: Work::Action("REMOVE_HEADER", &[("headerName", "headerName")]),
    },
    Builtin {
        names: &["renameHeader"],
        attributes: &[required("currentHeaderName"), required("updatedHeaderName")],
        work: Work::Action(
            "RENAME_HEADER",
            &[("currentHeaderName", "currentHeaderName"), ("updatedHeaderName", "updatedHeaderName")],
        ),
    },
    Builtin {
        names: &["addQueryParam"],
        attributes: &[required("paramKey"), required("paramValue")],
        work: Work::Action("ADD_QUERY", &[("queryParamName", "paramKey"), ("queryParamValue", "paramValue")]),
    },
    Builtin {
        names: &["removeQueryParam"],
        attributes: &[required("paramKey")],
        work: Work::Action("REMOVE_QUERY", &[("queryParamName", "paramKey")]),
    },
    Builtin {
        names: &["rewriteHTTPMethod", "changeHTTPMethod", "ccChangeHTTPMethod"],
        attributes: &[optional("currentMethod"), required("updatedMethod")],
        work: Work::Action(
            "REWRITE_RESOURCE_METHOD",
            &[("currentMethod", "currentMethod"), ("updatedMethod", "updatedMethod")],
        ),
    },
    Builtin {
        names: &["rewriteResourcePath"],
        attributes: &[required("newResourcePath"), or("includeQueryParams", "true")],
        work: Work::Action(
            "REWRITE_RESOURCE_PATH",
            &[("resourcePath", "newResourcePath"), ("includeQueryParams", "includeQueryParams")],
        ),
    },
    Builtin {
        names: &["callInterceptorService", "ccCallInterceptorService"],
        attributes: &[required("interceptorServiceURL"), required("includes")],
        work: Work::Action(
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
        work: Work::Action(
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
        work: Work::Action(
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
        work: Work::Synapse(r#"<property name="messageType" value="application/xml" scope="axis2"/>"#),
    },
    Builtin {
        names: &["xmlToJson", "xmlToJSON"],
        attributes: &[],
        work: Work::Synapse(r#"<property name="messageType" value="application/json" scope="axis2"/>"#),
    },
    Builtin {
        names: &["jsonFault"],
        attributes: &[],
        work: Work::Synapse(
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
        work: Work::Synapse(
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
        work: Work::Synapse(r#"<property name="DISABLE_CHUNKING" value="true" scope="axis2"/>"#),
    },
    Builtin {
        // Nothing on the way takes the field away; it is kept where policies of the answer look for it.
        names: &["preserveAcceptHeader"],
        attributes: &[],
        work: Work::Synapse(r#"<property name="PRESERVED_ACCEPT" expression="get-property('transport', 'Accept')"/>"#),
    },
];
