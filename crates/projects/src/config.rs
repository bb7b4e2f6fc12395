//! The configuration of the importer.

use std::sync::Arc;

use penstock_catalog::ErrorStyle;

/// What the APIs of a project depend on besides its files.
#[derive(Debug, Clone, Default)]
pub struct ImportConfig {
    /// The product whose reading counts where the products differ.
    pub error_style: ErrorStyle,
    /// Managed APIs that are served although a policy of theirs cannot be enforced.
    pub serve_unprotected: Vec<Arc<str>>,
    /// Hosts by the name of a deployment environment.
    pub vhosts: Vec<(String, String)>,
    /// The environment of this gateway, for projects that have parameters for several.
    pub environment: String,
    /// The host of APIs that name no environment; requests for any host reach them when it is empty.
    pub default_vhost: String,
    /// What relative `servers` of definitions are below; without it they name no backend.
    pub servers_base: Option<Arc<str>>,
    /// The hosts of APIs of the API Platform that name none.
    pub hosts: HostDefaults,
    /// The policies of the API Platform that can be enforced. Others are errors; without a list none is checked.
    pub chain_policies: Option<Vec<&'static str>>,
}

/// The hosts of APIs that name none.
#[derive(Debug, Clone)]
pub struct HostDefaults {
    /// Of the production backends; `*` means any.
    pub main: Vec<Arc<str>>,
    /// Of the sandbox.
    pub sandbox: Arc<str>,
}

impl Default for HostDefaults {
    fn default() -> HostDefaults {
        // The defaults of the API Platform.
        HostDefaults { main: vec!["*".into()], sandbox: "sandbox-*".into() }
    }
}
