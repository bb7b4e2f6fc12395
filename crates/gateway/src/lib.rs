//! The gateway: API projects and OpenAPI definitions become routes of the program, each operation a
//! sequence of policies that ends at its backend.
//!
//! Policies are mediators: what checks a token, counts a request or asks an interceptor is run by
//! the same loop as `<filter>`, with the same faults and deadlines. The crate knows nothing of files,
//! sockets and of who publishes APIs; it gets [`Input`]s and fills a [`Compiler`].
//!
//! Start reading at [`Gateway`], then `import/` (what a project says), `assemble.rs` (from an API to
//! sequences) and `policy/mod.rs` (the list of policies, one file each).

mod assemble;
mod cel;
mod compiled;
mod config;
mod context;
mod error;
pub mod graphql;
mod hex;
mod import;
mod mcp;
mod observe;
mod policy;
mod router;
pub mod security;
mod state;
mod system;
mod upstream;
mod websub;

use std::sync::Arc;

use penstock_catalog::Api;
use penstock_compile::{ArtifactStatus, Compiler, Front, Input, InputKind};
use penstock_engine::Place;

pub use config::{
    Algorithm, ErrorStyle, GatewayConfig, HostDefaults, JwtAuthConfig, PlatformConfig, RateLimitConfig, RefusalFormat,
};
pub use context::CallContext;
pub use error::{GatewayError, codes};
pub use import::{Import, Imported, Project, ProjectFile, fill_template};
pub use observe::TracingConfig;
pub use policy::graphql::GraphQlConfig;
pub use policy::limits::{CustomLimit, LimitUse, LimitsConfig, parse_custom, parse_denial, parse_plan};
pub use policy::{CompressionConfig, POLICIES, PolicyKind, Site, readers};
pub use state::{GatewayPorts, GatewayState};
pub use upstream::{AwsConfig, HealthCheckConfig, UpstreamCall, UpstreamConfig};
pub use websub::EventFile;

/// Compiles API projects. One for each compilation; what outlives a reload is in [`GatewayState`].
pub struct Gateway {
    /// How it behaves.
    pub config: Arc<GatewayConfig>,
    /// Counters, keys and caches.
    pub state: Arc<GatewayState>,
}

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
        self.state.spans.configure(&self.config.tracing);
        let mut statuses = Vec::new();
        let mut routes = router::Routes::default();
        let mut compiled = self.state.compiled.lock();
        compiled.import(self, inputs, cx);
        let known: Vec<Arc<Api>> = compiled.apis().chain(apis).cloned().collect();
        statuses.extend(compiled.assemble(self, &known, cx, &mut routes));
        for api in apis {
            let good = match assemble::api(self, api, &known, cx) {
                Some(served) => routes.add_all(api, served, cx),
                None => false,
            };
            statuses.push(ArtifactStatus { kind: "managed-api", name: api.name.to_string(), at: place(&api.at), good });
        }
        cx.program.routes.router =
            Some(Arc::new(router::ApiRouter::new(self.config.clone(), self.state.clone(), routes, cx)));
        statuses
    }
}

/// A catalog's place as the engine's.
pub(crate) fn place(at: &penstock_catalog::At) -> Place {
    Place { file: at.file.clone(), line: at.line, column: at.column }
}
