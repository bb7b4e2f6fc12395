//! What clients and backends say about keeping answers (RFC 9111), and the API's own lifetime.

use std::time::Duration;

use penstock_message::{Headers, Method};

/// What a client says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Wish {
    /// Neither looked up nor kept.
    pub(super) is_no_store: bool,
    /// Not looked up; the new answer is kept.
    is_no_cache: bool,
    /// How old an answer may be.
    age_max: Option<Duration>,
}

/// An answer that may be kept.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Terms {
    /// How old it was when it came.
    pub(super) age: Duration,
    /// How old it may become.
    pub(super) lifetime: Duration,
}

/// Requests for a part, or for what changed, have answers of their own.
const PARTIAL: [&str; 6] =
    ["range", "if-match", "if-none-match", "if-modified-since", "if-unmodified-since", "if-range"];

impl Wish {
    pub(super) fn from_headers(headers: &Headers) -> Wish {
        let mut wish = Wish::default();
        if PARTIAL.iter().any(|name| headers.contains(name)) {
            wish.is_no_store = true;
        }
        for (name, value) in directives(headers) {
            match &*name {
                "no-store" => wish.is_no_store = true,
                "no-cache" => wish.is_no_cache = true,
                "max-age" => wish.age_max = value.parse().ok().map(Duration::from_secs),
                _ => {}
            }
        }
        if !headers.contains("cache-control") && headers.get("pragma").is_some_and(|value| value.contains("no-cache")) {
            wish.is_no_cache = true;
        }
        wish
    }

    /// Whether an answer so old will do.
    pub(super) fn takes(&self, age: Duration) -> bool {
        !self.is_no_cache && self.age_max.is_none_or(|max| age < max)
    }
}

/// On which terms an answer may be kept.
pub(super) fn terms(status: u16, headers: &Headers, lifetime: Duration) -> Option<Terms> {
    // What sets a cookie was made for one client.
    if status != 200 || headers.contains("set-cookie") || !varies_by_key_only(headers) {
        return None;
    }
    let (mut shared, mut any) = (None, None);
    for (name, value) in directives(headers) {
        let seconds = || value.trim_matches('"').parse().map(Duration::from_secs).unwrap_or_default();
        match &*name {
            "no-store" | "private" | "no-cache" => return None,
            "s-maxage" => shared = Some(seconds()),
            "max-age" => any = Some(seconds()),
            _ => {}
        }
    }
    if !headers.contains("cache-control") {
        let is_old = headers.get("expires").is_some_and(|value| matches!(value.trim(), "0" | "-1"));
        if is_old || headers.get("pragma").is_some_and(|value| value.contains("no-cache")) {
            return None;
        }
    }
    let age = headers.get("age").and_then(|age| age.trim().parse().ok()).map(Duration::from_secs).unwrap_or_default();
    let lifetime = shared.or(any).map_or(lifetime.saturating_add(age), |said| said.min(lifetime.saturating_add(age)));
    (lifetime > age).then_some(Terms { age, lifetime })
}

/// Whether an answer depends on nothing that the key leaves out.
fn varies_by_key_only(headers: &Headers) -> bool {
    let fields = headers.get_all("vary").map(|value| String::from_utf8_lossy(value).into_owned());
    let names: Vec<String> = fields.flat_map(|field| field.split(',').map(str::to_owned).collect::<Vec<_>>()).collect();
    names.iter().map(|name| name.trim()).all(|name| name != "*" && !super::key::is_left_out(name.as_bytes()))
}

/// The directives of `Cache-Control`, names in lower case.
fn directives(headers: &Headers) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for field in headers.get_all("cache-control") {
        for directive in String::from_utf8_lossy(field).split(',') {
            let (name, value) = directive.split_once('=').unwrap_or((directive, ""));
            found.push((name.trim().to_ascii_lowercase(), value.trim().to_owned()));
        }
    }
    found
}

/// Fields that belong to one connection or are made anew. The length of an answer to HEAD is all there is of its body.
pub(super) fn is_of_one_transfer(name: &[u8], method: &Method) -> bool {
    const FIELDS: [&str; 8] =
        ["connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade", "age"];
    let is = |field: &str| name.eq_ignore_ascii_case(field.as_bytes());
    FIELDS.iter().any(|field| is(field)) || (is("content-length") && *method != Method::Head)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(text: &str) -> Headers {
        let mut headers = Headers::new();
        for line in text.split('|').filter(|line| !line.is_empty()) {
            let (name, value) = line.split_once(": ").expect(line);
            headers.append(name, value);
        }
        headers
    }

    #[test]
    fn answers_say_how_long_they_may_be_kept() {
        for (answer, expected) in [
            ("", Some((0, 60))),
            ("Cache-Control: max-age=10", Some((0, 10))),
            ("Cache-Control: public, max-age=3600", Some((0, 60))),
            ("Cache-Control: max-age=0", None),
            ("Cache-Control: max-age=30, S-MaxAge=5", Some((0, 5))),
            ("Cache-Control: max-age=30|Age: 20", Some((20, 30))),
            ("Cache-Control: max-age=30|Age: 40", None),
            ("Cache-Control: max-age=nonsense", None),
            ("Cache-Control: no-store", None),
            ("Cache-Control: Private", None),
            ("Cache-Control: max-age=5|Cache-Control: no-cache", None),
            ("Expires: 0", None),
            ("Expires: 0|Cache-Control: max-age=5", Some((0, 5))),
            ("Pragma: no-cache", None),
            ("Set-Cookie: a=b", None),
            ("Vary: accept, Accept-Language", Some((0, 60))),
            ("Vary: *", None),
            ("Vary: accept, User-Agent", None),
        ] {
            let found = terms(200, &fields(answer), Duration::from_secs(60));
            let found = found.map(|terms| (terms.age.as_secs(), terms.lifetime.as_secs()));
            assert_eq!(found, expected, "{answer}");
        }
        assert_eq!(terms(404, &fields(""), Duration::from_secs(60)), None);
    }

    #[test]
    fn requests_say_what_they_take() {
        // Whether an answer is looked up and kept at all, and whether one of five seconds will do.
        for (request, expected) in [
            ("", (true, true)),
            ("Cache-Control: no-store", (false, true)),
            ("Range: bytes=0-1", (false, true)),
            ("If-None-Match: \"1\"", (false, true)),
            ("Cache-Control: no-cache", (true, false)),
            ("Pragma: no-cache", (true, false)),
            ("Cache-Control: max-age=0", (true, false)),
            ("Cache-Control: max-age=6", (true, true)),
        ] {
            let wish = Wish::from_headers(&fields(request));
            assert_eq!((!wish.is_no_store, wish.takes(Duration::from_secs(5))), expected, "{request}");
        }
    }
}
