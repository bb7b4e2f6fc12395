//! API keys: tokens the gateway or its publisher signed, in a header field or a query parameter, perhaps only from
//! some addresses or pages.

use std::sync::Arc;

use penstock_catalog::{Api, Requirement};
use penstock_engine::Exchange;

use super::{Accepted, Attempt, Authenticate, SentIn};
use crate::error::{RESOURCE_FORBIDDEN, codes};
use crate::security::{Refusal, TokenKind, Verified};
use crate::{CallContext, ErrorStyle, client_request, text};

/// The name of header field and query parameter, for APIs that name none.
const DEFAULT_NAME: &str = "apikey";

/// Where a key may be sent.
pub(super) enum KeyPlace {
    /// Compares without case.
    Header(Arc<str>),
    /// Compares with case.
    Query(Arc<str>),
}

/// Where an operation takes keys.
pub(super) fn places(api: &Api, requirements: &[Requirement]) -> Vec<KeyPlace> {
    if requirements.is_empty() {
        if !api.security.api_key {
            return Vec::new();
        }
        let header = api.api_key_header.clone().unwrap_or_else(|| DEFAULT_NAME.into());
        return vec![KeyPlace::Header(header), KeyPlace::Query(DEFAULT_NAME.into())];
    }
    let place = |requirement: &Requirement| match requirement {
        Requirement::ApiKeyHeader(name) => Some(KeyPlace::Header(name.clone())),
        Requirement::ApiKeyQuery(name) => Some(KeyPlace::Query(name.clone())),
        _ => None,
    };
    requirements.iter().filter_map(place).collect()
}

/// Looks for a key.
pub(super) fn attempt<'r>(
    rules: &'r Authenticate,
    exchange: &mut Exchange,
    _context: &CallContext,
    may_fetch: bool,
) -> Attempt<'r> {
    for place in &rules.api_key {
        let (sent, sent_in) = match place {
            KeyPlace::Header(name) => (exchange.message.headers.get_bytes(name), SentIn::Header(name)),
            KeyPlace::Query(name) => {
                let value = query_value(exchange.client.line.query(), name);
                (value.map(str::as_bytes), SentIn::Query(name))
            }
        };
        let Some(sent) = sent.map(<[u8]>::trim_ascii) else { continue };
        let attempt = rules.verify(exchange, TokenKind::ApiKey, sent, may_fetch, sent_in);
        if let Attempt::Accepted(Accepted { token: Some(token), .. }) = &attempt
            && let Some(reason) = not_from_here(exchange, token)
        {
            let description = Some(match rules.config.error_style {
                ErrorStyle::ChoreoConnect => RESOURCE_FORBIDDEN,
                ErrorStyle::ApiManager => "Access forbidden for the invocations",
            });
            return Attempt::Refused(Refusal { code: codes::FORBIDDEN, description, ..Refusal::invalid(reason) });
        }
        return attempt;
    }
    Attempt::Absent
}

pub(crate) fn query_value<'q>(query: Option<&'q str>, name: &str) -> Option<&'q str> {
    query?.split('&').find_map(|pair| pair.split_once('=').filter(|(found, _)| *found == name).map(|(_, value)| value))
}

/// Why a key does not count for this client: addresses decide, pages only when no address is named.
pub(crate) fn not_from_here(exchange: &Exchange, token: &Verified) -> Option<&'static str> {
    if !token.permitted_ips.is_empty() {
        let permitted = token.permitted_ips.iter().any(|range| range.contains(exchange.client.address));
        return (!permitted).then_some("the key is not for the client's address");
    }
    if !token.permitted_referers.is_empty() {
        let page = exchange.message.headers.get("referer").unwrap_or_default();
        let permitted = token.permitted_referers.iter().any(|pattern| fits(pattern, page));
        return (!permitted).then_some("the key is not for the page the client names");
    }
    None
}

/// Whether a text fits a pattern in which `*` is anything but blanks.
fn fits(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        if rest[..at].contains(' ') {
            return false;
        }
        rest = &rest[at + part.len()..];
    }
    rest.strip_suffix(last).is_some_and(|between| !between.contains(' '))
}

/// Takes a key out of what the backend is sent.
pub(super) fn remove_from_query(exchange: &mut Exchange, context: &CallContext, name: &str) {
    let kept = text::without_parameter(client_request::below_now(exchange, &context.site), name);
    exchange.message.url_postfix = Some(kept.into());
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn stars_stand_for_anything_but_blanks() {
        for (pattern, text, expected) in [
            ("www.example.com", "www.example.com", true),
            ("www.example.com", "www.example.com/x", false),
            ("www.example.com/*", "www.example.com/x/y", true),
            ("*.example.com/*", "https://a.example.com/", true),
            ("*.example.com/*", "https://a.example.org/", false),
            ("*", "any thing", false),
            ("*", "", true),
            ("a*b*c", "axxbyyc", true),
            ("a*b*c", "acb", false),
        ] {
            assert_eq!(fits(pattern, text), expected, "{pattern} {text}");
        }
    }
}
