//! The gateway's tables of callers: users, issuers of tokens, applications with their subscriptions.

use std::time::Duration;

use penstock_catalog::{Application, Subscription, SubscriptionState};
use penstock_gateway::security::{Issuer, PublicKey, Secret, TrustedKey, User};

use super::security::security;
use super::settings::Settings;
use super::value::Value;

/// A token that its issuer revoked counts so long at most.
const INTROSPECTION_CACHE_MAX: Duration = Duration::from_secs(3600);

/// `[gateway.users]` and `[gateway.test_users]`.
pub(super) fn user(settings: &mut Settings, name: &str, value: &Value, for_tests: bool) {
    let user = User { name: name.into(), password: Secret::new(value.0.as_str()) };
    let security = security(settings);
    if for_tests { security.test_key_users.push(user) } else { security.users.push(user) }
}

/// `[gateway.issuers.NAME]`: one key of it, as `NAME.key`; whether there is such a key.
pub(super) fn issuer(settings: &mut Settings, path: &str, value: &Value) -> Result<bool, String> {
    const MAPPING: &str = ".claim_mapping.";
    let (name, key, theirs) = match path.split_once(MAPPING) {
        Some((name, theirs)) => (name, "claim_mapping", theirs),
        None => match path.rsplit_once('.') {
            Some((name, key)) => (name, key, ""),
            None => return Err("must be a table with `issuer` and keys".to_owned()),
        },
    };
    let issuers = &mut security(settings).issuers;
    let known = issuers.iter().position(|issuer| *issuer.name == *name).unwrap_or_else(|| {
        issuers.push(Issuer { name: name.into(), ..Issuer::default() });
        issuers.len() - 1
    });
    let Some(issuer) = issuers.get_mut(known) else { return Ok(false) };
    match key {
        "issuer" => issuer.issuer = value.text().into(),
        "jwks_url" => issuer.jwks_url = Some(url(value)?),
        "discovery_url" => issuer.discovery_url = Some(url(value)?),
        "introspection_url" => issuer.introspection.get_or_insert_default().url = url(value)?,
        "introspection_client" => issuer.introspection.get_or_insert_default().client_id = value.text().into(),
        "introspection_secret" => {
            issuer.introspection.get_or_insert_default().client_secret = penstock_catalog::Secret(value.text().into());
        }
        "introspection_cache" => {
            let time = value.duration("s")?;
            if time > INTROSPECTION_CACHE_MAX {
                return Err(format!("must be at most {} s", INTROSPECTION_CACHE_MAX.as_secs()));
            }
            issuer.introspection.get_or_insert_default().cache = time;
        }
        "certificate" => {
            for file in value.list() {
                let bytes = std::fs::read(&*file).map_err(|error| format!("`{file}`: {error}"))?;
                let key = PublicKey::parse(&bytes).map_err(|why| format!("`{file}`: {why}"))?;
                issuer.keys.push(TrustedKey { kid: None, key });
            }
        }
        "key" => {
            let key = PublicKey::parse(value.text().as_bytes()).map_err(|why| why.to_string())?;
            issuer.keys.push(TrustedKey { kid: None, key });
        }
        "validate_subscription" => {
            issuer.validate_subscription = value.flag()?;
            // API keys name their APIs, and are only believed to be for all of them when that is said.
            issuer.keys_for_any_api = !issuer.validate_subscription;
        }
        "consumer_key_claim" => issuer.consumer_key_claim = value.text().into(),
        "scopes_claim" => issuer.scopes_claim = value.text().into(),
        "audiences" => issuer.audiences = value.list(),
        "claim_mapping" => issuer.claim_mapping.push((theirs.into(), value.text().into())),
        _ => return Ok(false),
    }
    Ok(true)
}

fn url(value: &Value) -> Result<std::sync::Arc<str>, String> {
    let text = value.text();
    if !text.starts_with("https://") && !text.starts_with("http://") {
        return Err(format!("must begin with `https://` or `http://`, not `{text}`"));
    }
    Ok(text.into())
}

/// `[gateway.applications.NAME]`: one key of it, as `NAME.key`; whether there is such a key.
pub(super) fn application(settings: &mut Settings, path: &str, value: &Value) -> Result<bool, String> {
    let Some((name, key)) = path.rsplit_once('.') else {
        return Err("must be a table with `keys` and `subscriptions`".to_owned());
    };
    let security = &mut settings.security;
    let known = security.applications.iter().position(|application| *application.name == *name).unwrap_or_else(|| {
        security.applications.push(Application { id: name.into(), name: name.into(), ..Application::default() });
        security.applications.len() - 1
    });
    let Some(application) = security.applications.get_mut(known) else { return Ok(false) };
    match key {
        "keys" => application.keys.extend(value.list().into_iter().map(|key| (key, true))),
        "sandbox_keys" => application.keys.extend(value.list().into_iter().map(|key| (key, false))),
        "owner" => application.owner = value.text().into(),
        "plan" => application.tier = value.text().into(),
        "subscriptions" => {
            for entry in value.list() {
                security.subscriptions.push(subscription(name, &entry)?);
            }
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// `API:VERSION`, then perhaps the plan, then perhaps the state.
fn subscription(application: &str, entry: &str) -> Result<Subscription, String> {
    let mut parts = entry.split(':').map(str::trim);
    let mut part = || parts.next().unwrap_or_default();
    let (api, version, plan, state) = (part(), part(), part(), part());
    if api.is_empty() || version.is_empty() {
        return Err(format!("must be `API:VERSION`, `API:VERSION:PLAN` or `API:VERSION:PLAN:STATE`, not `{entry}`"));
    }
    let state = match state {
        "" | "UNBLOCKED" => SubscriptionState::Unblocked,
        "BLOCKED" => SubscriptionState::Blocked,
        "PROD_ONLY_BLOCKED" => SubscriptionState::ProductionBlocked,
        "ON_HOLD" => SubscriptionState::OnHold,
        "REJECTED" => SubscriptionState::Rejected,
        other => {
            return Err(format!(
                "has the state `{other}`; a subscription is UNBLOCKED, BLOCKED, PROD_ONLY_BLOCKED, ON_HOLD or REJECTED"
            ));
        }
    };
    Ok(Subscription {
        application: application.into(),
        api: api.into(),
        version: version.into(),
        tier: plan.into(),
        state,
    })
}
