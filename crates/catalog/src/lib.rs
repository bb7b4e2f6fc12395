//! The catalog: APIs with their operations, and who may use them: applications, subscriptions,
//! plans. Plain data; a change is a new [`Catalog`].
//!
//! It is independent of files, HTTP and enforcement.
//!
//! Start reading at [`Api`] and [`Operation`], then [`endpoint`](Cluster), [`Plan`] and
//! [`Subscription`].

mod access;
mod api;
mod chain;
mod condition;
mod endpoint;
mod lambda;
mod mcp;
pub mod path;
mod plan;
mod style;
mod websub;

pub use access::{Access, AccessChange, Application, ConsumerKey, Subscription, SubscriptionState};
pub use api::{
    Api, ApiKind, ClientCertificate, Cors, Flows, GraphQl, HeaderMatch, Implementation, Interceptor, InterceptorPart,
    Lifecycle, MockExample, MockResponse, Operation, Policies, PolicyAttribute, PolicyDefinition, PolicyUse,
    Requirement, Resilience, Schemes, SecurityMode,
};
pub use chain::{ChainStep, Platform, Setting, SettingValue};
pub use condition::{Condition, ConditionalGroup, Denial, IpRange, Subject};
pub use endpoint::{
    ApiKeyCredentials, BasicCredentials, CircuitBreakers, Cluster, ClusterKind, EndpointSecurity, Endpoints,
    OAuthCredentials, Retry, Secret,
};
pub use lambda::{AwsIdentity, LambdaAccess, LambdaFunction};
pub use mcp::{
    ApiReference, MCP_METADATA_PATH, MCP_PATH, McpServer, ParameterPlace, Tool, ToolBody, ToolParameter, ToolRequest,
    ToolTarget,
};
pub use plan::{Limit, LimitUnit, Plan, PlanLevel, QueryLimits};
pub use style::ErrorStyle;
pub use websub::{RECEIVER_PATH, SigningAlgorithm, Topic, WebSub, topic_name};

use std::fmt;
use std::sync::Arc;

/// Everything a gateway serves, at one moment.
#[derive(Debug, Clone, Default)]
pub struct Catalog {
    /// Grows with every change.
    pub version: u64,
    /// The APIs.
    pub apis: Vec<Arc<Api>>,
    /// The applications, by consumer key in [`Application::keys`].
    pub applications: Vec<Application>,
    /// Who subscribed to what.
    pub subscriptions: Vec<Subscription>,
    /// Limits by name.
    pub plans: Vec<Plan>,
    /// Who is refused.
    pub denials: Vec<Denial>,
}

/// Where in a user's file something was written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct At {
    /// The file, `archive!entry` inside an archive.
    pub file: Arc<str>,
    /// 1-based.
    pub line: u32,
    /// 1-based, in characters.
    pub column: u32,
}

impl fmt::Display for At {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}:{}", self.file, self.line, self.column)
    }
}
