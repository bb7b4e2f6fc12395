//! `securityConfig` of definitions and `endpoint_security` of descriptors: what the gateway proves itself with to a
//! backend.

use std::sync::Arc;
use std::time::Duration;

use penstock_catalog::{ApiKeyCredentials, At, BasicCredentials, EndpointSecurity, OAuthCredentials};

use super::document::{Item, parse};
use super::shared::address;
use super::{Import, hint};

/// The kinds there are.
const KINDS: [&str; 5] = ["BASIC", "DIGEST", "OAUTH", "APIKEY", "NONE"];

/// Reads what one kind of key has; `None` when nothing is required, and after a mistake was reported.
pub(super) fn read(import: &mut Import<'_>, item: &Item<'_>) -> Option<EndpointSecurity> {
    if import.flag_of(item, "enabled") == Some(false) {
        return None;
    }
    let kind = import.text_of(item, "type")?;
    match &*kind.to_ascii_uppercase() {
        "NONE" | "" => None,
        "BASIC" => Some(EndpointSecurity::Basic(user(import, item))),
        "DIGEST" => Some(EndpointSecurity::Digest(user(import, item))),
        "OAUTH" => oauth(import, item).map(EndpointSecurity::OAuth),
        "APIKEY" => api_key(import, item).map(EndpointSecurity::ApiKey),
        _ => {
            let meant = hint(&kind.to_ascii_uppercase(), KINDS.into_iter());
            let known = KINDS[..KINDS.len() - 1].join("`, `");
            let message = format!("endpoint security of the type `{kind}` is not supported; `{known}` are{meant}");
            import.error(&at_of(item, "type"), message);
            None
        }
    }
}

/// Where a member stands, or the whole when it is absent.
fn at_of(item: &Item<'_>, key: &str) -> At {
    item.get(key).map_or_else(|| item.at(), |value| value.at())
}

fn user(import: &mut Import<'_>, item: &Item<'_>) -> BasicCredentials {
    let username = import.text_of(item, "username").unwrap_or_default();
    let password = import.text_of(item, "password");
    if password.is_none() {
        import.warn(&item.at(), "endpoint security without a `password`; an empty one is sent");
    }
    BasicCredentials { username, password: password.unwrap_or_default() }
}

fn oauth(import: &mut Import<'_>, item: &Item<'_>) -> Option<OAuthCredentials> {
    let grant = import.some_text_of(item, "grantType").unwrap_or_else(|| "CLIENT_CREDENTIALS".into());
    let user = match &*grant.to_ascii_uppercase() {
        "CLIENT_CREDENTIALS" => None,
        "PASSWORD" => Some(user(import, item)),
        other => {
            let meant = hint(other, ["CLIENT_CREDENTIALS", "PASSWORD"].into_iter());
            let message = format!("`grantType` must be `CLIENT_CREDENTIALS` or `PASSWORD`, not `{grant}`{meant}");
            import.error(&at_of(item, "grantType"), message);
            return None;
        }
    };
    let mut needed = |key: &str| {
        let found = import.some_text_of(item, key);
        if found.is_none() {
            import.error(&at_of(item, key), format!("endpoint security of the type `OAUTH` needs `{key}`"));
        }
        found
    };
    let (token_url, client_id) = (needed("tokenUrl"), needed("clientId"));
    let (token_url, client_id) = (token_url?, client_id?);
    if address(&token_url).is_none_or(|url| !matches!(url.scheme, "http" | "https")) {
        let message = format!("`tokenUrl` must begin with http:// or https://, not `{token_url}`");
        import.error(&at_of(item, "tokenUrl"), message);
        return None;
    }
    let client_secret = import.text_of(item, "clientSecret").unwrap_or_default();
    if client_secret.is_empty() {
        // Exports leave secrets out.
        import.warn(&at_of(item, "clientSecret"), "endpoint security without a `clientSecret`; an empty one is sent");
    }
    let timeouts =
        ["connectionTimeoutDuration", "connectionRequestTimeoutDuration", "socketTimeoutDuration"].map(|key| {
            let seconds = item.get(key).and_then(|value| value.number()).filter(|seconds| *seconds > 0);
            seconds.map(Duration::from_secs)
        });
    let proxies = item.get("proxyConfigs").or_else(|| item.get("proxyConfig"));
    if let Some(proxy) = proxies.filter(|proxy| proxy.get("proxyEnabled").and_then(|flag| flag.flag()) == Some(true)) {
        import.warn(&proxy.at(), "the proxy is not used for token requests");
    }
    Some(OAuthCredentials {
        token_url,
        client_id,
        client_secret,
        user,
        parameters: parameters(import, item),
        timeout: timeouts.into_iter().flatten().max(),
    })
}

/// `customParameters`: a mapping, or JSON in a text.
fn parameters(import: &mut Import<'_>, item: &Item<'_>) -> Vec<(Arc<str>, Arc<str>)> {
    let Some(given) = item.get("customParameters") else { return Vec::new() };
    let Some(text) = given.text().filter(|text| !text.trim().is_empty()) else { return pairs(import, &given) };
    match parse(&given.at().file, text.as_bytes()) {
        Ok(document) => pairs(import, &document.item()),
        Err((_, message)) => {
            import.error(&given.at(), format!("`customParameters` is not JSON: {message}"));
            Vec::new()
        }
    }
}

fn pairs(import: &mut Import<'_>, map: &Item<'_>) -> Vec<(Arc<str>, Arc<str>)> {
    let mut found = Vec::new();
    for (name, _, value) in map.entries() {
        // Newer versions say beside a value whether it is a secret.
        let value = value.get("value").unwrap_or(value);
        found.extend(import.text(&value, name).map(|text| (name.clone(), text)));
    }
    found
}

fn api_key(import: &mut Import<'_>, item: &Item<'_>) -> Option<ApiKeyCredentials> {
    let mut needed = |key: &str| {
        let found = import.some_text_of(item, key);
        if found.is_none() {
            import.error(&at_of(item, key), format!("endpoint security of the type `APIKEY` needs `{key}`"));
        }
        found
    };
    let (name, value) = (needed("apiKeyIdentifier"), needed("apiKeyValue"));
    let (name, value) = (name?, value?);
    let place = import.some_text_of(item, "apiKeyIdentifierType").unwrap_or_else(|| "HEADER".into());
    let in_query = match &*place.to_ascii_uppercase() {
        "HEADER" => false,
        "QUERY_PARAMETER" | "QUERY" => true,
        _ => {
            let message = format!("`apiKeyIdentifierType` must be `HEADER` or `QUERY_PARAMETER`, not `{place}`");
            import.error(&at_of(item, "apiKeyIdentifierType"), message);
            return None;
        }
    };
    if !in_query && !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.!#$%&'*+^`|~".contains(&byte)) {
        import.error(&at_of(item, "apiKeyIdentifier"), format!("`{name}` is not a header name"));
        return None;
    }
    Some(ApiKeyCredentials { name, value, in_query })
}
