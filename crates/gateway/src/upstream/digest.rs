//! Digest access authentication (RFC 7616), as used by backends: MD5 and SHA-256, also of sessions, and
//! `qop=auth` or, as old servers write it, none.
//!
//! The first request meets the challenge, the others answer it beforehand until the backend gives another one.

use std::fmt::Write;
use std::sync::{Mutex, PoisonError};

use md5::{Digest as _, Md5};
use penstock_catalog::BasicCredentials;
use penstock_message::Headers;
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};

use crate::hex::hex;

/// Credentials, and the last challenge of the backend.
pub(super) struct Digest {
    user: BasicCredentials,
    used: Mutex<Option<UsedChallenge>>,
}

/// A challenge, and how many requests answered it.
struct UsedChallenge {
    challenge: Challenge,
    count: u32,
}

/// A challenge that can be answered.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Challenge {
    realm: String,
    nonce: String,
    opaque: Option<String>,
    /// As the server wrote it; absent means MD5.
    algorithm: Option<String>,
    sha256: bool,
    session: bool,
    /// Whether `qop=auth` is offered.
    auth: bool,
}

impl Digest {
    pub(super) fn new(user: BasicCredentials) -> Digest {
        Digest { user, used: Mutex::default() }
    }

    /// The value of `Authorization` for a request; nothing before the first challenge.
    pub(super) fn next(&self, method: &str, target: &str) -> Option<String> {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let used = used.as_mut()?;
        // After so many uses a challenge is renewed.
        used.count = used.count.checked_add(1)?;
        let (challenge, count) = (used.challenge.clone(), used.count);
        let client_nonce = client_nonce()?;
        Some(challenge.answer(&self.user, method, target, count, &client_nonce))
    }

    /// Takes the challenge of a refusal, when there is one that can be answered.
    pub(super) fn is_challenged(&self, headers: &Headers) -> bool {
        let fields = headers.get_all("www-authenticate").filter_map(|field| std::str::from_utf8(field).ok());
        let offered: Vec<Challenge> = fields.flat_map(challenges).collect();
        // The stronger one, wherever it stands.
        let best = offered.iter().find(|challenge| challenge.sha256).or(offered.first()).cloned();
        let found = best.is_some();
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        // Servers that count find a number that was there before a theft.
        let known = used.take();
        *used = best.map(|challenge| {
            let count = known.filter(|known| known.challenge.nonce == challenge.nonce).map_or(0, |known| known.count);
            UsedChallenge { challenge, count }
        });
        found
    }

