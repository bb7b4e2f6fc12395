//! `api_params.yaml`: what differs between the environments a project is deployed to.
//!
//! `apictl` sends the part of one environment along (`Deployment/intermediate_params.yaml`), and the import of API
//! Manager applies it. Here the file may also lie in the project as people write it; `gateway.environment` says which
//! of its environments is meant. What it says of backends, their security and hosts replaces what the descriptor and
//! the definition say.

use std::sync::Arc;

use penstock_catalog::{Api, Cluster, EndpointSecurity};

use super::descriptor::endpoint_config;
use super::document::{Document, Entry, Item, Node, Scalar, Value, parse};
use super::{Import, Project, endpoint_security, hint, substitute};

/// Where the parameters may stand, the first of them that is there.
const FILES: [&str; 7] = [
    "Deployment/intermediate_params.yaml",
    "Deployment/params.yaml",
    "api_params.yaml",
    "api_params.yml",
    "api_params.json",
    "params.yaml",
    "params.yml",
];

/// Keys for portals, publishers and import tools.
const FOR_OTHERS: [&str; 4] = ["additionalProperties", "gatewayEnvironments", "dependentAPIs", "deploy"];

const READ: [&str; 8] = [
    "endpointType",
    "endpoints",
    "loadBalanceEndpoints",
    "failoverEndpoints",
    "endpointRoutingPolicy",
    "security",
    "policies",
    "deploymentEnvironments",
];

impl Import<'_> {
    /// Applies the parameters of the environment that this gateway is, when the project has any.
    pub(super) fn parameters(&mut self, project: &Project, api: &mut Api) {
        if let Some(document) = self.parameters_of_environment(project) {
            self.apply_parameters(&document.item(), api);
        }
    }

    /// What the parameters say of the environment that is meant.
    pub(super) fn parameters_of_environment(&mut self, project: &Project) -> Option<Document> {
        let file = FILES.iter().find_map(|path| project.file(path))?;
        let mut document = match parse(&file.file, &file.bytes) {
            Ok(document) => document,
            Err((at, message)) => {
                self.error(&at, message);
                return None;
            }
        };
        // Values of other environments may not be set here.
        let mut configs = self.configs_of(&document.item()).cloned()?;
        substitute::apply(self, &file.file, &mut configs);
        document.root = configs;
        Some(document)
    }

    /// Applies them, after it was said which of them mean nothing.
    pub(super) fn apply_parameters(&mut self, configs: &Item<'_>, api: &mut Api) {
        for (key, at, value) in configs.entries().filter(|(_, _, value)| !value.is_null()) {
            if matches!(&**key, "certs" | "mutualSslCerts") {
                if value.items().next().is_some() {
                    let folder = if &**key == "certs" { "Endpoint-certificates" } else { "Client-certificates" };
                    self.warn(&at, format!("`{key}` is ignored: certificates are read from `{folder}`"));
                }
            } else if !READ.iter().chain(&FOR_OTHERS).any(|known| **known == **key) {
                self.warn(&at, format!("unknown key `{key}` is ignored{}", hint(key, READ.into_iter())));
            }
        }
        self.apply(configs, api);
    }

    /// The part of the environment that is meant.
    fn configs_of<'d>(&mut self, root: &Item<'d>) -> Option<&'d Node> {
        let Some(environments) = root.get("environments") else { return Some(root.node()) };
        let wanted = &self.config.environment;
        let mut names = Vec::new();
        for environment in environments.items() {
            let Some(name) = self.some_text_of(&environment, "name") else { continue };
            if *name == **wanted {
                return environment.get("configs").map(|configs| configs.node());
            }
            names.push(name);
        }
        let known = names.join("`, `");
        let message = match wanted.is_empty() {
            true => {
                format!("ignored: there are parameters for `{known}`; `gateway.environment` selects one")
            }
            false => {
                let meant = hint(wanted, names.iter().map(|name| &**name));
                format!("ignored: there are parameters for `{known}`, and not for `{wanted}`{meant}")
            }
        };
        self.warn(&environments.at(), message);
        None
    }

    /// `endpointType`: which kind of backends the addresses are.
    fn kind_of_backends(&mut self, configs: &Item<'_>) {
        let Some(kind) = self.some_text_of(configs, "endpointType") else { return };
        let at = configs.get("endpointType").map_or_else(|| configs.at(), |item| item.at());
        match &*kind.to_ascii_lowercase() {
            "rest" | "http" | "soap" | "load_balance" | "failover" => {}
            "dynamic" => {
                self.warn(&at, "backends that a policy chooses (`dynamic`) need a policy that sets the address")
            }
            "aws" => self.error(&at, "functions of AWS Lambda are read from `endpointConfig`, not from parameters"),
            _ => {
                let meant = hint(&kind, ["rest", "soap", "dynamic", "aws"].into_iter());
                self.warn(&at, format!("unknown `endpointType` `{kind}` is ignored{meant}"));
            }
        }
    }

    pub(super) fn apply(&mut self, configs: &Item<'_>, api: &mut Api) {
        self.kind_of_backends(configs);
        if let Some(config) = endpoint_config_of(configs) {
            let mut described = Api::default();
            endpoint_config::read(self, &config.item(), &mut described);
            // What a descriptor says of security holds for the new addresses too, unless the parameters say another.
            let before =
                [&api.endpoints.production, &api.endpoints.sandbox].map(|cluster| security_of(cluster.as_ref()));
            let [production, sandbox] = before;
            api.endpoints.production = with_security(described.endpoints.production, production);
            api.endpoints.sandbox = with_security(described.endpoints.sandbox, sandbox);
        }
        if let Some(security) = configs.get("security") {
            for (key, cluster) in
                [("production", &mut api.endpoints.production), ("sandbox", &mut api.endpoints.sandbox)]
            {
                if let Some(one) = security.get(key) {
                    let proof = endpoint_security::read(self, &one);
                    if let Some(cluster) = cluster {
                        Arc::make_mut(cluster).security = proof;
                    }
                }
            }
        }
        let plans = self.texts_of(configs, "policies");
        if !plans.is_empty() {
            api.subscription_plans = plans;
        }
        if let Some(list) = configs.get("deploymentEnvironments").filter(|list| list.items().next().is_some()) {
            api.vhosts.clear();
            self.hosts(&list, api);
        }
    }
}

