//! Tokens that count no longer: those of a watched list, those of a list that is asked for, and those that were revoked
//! here and are kept.
//!
//! A token is known by its `jti`, and one without by its signature, as API Manager has it.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use penstock_engine::ports::{Outbound, Outgoing, SendOptions};
use penstock_message::{Form, Headers, Message, Method};
use serde_json::{Map, Value, json};

use super::unix_now;

/// Tokens that are revoked here at once. Most end within an hour.
const REVOKED_MAX: usize = 1_000_000;

/// The longest id: signatures of the longest keys have 1,366 letters.
const ID_BYTES_MAX: usize = 2_048;

/// A list that is asked for: a million ids.
const LIST_BYTES_MAX: usize = 128 << 20;

/// For such a list.
const ASK_TIME_MAX: Duration = Duration::from_secs(30);

/// How often what changed is kept, and what ended is forgotten.
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

/// Where a list of revoked tokens is asked for, in the form of API Manager (`/internal/data/v1/revokedjwt`).
#[derive(Debug, Clone)]
pub struct RevokedSource {
    /// The address.
    pub url: Arc<str>,
    /// The value of `Authorization`.
    pub authorization: Option<penstock_catalog::Secret>,
    /// How often.
    pub every: Duration,
}

impl RevokedToken {
    /// Of a token, whoever signed it. `None` when it is none.
    pub fn of(token: &str) -> Option<RevokedToken> {
        let (signed, signature) = token.trim().rsplit_once('.')?;
        let (_, payload) = signed.split_once('.')?;
        let bytes = URL_SAFE_NO_PAD.decode(payload.trim_end_matches('=')).ok()?;
        let claims: Map<String, Value> = serde_json::from_slice(&bytes).ok()?;
        let id = identify(claims.get("jti").and_then(Value::as_str), token.trim());
        let is_one = !signature.is_empty() && !id.is_empty() && id.len() <= ID_BYTES_MAX;
        let expires = super::token::seconds(&claims, "exp");
        is_one.then(|| RevokedToken { id: id.to_owned(), expires })
    }
}

/// What a token is known by.
pub(super) fn identify<'t>(jti: Option<&'t str>, token: &'t str) -> &'t str {
    jti.filter(|jti| !jti.is_empty()).unwrap_or_else(|| token.rsplit('.').next().unwrap_or_default())
}

/// See the module.
#[derive(Default)]
pub struct Revocations {
    lists: RwLock<Lists>,
    /// Counts changes, so that what cores remember is looked at again.
    number: AtomicU64,
    keeper: OnceLock<Keeper>,
    /// Whether our own changed since they were kept.
    changed: AtomicBool,
    source: OnceLock<(RevokedSource, Reporter)>,
}

/// Hears what becomes of a list that is asked for.
type Reporter = Box<dyn Fn(Result<usize, String>) + Send + Sync>;

#[derive(Default)]
struct Lists {
    watched: HashSet<String>,
    asked: HashSet<String>,
    own: HashMap<String, Option<u64>>,
}

impl Revocations {
    /// Whether a token of that id is revoked.
    pub(super) fn has(&self, id: &str) -> bool {
        let lists = self.lists.read().unwrap_or_else(PoisonError::into_inner);
        lists.watched.contains(id) || lists.own.contains_key(id) || lists.asked.contains(id)
    }

    /// Another one after every change.
    pub(super) fn number(&self) -> u64 {
        self.number.load(Ordering::Acquire)
    }

    fn change<T>(&self, change: impl FnOnce(&mut Lists) -> T) -> T {
        let outcome = change(&mut self.lists.write().unwrap_or_else(PoisonError::into_inner));
        self.number.fetch_add(1, Ordering::Release);
        outcome
    }

    /// Replaces the watched list.
    pub fn set_watched(&self, ids: impl IntoIterator<Item = String>) {
        let ids = ids.into_iter().collect();
        self.change(|lists| lists.watched = ids);
    }

    /// Adds to the watched list, until it is read again.
    pub fn add_watched(&self, id: &str) {
        self.change(|lists| lists.watched.insert(id.to_owned()));
    }

    /// Revokes a token and keeps it; whether it was not revoked yet. It is revoked also when it cannot be kept, which the
    /// error says.
    pub fn revoke(&self, token: RevokedToken) -> Result<bool, String> {
        if token.id.is_empty() || token.id.len() > ID_BYTES_MAX {
            return Err(format!("an id has 1 to {ID_BYTES_MAX} bytes"));
        }
        let first = self.insert(token.id, token.expires).ok_or("too many tokens are revoked already")?;
        self.keep()?;
        Ok(first)
    }

