//! The caller of a request, as far as policies have identified it.

use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use crate::policy::limits::CallerCounters;

/// Who calls.
#[derive(Clone)]
pub struct Caller {
    /// `JWT`, `API Key`, `Internal Key`, or empty without authentication.
    pub token_type: &'static str,
    /// The credential as it was sent. Never logged.
    pub token: Arc<str>,
    /// Whether the key is for the sandbox.
    pub sandbox: bool,
    /// Whether a key said which of both it is for.
    pub key_type_known: bool,
    /// The user.
    pub subject: Arc<str>,
    /// The consumer key or application of the credential.
    pub consumer_key: Arc<str>,
    /// The application's id.
    pub application_id: Arc<str>,
    /// The application's name.
    pub application_name: Arc<str>,
    /// The application's plan.
    pub application_tier: Arc<str>,
    /// The subscription's plan.
    pub subscription_tier: Arc<str>,
    /// Which counters its plans have.
    pub(crate) counters: CallerCounters,
    /// Claims of the token.
    pub claims: Option<Arc<serde_json::Map<String, serde_json::Value>>>,
}

/// The empty text of this core. That of the standard library is counted by all cores together, and a caller has several.
pub(crate) fn nothing() -> Arc<str> {
    thread_local! {
        static NOTHING: Arc<str> = Arc::from("");
    }
    NOTHING.with(Arc::clone)
}

/// Says who it is and not what proves it.
impl fmt::Debug for Caller {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Caller({} of application `{}`)", self.token_type, self.application_name)
    }
}

impl Default for Caller {
    fn default() -> Caller {
        let nothing = nothing();
        Caller {
            token_type: "",
            token: nothing.clone(),
            sandbox: false,
            key_type_known: false,
            subject: nothing.clone(),
            consumer_key: nothing.clone(),
            application_id: nothing.clone(),
            application_name: nothing.clone(),
            application_tier: nothing.clone(),
            subscription_tier: nothing,
            counters: CallerCounters::default(),
            claims: None,
        }
    }
}

/// The caller of whom nothing is known yet. One for each core.
pub(crate) fn unknown() -> Rc<Caller> {
    thread_local! {
        static UNKNOWN: Rc<Caller> = Rc::default();
    }
    UNKNOWN.with(Rc::clone)
}
