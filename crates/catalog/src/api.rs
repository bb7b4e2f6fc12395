//! An API and its operations.

use std::sync::Arc;
use std::time::Duration;

use crate::{At, ChainStep, Endpoints, LambdaAccess, LambdaFunction, Limit, McpServer, Platform, WebSub};

/// An API in one version.
#[derive(Debug, Clone, Default)]
pub struct Api {
    /// The name.
    pub name: Arc<str>,
    /// The version.
    pub version: Arc<str>,
    /// Where it is served: a leading and no trailing slash, the version included when it is part
    /// of the path.
    pub base_path: Arc<str>,
    /// Where it is served besides, as the default version: the context without the version.
    pub default_path: Option<Arc<str>>,
    /// The hosts it is served on; empty means every host.
    pub vhosts: Vec<Arc<str>>,
    /// `organizationId`, empty when nothing says.
    pub organization: Arc<str>,
    /// Who published it.
    pub provider: Arc<str>,
    /// What it speaks.
    pub kind: ApiKind,
    /// Whether it may be called.
    pub lifecycle: Lifecycle,
    /// Who answers.
    pub implementation: Implementation,
    /// Which credentials it takes.
    pub security: Schemes,
    /// The header field that carries the token; `authorization` when absent.
    pub authorization_header: Option<Arc<str>>,
    /// The header field that carries the API key; `apikey` when absent.
    pub api_key_header: Option<Arc<str>>,
    /// Audiences of which a token must name one; empty means any.
    pub audiences: Vec<Arc<str>>,
    /// The issuers whose tokens count, by the names of the configuration; empty means all.
    pub key_managers: Vec<Arc<str>>,
    /// Certificates of clients that are let in, with the plan each brings.
    pub client_certificates: Vec<ClientCertificate>,
    /// Certificates of backends, in PEM.
    pub endpoint_certificates: Vec<Arc<[u8]>>,
    /// Certificates of interceptor services, in PEM.
    pub interceptor_certificates: Vec<Arc<[u8]>>,
    /// Backends, those of operations excepted.
    pub endpoints: Endpoints,
    /// Rules for browsers; the gateway's own when absent.
    pub cors: Option<Cors>,
    /// `x-wso2-throttling-tier`, `apiThrottlingPolicy`.
    pub tier: Option<Arc<str>>,
    /// Plans a subscription may have.
    pub subscription_plans: Vec<Arc<str>>,
    /// Transports it is offered on; empty means all (`http`, `https`).
    pub transports: Vec<Arc<str>>,
    /// Operation policies of every operation (`apiPolicies`).
    pub policies: Policies,
    /// Whether requests and answers are checked against the definition.
    pub schema_validation: bool,
    /// How long answers may be reused, when they may.
    pub response_cache: Option<Duration>,
    /// The most requests its backends take: production, sandbox.
    pub backend_limit: (Option<Limit>, Option<Limit>),
    /// The operations, in the order they were written.
    pub operations: Vec<Arc<Operation>>,
    /// The tools of an MCP server.
    pub mcp: Option<Arc<McpServer>>,
    /// The topics of a hub.
    pub websub: Option<Arc<WebSub>>,
    /// The definition as it was imported; clients can fetch it.
    pub definition: Option<Arc<[u8]>>,
    /// What [`ApiKind::GraphQl`] is about. Its operations have the verb of a query (`QUERY`, `MUTATION`) for a method
    /// and the name of a field for a path.
    pub graphql: Option<Arc<GraphQl>>,
    /// What an API of the API Platform has besides.
    pub platform: Option<Arc<Platform>>,
    /// What of AWS its functions may use.
    pub lambda: Option<LambdaAccess>,
    /// Where it was written.
    pub at: At,
}

/// Operations and complexities of a GraphQL API.
#[derive(Debug, Clone, Default)]
pub struct GraphQl {
    /// The schema, in the language of schemas.
    pub schema: Arc<str>,
    /// Type, field, and what the field counts for the complexity of a query; one when a field is not among them.
    pub costs: Vec<(Arc<str>, Arc<str>, u32)>,
    /// The schema's file.
    pub at: At,
}

/// Operation policies by flow.
pub type Policies = Flows<Vec<PolicyUse>>;

/// Something for each flow.
#[derive(Debug, Clone, Default)]
pub struct Flows<T> {
    /// On the way to the backend.
    pub request: T,
    /// On the way to the client.
    pub response: T,
    /// When something failed.
    pub fault: T,
}

