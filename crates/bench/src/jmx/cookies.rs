//! Cookies of a user, as JMeter's cookie manager keeps them.
use super::text::Text;
use crate::http::url::Url;

/// A cookie manager.
#[derive(Debug, Default)]
pub struct CookieSettings {
    /// Whether the cookies are forgotten with each iteration of the thread group.
    pub clear_each_iteration: bool,
    /// Whether they are forgotten with each iteration that begins as another user.
    pub clear_with_user: bool,
    /// Cookies that each user starts with.
    pub initial: Vec<InitialCookie>,
}

/// A cookie of the plan.
#[derive(Debug)]
pub struct InitialCookie {
    pub name: Text,
    pub value: Text,
    pub domain: Text,
    pub path: Text,
    pub secure: bool,
}

/// A cookie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cookie {
    pub name: String,
    pub value: String,
    /// Host, without a dot before it.
    pub domain: String,
    /// Whether hosts below the domain get it too.
    pub below_domain: bool,
    pub path: String,
    pub secure: bool,
}

/// More cookies than a browser keeps for one site; the oldest makes room.
const COOKIES_MAX: usize = 300;

/// The cookies of one user.
#[derive(Debug, Default)]
pub struct Jar(Vec<Cookie>);

impl Jar {
    /// Forgets all cookies.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Adds a cookie, or replaces the one with its name, domain and path.
    pub fn add(&mut self, cookie: Cookie) {
        self.0.retain(|other| !other.replaced_by(&cookie));
        if self.0.len() >= COOKIES_MAX {
            self.0.remove(0);
        }
        self.0.push(cookie);
    }

    /// Takes a `Set-Cookie` field of a response from this address (RFC 6265 §5.2).
    pub fn take(&mut self, field: &str, url: &Url) {
        let mut parts = field.split(';');
        let Some((name, value)) = parts.next().and_then(|pair| pair.split_once('=')) else { return };
        let mut cookie = Cookie {
            name: name.trim().to_owned(),
            value: value.trim().to_owned(),
            domain: url.host.to_ascii_lowercase(),
            below_domain: false,
            path: default_path(url),
            secure: false,
        };
        let mut expired = false;
        for attribute in parts {
            let (name, value) = attribute.split_once('=').unwrap_or((attribute, ""));
            let value = value.trim();
            match name.trim().to_ascii_lowercase().as_str() {
                "domain" if !value.is_empty() => {
                    cookie.domain = value.trim_start_matches('.').to_ascii_lowercase();
                    cookie.below_domain = true;
                }
                "path" if value.starts_with('/') => cookie.path = value.to_owned(),
                "secure" => cookie.secure = true,
                "max-age" => expired = value.parse::<i64>().is_ok_and(|seconds| seconds <= 0),
                // Servers delete cookies with a date of long ago; a date that matters to a test is in the future.
                "expires" => expired |= is_long_ago(value),
                _ => {}
            }
        }
        let host = url.host.to_ascii_lowercase();
        if cookie.name.is_empty() || !domain_matches(&host, &cookie.domain, cookie.below_domain) {
            return;
        }
        if expired {
            self.0.retain(|other| !other.replaced_by(&cookie));
        } else {
            self.add(cookie);
        }
    }

    /// The `Cookie` field of a request to this address; `None` without cookies for it.
    pub fn field(&self, url: &Url) -> Option<String> {
        let host = url.host.to_ascii_lowercase();
        let path = url.path.split('?').next().unwrap_or_default();
        let matches = |cookie: &&Cookie| {
            (url.tls || !cookie.secure)
                && domain_matches(&host, &cookie.domain, cookie.below_domain)
                && path_matches(path, &cookie.path)
        };
        let mut found: Vec<&Cookie> = self.0.iter().filter(matches).collect();
        found.sort_by_key(|cookie| std::cmp::Reverse(cookie.path.len()));
        let pairs: Vec<String> = found.iter().map(|cookie| format!("{}={}", cookie.name, cookie.value)).collect();
        (!pairs.is_empty()).then(|| pairs.join("; "))
    }
}

impl Cookie {
    fn replaced_by(&self, other: &Cookie) -> bool {
        self.name == other.name && self.domain == other.domain && self.path == other.path
    }
}

fn domain_matches(host: &str, domain: &str, below: bool) -> bool {
    host == domain || (below && host.strip_suffix(domain).is_some_and(|before| before.ends_with('.')))
}

fn path_matches(path: &str, cookie_path: &str) -> bool {
    let Some(rest) = path.strip_prefix(cookie_path) else { return false };
    rest.is_empty() || cookie_path.ends_with('/') || rest.starts_with('/')
}

/// RFC 6265 §5.1.4.
fn default_path(url: &Url) -> String {
    let path = url.path.split('?').next().unwrap_or_default();
    match path.rfind('/') {
        None | Some(0) => "/".to_owned(),
        Some(at) => path[..at].to_owned(),
    }
}

/// Whether the year of a date is before this program.
fn is_long_ago(date: &str) -> bool {
    const YEAR_MIN: u32 = 2020;
    let words = date.split(|letter: char| !letter.is_ascii_digit());
    words.filter(|word| word.len() == 4).filter_map(|word| word.parse::<u32>().ok()).any(|year| year < YEAR_MIN)
}