    /// The same for a request on its way: it is kept within a second.
    pub(crate) fn revoke_soon(&self, id: &str, expires: u64) -> bool {
        let expires = Some(expires).filter(|expires| *expires < u64::MAX);
        let first = self.insert(id.to_owned(), expires);
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
        let found = self.change(|lists| lists.own.remove(id).is_some());
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
        self.changed.store(false, Ordering::Release);
        let Some(keeper) = self.keeper.get() else { return Ok(()) };
        let text = write(&self.own());
        keeper(&text).inspect_err(|_| self.changed.store(true, Ordering::Release))
    }

    /// Says where a list is asked for.
    pub fn ask(&self, source: RevokedSource, report: impl Fn(Result<usize, String>) + Send + Sync + 'static) {
        let _ = self.source.set((source, Box::new(report)));
    }

    /// Keeps what changed, forgets what ended, asks for the list.
    pub(crate) async fn run(&self, outbound: Rc<dyn Outbound>) {
        let mut due = Instant::now();
        for tick in 0_u32.. {
            if let Some((source, report)) = self.source.get()
                && Instant::now() >= due
            {
                due = Instant::now() + source.every.max(TICK);
                let asked = tokio::time::timeout(ASK_TIME_MAX, get(&*outbound, source)).await;
                // What was revoked stays so while nobody answers.
                report(asked.unwrap_or_else(|_| Err("no answer in time".to_owned())).map(|ids| {
                    let count = ids.len();
                    let same = self.lists.read().unwrap_or_else(PoisonError::into_inner).asked == ids;
                    if !same {
                        self.change(|lists| lists.asked = ids);
                    }
                    count
                }));
            }
            if tick % SWEEP_TICKS == 0 {
                let mut lists = self.lists.write().unwrap_or_else(PoisonError::into_inner);
                sweep(&mut lists.own, unix_now());
            }
            if self.changed.load(Ordering::Acquire) {
                // Whoever keeps them tells why not; it is tried again.
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
    Ok(members.iter().map(|(id, expires)| (id.clone(), expires.as_u64())).collect())
}

/// Reads what was written, and writes it again.
pub(crate) fn rewritten(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut all: Vec<_> = read(bytes).ok()?.into_iter().map(|(id, expires)| RevokedToken { id, expires }).collect();
    all.sort_by(|left, right| left.id.cmp(&right.id));
    Some(write(&all))
}

async fn get(outbound: &dyn Outbound, source: &RevokedSource) -> Result<HashSet<String>, String> {
    let mut headers = Headers::new();
    headers.set("Accept", "application/json");
    if let Some(authorization) = &source.authorization {
        headers.set("Authorization", &*authorization.0);
    }
    let outgoing = Outgoing {
        url: source.url.clone(),
        method: Method::Get,
        message: Message { headers, ..Message::default() },
        options: SendOptions::within(ASK_TIME_MAX),
    };
    let mut reply = outbound.send(outgoing).await.map_err(|fault| fault.to_string())?;
    if reply.status != 200 {
        return Err(format!("status {}", reply.status));
    }
    let body = &mut reply.body;
    let pulled = std::future::poll_fn(|cx| body.poll_pull(cx, usize::MAX, LIST_BYTES_MAX)).await;
    pulled.map_err(|error| error.to_string())?;
    match body.form() {
        Form::Bytes(bytes) => listed(bytes),
        _ => Err("an empty answer".to_owned()),
    }
}

/// `[{"jwt_signature": …, "expiry_time": …}]`. What ended is refused anyway.
fn listed(bytes: &[u8]) -> Result<HashSet<String>, String> {
    let list: Vec<Value> = serde_json::from_slice(bytes).map_err(|_| "the answer is no list in JSON".to_owned())?;
    if list.len() > REVOKED_MAX {
        return Err(format!("the list has more than {REVOKED_MAX} tokens"));
    }
    let id = |entry: &Value| entry.get("jwt_signature").and_then(Value::as_str).map(str::to_owned);
    Ok(list.iter().filter_map(id).collect())
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    fn token(id: &str, expires: Option<u64>) -> RevokedToken {
        RevokedToken { id: id.to_owned(), expires }
    }

    #[test]
    fn a_token_is_known_by_its_id_or_its_signature() {
        let encoded = |claims: Value| format!("e30.{}.c2ln", URL_SAFE_NO_PAD.encode(claims.to_string()));
        for (text, expected) in [
            (encoded(json!({ "jti": "a", "exp": 7 })), Some(token("a", Some(7)))),
            (encoded(json!({ "sub": "x" })), Some(token("c2ln", None))),
            ("a.b".to_owned(), None),
            ("e30.W10.c2ln".to_owned(), None),
            ("e30.e30.".to_owned(), None),
        ] {
            assert_eq!(RevokedToken::of(&text), expected, "{text}");
        }
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

    #[test]
    fn the_list_of_api_manager_is_read() {
        let list = listed(br#"[{"jwt_signature":"a","expiry_time":1},{"other":1},7]"#);
        assert_eq!(list, Ok(HashSet::from(["a".to_owned()])));
        assert!(listed(b"{}").is_err() && listed(b"").is_err());
    }
}
