//! Values that definitions and descriptors write the same way.

use std::sync::Arc;

use penstock_catalog::{At, Cors, Interceptor, InterceptorPart, LambdaFunction};
use std::time::Duration;

use super::document::Item;
use super::{Import, hint};

/// The least an absolute address has: a scheme, a host, and what may follow it.
pub(super) struct Address<'a> {
    /// `http`, `https`.
    pub scheme: &'a str,
    /// The path, `/` when there is none.
    pub path: &'a str,
}

/// Takes an absolute address apart.
pub(super) fn address(url: &str) -> Option<Address<'_>> {
    let (scheme, rest) = url.split_once("://")?;
    if !scheme.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return None;
    }
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    let port_is_good = match host.rsplit_once(':') {
        Some((_, port)) if !host.ends_with(']') => port.parse::<u16>().is_ok(),
        _ => true,
    };
    let is_good = !host.is_empty() && !host.starts_with(':') && port_is_good && !url.contains(char::is_whitespace);
    is_good.then_some(Address { scheme, path: if path.is_empty() { "/" } else { path } })
}

impl Import<'_> {
    /// A single value, as text.
    pub(super) fn text(&mut self, item: &Item<'_>, what: &str) -> Option<Arc<str>> {
        match item.text() {
            Some(text) => Some(text.clone()),
            None => {
                self.error(&item.at(), format!("`{what}` must be a text, not {}", item.kind()));
                None
            }
        }
    }

    /// The member of a mapping that must be a single value.
    pub(super) fn text_of(&mut self, map: &Item<'_>, key: &str) -> Option<Arc<str>> {
        let item = map.get(key)?;
        self.text(&item, key)
    }

    /// The member that must be a text and must not be empty.
    pub(super) fn some_text_of(&mut self, map: &Item<'_>, key: &str) -> Option<Arc<str>> {
        self.text_of(map, key).filter(|text| !text.trim().is_empty())
    }

    /// The member of a mapping that must be a flag.
    pub(super) fn flag_of(&mut self, map: &Item<'_>, key: &str) -> Option<bool> {
        let item = map.get(key)?;
        let flag = item.flag();
        if flag.is_none() {
            self.error(&item.at(), format!("`{key}` must be true or false"));
        }
        flag
    }

    /// The member of a mapping that must be a whole number.
    pub(super) fn number_of(&mut self, map: &Item<'_>, key: &str) -> Option<u64> {
        let item = map.get(key)?;
        let number = item.number();
        if number.is_none() && item.text().is_none_or(|text| !text.trim().is_empty()) {
            self.error(&item.at(), format!("`{key}` must be a whole number"));
        }
        number
    }

    /// A function of AWS: the members with its name, its milliseconds and whether it gets base64.
    pub(super) fn lambda(&mut self, map: &Item<'_>, [name, timeout, encoded]: [&str; 3]) -> Option<LambdaFunction> {
        let name = self.some_text_of(map, name)?;
        let timeout = self.number_of(map, timeout).map(Duration::from_millis);
        let encodes_body = self.flag_of(map, encoded).unwrap_or(false);
        Some(LambdaFunction { name, timeout, encodes_body })
    }

    /// A list of texts. One text alone stands for a list of it, and exports write a mapping of numbers for a list.
    pub(super) fn texts(&mut self, item: &Item<'_>, what: &str) -> Vec<Arc<str>> {
        if item.is_null() {
            return Vec::new();
        }
        let items: Vec<Item<'_>> = if item.is_list() {
            item.items().collect()
        } else if item.is_map() {
            item.entries().map(|(_, _, value)| value).collect()
        } else {
            vec![*item]
        };
        items.iter().filter_map(|item| self.text(item, what)).collect()
    }

    /// The member that is a list of texts.
    pub(super) fn texts_of(&mut self, map: &Item<'_>, key: &str) -> Vec<Arc<str>> {
        map.get(key).map(|item| self.texts(&item, key)).unwrap_or_default()
    }

    /// `x-wso2-cors` and `corsConfiguration`. `None` when it is switched off: then the gateway's own rules apply.
    pub(super) fn cors(&mut self, item: &Item<'_>) -> Option<Cors> {
        const KEYS: [(&str, &str); 6] = [
            ("corsConfigurationEnabled", "cors-configuration-enabled"),
            ("accessControlAllowOrigins", "access-control-allow-origins"),
            ("accessControlAllowMethods", "access-control-allow-methods"),
            ("accessControlAllowHeaders", "access-control-allow-headers"),
            ("accessControlExposeHeaders", "access-control-expose-headers"),
            ("accessControlAllowCredentials", "access-control-allow-credentials"),
        ];
        if !item.is_map() {
            self.error(&item.at(), format!("the rules for browsers must be a mapping, not {}", item.kind()));
            return None;
        }
        for (key, at, _) in item.entries() {
            let names = || KEYS.iter().flat_map(|(name, other)| [*name, *other]);
            if !names().any(|name| name == &**key) {
                self.warn(&at, format!("unknown key `{key}` is ignored{}", hint(key, names())));
            }
        }
        let key = |index: usize| {
            KEYS.get(index)
                .copied()
                .filter(|(name, _)| item.has(name))
                .map_or_else(|| KEYS.get(index).map_or("", |(_, other)| *other), |(name, _)| name)
        };
        if self.flag_of(item, key(0)) == Some(false) {
            return None;
        }
        Some(Cors {
            enabled: true,
            origins: self.texts_of(item, key(1)),
            methods: self.texts_of(item, key(2)),
            headers: self.texts_of(item, key(3)),
            expose_headers: self.texts_of(item, key(4)),
            credentials: self.flag_of(item, key(5)).unwrap_or(false),
        })
    }

    /// `x-wso2-request-interceptor`, `x-wso2-response-interceptor`.
    pub(super) fn interceptor(&mut self, item: &Item<'_>) -> Option<Interceptor> {
        let service_url = match item.get("serviceURL") {
            Some(url) if url.is_map() => self.old_service_url(&url)?,
            Some(_) => self.text_of(item, "serviceURL")?,
            None => {
                self.error(&item.at(), "an interceptor needs `serviceURL`");
                return None;
            }
        };
        let at = item.get("serviceURL").map_or_else(|| item.at(), |url| url.at());
        if address(&service_url).is_none_or(|url| !matches!(url.scheme, "http" | "https")) {
            self.error(&at, format!("`serviceURL` must be an http or https address, not `{service_url}`"));
            return None;
        }
        for (key, at, _) in item.entries() {
            const KEYS: [&str; 5] =
                ["serviceURL", "includes", "clusterTimeout", "requestTimeout", "passthroughOnError"];
            if !KEYS.contains(&&**key) {
                self.warn(&at, format!("unknown key `{key}` is ignored{}", hint(key, KEYS.into_iter())));
            }
        }
        let mut includes = Vec::new();
        for include in item.get("includes").iter().flat_map(|list| list.items()) {
            let Some(name) = self.text(&include, "includes") else { continue };
            match interceptor_part(&name) {
                Some(part) if includes.contains(&part) => {}
                Some(part) => includes.push(part),
                None => {
                    let names = INTERCEPTOR_PARTS.iter().map(|(name, _)| *name);
                    self.warn(&include.at(), format!("unknown part `{name}` is ignored{}", hint(&name, names)));
                }
            }
        }
        Some(Interceptor {
            service_url,
            includes,
            connect_timeout: self.number_of(item, "clusterTimeout").map(Duration::from_secs),
            request_timeout: self.number_of(item, "requestTimeout").map(Duration::from_secs),
            passthrough_on_error: self.flag_of(item, "passthroughOnError"),
            at: item.at(),
        })
    }

    /// Scheme, host and port apart, as the first versions wrote them.
    fn old_service_url(&mut self, url: &Item<'_>) -> Option<Arc<str>> {
        let scheme = self.text_of(url, "scheme").or_else(|| self.text_of(url, "protocol"))?;
        let (host, port) = (self.text_of(url, "host")?, self.text_of(url, "port")?);
        Some(format!("{}://{host}:{port}", scheme.to_ascii_lowercase()).into())
    }

    /// A base path: a leading slash, no trailing one, and only letters that need no escape.
    pub(super) fn base_path(&mut self, text: &str, at: &At) -> Option<Arc<str>> {
        let text = text.trim();
        let good = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'~' | b'_' | b'.' | b'-');
        if !text.starts_with('/') || !text.bytes().all(good) {
            self.error(at, format!("a base path begins with `/` and is letters, digits and `~ _ . -`, not `{text}`"));
            return None;
        }
        let trimmed = text.trim_end_matches('/');
        Some(if trimmed.is_empty() { "/".into() } else { trimmed.into() })
    }
}

