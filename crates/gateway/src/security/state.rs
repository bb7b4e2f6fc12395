//! What outlives a reload of artifacts: keys, revoked tokens, who subscribed to what.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::{Duration, Instant};

use penstock_engine::ports::Outbound;
use penstock_identity::{AccessList, KeyRing, KeySource, Revocations, Signer, identify, unix_now};

use super::{Verified, Verifier};
use crate::GatewayConfig;

/// How often ages of keys are looked at.
const REFRESH_TICK: Duration = Duration::from_secs(1);

/// Reads or makes the gateway's key.
type SignerSource = Box<dyn Fn() -> Option<Signer> + Send + Sync>;

/// See the module.
#[derive(Default)]
pub struct SecurityState {
    id: Id,
    signer: RwLock<Option<Arc<Signer>>>,
    signer_source: OnceLock<SignerSource>,
    rings: Mutex<HashMap<(KeySource, Duration), Arc<KeyRing>>>,
    /// Counts the times at which an issuer withdrew a key.
    pub(super) removals: Arc<AtomicU64>,
    verifier: Mutex<Option<(Arc<GatewayConfig>, Arc<Verifier>)>>,
    /// Tokens that count no longer.
    pub revocations: Revocations,
    access: RwLock<Arc<AccessList>>,
    accesses: AtomicU64,
    wants_certificates: Arc<AtomicBool>,
    /// Backend tokens, for all cores, by API and caller.
    pub(crate) backend_tokens: Mutex<HashMap<String, ForBackend>>,
    /// Requests for the keys, and the beginning of the window.
    pub(crate) jwks_window: Mutex<Option<(Instant, u32)>>,
}

/// When a token for backends ends, in seconds since 1970, and the token.
pub(crate) type ForBackend = (u64, Arc<str>);

/// Which state it is: tests run several in one process.
struct Id(u64);

impl Default for Id {
    fn default() -> Id {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Id(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

impl SecurityState {
    /// Gives the gateway its key. Tokens that were signed with another one before are no longer accepted.
    pub fn set_signer(&self, signer: Signer) {
        *self.signer.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(signer));
        self.backend_tokens.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Says where the key comes from when it is needed first.
    pub fn set_signer_source(&self, source: impl Fn() -> Option<Signer> + Send + Sync + 'static) {
        let _ = self.signer_source.set(Box::new(source));
    }

    /// The gateway's key; one for this process only when none was given.
    pub fn signer(&self) -> Arc<Signer> {
        if let Some(signer) = &*self.signer.read().unwrap_or_else(PoisonError::into_inner) {
            return signer.clone();
        }
        let mut slot = self.signer.write().unwrap_or_else(PoisonError::into_inner);
        let make = || {
            let given = self.signer_source.get().and_then(|source| source());
            Arc::new(given.unwrap_or_else(|| {
                let made = Signer::generate();
                made.expect("a system without random numbers cannot serve TLS either").0
            }))
        };
        slot.get_or_insert_with(make).clone()
    }

    /// Revokes a token that is good for one request; whether it was not revoked yet.
    pub(crate) fn revoke_soon(&self, token: &Verified) -> bool {
        let id = identify(token.jti.as_deref(), &token.caller.token);
        self.revocations.revoke_soon(&id, token.expires)
    }

    /// Whether a token that was verified is still good: it has not ended and was not revoked.
    pub(crate) fn still_holds(&self, token: &Verified, skew: u64) -> bool {
        !token.is_expired(unix_now(), skew) && !self.is_revoked(token.jti.as_deref(), &token.caller.token)
    }

    /// Whether a token is revoked, by its `jti` or itself.
    pub(super) fn is_revoked(&self, jti: Option<&str>, token: &str) -> bool {
        self.revocations.revokes(jti, token)
    }

    /// Replaces applications and subscriptions; the next request sees them.
    pub fn set_access(&self, access: AccessList) {
        *self.access.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(access);
        self.accesses.fetch_add(1, Ordering::Release);
    }

    /// Changes applications and subscriptions; the next request sees it.
    pub fn change_access(&self, change: impl FnOnce(&mut AccessList)) {
        let mut access = self.access.write().unwrap_or_else(PoisonError::into_inner);
        let mut changed = AccessList::clone(&access);
        change(&mut changed);
        *access = Arc::new(changed);
        self.accesses.fetch_add(1, Ordering::Release);
    }

    /// The number of the present applications and subscriptions; another one after they changed.
    pub(crate) fn access_number(&self) -> u64 {
        self.accesses.load(Ordering::Acquire)
    }

    /// Looks something up in applications and subscriptions, without a lock unless they changed since this core looked.
    pub(crate) fn with_access<T>(&self, look: impl FnOnce(&AccessList) -> T) -> T {
        thread_local! {
            static SEEN: RefCell<(u64, u64, Arc<AccessList>)> = RefCell::default();
        }
        let number = self.access_number();
        let me = self.id.0;
        SEEN.with_borrow_mut(|seen| {
            if (seen.0, seen.1) != (me, number) {
                *seen = (me, number, self.access.read().unwrap_or_else(PoisonError::into_inner).clone());
            }
            look(&seen.2)
        })
    }

    /// The keys of a source, which are fetched again at this age.
    pub(super) fn ring(&self, source: KeySource, age_max: Duration) -> Arc<KeyRing> {
        let mut rings = self.rings.lock().unwrap_or_else(PoisonError::into_inner);
        let make = || Arc::new(KeyRing::new(source.clone(), age_max, self.removals.clone()));
        rings.entry((source.clone(), age_max)).or_insert_with(make).clone()
    }

    /// Fetches keys again for ever, so that those an issuer withdrew end although no new token arrives.
    pub(crate) async fn refresh_keys(&self, outbound: Rc<dyn Outbound>) {
        loop {
            tokio::time::sleep(REFRESH_TICK).await;
            let rings: Vec<Arc<KeyRing>> = {
                let mut rings = self.rings.lock().unwrap_or_else(PoisonError::into_inner);
                // What no configuration has any more.
                rings.retain(|_, ring| Arc::strong_count(ring) > 1);
                rings.values().filter(|ring| ring.is_stale()).cloned().collect()
            };
            for ring in rings {
                ring.fetch(outbound.clone()).await;
            }
        }
    }

    /// The one verifier of a configuration.
    pub(crate) fn verifier(self: &Arc<Self>, config: &Arc<GatewayConfig>) -> Arc<Verifier> {
        let mut slot = self.verifier.lock().unwrap_or_else(PoisonError::into_inner);
        match &*slot {
            Some((known, verifier)) if Arc::ptr_eq(known, config) => verifier.clone(),
            _ => {
                let verifier = Arc::new(Verifier::new(&config.security, self.clone()));
                *slot = Some((config.clone(), verifier.clone()));
                verifier
            }
        }
    }

    /// Whether listeners request client certificates, read with each connection. True from the
    /// first API on that takes them.
    pub fn wants_certificates(&self) -> Arc<AtomicBool> {
        self.wants_certificates.clone()
    }
}

impl fmt::Debug for SecurityState {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("SecurityState")
    }
}
