//! UsernameToken: a name with a password in plain text, or a digest of it with a nonce and a time.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use penstock_xml::{Document, NodeId};
use ring::hmac;

use crate::algorithm::Digest;
use crate::names::{PASSWORD_DIGEST, PASSWORD_TEXT, WSSE, WSU};
use crate::policy::{Settings, UsernameAssertion};
use crate::refusal::{Refusal, RefusalCode};
use crate::rsa::random;
use crate::time;
use crate::tree::{binary, child, children, text};

/// The passwords of users by name.
pub type Passwords<'a> = &'a dyn Fn(&str) -> Option<String>;

/// More nonces than this within their life are an attack; further tokens are refused until old ones expire.
const NONCES_MAX: usize = 100_000;

/// Nonces that were used, until they expire.
#[derive(Debug, Default)]
pub struct NonceCache(Mutex<Nonces>);

#[derive(Debug, Default)]
struct Nonces {
    until: HashMap<Vec<u8>, SystemTime>,
    /// When expired ones were removed last.
    swept: Option<SystemTime>,
}

/// Expired nonces are removed this often, so that a token costs no walk over all of them.
const SWEEP: Duration = Duration::from_secs(10);

impl NonceCache {
    /// Takes a nonce that was not used before.
    fn take(&self, nonce: Vec<u8>, now: SystemTime, life: Duration) -> Result<(), Refusal> {
        let mut nonces = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = nonces.swept.is_none_or(|swept| now.duration_since(swept).unwrap_or(SWEEP) >= SWEEP);
        if is_due || nonces.until.len() >= NONCES_MAX {
            nonces.until.retain(|_, until| *until > now);
            nonces.swept = Some(now);
        }
        if nonces.until.get(&nonce).is_some_and(|until| *until > now) {
            return Err(Refusal::authentication("the security token was used before"));
        }
        if nonces.until.len() >= NONCES_MAX {
            return Err(Refusal::authentication("too many security tokens at once"));
        }
        nonces.until.insert(nonce, now + life);
        Ok(())
    }
}

/// The answer to a wrong name is that to a wrong password.
fn wrong() -> Refusal {
    Refusal::authentication("the security token could not be authenticated")
}

/// Checks the only UsernameToken of a Security header and returns its element with the user's name.
pub(crate) fn check(
    document: &Document,
    security: NodeId,
    assertion: UsernameAssertion,
    settings: &Settings,
    passwords: Passwords<'_>,
    nonces: &NonceCache,
    now: SystemTime,
) -> Result<(NodeId, String), Refusal> {
    let mut tokens = children(document, security, WSSE, "UsernameToken");
    let token = tokens.next().ok_or_else(|| Refusal::authentication("the Security header has no UsernameToken"))?;
    if tokens.next().is_some() {
        return Err(Refusal::invalid("the Security header has two UsernameTokens"));
    }
    let part = |namespace: &str, name: &str| child(document, token, namespace, name);
    let name = part(WSSE, "Username").map(|node| text(document, node)).unwrap_or_default();
    let password =
        part(WSSE, "Password").ok_or_else(|| Refusal::authentication("the UsernameToken has no Password"))?;
    let given = document.string_value(password).into_owned();
    // A name that no user has takes the same steps as one that a user has, so that the time does not reveal which exist.
    let known = passwords(&name);
    let (exists, known) = (known.is_some(), known.unwrap_or_default());
    match document.attribute(password, "", "Type").unwrap_or(PASSWORD_TEXT) {
        PASSWORD_TEXT if !assertion.hashed => match is_same(known.as_bytes(), given.as_bytes()) & exists {
            true => Ok((token, name)),
            false => Err(wrong()),
        },
        PASSWORD_DIGEST => {
            let nonce = part(WSSE, "Nonce").and_then(|node| binary(document, node)).filter(|nonce| !nonce.is_empty());
            let nonce = nonce.ok_or_else(|| Refusal::authentication("a password digest needs a nonce"))?;
            let created = part(WSU, "Created").map(|node| text(document, node)).unwrap_or_default();
            let at = time::parse(&created)
                .ok_or_else(|| Refusal::authentication("a password digest needs the time it was created"))?;
            check_age(at, settings, now)?;
            let digest = Digest::Sha1.hash(&[&nonce[..], created.as_bytes(), known.as_bytes()].concat());
            let given = binary(document, password).ok_or_else(wrong)?;
            if !(is_same(&digest, &given) & exists) {
                return Err(wrong());
            }
            // As long as the token could be sent again, whichever clock is behind.
            let life = settings.nonce_life.max(settings.ttl + settings.skew * 2);
            nonces.take(nonce, now, life)?;
            Ok((token, name))
        }
        PASSWORD_TEXT => Err(Refusal::authentication("the policy requires a password digest")),
        _ => Err(Refusal::authentication("a password of this type is not supported")),
    }
}

fn check_age(created: SystemTime, settings: &Settings, now: SystemTime) -> Result<(), Refusal> {
    if created > now + settings.skew || created + settings.ttl + settings.skew < now {
        return Err(Refusal::new(RefusalCode::MessageExpired, "the security token has expired"));
    }
    Ok(())
}

/// Compares in constant time: their keyed digests are compared.
fn is_same(known: &[u8], given: &[u8]) -> bool {
    let Ok(bytes) = random(32) else { return false };
    let key = hmac::Key::new(hmac::HMAC_SHA256, &bytes);
    hmac::verify(&key, given, hmac::sign(&key, known).as_ref()).is_ok()
}
