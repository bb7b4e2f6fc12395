//! Leases: of all nodes that share a coordination store, one holds a name for a time. What runs on one node only (a task,
//! a message processor, a polling inbound endpoint) runs while it holds its lease.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::ports::LocalFuture;

/// A name that this node holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// The name.
    pub name: Arc<str>,
    /// Grows with each holder. Work that carries a smaller number than the last one seen comes from a node that lost the
    /// lease without noticing.
    pub fencing_token: u64,
}

/// Why the leases cannot be read or written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseError(pub String);

impl fmt::Display for LeaseError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// The leases. One for the whole process.
pub trait Leases: Send + Sync {
    /// Takes a name for a time, or extends the time of one that this node holds. `None` while another node holds it.
    fn acquire(&self, name: &str, time: Duration) -> LocalFuture<'static, Result<Option<Lease>, LeaseError>>;

    /// Gives a name back before its time is over.
    fn release(&self, lease: &Lease) -> LocalFuture<'static, Result<(), LeaseError>>;
}

/// The leases of a single node: it gets every name.
#[derive(Debug, Default)]
pub struct SingleNode;

impl Leases for SingleNode {
    fn acquire(&self, name: &str, _time: Duration) -> LocalFuture<'static, Result<Option<Lease>, LeaseError>> {
        let lease = Lease { name: name.into(), fencing_token: 1 };
        Box::pin(std::future::ready(Ok(Some(lease))))
    }

    fn release(&self, _lease: &Lease) -> LocalFuture<'static, Result<(), LeaseError>> {
        Box::pin(std::future::ready(Ok(())))
    }
}
