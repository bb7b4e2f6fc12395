//! What one core remembers: tokens it verified. Nothing here is shared, so a hit takes no lock.

use std::borrow::Borrow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::rc::Rc;
use std::sync::Arc;

use super::token::Verified;

/// Tokens one core remembers, in two generations of this size: when the younger is full it becomes the older, and
/// tokens that were not used since are dropped.
const GENERATION_MAX: usize = 5_000;

thread_local! {
    static CACHE: RefCell<Cache> = RefCell::default();
}

#[derive(Default)]
struct Cache {
    /// Whose tokens these are: the verifier's number.
    verifier: u64,
    /// The state of the list of revoked tokens they were checked against.
    revocations: u64,
    young: Generation,
    old: Generation,
}

type Generation = HashMap<Token, Rc<Verified>, TailHash>;

/// A token as a key, found by its bytes: those of a request are known for text once they are found.
#[derive(PartialEq, Eq)]
struct Token(Arc<str>);

impl Borrow<[u8]> for Token {
    fn borrow(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl Hash for Token {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.as_bytes().hash(state);
    }
}

/// What the tokens of a core are checked against.
#[derive(Clone, Copy)]
pub(super) struct Epoch<'r> {
    /// The verifier's number.
    pub verifier: u64,
    /// The number of the list of revoked tokens.
    pub revocations: u64,
    /// Whether a token is on it.
    pub is_revoked: &'r dyn Fn(&Verified) -> bool,
}

/// The token, when this core verified it before.
pub(super) fn get(epoch: Epoch<'_>, token: &[u8]) -> Option<Rc<Verified>> {
    CACHE.with_borrow_mut(|cache| {
        cache.catch_up(epoch);
        if let Some(found) = cache.young.get(token) {
            return Some(found.clone());
        }
        let (key, found) = cache.old.remove_entry(token)?;
        cache.insert(key, found.clone());
        Some(found)
    })
}

/// Remembers a token.
pub(super) fn put(epoch: Epoch<'_>, verified: Rc<Verified>) {
    CACHE.with_borrow_mut(|cache| {
        cache.catch_up(epoch);
        cache.insert(Token(verified.caller.token.clone()), verified);
    });
}

/// Forgets a token.
pub(super) fn remove(token: &[u8]) {
    CACHE.with_borrow_mut(|cache| {
        cache.young.remove(token);
        cache.old.remove(token);
    });
}

impl Cache {
    fn catch_up(&mut self, epoch: Epoch<'_>) {
        if self.verifier != epoch.verifier {
            *self = Cache { verifier: epoch.verifier, revocations: epoch.revocations, ..Cache::default() };
        } else if self.revocations != epoch.revocations {
            self.revocations = epoch.revocations;
            let holds = |_: &Token, verified: &mut Rc<Verified>| !(epoch.is_revoked)(verified);
            self.young.retain(holds);
            self.old.retain(holds);
        }
    }

    fn insert(&mut self, key: Token, verified: Rc<Verified>) {
        if self.young.len() >= GENERATION_MAX {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, verified);
    }
}

/// Hashes the end of a token only: it is part of the signature, which differs as much as any hash. Equality looks at
/// the whole token, and only verified tokens are in the table, so clients cannot choose collisions.
#[derive(Default)]
struct TailHash(RandomState);

struct TailHasher<H>(H);

/// As much as the shortest signature has.
const TAIL_BYTES: usize = 64;

impl BuildHasher for TailHash {
    type Hasher = TailHasher<<RandomState as BuildHasher>::Hasher>;

    fn build_hasher(&self) -> Self::Hasher {
        TailHasher(self.0.build_hasher())
    }
}

impl<H: Hasher> Hasher for TailHasher<H> {
    /// The length of what follows says little that its end does not.
    fn write_usize(&mut self, _: usize) {}

    fn write(&mut self, bytes: &[u8]) {
        self.0.write(&bytes[bytes.len().saturating_sub(TAIL_BYTES)..]);
    }

    fn finish(&self) -> u64 {
        self.0.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_identity::Issuer;

    use crate::security::token::TokenKind;

    fn verified(token: &str, jti: &str) -> Rc<Verified> {
        let claims = serde_json::json!({"exp": 1, "jti": jti});
        let claims = claims.as_object().cloned().unwrap_or_default();
        Rc::new(Verified::read(TokenKind::Jwt, token.into(), claims, &Issuer::default()).unwrap())
    }

    #[test]
    fn what_is_used_stays_and_the_rest_is_forgotten() {
        let epoch = Epoch { verifier: u64::MAX, revocations: 0, is_revoked: &|_| false };
        put(epoch, verified("used", "u"));
        put(epoch, verified("unused", "v"));
        for number in 0..3 * GENERATION_MAX {
            put(epoch, verified(&format!("token {number}"), "x"));
            if number % 1000 == 0 {
                assert!(get(epoch, b"used").is_some(), "{number}");
            }
        }
        assert!(get(epoch, b"unused").is_none() && get(epoch, b"token 0").is_none());
        CACHE.with_borrow(|cache| assert!(cache.young.len() + cache.old.len() <= 2 * GENERATION_MAX));
        // Same end, other beginning: another token.
        assert!(get(epoch, b"xused").is_none());
    }

    #[test]
    fn revoked_tokens_and_those_of_another_configuration_are_dropped() {
        let epoch = Epoch { verifier: u64::MAX - 1, revocations: 0, is_revoked: &|_| false };
        put(epoch, verified("a", "a"));
        put(epoch, verified("b", "b"));
        let later = Epoch { revocations: 1, is_revoked: &|token| token.jti.as_deref() == Some("a"), ..epoch };
        assert!(get(later, b"a").is_none() && get(later, b"b").is_some());
        assert!(get(Epoch { verifier: u64::MAX - 2, ..later }, b"b").is_none());
    }
}
