//! Revoked tokens: of a watched file, of a fetched list, and those that were revoked
//! here and are kept.
//!
//! A token is known by its `jti`, and one without by what was signed, or by its signature as API Manager has it.

mod source;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError, RwLock};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use penstock_engine::ports::Outbound;
use ring::digest::{SHA256, digest};
use serde_json::{Map, Value, json};

pub use self::source::RevokedSource;
use self::source::{ASK_TIME_MAX, get};
use super::unix_now;

/// Tokens that are revoked here at once. Most end within an hour.
const REVOKED_MAX: usize = 1_000_000;

/// The longest id: signatures of the longest keys have 1,366 letters.
const ID_BYTES_MAX: usize = 2_048;

/// How often changes are saved, and in how many of these ticks expired entries are removed.
const TICK: Duration = Duration::from_secs(1);
const SWEEP_TICKS: u32 = 60;

/// A token is refused a little longer than it is good, for clocks differ.
const AFTER_END_S: u64 = 300;

/// Keeps what it gets; the error says why it could not.
type Keeper = Box<dyn Fn(&[u8]) -> Result<(), String> + Send + Sync>;

/// A revoked token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RevokedToken {
    /// `jti`, or the signature.
    pub id: String,
    /// When it ends by itself, in seconds since 1970. Without, it stays revoked.
    pub expires: Option<u64>,
}

impl RevokedToken {
    /// Of a token of any issuer; `None` for text that is not a token.
    pub fn of(token: &str) -> Option<RevokedToken> {
        let token = token.trim();
        let (signed, signature) = token.rsplit_once('.')?;
        let (_, payload) = signed.split_once('.')?;
        let bytes = URL_SAFE_NO_PAD.decode(payload.trim_end_matches('=')).ok()?;
        let claims: Map<String, Value> = serde_json::from_slice(&bytes).ok()?;
        let id = identify(claims.get("jti").and_then(Value::as_str), token);
        let is_one = !signature.is_empty() && !id.is_empty() && id.len() <= ID_BYTES_MAX;
        let expires = super::numeric_date(&claims, "exp");
        is_one.then(|| RevokedToken { id: id.into_owned(), expires })
    }
}

/// What a token that is revoked here is known by: its `jti`, and without one what was signed. That cannot be changed, while
/// a signature can be written in several ways.
pub fn identify<'t>(jti: Option<&'t str>, token: &str) -> Cow<'t, str> {
    if let Some(jti) = jti.filter(|jti| !jti.is_empty()) {
        return Cow::Borrowed(jti);
    }
    let signed = token.rsplit_once('.').map_or(token, |(signed, _)| signed);
    Cow::Owned(format!("sha256:{}", URL_SAFE_NO_PAD.encode(digest(&SHA256, signed.as_bytes()))))
}

/// Ids come with the padding of Base64 and without.
fn bare(id: &str) -> &str {
    id.trim_end_matches('=')
}

/// See the module.
#[derive(Default)]
pub struct Revocations {
    lists: RwLock<Lists>,
    /// Counts changes, so that what cores remember is looked at again.
    number: AtomicU64,
    keeper: OnceLock<Keeper>,
    keeping: Mutex<()>,
    /// Whether our own changed since they were kept.
    changed: AtomicBool,
    source: OnceLock<(RevokedSource, Reporter)>,
}

/// Called with the outcome of fetching a list.
type Reporter = Box<dyn Fn(Result<usize, String>) + Send + Sync>;

#[derive(Default)]
struct Lists {
    watched: HashSet<String>,
    asked: HashSet<String>,
    own: HashMap<String, Option<u64>>,
}

impl Revocations {
    /// Whether a token is revoked.
    pub fn revokes(&self, jti: Option<&str>, token: &str) -> bool {
        // API Manager lists tokens without `jti` by their signature.
        let by_signature = || jti.is_none_or(str::is_empty) && self.has(token.rsplit('.').next().unwrap_or_default());
        self.has(&identify(jti, token)) || by_signature()
    }

    fn has(&self, id: &str) -> bool {
        let id = bare(id);
        let lists = self.lists.read().unwrap_or_else(PoisonError::into_inner);
        lists.watched.contains(id) || lists.own.contains_key(id) || lists.asked.contains(id)
    }

    /// Another one after every change.
    pub fn number(&self) -> u64 {
        self.number.load(Ordering::Acquire)
    }

    fn change<T>(&self, change: impl FnOnce(&mut Lists) -> T) -> T {
        let outcome = change(&mut self.lists.write().unwrap_or_else(PoisonError::into_inner));
        self.number.fetch_add(1, Ordering::Release);
        outcome
    }

    /// Replaces the watched list.
    pub fn set_watched(&self, ids: impl IntoIterator<Item = String>) {
        let ids = ids.into_iter().map(|id| bare(&id).to_owned()).collect();
        drop(self.change(|lists| std::mem::replace(&mut lists.watched, ids)));
    }