/// What an API speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ApiKind {
    /// Requests and answers by path and method.
    #[default]
    Http,
    /// SOAP messages, passed through.
    Soap,
    /// GraphQL.
    GraphQl,
    /// WebSocket.
    WebSocket,
    /// The Model Context Protocol.
    Mcp,
    /// A hub of WebSub.
    WebSub,
    /// Server-sent events: answers that are streams of events, each of which counts.
    Sse,
}

/// The states of an API's life in which it is deployed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Lifecycle {
    /// Made, and not published; a gateway that gets it serves it.
    Created,
    /// Served without credentials.
    Prototyped,
    /// Served.
    #[default]
    Published,
    /// Refused with 700700.
    Blocked,
    /// Served; new subscriptions are not taken.
    Deprecated,
    /// Not served any more.
    Retired,
}

/// Who answers an API's requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Implementation {
    /// Its endpoints.
    #[default]
    Endpoint,
    /// The examples of its definition.
    Mock,
    /// The scripts of its definition.
    Inline,
}

/// Which credentials an API takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schemes {
    /// Tokens (`oauth2`).
    pub oauth2: bool,
    /// API keys.
    pub api_key: bool,
    /// Name and password.
    pub basic: bool,
    /// Client certificates.
    pub mutual_tls: SecurityMode,
    /// Whether one of token, key and password must be given when a certificate was.
    pub application: SecurityMode,
}

impl Default for Schemes {
    fn default() -> Schemes {
        Schemes {
            oauth2: true,
            api_key: false,
            basic: false,
            mutual_tls: SecurityMode::Off,
            application: SecurityMode::Mandatory,
        }
    }
}

/// Whether it is required.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SecurityMode {
    /// Not at all.
    #[default]
    Off,
    /// Taken when it is given.
    Optional,
    /// Required.
    Mandatory,
}

/// A client's certificate that an API lets in.
#[derive(Debug, Clone)]
pub struct ClientCertificate {
    /// Its name in the project.
    pub alias: Arc<str>,
    /// PEM or DER, as it was given.
    pub certificate: Arc<[u8]>,
    /// The plan it brings.
    pub tier: Option<Arc<str>>,
    /// Whether it is for the sandbox, when it says which of both it is for.
    pub sandbox: Option<bool>,
}

/// A header field that a request must have to be for an operation.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HeaderMatch {
    /// Its name.
    pub name: Arc<str>,
    /// Its value, or a regular expression for the whole value.
    pub value: Arc<str>,
    /// Whether it is an expression.
    pub is_pattern: bool,
}

/// Timeouts of an operation; zero means none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Resilience {
    /// For the backend's whole answer.
    pub timeout: Option<Duration>,
    /// Between two pieces of it.
    pub idle_timeout: Option<Duration>,
}

/// One method on one path template.
#[derive(Debug, Clone, Default)]
pub struct Operation {
    /// In upper case.
    pub method: Arc<str>,
    /// The path template below the base path, as it was written: `/pet/{petId}`, `/*`.
    pub path: Arc<str>,
    /// `operationId`.
    pub id: Option<Arc<str>>,
    /// Whether credentials are required.
    pub secured: bool,
    /// Whether the client's credentials are forwarded, if the definition sets it.
    pub forwards_credentials: Option<bool>,
    /// The accepted credentials, any one of them, if the definition sets them.
    pub requirements: Vec<Requirement>,
    /// Scopes of which a token must have one; empty means none is required.
    pub scopes: Vec<Arc<str>>,
    /// `x-wso2-throttling-tier`, `throttlingPolicy`.
    pub tier: Option<Arc<str>>,
    /// Backends of its own.
    pub endpoints: Option<Endpoints>,
    /// Where a topic of a WebSocket API is at the backend: path and query with `{parameter}`s of the path.
    pub uri_mapping: Option<Arc<str>>,
    /// The interceptor of the request flow.
    pub request_interceptor: Option<Interceptor>,
    /// The interceptor of the response flow.
    pub response_interceptor: Option<Interceptor>,
    /// Operation policies by flow.
    pub policies: Policies,
    /// The policies of an API of the API Platform, in their order.
    pub chain: Vec<Arc<ChainStep>>,
    /// Header fields that a request must have besides method and path; all of them.
    pub header_matches: Vec<HeaderMatch>,
    /// Timeouts of its own.
    pub resilience: Resilience,
    /// Examples, for [`Implementation::Mock`].
    pub mock: Vec<MockResponse>,
    /// What computes answers, for [`Implementation::Inline`]: JavaScript, and where it stands.
    pub script: Option<(Arc<str>, At)>,
    /// The function that is the backend.
    pub lambda: Option<LambdaFunction>,
    /// Where it was written.
    pub at: At,
}

