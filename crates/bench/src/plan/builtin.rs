//! The plans, scenarios and peer configurations that ship inside the program, so that it measures from anywhere.
use super::{Plan, Target};
use crate::error::Error;
use std::path::Path;

macro_rules! shipped {
    ($($path:literal),* $(,)?) => {
        [$(($path, include_str!(concat!("../../../../bench/", $path)))),*]
    };
}

/// Plans, by the path of their file below `bench/`.
const PLANS: [(&str, &str); 6] = shipped![
    "plans/quick.toml",
    "plans/mi-4.5.0.toml",
    "plans/ei-6.6.0.toml",
    "plans/apim.toml",
    "plans/choreo-connect.toml",
    "plans/mediators.toml",
];

/// What the targets are started with, by the path of the file below `bench/`.
const FILES: &[(&str, &str)] = &shipped![
    "scenarios/proxy-services/DirectProxy.xml",
    "scenarios/proxy-services/CBRProxy.xml",
    "scenarios/proxy-services/CBRSOAPHeaderProxy.xml",
    "scenarios/proxy-services/CBRTransportHeaderProxy.xml",
    "scenarios/proxy-services/XSLTProxy.xml",
    "scenarios/proxy-services/PayloadFactoryWith20ElementsProxy.xml",
    "scenarios/proxy-services/EnrichBackAndForthProxy.xml",
    "scenarios/proxy-services/IterateAndAggregateProxy.xml",
    "scenarios/proxy-services/CloneAndAggregateWithFourBackendProxy.xml",
    "scenarios/proxy-services/CloneAndAggregateWithTwoBackendProxy.xml",
    "scenarios/proxy-services/CloneAndAggregateWithEightBackendProxy.xml",
    "scenarios/proxy-services/PayloadFactoryWith50ElementsProxy.xml",
    "scenarios/proxy-services/PayloadFactoryWith100ElementsProxy.xml",
    "scenarios/proxy-services/MessageBuildingProxy.xml",
    "scenarios/proxy-services/JsonToSOAPProxy.xml",
    "scenarios/proxy-services/XSLTTransformProxy.xml",
    "scenarios/proxy-services/XSLTEnhancedProxy.xml",
    "scenarios/api/DirectAPI.xml",
    "scenarios/endpoints/RealService.xml",
    "scenarios/local-entries/xslt_datatransform.xml",
    "scenarios/local-entries/xslt_transform.xml",
    "scenarios/local-entries/xslt_transform_reverse.xml",
    "peers/nginx.conf",
    "peers/haproxy.cfg",
    "peers/envoy.yaml",
];

const PEERS: &str = include_str!("../../../../bench/peers/peers.toml");

/// Names of the plans.
pub fn names() -> impl Iterator<Item = &'static str> {
    PLANS.iter().map(|(path, _)| name_of(path))
}

/// A plan that ships with the program.
pub fn plan(name: &str) -> Option<Plan> {
    let (path, text) = PLANS.iter().find(|(path, _)| name_of(path) == name)?;
    // A test reads every one of them.
    Plan::parse(path, text).ok()
}

fn name_of(path: &'static str) -> &'static str {
    path.trim_start_matches("plans/").trim_end_matches(".toml")
}

/// The other gateways the kit can start for comparison.
pub fn peers() -> Result<Vec<Target>, Error> {
    Plan::parse_targets("peers/peers.toml", PEERS)
}

/// Writes scenarios and peer configurations below a directory, with the ports and the directory filled in.
pub fn write_files(directory: &Path, substitutions: &[(&str, String)]) -> Result<(), Error> {
    for (path, text) in FILES {
        let path = directory.join(path);
        let failed = |error: std::io::Error| Error::file(&path, &error);
        let mut text = (*text).to_owned();
        for (from, to) in substitutions {
            text = text.replace(from, to);
        }
        std::fs::create_dir_all(path.parent().unwrap_or(directory)).map_err(failed)?;
        std::fs::write(&path, text).map_err(failed)?;
    }
    Ok(())
}
