//! What the policies of one request know of it and tell each other.

use std::borrow::Cow;
use std::cell::{Cell, OnceCell, RefCell};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use penstock_catalog::{QueryLimits, Requirement};
use penstock_engine::{Exchange, Fault};
use penstock_message::{Headers, Method};

use crate::mcp::CallState;
use crate::observe::Trace;
use crate::policy::chain::ChainState;
use crate::policy::graphql::Asked;
use crate::policy::interceptor::Interception;
use crate::policy::limits::{CallerCounters, FrameLimits, Metered};
use crate::policy::{Site, facts};
use crate::security::Verified;
use crate::upstream::UpstreamCall;

/// One request on its way through the policies: the exchange's extension.
pub struct CallContext {
    /// The API and operation it is for.
    pub site: Arc<Site>,
    /// The values of the path template's parameters, in its order, as sent.
    pub path_values: Vec<String>,
    /// Who calls, once a policy found out. Shared with what is remembered of the token: whoever changes it makes a copy.
    pub caller: RefCell<Rc<Caller>>,
    /// The token it called with.
    pub(crate) credential: RefCell<Option<Rc<Verified>>>,
    /// Its way to the backend.
    pub upstream: UpstreamCall,
    /// What its query asks for, once it is read.
    pub(crate) graphql: RefCell<Option<Rc<Asked>>>,
    /// Its place in a trace.
    pub(crate) trace: Trace,
    /// Limits in bytes that it was counted under.
    pub(crate) metered: RefCell<Vec<Metered>>,
    /// Whether it is the handshake of a WebSocket connection.
    pub(crate) opens_socket: Cell<bool>,
    /// The limits of the messages of a WebSocket connection, until it has begun.
    pub(crate) frames: RefCell<Option<FrameLimits>>,
    /// How much one query may ask on a connection to a GraphQL API.
    pub(crate) query_limits: Cell<QueryLimits>,
    /// What its client named among the protocols of WebSocket to send a credential.
    pub(crate) answered_protocol: Cell<Option<&'static str>>,
    /// Whether the client takes gzip.
    pub(crate) takes_gzip: Cell<bool>,
    /// The bytes its body may have, once it had more.
    pub(crate) exceeded: Cell<Option<u64>>,
    /// What its answer is kept under, when it may be.
    pub(crate) cache_key: Cell<Option<(penstock_engine::kept::Key, Method)>>,
    /// What interceptor services of both flows share.
    pub(crate) interception: RefCell<Interception>,
    /// The request's header fields while policies of the fault flow run.
    pub(crate) set_aside: RefCell<Option<Headers>>,
    /// What the policies of an API of the API Platform keep.
    pub(crate) chain: RefCell<ChainState>,
    /// The call of an MCP server's client that it is, or became.
    pub(crate) mcp: OnceCell<Box<CallState>>,
}

/// Who calls.
#[derive(Clone)]
pub struct Caller {
    /// `JWT`, `API Key`, `Internal Key`, or empty when nobody asked.
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
fn nobody() -> Rc<Caller> {
    thread_local! {
        static NOBODY: Rc<Caller> = Rc::default();
    }
    NOBODY.with(Rc::clone)
}

impl CallContext {
    /// A request's context before any policy ran.
    pub fn new(site: Arc<Site>, path_values: Vec<String>) -> CallContext {
        CallContext {
            site,
            path_values,
            caller: RefCell::new(nobody()),
            credential: RefCell::default(),
            upstream: UpstreamCall::default(),
            graphql: RefCell::default(),
            trace: Trace::default(),
            metered: RefCell::default(),
            opens_socket: Cell::default(),
            frames: RefCell::default(),
            query_limits: Cell::default(),
            answered_protocol: Cell::default(),
            takes_gzip: Cell::default(),
            exceeded: Cell::default(),
            cache_key: Cell::default(),
            interception: RefCell::default(),
            set_aside: RefCell::default(),
            chain: RefCell::default(),
            mcp: OnceCell::new(),
        }
    }

    /// The context of a request that another one became, of the same caller.
    pub(crate) fn behind(outer: &CallContext, site: Arc<Site>, path_values: Vec<String>) -> CallContext {
        CallContext {
            caller: outer.caller.clone(),
            credential: outer.credential.clone(),
            trace: outer.trace.clone(),
            ..CallContext::new(site, path_values)
        }
    }

    /// Notes who calls, where the host decided about the sandbox and not the credential.
    pub(crate) fn set_caller(&self, caller: Rc<Caller>) {
        let mut slot = self.caller.borrow_mut();
        let sandbox = slot.sandbox;
        *slot = caller;
        if slot.sandbox != sandbox {
            Rc::make_mut(&mut slot).sandbox = sandbox;
        }
    }

    /// A path and query as it may be written down: a credential in it becomes `***`.
    pub fn without_credentials<'t>(&self, target: &'t str) -> Cow<'t, str> {
        let Some((path, query)) = target.split_once('?') else { return Cow::Borrowed(target) };
        let names_one = |name: &str| {
            let name = facts::percent_decoded(name, true);
            let by_definition =
                self.site.operation.requirements.iter().any(
                    |requirement| matches!(requirement, Requirement::ApiKeyQuery(parameter) if **parameter == *name),
                );
            by_definition || matches!(&*name, "apikey" | "access_token" | "hub.secret")
        };
        let has_one = query.split('&').any(|pair| pair.split_once('=').is_some_and(|(name, _)| names_one(name)));
        if !has_one {
            return Cow::Borrowed(target);
        }
        let masked = query.split('&').map(|pair| match pair.split_once('=') {
            Some((name, _)) if names_one(name) => Cow::Owned(format!("{name}=***")),
            _ => Cow::Borrowed(pair),
        });
        Cow::Owned(format!("{path}?{}", masked.collect::<Vec<_>>().join("&")))
    }

    /// The context of an exchange that a router of this crate admitted.
    pub fn of(exchange: &Exchange) -> Result<Rc<CallContext>, Fault> {
        exchange.extension::<CallContext>().ok_or_else(|| Fault::new("a gateway policy runs outside of a managed API"))
    }
}

#[cfg(test)]
mod tests {
    use penstock_catalog::Operation;

    use super::*;

    #[test]
    fn credentials_are_not_written_down() {
        let requirements = vec![Requirement::ApiKeyQuery("k".into())];
        let operation = Arc::new(Operation { requirements, ..Operation::default() });
        let site = Site { operation, ..Site::default() };
        let context = CallContext::new(Arc::new(site), Vec::new());
        for (target, written) in [
            ("/a", "/a"),
            ("/a?x=1&keys=2", "/a?x=1&keys=2"),
            ("/a?x=1&k=secret", "/a?x=1&k=***"),
            ("/a?access_token=secret&apikey=secret&y", "/a?access_token=***&apikey=***&y"),
            ("/a?hub.mode=x&hub%2Esecret=secret", "/a?hub.mode=x&hub%2Esecret=***"),
        ] {
            assert_eq!(context.without_credentials(target), written);
        }
    }
}
