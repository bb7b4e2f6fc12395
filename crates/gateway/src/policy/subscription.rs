//! Whether the caller's application subscribed to the API, and with which plan: by the catalog, or by what the token
//! says when the catalog does not know the application.

use std::rc::Rc;
use std::sync::Arc;

use penstock_catalog::{Subscription, SubscriptionState};
use penstock_compile::Compiler;
use penstock_engine::{Exchange, Fault, Flow, Mediator};

use super::authenticate::is_secured;
use crate::caller::Caller;
use crate::error::{GatewayError, RESOURCE_FORBIDDEN, codes};
use crate::policy::{ApiKinds, Phase, PolicyKind};
use crate::security::{SecurityState, TokenKind, Verified};
use crate::{CallContext, ErrorStyle, Gateway, Site};

/// The kind.
pub const KIND: PolicyKind = PolicyKind {
    name: "subscription",
    applies_to: ApiKinds::AUTHENTICATED,
    phase: Phase::Authorization,
    request: Some(compile),
    response: None,
};

struct Subscribed {
    state: Arc<SecurityState>,
    style: ErrorStyle,
}

fn compile(gateway: &Gateway, site: &Arc<Site>, _cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    let subscribed = || Subscribed { state: gateway.state.security.clone(), style: gateway.config.error_style };
    is_secured(site).then(|| Box::new(subscribed()) as Box<dyn Mediator>)
}

/// What the catalog knows.
enum InCatalog {
    Unknown,
    NotSubscribed,
    Found(SubscriptionState),
}

impl Mediator for Subscribed {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let context = CallContext::of(exchange)?;
        let credential = context.credential.borrow();
        let Some(token) = credential.as_ref() else { return Ok(Flow::Next) };
        let mut caller = context.caller.borrow_mut();
        let (api, accesses) = (&context.site.api, self.state.access_number());
        // A certificate may have added to what the token says.
        let is_of_token = Rc::ptr_eq(&caller, &token.caller);
        if is_of_token && let Some(known) = token.caller_at(api, accesses) {
            *caller = known;
            return Ok(Flow::Next);
        }
        self.check(token, &context.site, Rc::make_mut(&mut caller))?;
        if is_of_token {
            token.remember_at(api, accesses, &caller);
        }
        Ok(Flow::Next)
    }
}

impl Subscribed {
    /// Whether the caller may call the API. What is known of it is noted.
    fn check(&self, token: &Verified, site: &Site, caller: &mut Caller) -> Result<(), Fault> {
        // An API key of this process that names APIs is valid for these only.
        let is_bound = token.kind == TokenKind::ApiKey && token.introspected && token.subscribed.is_some();
        if is_bound && !subscribed_by_token(token, site, caller) {
            return Err(self.forbidden(token, "the key is for another API"));
        }
        match self.in_catalog(token, site, caller) {
            InCatalog::Found(state) => match refusal(state, caller.sandbox) {
                None => Ok(()),
                Some((code, reason)) => Err(GatewayError::new(code).because(reason).into()),
            },
            InCatalog::Unknown if subscribed_by_token(token, site, caller) => Ok(()),
            _ if !token.validate_subscription => Ok(()),
            InCatalog::NotSubscribed => Err(self.forbidden(token, "the application has not subscribed to the API")),
            InCatalog::Unknown => {
                Err(self.forbidden(token, "neither the catalog nor the token knows of a subscription"))
            }
        }
    }

    /// Choreo Connect says less of a token that names other APIs.
    fn forbidden(&self, token: &Verified, reason: &str) -> Fault {
        let names_others = token.subscribed.is_some() && self.style == ErrorStyle::ChoreoConnect;
        let error = match names_others {
            true => GatewayError::described(codes::FORBIDDEN, RESOURCE_FORBIDDEN),
            false => GatewayError::new(codes::FORBIDDEN),
        };
        error.because(reason).into()
    }

    /// Looks the caller's application up and notes what is known of it.
    fn in_catalog(&self, token: &Verified, site: &Site, caller: &mut Caller) -> InCatalog {
        if token.kind == TokenKind::Internal {
            return InCatalog::Unknown;
        }
        self.state.with_access(|access| {
            let key = caller.consumer_key.clone();
            let Some((application, production)) = access.application(&key) else { return InCatalog::Unknown };
            let organization = organization_of(&site.api.base_path);
            if application.organization.as_deref().is_some_and(|own| own != organization) {
                return InCatalog::NotSubscribed;
            }
            caller.application_id = application.id.clone();
            caller.application_name = application.name.clone();
            caller.application_tier = application.tier.clone();
            if !caller.key_type_known {
                caller.sandbox = !production;
            }
            match access.subscription(&application.id, &site.api.name, &site.api.version) {
                None => InCatalog::NotSubscribed,
                Some(Subscription { tier, state, .. }) => {
                    caller.subscription_tier = tier.clone();
                    InCatalog::Found(*state)
                }
            }
        })
    }
}

/// The organization of APIs whose base path names none.
const FIRST_ORGANIZATION: &str = "carbon.super";

/// The organization whose API has a base path.
fn organization_of(base_path: &str) -> &str {
    base_path.strip_prefix("/t/").and_then(|rest| rest.split('/').next()).unwrap_or(FIRST_ORGANIZATION)
}

/// Whether the token itself names the API; its plan is noted.
pub(crate) fn subscribed_by_token(token: &Verified, site: &Site, caller: &mut Caller) -> bool {
    let Some(subscribed) = &token.subscribed else { return false };
    let api = &site.api;
    let found = subscribed.iter().find(|entry| {
        let same = match token.kind {
            // The context in the key is written with the version or without.
            TokenKind::Internal => {
                let base = &*api.base_path;
                let without = base.strip_suffix(&*api.version).and_then(|base| base.strip_suffix('/'));
                *entry.context == *base || without.is_some_and(|base| *entry.context == *base)
            }
            TokenKind::Jwt | TokenKind::Platform | TokenKind::ApiKey => entry.name == api.name,
        };
        same && entry.version == api.version
    });
    if let Some(entry) = found.filter(|entry| !entry.tier.is_empty()) {
        caller.subscription_tier = entry.tier.clone();
    }
    found.is_some()
}

/// What a subscription in a state is refused with.
fn refusal(state: SubscriptionState, sandbox: bool) -> Option<(u32, &'static str)> {
    match state {
        SubscriptionState::Unblocked => None,
        SubscriptionState::ProductionBlocked if sandbox => None,
        SubscriptionState::Blocked | SubscriptionState::ProductionBlocked => {
            Some((codes::SUBSCRIPTION_BLOCKED, "the subscription is blocked"))
        }
        SubscriptionState::OnHold => Some((codes::SUBSCRIPTION_INACTIVE, "the subscription is on hold")),
        SubscriptionState::Rejected => Some((codes::SUBSCRIPTION_INACTIVE, "the subscription was rejected")),
    }
}