    /// Adds to the watched list, until it is read again.
    pub fn add_watched(&self, id: &str) {
        self.change(|lists| lists.watched.insert(bare(id).to_owned()));
    }

    /// Revokes a token and keeps it; whether it was not revoked yet. It is revoked also when it cannot be kept, which the
    /// error says.
    pub fn revoke(&self, token: RevokedToken) -> Result<bool, String> {
        if token.id.is_empty() || token.id.len() > ID_BYTES_MAX {
            return Err(format!("an id has 1 to {ID_BYTES_MAX} bytes"));
        }
        let first =
            self.insert(bare(&token.id).to_owned(), token.expires).ok_or("too many tokens are revoked already")?;
        self.keep()?;
        Ok(first)
    }

    /// The same for a request on its way: it is kept within a second.
    pub fn revoke_soon(&self, id: &str, expires: u64) -> bool {
        let expires = Some(expires).filter(|expires| *expires < u64::MAX);
        let first = self.insert(bare(id).to_owned(), expires);
        self.changed.store(true, Ordering::Release);
        // What cannot be written down is not let through.
        first.unwrap_or(false)
    }

    /// `None` when there is no room.
    fn insert(&self, id: String, expires: Option<u64>) -> Option<bool> {
        self.change(|lists| {
            let known = lists.watched.contains(&id) || lists.asked.contains(&id);
            if lists.own.len() >= REVOKED_MAX && !lists.own.contains_key(&id) {
                sweep(&mut lists.own, unix_now());
                if lists.own.len() >= REVOKED_MAX {
                    return None;
                }
            }
            Some(lists.own.insert(id, expires).is_none() && !known)
        })
    }

    /// Takes a revocation of ours back; whether there was one.
    pub fn restore(&self, id: &str) -> Result<bool, String> {
        let found = self.change(|lists| lists.own.remove(bare(id)).is_some());
        if found {
            self.keep()?;
        }
        Ok(found)
    }

    /// The tokens that were revoked here, by id.
    pub fn own(&self) -> Vec<RevokedToken> {
        let lists = self.lists.read().unwrap_or_else(PoisonError::into_inner);
        let one = |(id, expires): (&String, &Option<u64>)| RevokedToken { id: id.clone(), expires: *expires };
        let mut all: Vec<RevokedToken> = lists.own.iter().map(one).collect();
        drop(lists);
        all.sort_by(|left, right| left.id.cmp(&right.id));
        all
    }

    /// Has ours kept by a function, which gets all of them after a change; `kept` is what it got last.
    pub fn kept_by(
        &self,
        keeper: impl Fn(&[u8]) -> Result<(), String> + Send + Sync + 'static,
        kept: Option<&[u8]>,
    ) -> Result<(), String> {
        if let Some(kept) = kept {
            let mut own = read(kept)?;
            sweep(&mut own, unix_now());
            self.change(|lists| lists.own.extend(own));
        }
        // A second call changes nothing.
        let _ = self.keeper.set(Box::new(keeper));
        Ok(())
    }

    fn keep(&self) -> Result<(), String> {
        let Some(keeper) = self.keeper.get() else { return Ok(()) };
        // One after the other: what was kept last must be what is.
        let _one = self.keeping.lock().unwrap_or_else(PoisonError::into_inner);
        self.changed.store(false, Ordering::Release);
        let text = write(&self.own());
        keeper(&text).inspect_err(|_| self.changed.store(true, Ordering::Release))
    }

    /// Sets the URL of a list.
    pub fn ask(&self, source: RevokedSource, report: impl Fn(Result<usize, String>) + Send + Sync + 'static) {
        let _ = self.source.set((source, Box::new(report)));
    }

    /// Stores changes, removes expired ones, fetches the list.
    pub async fn run(&self, outbound: Rc<dyn Outbound>) {
        let mut due = Instant::now();
        for tick in 0_u32.. {
            if let Some((source, report)) = self.source.get()
                && Instant::now() >= due
            {
                due = Instant::now() + source.every.max(TICK);
                let asked = tokio::time::timeout(ASK_TIME_MAX, get(&*outbound, source)).await;
                // Revocations stay while the list cannot be fetched.
                report(asked.unwrap_or_else(|_| Err("no response in time".to_owned())).map(|ids| {
                    let count = ids.len();
                    let same = self.lists.read().unwrap_or_else(PoisonError::into_inner).asked == ids;
                    if !same {
                        drop(self.change(|lists| std::mem::replace(&mut lists.asked, ids)));
                    }
                    count
                }));
            }
            if tick % SWEEP_TICKS == 0 {
                let mut lists = self.lists.write().unwrap_or_else(PoisonError::into_inner);
                sweep(&mut lists.own, unix_now());
            }
            if self.changed.load(Ordering::Acquire) {
                // The store logs the reason; it is retried.
                let _ = self.keep();
            }
            tokio::time::sleep(TICK).await;
        }
    }
}

