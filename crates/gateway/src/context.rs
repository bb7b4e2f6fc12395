//! The context of one request of a managed API: its site, its caller, and a typed slot for each policy that keeps
//! something from one step to another.
//!
//! The types of the slots are in the folders of their policies, in files that import nothing of the gateway, so that the
//! context names no code that runs.

use std::borrow::Cow;
use std::cell::{Cell, OnceCell, RefCell};
use std::rc::{Rc, Weak};
use std::sync::Arc;

use penstock_catalog::Requirement;
use penstock_engine::{Exchange, Fault};
use penstock_message::{Headers, Method};

use crate::caller::{Caller, unknown};
use crate::mcp::Call;
use crate::observe::Trace;
use crate::policy::chain::ChainState;
use crate::policy::graphql::GraphQlCall;
use crate::policy::interceptor::InterceptorCall;
use crate::policy::limits::LimitsCall;
use crate::security::Verified;
use crate::site::Site;
use crate::text;
use crate::upstream::UpstreamCall;

/// One request on its way through the policies: the exchange's extension.
pub struct CallContext {
    /// The API and operation it is for.
    pub site: Arc<Site>,
    /// The values of the path template's parameters, in its order, as sent.
    pub path_values: Vec<String>,
    /// The caller, once it is authenticated. Shared with what is cached of its token, so a change makes a copy.
    pub caller: RefCell<Rc<Caller>>,
    /// The token of the caller.
    pub(crate) credential: RefCell<Option<Rc<Verified>>>,
    /// Its way to the backend.
    pub upstream: UpstreamCall,
    /// Whether it is the handshake of a WebSocket connection.
    pub(crate) opens_socket: Cell<bool>,
    /// The request that this one became: a call of a tool, a request to the API behind it.
    inner: RefCell<Option<Rc<CallContext>>>,
    outer: RefCell<Weak<CallContext>>,

    // One slot for each policy that keeps something.
    /// Its place in a trace.
    pub(crate) trace: Trace,
    /// `compress`: whether the client accepts gzip.
    pub(crate) takes_gzip: Cell<bool>,
    /// `websocket`: the protocol under which its client sent a credential.
    pub(crate) answered_protocol: Cell<Option<&'static str>>,
    /// `graphql`: the query.
    pub(crate) graphql: GraphQlCall,
    /// `rate-limit`: what its body and its frames are counted under.
    pub(crate) limits: LimitsCall,
    /// `body-limit`: the limit that its body exceeded.
    pub(crate) exceeded: Cell<Option<u64>>,
    /// `operation-policies`, `inline-script`: the header fields of the request while another message takes their place.
    pub(crate) set_aside: RefCell<Option<Headers>>,
    /// `chain`: what its policies keep.
    pub(crate) chain: RefCell<ChainState>,
    /// `interceptor`: what the services of both flows share.
    pub(crate) interception: RefCell<InterceptorCall>,
    /// `response-cache`: the key of its response, when that may be stored.
    pub(crate) cache_key: Cell<Option<(penstock_engine::kept::Key, Method)>>,
    /// The call of an MCP server's client that it is.
    pub(crate) mcp: OnceCell<Rc<Call>>,
}

impl CallContext {
    /// A request's context before any policy ran.
    pub fn new(site: Arc<Site>, path_values: Vec<String>) -> CallContext {
        CallContext {
            site,
            path_values,
            caller: RefCell::new(unknown()),
            credential: RefCell::default(),
            upstream: UpstreamCall::default(),
            opens_socket: Cell::default(),
            inner: RefCell::default(),
            outer: RefCell::default(),
            trace: Trace::default(),
            takes_gzip: Cell::default(),
            answered_protocol: Cell::default(),
            graphql: GraphQlCall::default(),
            limits: LimitsCall::default(),
            exceeded: Cell::default(),
            set_aside: RefCell::default(),
            chain: RefCell::default(),
            interception: RefCell::default(),
            cache_key: Cell::default(),
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

    /// The context of the request that this one became in the end; `None` when it became no other.
    pub fn innermost(&self) -> Option<Rc<CallContext>> {
        let inner = self.inner.borrow().clone()?;
        Some(inner.innermost().unwrap_or(inner))
    }

    /// The context of the request that became this one.
    pub(crate) fn outer(&self) -> Option<Rc<CallContext>> {
        self.outer.borrow().upgrade()
    }

    /// Notes that this request became another one.
    pub(crate) fn becomes(self: &Rc<CallContext>, inner: &Rc<CallContext>) {
        *inner.outer.borrow_mut() = Rc::downgrade(self);
        *self.inner.borrow_mut() = Some(inner.clone());
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
            let name = text::percent_decoded(name, true);
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