/// One entry of `security` in a definition.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Requirement {
    /// A token, with scopes of which it must have one.
    OAuth2(Vec<Arc<str>>),
    /// An API key in a header field.
    ApiKeyHeader(Arc<str>),
    /// An API key in a query parameter.
    ApiKeyQuery(Arc<str>),
    /// Name and password.
    Basic,
    /// Nothing: `security: []` or `{}`.
    Nothing,
}

/// Rules for browsers on other sites.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cors {
    /// Whether they are applied.
    pub enabled: bool,
    /// Origins; `*` matches any text within one.
    pub origins: Vec<Arc<str>>,
    /// Methods.
    pub methods: Vec<Arc<str>>,
    /// Header fields of requests.
    pub headers: Vec<Arc<str>>,
    /// Header fields of answers that scripts may read.
    pub expose_headers: Vec<Arc<str>>,
    /// Whether credentials may be sent.
    pub credentials: bool,
}

impl Cors {
    /// These policies, with the lists of `others` where a list is empty.
    pub fn with_lists_of(&self, others: &Cors) -> Cors {
        let or = |own: &Vec<Arc<str>>, other: &Vec<Arc<str>>| if own.is_empty() { other.clone() } else { own.clone() };
        Cors {
            enabled: self.enabled,
            origins: or(&self.origins, &others.origins),
            methods: or(&self.methods, &others.methods),
            headers: or(&self.headers, &others.headers),
            expose_headers: or(&self.expose_headers, &others.expose_headers),
            credentials: self.credentials,
        }
    }
}

/// An interceptor service of one flow.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Interceptor {
    /// Scheme, host and port; a path is not used.
    pub service_url: Arc<str>,
    /// What is sent to it.
    pub includes: Vec<InterceptorPart>,
    /// For connecting.
    pub connect_timeout: Option<Duration>,
    /// For its answer.
    pub request_timeout: Option<Duration>,
    /// Whether requests go on as they are when the service fails (`passthroughOnError`); the gateway's own rule when
    /// absent.
    pub passthrough_on_error: Option<bool>,
    /// Where it was written.
    pub at: At,
}

/// A part of an exchange that is sent to an interceptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InterceptorPart {
    /// `request_headers`
    RequestHeaders,
    /// `request_body`
    RequestBody,
    /// `request_trailers`
    RequestTrailers,
    /// `response_headers`
    ResponseHeaders,
    /// `response_body`
    ResponseBody,
    /// `response_trailers`
    ResponseTrailers,
    /// `invocation_context`
    InvocationContext,
}

/// An operation policy at work: which, and with what parameters.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PolicyUse {
    /// `policyName`.
    pub name: Arc<str>,
    /// `policyVersion`.
    pub version: Arc<str>,
    /// Parameters in the order given, values as text.
    pub parameters: Vec<(Arc<str>, Arc<str>)>,
    /// What it is by definition, when the project has one.
    pub definition: Option<Arc<PolicyDefinition>>,
    /// Where it is used.
    pub at: At,
}

/// What a policy is: the two files of a project, read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PolicyDefinition {
    /// Attributes with their defaults and whether they are required.
    pub attributes: Vec<PolicyAttribute>,
    /// Actions for Choreo Connect (`.gotmpl`): a template of YAML.
    pub actions: Option<(Arc<str>, At)>,
    /// A Synapse sequence for API Manager (`.j2`): a template of XML.
    pub synapse: Option<(Arc<str>, At)>,
}

/// An attribute of a policy definition.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PolicyAttribute {
    /// Its name.
    pub name: Arc<str>,
    /// Whether it must be given.
    pub required: bool,
    /// What it is when it is not given.
    pub default: Option<Arc<str>>,
    /// What values must match.
    pub validation: Option<Arc<str>>,
}

/// The examples of one status.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MockResponse {
    /// `200`, `4XX`, `default`.
    pub code: Arc<str>,
    /// Header fields of the answer.
    pub headers: Vec<(Arc<str>, Arc<str>)>,
    /// The examples by media type.
    pub examples: Vec<MockExample>,
}

/// One example of one media type.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MockExample {
    /// Its name; empty when it is the only one.
    pub name: Arc<str>,
    /// `application/json`.
    pub media_type: Arc<str>,
    /// The body.
    pub body: Arc<str>,
}