impl fmt::Debug for Revocations {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Revocations")
    }
}

/// Forgets what ended by itself.
fn sweep(own: &mut HashMap<String, Option<u64>>, now: u64) {
    own.retain(|_, expires| expires.is_none_or(|expires| expires.saturating_add(AFTER_END_S) > now));
}

fn write(own: &[RevokedToken]) -> Vec<u8> {
    let members: Map<String, Value> = own.iter().map(|token| (token.id.clone(), token.expires.into())).collect();
    json!({ "version": 1, "revoked": members }).to_string().into_bytes()
}

/// Reads what was written. What cannot be read is a mistake, so that it is not written over.
fn read(bytes: &[u8]) -> Result<HashMap<String, Option<u64>>, String> {
    let kept: Value = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    if kept.get("version") != Some(&json!(1)) {
        return Err("it is not of version 1".to_owned());
    }
    let members = kept.get("revoked").and_then(Value::as_object).ok_or("it has no `revoked`")?;
    Ok(members.iter().map(|(id, expires)| (bare(id).to_owned(), expires.as_u64())).collect())
}

/// Reads what was written, and writes it again.
pub fn rewritten(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut all: Vec<_> = read(bytes).ok()?.into_iter().map(|(id, expires)| RevokedToken { id, expires }).collect();
    all.sort_by(|left, right| left.id.cmp(&right.id));
    Some(write(&all))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn token(id: &str, expires: Option<u64>) -> RevokedToken {
        RevokedToken { id: id.to_owned(), expires }
    }

    #[test]
    fn a_token_is_known_by_its_id_or_by_what_was_signed() {
        let encoded = |claims: Value| format!("e30.{}.c2ln", URL_SAFE_NO_PAD.encode(claims.to_string()));
        for (text, expected) in [
            (encoded(json!({ "jti": "a", "exp": 7 })), Some(token("a", Some(7)))),
            (encoded(json!({ "sub": "x" })), Some(token("sha256:xCDGc5wVipuupJOEnkDaoLRZ_EU_OaBMTDltvKd6KD4", None))),
            ("a.b".to_owned(), None),
            ("e30.W10.c2ln".to_owned(), None),
            ("e30.e30.".to_owned(), None),
        ] {
            assert_eq!(RevokedToken::of(&text), expected, "{text}");
        }
    }

    /// A signature is written with padding or without, and one of ECDSA has a twin; what was signed is the same.
    #[test]
    fn another_way_to_write_a_token_does_not_bring_it_back() {
        let revocations = Revocations::default();
        let revoked = RevokedToken::of("e30.e30.c2ln").expect("it is a token");
        assert_eq!(revocations.revoke(revoked), Ok(true));
        for token in ["e30.e30.c2ln", "e30.e30.c2ln==", "e30.e30.b3RoZXI"] {
            assert!(revocations.revokes(None, token) && revocations.revokes(Some(""), token), "{token}");
        }
        assert!(!revocations.revokes(Some("jti"), "e30.e30.c2ln") && !revocations.revokes(None, "e30.e31.c2ln"));
        let listed = Revocations::default();
        listed.set_watched(["c2ln==".to_owned(), "jti=".to_owned()]);
        assert!(listed.revokes(None, "e30.e30.c2ln") && listed.revokes(Some("jti="), "e30.e30.x"));
    }

    #[test]
    fn what_was_revoked_is_kept_until_it_ends() {
        let kept: Arc<Mutex<Vec<u8>>> = Arc::default();
        let keeper = |kept: &Arc<Mutex<Vec<u8>>>| {
            let kept = kept.clone();
            move |bytes: &[u8]| {
                *kept.lock().expect("no panic") = bytes.to_vec();
                Ok(())
            }
        };
        let first = Revocations::default();
        first.kept_by(keeper(&kept), None).expect("nothing to read");
        let number = first.number();
        assert_eq!(first.revoke(token("a", None)), Ok(true));
        assert_eq!(first.revoke(token("a", None)), Ok(false));
        assert_eq!(first.revoke(token("ended", Some(1))), Ok(true));
        assert!(first.number() > number && first.has("a") && !first.has("b"));
        assert!(first.revoke(token("", None)).is_err());
        let second = Revocations::default();
        let bytes = kept.lock().expect("no panic").clone();
        second.kept_by(keeper(&kept), Some(&bytes)).expect("what was written");
        assert_eq!(second.own(), [token("a", None)]);
        assert_eq!((second.restore("a"), second.restore("a")), (Ok(true), Ok(false)));
        assert!(!second.has("a") && Revocations::default().kept_by(|_| Ok(()), Some(b"{}")).is_err());
    }
}
