//! What the upstream knows of one request: what others chose for it, and what became of it.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::Duration;

/// A request's way to its backend.
#[derive(Debug, Default)]
pub struct UpstreamCall {
    named: RefCell<Option<Arc<str>>>,
    /// The last backend URL, and where path and query begin in it.
    url: RefCell<Option<(Arc<str>, usize)>>,
    took: Cell<Option<Duration>>,
    attempts: Cell<u32>,
    flag: Cell<Option<&'static str>>,
    status: Cell<Option<u16>>,
}

impl UpstreamCall {
    /// Sends the request to the named endpoints of `x-wso2-endpoints` in place of those of the key.
    pub fn choose(&self, name: &str) {
        *self.named.borrow_mut() = Some(name.into());
    }

    /// The name that was chosen.
    pub fn chosen(&self) -> Option<Arc<str>> {
        self.named.borrow().clone()
    }

    /// Host and port of the last backend.
    pub fn host(&self) -> Option<String> {
        let url = self.url.borrow();
        let (url, path_at) = url.as_ref()?;
        let (_, authority) = url.get(..*path_at)?.split_once("://")?;
        // User information before the host is private.
        Some(authority.rsplit('@').next().unwrap_or_default().to_owned())
    }

    /// Path and query as the backend got them.
    pub fn path(&self) -> Option<String> {
        let url = self.url.borrow();
        let (url, start) = url.as_ref()?;
        url.get(*start..).map(|path| if path.starts_with('/') { path.to_owned() } else { format!("/{path}") })
    }

    /// From sending to the head of the answer, over all attempts.
    pub fn took(&self) -> Option<Duration> {
        self.took.get()
    }

    /// How often it was sent.
    pub fn attempts(&self) -> u32 {
        self.attempts.get()
    }

    /// Why the backend gave no answer, as Envoy abbreviates it: `UF`, `UT`, `UO`, …
    pub fn flag(&self) -> Option<&'static str> {
        self.flag.get()
    }

    /// The status of the backend's answer.
    pub fn status(&self) -> Option<u16> {
        self.status.get()
    }

    /// The last URL, without user information.
    pub fn url(&self) -> Option<String> {
        let scheme = if self.is_secure() { "https" } else { "http" };
        Some(format!("{scheme}://{}{}", self.host()?, self.path()?))
    }

    /// Whether the backend was called over TLS.
    pub fn is_secure(&self) -> bool {
        self.url.borrow().as_ref().is_some_and(|(url, _)| url.starts_with("https:"))
    }

    pub(super) fn answered(&self, status: u16) {
        self.status.set(Some(status));
    }

    pub(super) fn sending(&self, url: &Arc<str>, path_at: usize) {
        self.attempts.set(self.attempts.get() + 1);
        *self.url.borrow_mut() = Some((url.clone(), path_at));
    }

    pub(super) fn ended(&self, took: Duration, flag: Option<&'static str>) {
        self.took.set(Some(took));
        self.flag.set(flag);
    }
}
