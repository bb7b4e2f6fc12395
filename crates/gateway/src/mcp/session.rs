//! Sessions: names that this gateway gave out and no other could have made. Nothing is kept of a session that lasts, so
//! that unknown clients cannot fill the memory; only sessions that were ended early are stored.

use std::collections::{HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};

/// The field of requests and answers that names a session.
pub(crate) const HEADER: &str = "Mcp-Session-Id";

/// How long a session lasts. A client whose session is over begins a new one (Streamable HTTP, session management).
const LIFETIME_SECONDS: u64 = 24 * 3600;

/// Ended sessions that are remembered; beyond them the first to have ended are forgotten.
const ENDED_MAX: usize = 10_000;

const NONCE: usize = 16;
const TIME: usize = 8;

/// The sessions of all MCP servers. Outlives reloads.
pub(crate) struct Sessions {
    /// Absent when the system gives no random numbers; then there are no sessions.
    key: Option<hmac::Key>,
    random: SystemRandom,
    ended: Mutex<Ended>,
    /// Whether any was ended: then the list is looked at.
    any_ended: AtomicBool,
}

/// Ended sessions, and in what order they ended.
#[derive(Default)]
struct Ended {
    all: HashSet<[u8; NONCE]>,
    order: VecDeque<[u8; NONCE]>,
}

impl std::fmt::Debug for Sessions {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Sessions")
    }
}

impl Default for Sessions {
    fn default() -> Sessions {
        let random = SystemRandom::new();
        Sessions {
            key: hmac::Key::generate(hmac::HMAC_SHA256, &random).ok(),
            random,
            ended: Mutex::default(),
            any_ended: AtomicBool::new(false),
        }
    }
}

impl Sessions {
    /// A new session with a server.
    pub(super) fn begin(&self, server: &str) -> Option<String> {
        self.begin_at(server, now())
    }

    fn begin_at(&self, server: &str, now: u64) -> Option<String> {
        let mut name = vec![0; NONCE];
        self.random.fill(&mut name).ok()?;
        name.extend_from_slice(&now.to_be_bytes());
        let tag = hmac::sign(self.key.as_ref()?, &signed(server, &name));
        name.extend_from_slice(tag.as_ref());
        Some(URL_SAFE_NO_PAD.encode(name))
    }

    /// Whether a session with a server lasts.
    pub(super) fn lasts(&self, server: &str, name: &str) -> bool {
        self.find(server, name).is_some()
    }

    /// Ends a session; whether there was one.
    pub(super) fn end(&self, server: &str, name: &str) -> bool {
        let Some(nonce) = self.find(server, name) else { return false };
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        if ended.order.len() >= ENDED_MAX
            && let Some(first) = ended.order.pop_front()
        {
            ended.all.remove(&first);
        }
        ended.order.push_back(nonce);
        ended.all.insert(nonce);
        self.any_ended.store(true, Ordering::Release);
        true
    }

    fn find(&self, server: &str, name: &str) -> Option<[u8; NONCE]> {
        let bytes = URL_SAFE_NO_PAD.decode(name).ok()?;
        let (claim, tag) = bytes.split_at_checked(NONCE + TIME)?;
        hmac::verify(self.key.as_ref()?, &signed(server, claim), tag).ok()?;
        let (nonce, time) = claim.split_at(NONCE);
        let began = u64::from_be_bytes(time.try_into().ok()?);
        let nonce: [u8; NONCE] = nonce.try_into().ok()?;
        let is_over = now() >= began.saturating_add(LIFETIME_SECONDS);
        let was_ended = || self.ended.lock().unwrap_or_else(PoisonError::into_inner).all.contains(&nonce);
        let gone = is_over || (self.any_ended.load(Ordering::Acquire) && was_ended());
        (!gone).then_some(nonce)
    }
}

/// What is signed: a session with one server is none with another.
fn signed(server: &str, claim: &[u8]) -> Vec<u8> {
    [server.as_bytes(), b"\n", claim].concat()
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_given_out_lasts() {
        let sessions = Sessions::default();
        let name = sessions.begin("/a").expect("random numbers");
        assert!(name.bytes().all(|byte| byte.is_ascii_graphic()), "{name}");
        assert!(sessions.lasts("/a", &name) && !sessions.lasts("/b", &name));
        let mut forged = URL_SAFE_NO_PAD.decode(&name).expect("it is base64");
        forged[0] ^= 1;
        for other in ["", "x", &URL_SAFE_NO_PAD.encode(forged), &name[1..], &Sessions::default().begin("/a").unwrap()] {
            assert!(!sessions.lasts("/a", other), "{other}");
        }
        let old = sessions.begin_at("/a", now() - LIFETIME_SECONDS).expect("random numbers");
        assert!(!sessions.lasts("/a", &old));
        assert!(sessions.end("/a", &name) && !sessions.end("/a", &name) && !sessions.lasts("/a", &name));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let sessions = Sessions::default();
        let names: Vec<String> = (0..ENDED_MAX + 2).map(|_| sessions.begin("/a").expect("random numbers")).collect();
        for name in &names {
            assert!(sessions.end("/a", name));
        }
        let lasting = names.iter().filter(|name| sessions.lasts("/a", name)).count();
        assert_eq!(lasting, 2, "the first that ended are forgotten");
    }
}
