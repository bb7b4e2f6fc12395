//! What a project or a definition says, as a catalog's API.

use std::sync::Arc;

use penstock_catalog::Api;
use penstock_compile::{Compiler, Input};
use penstock_engine::Place;

use crate::GatewayConfig;

/// A project that was found.
pub(crate) struct Imported {
    /// What to call it.
    pub name: String,
    /// Its main file.
    pub at: Place,
    /// What it says, unless there is an error in it.
    pub api: Option<Arc<Api>>,
}

/// Reads all projects among the inputs.
pub(crate) fn projects(_inputs: &[Input], _config: &GatewayConfig, _cx: &mut Compiler<'_>) -> Vec<Imported> {
    Vec::new()
}
