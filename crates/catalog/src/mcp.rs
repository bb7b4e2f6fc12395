//! MCP servers: tools for agents, each of them something that is called elsewhere.

use std::sync::Arc;

use crate::Operation;

/// The path of the operation that takes the messages of a server.
pub const MCP_PATH: &str = "/mcp";

/// The path at which a server says where tokens for it come from (RFC 9728).
pub const MCP_METADATA_PATH: &str = "/.well-known/oauth-protected-resource";

/// An MCP server: it replaces the resources of an API.
#[derive(Debug, Clone, Default)]
pub struct McpServer {
    /// Whether it only guards another MCP server (`SERVER_PROXY`).
    pub proxy: bool,
    /// The tools, in the order they were written.
    pub tools: Vec<Arc<Tool>>,
}

/// A tool.
#[derive(Debug, Clone, Default)]
pub struct Tool {
    /// Its name.
    pub name: Arc<str>,
    /// How `tools/list` describes it: a JSON object.
    pub listed: Arc<str>,
    /// Who may call it how often, with what policies, and its backends.
    pub operation: Arc<Operation>,
    /// What a call of it calls.
    pub target: ToolTarget,
}

/// What a call of a tool calls.
#[derive(Debug, Clone)]
pub enum ToolTarget {
    /// A tool of the MCP server behind this one, by its name there.
    Tool(Arc<str>),
    /// An operation over HTTP: of a backend, or of an API that is served here.
    Http(Box<ToolRequest>),
}

impl Default for ToolTarget {
    fn default() -> ToolTarget {
        ToolTarget::Tool(Arc::default())
    }
}

/// How the arguments of a tool become a request.
#[derive(Debug, Clone, Default)]
pub struct ToolRequest {
    /// The API it is a request to; a backend's when absent.
    pub api: Option<ApiReference>,
    /// In upper case.
    pub method: Arc<str>,
    /// The path template, below the API or the backend's address.
    pub path: Arc<str>,
    /// The arguments that are parameters.
    pub parameters: Vec<ToolParameter>,
    /// The argument that is the body.
    pub body: Option<ToolBody>,
    /// Whether answers are also given as data, since the tool describes them.
    pub structured: bool,
    /// What arguments must be like, when they are checked: a JSON Schema.
    pub checked: Option<Arc<str>>,
}

/// An API by its name and version, or by where it is served.
#[derive(Debug, Clone, Default)]
pub struct ApiReference {
    /// The name.
    pub name: Arc<str>,
    /// The version.
    pub version: Arc<str>,
    /// The context, with the version or without.
    pub context: Arc<str>,
}

/// An argument that is a parameter of the request.
#[derive(Debug, Clone, Default)]
pub struct ToolParameter {
    /// Its name, that of the argument too.
    pub name: Arc<str>,
    /// Where it goes.
    pub place: ParameterPlace,
    /// Whether a call without it is refused.
    pub required: bool,
}

/// Where a parameter goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ParameterPlace {
    /// Into the path.
    #[default]
    Path,
    /// Into the query.
    Query,
    /// Into a header field.
    Header,
}

/// The argument `requestBody`.
#[derive(Debug, Clone, Default)]
pub struct ToolBody {
    /// Its media type.
    pub content_type: Arc<str>,
    /// Whether a call without it is refused.
    pub required: bool,
}
