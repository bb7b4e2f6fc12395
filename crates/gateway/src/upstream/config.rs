//! How a gateway treats backends when an API says nothing.

use std::sync::Arc;
use std::time::Duration;

use penstock_catalog::AwsIdentity;

/// How a gateway treats backends when an API says nothing, and the most an API may say.
#[derive(Debug, Clone)]
pub struct UpstreamConfig {
    /// Maximum retries of an API; larger values are cut to it.
    pub retry_count_max: u32,
    /// Statuses that are worth a repetition when an API names none.
    pub retry_statuses: Vec<u16>,
    /// The pause before the first repetition. It doubles with each, up to ten times this.
    pub retry_base: Duration,
    /// A request body up to this size is kept for repetitions. A larger one is sent once.
    pub replay_bytes_max: usize,
    /// How backends of groups are watched.
    pub health: HealthCheckConfig,
    /// How functions of AWS Lambda are invoked.
    pub aws: AwsConfig,
}

/// How functions of AWS Lambda are invoked.
#[derive(Debug, Clone)]
pub struct AwsConfig {
    /// Where functions are, when neither their names nor their APIs say.
    pub region: Option<Arc<str>>,
    /// Who invokes those of APIs that have no access key of their own.
    pub identity: Option<AwsIdentity>,
    /// The address of the service, when it is not that of AWS.
    pub endpoint: Option<Arc<str>>,
    /// Whether bodies are passed as they are in the style of Choreo Connect.
    pub passthrough: bool,
}

impl Default for AwsConfig {
    fn default() -> AwsConfig {
        AwsConfig { region: None, identity: None, endpoint: None, passthrough: true }
    }
}

/// How backends are watched.
#[derive(Debug, Clone)]
pub struct HealthCheckConfig {
    /// For one check.
    pub timeout: Duration,
    /// Between two checks.
    pub interval: Duration,
    /// Failures in a row that make a backend unhealthy.
    pub unhealthy_after: u32,
    /// Successes in a row that make it healthy again.
    pub healthy_after: u32,
}

impl Default for UpstreamConfig {
    fn default() -> UpstreamConfig {
        UpstreamConfig {
            retry_count_max: 5,
            retry_statuses: vec![504],
            retry_base: Duration::from_millis(25),
            // What the router of Choreo Connect buffers of one connection.
            replay_bytes_max: 1024 * 1024,
            health: HealthCheckConfig::default(),
            aws: AwsConfig::default(),
        }
    }
}

impl Default for HealthCheckConfig {
    fn default() -> HealthCheckConfig {
        HealthCheckConfig {
            timeout: Duration::from_secs(1),
            interval: Duration::from_secs(10),
            unhealthy_after: 2,
            healthy_after: 2,
        }
    }
}