    /// Begins anew.
    pub(super) fn forget(&self) {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

fn client_nonce() -> Option<String> {
    let mut bytes = [0; 16];
    SystemRandom::new().fill(&mut bytes).ok()?;
    Some(hex(&bytes))
}

impl Challenge {
    fn hash(&self, text: &str) -> String {
        if self.sha256 { hex(digest(&SHA256, text.as_bytes()).as_ref()) } else { hex(&Md5::digest(text.as_bytes())) }
    }

    fn answer(&self, user: &BasicCredentials, method: &str, target: &str, count: u32, client_nonce: &str) -> String {
        let Challenge { realm, nonce, .. } = self;
        let name = &user.username;
        let mut secret = self.hash(&format!("{name}:{realm}:{}", user.password));
        if self.session {
            secret = self.hash(&format!("{secret}:{nonce}:{client_nonce}"));
        }
        let request = self.hash(&format!("{method}:{target}"));
        let response = match self.auth {
            true => self.hash(&format!("{secret}:{nonce}:{count:08x}:{client_nonce}:auth:{request}")),
            false => self.hash(&format!("{secret}:{nonce}:{request}")),
        };
        let mut field = format!(
            "Digest username=\"{}\", realm=\"{}\", nonce=\"{}\", uri=\"{}\", response=\"{response}\"",
            quoted(name),
            quoted(realm),
            quoted(nonce),
            quoted(target)
        );
        if let Some(algorithm) = &self.algorithm {
            let _ = write!(field, ", algorithm={algorithm}");
        }
        if let Some(opaque) = &self.opaque {
            let _ = write!(field, ", opaque=\"{}\"", quoted(opaque));
        }
        if self.auth {
            let _ = write!(field, ", qop=auth, nc={count:08x}");
        }
        if self.auth || self.session {
            let _ = write!(field, ", cnonce=\"{client_nonce}\"");
        }
        field
    }

    /// What the parameters of a challenge say; `None` when they ask for something that cannot be done.
    fn from_parameters(parameters: &[(String, String)]) -> Option<Challenge> {
        let get = |name: &str| {
            let found = parameters.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
            found.map(|(_, value)| value.clone())
        };
        let algorithm = get("algorithm");
        let (sha256, session) = match algorithm.as_deref().unwrap_or("MD5").to_ascii_uppercase().as_str() {
            "MD5" => (false, false),
            "MD5-SESS" => (false, true),
            "SHA-256" => (true, false),
            "SHA-256-SESS" => (true, true),
            _ => return None,
        };
        let qop = get("qop");
        let auth = qop.as_deref().is_some_and(|offered| offered.split(',').any(|one| one.trim() == "auth"));
        if qop.is_some_and(|offered| !offered.trim().is_empty()) && !auth {
            return None;
        }
        Some(Challenge {
            realm: get("realm")?,
            nonce: get("nonce")?,
            opaque: get("opaque"),
            algorithm,
            sha256,
            session,
            auth,
        })
    }
}

/// A text between quotes.
fn quoted(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

/// The challenges of a `WWW-Authenticate` field that ask for a digest (RFC 9110 §11.6.1). Schemes and their parameters
/// are all separated by commas: what has no `=` behind it is a scheme.
fn challenges(field: &str) -> Vec<Challenge> {
    let mut found = Vec::new();
    let mut scheme = "";
    let mut parameters = Vec::new();
    let mut rest = field;
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        let end = rest.find([' ', '\t', ',', '=']).unwrap_or(rest.len());
        let (word, behind) = rest.split_at(end);
        let value = behind.trim_start().strip_prefix('=');
        if word.is_empty() && value.is_none() || value.is_none() {
            if scheme.eq_ignore_ascii_case("digest") {
                found.extend(Challenge::from_parameters(&parameters));
            }
            if word.is_empty() {
                return found;
            }
            (scheme, rest) = (word, behind);
            parameters.clear();
            continue;
        }
        let (value, behind) = value_of(value.unwrap_or_default().trim_start());
        parameters.push((word.to_owned(), value));
        rest = behind;
    }
}

/// A word or a text between quotes, and what follows.
fn value_of(text: &str) -> (String, &str) {
    let Some(inside) = text.strip_prefix('"') else {
        let end = text.find([' ', '\t', ',']).unwrap_or(text.len());
        return (text[..end].to_owned(), &text[end..]);
    };
    let mut value = String::new();
    let mut letters = inside.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return (value, &inside[at + 1..]),
            '\\' => value.extend(letters.next().map(|(_, letter)| letter)),
            _ => value.push(letter),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(username: &str, password: &str) -> BasicCredentials {
        BasicCredentials { username: username.into(), password: password.into() }
    }

    #[test]
    fn the_examples_of_the_standards_are_answered_as_there() {
        // RFC 7616 §3.9.1.
        let field = r#"Digest realm="http-auth@example.org", qop="auth, auth-int", algorithm=SHA-256, nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS""#;
        let both = format!("Basic realm=\"a, b\", {field}, {}", field.replace("SHA-256", "MD5"));
        let client_nonce = "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ";
        let responses: Vec<String> = challenges(&both)
            .iter()
            .map(|challenge| {
                challenge.answer(&user("Mufasa", "Circle of Life"), "GET", "/dir/index.html", 1, client_nonce)
            })
            .collect();
        assert_eq!(responses.len(), 2);
        for (answer, expected) in responses.iter().zip([
            "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1",
            "8ca523f5e9506fed4657c9700eebdbec",
        ]) {
            assert!(answer.contains(&format!("response=\"{expected}\"")), "{answer}");
            assert!(answer.contains("qop=auth, nc=00000001"), "{answer}");
        }
        // RFC 2617 §3.5 without `qop`, as RFC 2069 had it.
        let old = challenges(r#"digest realm="testrealm@host.com", nonce="dcd98b7102dd2f0e8b11d0f600bfb0c093""#);
        let answer = old[0].answer(&user("Mufasa", "Circle Of Life"), "GET", "/dir/index.html", 1, "x");
        assert!(answer.ends_with("response=\"670fd8c2df070c60b045671b8b24ff02\""), "{answer}");
    }

    #[test]
    fn what_cannot_be_answered_is_no_challenge() {
        for field in [
            "",
            "Basic realm=\"x\"",
            "Digest",
            "Digest realm=\"a\"",
            "Digest realm=a, nonce=b, algorithm=SHA-512-256",
            "Digest realm=a, nonce=b, qop=\"auth-int\"",
            "Digest realm=\"a, nonce=b",
            "=,=\"\\",
        ] {
            assert_eq!(challenges(field), [], "{field}");
        }
        let found = challenges("Negotiate, Digest  realm = \"a\\\"b\" , nonce=n,qop=auth ,Bearer x=\"y\"");
        assert_eq!((found.len(), &*found[0].realm, found[0].auth), (1, "a\"b", true));
    }

    #[test]
    fn answers_are_counted() {
        let digest = Digest::new(user("a", "b"));
        assert_eq!(digest.next("GET", "/"), None);
        let mut headers = Headers::new();
        headers.append("WWW-Authenticate", "Digest realm=r, nonce=n, qop=auth, algorithm=MD5-sess");
        headers.append("WWW-Authenticate", "Digest realm=r, nonce=n, qop=auth, algorithm=SHA-256");
        assert!(digest.is_challenged(&headers));
        for count in 1..4 {
            let answer = digest.next("GET", "/").unwrap();
            assert!(answer.contains(&format!("algorithm=SHA-256, qop=auth, nc=0000000{count}")), "{answer}");
        }
        // Requests that were refused at once each bring a challenge.
        assert!(digest.is_challenged(&headers));
        assert!(digest.next("GET", "/").unwrap().contains("nc=00000004"));
        headers.set("WWW-Authenticate", "Digest realm=r, nonce=o, qop=auth");
        assert!(digest.is_challenged(&headers));
        assert!(digest.next("GET", "/").unwrap().contains("nc=00000001"));
        assert!(!digest.is_challenged(&Headers::new()));
        assert_eq!(digest.next("GET", "/"), None);
    }
}