/// The names of [`InterceptorPart`]s.
const INTERCEPTOR_PARTS: [(&str, InterceptorPart); 7] = [
    ("request_headers", InterceptorPart::RequestHeaders),
    ("request_body", InterceptorPart::RequestBody),
    ("request_trailers", InterceptorPart::RequestTrailers),
    ("response_headers", InterceptorPart::ResponseHeaders),
    ("response_body", InterceptorPart::ResponseBody),
    ("response_trailers", InterceptorPart::ResponseTrailers),
    ("invocation_context", InterceptorPart::InvocationContext),
];

/// The part an interceptor's `includes` names.
pub fn interceptor_part(name: &str) -> Option<InterceptorPart> {
    let name = name.trim();
    INTERCEPTOR_PARTS.iter().find(|(known, _)| *known == name).map(|(_, part)| *part)
}

/// Whether a text can be the name of a field (RFC 9110 §5.1).
pub fn is_field_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_apart() {
        for (url, expected) in [
            ("http://h:80/a/b?c", Some(("http", "/a/b"))),
            ("https://h", Some(("https", "/"))),
            ("http://[::1]:8080/", Some(("http", "/"))),
            ("/relative", None),
            ("http://", None),
            ("http://:80/", None),
            ("http://h:x/", None),
            ("http://a b/", None),
            ("consul(x)://h", None),
        ] {
            let got = address(url).map(|found| (found.scheme, found.path));
            assert_eq!(got, expected, "{url}");
        }
    }
}
