//! The gateway: API projects and OpenAPI definitions become routes of the program, each operation a sequence of policies
//! that ends at its backend.
//!
//! Policies are mediators: what checks a token, counts a request or calls an interceptor service runs in the same loop as
//! `<filter>`, with the same faults and deadlines. The crate is independent of files, sockets, and how APIs are published;
//! it gets [`Input`]s and fills a [`Compiler`].
//!
//! Start reading at [`Gateway`], then `assemble.rs` (an API becomes
//! sequences) and `policy/mod.rs` (the list of policies; how to add one: docs/gateway/adding-a-policy.md).
//!
//! Four leaf files are shared by all features and name none of their code: `config.rs` (plain data), `site.rs` (the
//! operation that a policy is compiled for), `context.rs` (one request, with a typed slot for each policy) and `state.rs`
//! (what outlives a reload, by type).

mod assemble;
mod background;
mod caller;
mod cel;
mod client_request;
mod compiled;
mod config;
mod context;
mod error;
mod gateway;
mod gotemplate;
mod hex;
mod json_writer;
mod mcp;
mod observe;
mod policy;
pub mod readers;
mod router;
pub mod security;
mod service;
mod site;
mod state;
mod steps;
mod system;
mod text;
mod upstream;
mod watched_body;
mod websub;

use std::sync::Arc;

use penstock_catalog::Api;
use penstock_compile::{ArtifactStatus, Compiler, Front, Input, InputKind};

pub use config::GatewayConfig;
pub use context::CallContext;
pub use error::{ErrorStyle, GatewayError, codes};
pub use gateway::Gateway;
pub use observe::TracingConfig;
pub use penstock_projects::{HostDefaults, Import, ImportConfig, Imported, Project, ProjectFile, fill_template};
pub use policy::chain::{Algorithm, JwtAuthConfig, PlatformConfig, RateLimitConfig, RefusalFormat};
pub use policy::compress::CompressionConfig;
pub use policy::graphql::GraphQlConfig;
pub use policy::interceptor::InterceptorConfig;
pub use policy::limits::{CustomLimit, LimitUse, LimitsConfig, parse_custom, parse_denial, parse_plan};
pub use policy::{ApiKinds, POLICIES, Phase, PolicyKind};
pub use site::Site;
pub use state::{GatewayPorts, GatewayState};
pub use upstream::{AwsConfig, HealthCheckConfig, UpstreamCall, UpstreamConfig};
pub use websub::EventFile;

impl Front for Gateway {
    fn compile(&self, inputs: &[Input], cx: &mut Compiler<'_>) -> Vec<ArtifactStatus> {
        self.compile_with(inputs, &[], cx)
    }
}

impl Gateway {
    /// Compiles the projects among the inputs, and APIs that come from elsewhere.
    pub fn compile_with(&self, inputs: &[Input], apis: &[Arc<Api>], cx: &mut Compiler<'_>) -> Vec<ArtifactStatus> {
        let is_api = |input: &Input| matches!(input.kind, InputKind::Api { .. } | InputKind::ApiFiles(_));
        if apis.is_empty() && !inputs.iter().any(is_api) {
            return Vec::new();
        }
        self.state.get::<observe::Spans>().configure(&self.config.tracing);
        let mut statuses = Vec::new();
        let mut routes = router::Routes::default();
        let compiled = self.state.get::<compiled::CompiledApis>();
        let mut compiled = compiled.lock();
        compiled.import(self, inputs, cx);
        let known: Vec<Arc<Api>> = compiled.apis().chain(apis).cloned().collect();
        statuses.extend(compiled.assemble(self, &known, cx, &mut routes));
        for api in apis {
            let good = match assemble::api(self, api, &known, cx) {
                Some(served) => routes.add_all(api, served, cx),
                None => false,
            };
            statuses.push(ArtifactStatus {
                kind: "managed-api",
                name: api.name.to_string(),
                at: penstock_projects::place(&api.at),
                good,
            });
        }
        let router = router::ApiRouter::new(self.config.clone(), self.state.clone(), routes, cx);
        cx.set_router(Arc::new(router));
        statuses
    }
}