fn security_of(cluster: Option<&Arc<Cluster>>) -> Option<EndpointSecurity> {
    cluster.and_then(|cluster| cluster.security.clone())
}

fn with_security(cluster: Option<Arc<Cluster>>, security: Option<EndpointSecurity>) -> Option<Arc<Cluster>> {
    cluster.map(|mut cluster| {
        Arc::make_mut(&mut cluster).security = security;
        cluster
    })
}

/// Which member holds the addresses, and what a descriptor calls such backends.
const SHAPES: [(&str, &str); 3] =
    [("failoverEndpoints", "failover"), ("loadBalanceEndpoints", "load_balance"), ("endpoints", "http")];

/// What a descriptor calls the members of them.
const MEMBERS: [(&str, &str); 6] = [
    ("sessionManagement", "sessionManagement"),
    ("sessionTimeOut", "sessionTimeOut"),
    ("production", "production_endpoints"),
    ("sandbox", "sandbox_endpoints"),
    ("productionFailovers", "production_failovers"),
    ("sandboxFailovers", "sandbox_failovers"),
];

/// The addresses of the parameters as a descriptor would write them; every value keeps its place.
fn endpoint_config_of(configs: &Item<'_>) -> Option<Document> {
    let (given, kind) = SHAPES.into_iter().find_map(|(key, kind)| Some((configs.get(key)?, kind)))?;
    let Node { line, column, .. } = *given.node();
    let text = |text: &str| Node { line, column, value: Value::Scalar(Scalar { text: text.into(), quoted: true }) };
    let mut entries = vec![Entry { key: "endpoint_type".into(), line, column, value: text(kind) }];
    for (from, to) in MEMBERS {
        if let Some(found) = given.get(from) {
            let value = found.node().clone();
            entries.push(Entry { key: to.into(), line: value.line, column: value.column, value });
        }
    }
    let root = Node { line, column, value: Value::Map(entries) };
    Some(Document { file: given.at().file, root })
}
