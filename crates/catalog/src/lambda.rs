//! Functions of AWS Lambda as backends.

use std::sync::Arc;
use std::time::Duration;

use crate::Secret;

/// What of AWS an API may use.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LambdaAccess {
    /// Where its functions are, when their names do not say.
    pub region: Option<Arc<str>>,
    /// The identity that invokes them; by default that of the environment.
    pub identity: Option<AwsIdentity>,
}

/// An AWS identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AwsIdentity {
    /// The id of the access key.
    pub key_id: Arc<str>,
    /// The key.
    pub key: Secret,
    /// What goes with a key that is good for a while.
    pub session: Option<Secret>,
}

/// A function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LambdaFunction {
    /// Its name or ARN.
    pub name: Arc<str>,
    /// For its answer.
    pub timeout: Option<Duration>,
    /// Whether it gets bodies in base64.
    pub encodes_body: bool,
}
