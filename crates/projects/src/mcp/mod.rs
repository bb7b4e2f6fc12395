//! `mcp_server.yaml`: an MCP server as the publisher of API Manager exports it.
//!
//! Start reading at [`Import::mcp_server`], then `tools.rs`, `schema.rs` (what tools take), `generate.rs` (tools from a
//! definition) and `backends.rs`.

mod backends;
mod generate;
mod schema;
mod tools;

use std::sync::Arc;

use penstock_catalog::{Api, ApiKind, Cluster, Endpoints, MCP_METADATA_PATH, MCP_PATH, McpServer, Operation, Tool};

use self::tools::Reading;
use super::descriptor::{self, Descriptor, operations};
use super::document::Item;
use super::project::{apply_schemes, without_version};
use super::{Import, Project, hint};

/// The names the descriptor of an MCP server may have.
pub(super) const DESCRIPTORS: [&str; 3] = ["mcp_server.yaml", "mcp_server.yml", "mcp_server.json"];

/// Where the tools of a server come from (`subtypeConfiguration.subtype`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subtype {
    /// Operations of backends.
    Direct,
    /// Operations of APIs.
    Existing,
    /// Another MCP server.
    Proxy,
}

impl Import<'_> {
    /// Reads a project of the type `mcp_server`.
    pub(super) fn mcp_server(&mut self, project: &Project, data: &Item<'_>) -> Option<Api> {
        let Descriptor { mut api, schemes, context, is_default, .. } = descriptor::read_without_operations(self, data)?;
        api.kind = ApiKind::Mcp;
        api.tier = self.some_text_of(data, "throttlingPolicy").or(api.tier);
        if let Some(policies) = data.get("mcpServerPolicies") {
            api.policies = operations::flows(self, &policies);
        }
        let subtype = self.subtype(data)?;
        let backends = backends::read(self, project);
        let mut reading = Reading { import: self, subtype, backends, checks: api.schema_validation, tools: Vec::new() };
        reading.tools(data);
        let Reading { mut backends, mut tools, .. } = reading;
        if subtype == Subtype::Proxy {
            if api.endpoints.production.is_none() && api.endpoints.sandbox.is_none() && !backends.is_empty() {
                api.endpoints = std::mem::take(&mut backends[0].endpoints);
            }
            at_mcp(&mut api.endpoints);
        }
        self.backed(&api, subtype, &tools);
        api.base_path = context.base_path(&api.version);
        if is_default {
            api.default_path = without_version(&api.base_path, &api.version);
        }
        // Tools have rules as operations have: they are given them together.
        let own = requests(&api, &tools);
        let own_count = own.len();
        api.operations = own.into_iter().chain(tools.iter().map(|tool| tool.operation.clone())).collect();
        self.policies_of(project, &mut api);
        self.certificates(project, &mut api);
        self.deployments(project, &mut api);
        apply_schemes(&mut api, schemes.unwrap_or_default());
        let of_tools = api.operations.split_off(own_count);
        for (tool, operation) in tools.iter_mut().zip(of_tools) {
            tool.operation = operation;
        }
        let tools = tools.into_iter().map(Arc::new).collect();
        api.mcp = Some(Arc::new(McpServer { proxy: subtype == Subtype::Proxy, tools }));
        // What is checked are arguments, by the tools themselves.
        api.schema_validation = false;
        self.finish(&mut api, false);
        Some(api)
    }

    fn subtype(&mut self, data: &Item<'_>) -> Option<Subtype> {
        let config = data.get("subtypeConfiguration");
        let name = config.as_ref().and_then(|config| self.some_text_of(config, "subtype"));
        let at = config.map_or_else(|| data.at(), |config| config.at());
        match name.as_deref() {
            None | Some("DIRECT_BACKEND" | "DIRECT_ENDPOINT") => Some(Subtype::Direct),
            Some("EXISTING_API") => Some(Subtype::Existing),
            Some("SERVER_PROXY") => Some(Subtype::Proxy),
            Some(other) => {
                let meant = hint(other, ["DIRECT_BACKEND", "EXISTING_API", "SERVER_PROXY"].into_iter());
                self.error(&at, format!("unknown subtype of MCP server `{other}`{meant}"));
                None
            }
        }
    }

    /// Says which tools have nothing to call.
    fn backed(&mut self, api: &Api, subtype: Subtype, tools: &[Tool]) {
        let has = |endpoints: &Endpoints| endpoints.production.is_some() || endpoints.sandbox.is_some();
        if subtype == Subtype::Existing || has(&api.endpoints) || self.failed() {
            return;
        }
        if subtype == Subtype::Proxy {
            let message = "the MCP server behind this one is not described: give `backends.yaml` or `endpointConfig`";
            return self.error(&api.at, message);
        }
        for tool in tools.iter().filter(|tool| !tool.operation.endpoints.as_ref().is_some_and(has)) {
            let message = format!("the backend of the tool `{}` is not described: give `backends.yaml`", tool.name);
            self.error(&tool.operation.at, message);
        }
    }
}

/// The addresses of MCP servers: those without a path are called at `/mcp`, as API Manager does.
fn at_mcp(endpoints: &mut Endpoints) {
    for cluster in [&mut endpoints.production, &mut endpoints.sandbox].into_iter().flatten() {
        let cluster: &mut Cluster = Arc::make_mut(cluster);
        for url in &mut cluster.urls {
            let (address, query) =
                url.split_once('?').map_or((&**url, None), |(address, query)| (address, Some(query)));
            let address = address.trim_end_matches('/');
            if address.ends_with(MCP_PATH) {
                continue;
            }
            *url = match query {
                None => format!("{address}{MCP_PATH}").into(),
                Some(query) => format!("{address}{MCP_PATH}?{query}").into(),
            };
        }
    }
}

/// The requests an MCP server takes.
fn requests(api: &Api, tools: &[Tool]) -> Vec<Arc<Operation>> {
    let secured = tools.is_empty() || tools.iter().any(|tool| tool.operation.secured);
    let one = |(method, path): (&str, &str)| {
        let (method, path, at) = (method.into(), path.into(), api.at.clone());
        Arc::new(Operation { method, path, secured, at, ..Operation::default() })
    };
    [("POST", MCP_PATH), ("GET", MCP_PATH), ("DELETE", MCP_PATH), ("GET", MCP_METADATA_PATH)]
        .into_iter()
        .map(one)
        .collect()
}
