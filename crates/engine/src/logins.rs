//! Logins by name and password: the users of the server, and a back-off for attempts that fail.
//!
//! Failures are counted by account and by address. Beyond a number of them each further failure doubles a time in which
//! attempts are refused without looking at the password. Accounts that do not exist are counted like those that do, so the
//! back-off does not reveal which exist. A client that logged in before keeps its access while others guess: its account is
//! counted for its own address.

use std::collections::HashMap;
use std::collections::hash_map::{Entry, RandomState};
use std::hash::BuildHasher;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use crate::is_secret;

/// Failures of one account before the back-off begins: a person who mistypes does not notice it.
const FREE_BY_ACCOUNT: u32 = 5;

/// The same for an address, behind which many people may be.
const FREE_BY_ADDRESS: u32 = 20;

/// The first time of back-off; it doubles with each failure.
const BACK_OFF_FIRST: Duration = Duration::from_secs(1);

/// The longest. Sixty attempts an hour find no password, and an account is never locked for long.
const BACK_OFF_MAX: Duration = Duration::from_secs(60);

/// How long a failure is remembered after its back-off has ended.
const REMEMBERED: Duration = Duration::from_secs(15 * 60);

/// Accounts, addresses and pairs that are remembered; the oldest gives way. About 5 MB.
const ENTRIES_MAX: usize = 50_000;

/// Which login it is: the same name may be an account of several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Realm {
    /// `[users]`: basic authentication of handlers, UsernameToken.
    Users,
    /// `[gateway.users]`.
    Gateway,
    /// `[gateway.test_users]`.
    TestKeys,
    /// A user of a policy.
    Policy,
    /// `[adapter.users]`.
    Adapter,
    /// `[admin.users]`.
    Admin,
    /// Users of the management API of Micro Integrator.
    Management,
    /// Users of API management.
    Control,
}

/// What became of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Login {
    /// Name and password are right.
    Accepted,
    /// They are not.
    Refused,
    /// The password was not looked at; the next attempt counts after this time.
    BackOff(Duration),
}

impl Login {
    /// Whether the client is who it says.
    pub fn is_accepted(self) -> bool {
        self == Login::Accepted
    }

    /// What is left of a back-off, in whole seconds: the value of `Retry-After`.
    pub fn retry_after_seconds(self) -> Option<u64> {
        match self {
            Login::BackOff(left) => Some(left.as_millis().div_ceil(1000).max(1) as u64),
            Login::Accepted | Login::Refused => None,
        }
    }
}

/// Who is counted. Names are kept as keyed hashes, so that a long name needs no more memory than a short one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Counted {
    Account(Realm, u64),
    Address(Realm, IpAddr),
    /// An account from an address that logged in to it before.
    Known(Realm, u64, IpAddr),
}

#[derive(Debug, Clone, Copy)]
struct Failures {
    count: u32,
    /// Attempts are refused until then.
    until: Instant,
    /// Forgotten then.
    end: Instant,
}

/// Counts failed logins. One for the process.
#[derive(Debug, Default)]
pub struct Logins {
    hasher: RandomState,
    entries: Mutex<HashMap<Counted, Failures>>,
    /// How many there are: without any, an attempt that succeeds takes no lock.
    count: AtomicUsize,
}

impl Logins {
    /// Decides an attempt. `verify` looks at the password; it is not called during a back-off.
    pub fn attempt(&self, realm: Realm, name: &str, address: IpAddr, verify: impl FnOnce() -> bool) -> Login {
        self.attempt_at(realm, name, address, Instant::now(), verify)
    }

    fn attempt_at(
        &self,
        realm: Realm,
        name: &str,
        address: IpAddr,
        now: Instant,
        verify: impl FnOnce() -> bool,
    ) -> Login {
        if let Some(left) = self.back_off_at(realm, name, address, now) {
            return Login::BackOff(left);
        }
        let succeeded = verify();
        self.record_at(realm, name, address, now, succeeded);
        if succeeded { Login::Accepted } else { Login::Refused }
    }

    /// What is left of the back-off of an account and an address, for logins whose outcome is recorded later.
    pub fn back_off(&self, realm: Realm, name: &str, address: IpAddr) -> Option<Duration> {
        self.back_off_at(realm, name, address, Instant::now())
    }

    /// Records the outcome of an attempt that was not in a back-off.
    pub fn record(&self, realm: Realm, name: &str, address: IpAddr, succeeded: bool) {
        self.record_at(realm, name, address, Instant::now(), succeeded);
    }

    /// The pair that counts for a client that logged in before, and what counts for others.
    fn counted(&self, realm: Realm, name: &str, address: IpAddr) -> (Counted, [Counted; 2]) {
        let (account, address) = (self.hasher.hash_one(name), network(address));
        let others = [Counted::Account(realm, account), Counted::Address(realm, address)];
        (Counted::Known(realm, account, address), others)
    }

    fn back_off_at(&self, realm: Realm, name: &str, address: IpAddr, now: Instant) -> Option<Duration> {
        if self.count.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let (known, others) = self.counted(realm, name, address);
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let until = match entries.get(&known).filter(|found| found.end > now) {
            Some(own) => own.until,
            None => others.iter().filter_map(|one| entries.get(one)).map(|one| one.until).max()?,
        };
        until.checked_duration_since(now).filter(|left| !left.is_zero())
    }

    fn record_at(&self, realm: Realm, name: &str, address: IpAddr, now: Instant, succeeded: bool) {
        if succeeded && self.count.load(Ordering::Relaxed) == 0 {
            return;
        }
        let (known, others) = self.counted(realm, name, address);
        if succeeded {
            return self.succeeded(known, &others, now);
        }
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.get(&known).is_some_and(|own| own.end > now) {
            fail(&mut entries, known, FREE_BY_ACCOUNT, now);
        } else {
            fail(&mut entries, others[0], FREE_BY_ACCOUNT, now);
            fail(&mut entries, others[1], FREE_BY_ADDRESS, now);
        }
        self.count.store(entries.len(), Ordering::Relaxed);
    }

    /// Forgets the failures of an account from here. While others fail at the account or from the address, this pair is
    /// remembered, so that their back-off is not its own.
    fn succeeded(&self, known: Counted, others: &[Counted; 2], now: Instant) {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let others_fail = others.iter().any(|one| entries.get(one).is_some_and(|found| found.end > now));
        if others_fail {
            make_room(&mut entries, now);
            entries.insert(known, Failures { count: 0, until: now, end: now + REMEMBERED });
        } else {
            entries.remove(&known);
            for one in others {
                entries.remove(one);
            }
        }
        self.count.store(entries.len(), Ordering::Relaxed);
    }
}

fn fail(entries: &mut HashMap<Counted, Failures>, who: Counted, free: u32, now: Instant) {
    if !entries.contains_key(&who) {
        make_room(entries, now);
    }
    let count = match entries.get(&who) {
        Some(found) if found.end > now => found.count.saturating_add(1),
        _ => 1,
    };
    let back_off = match count.checked_sub(free) {
        None | Some(0) => Duration::ZERO,
        Some(beyond) => BACK_OFF_FIRST.saturating_mul(1 << (beyond - 1).min(16)).min(BACK_OFF_MAX),
    };
    let failures = Failures { count, until: now + back_off, end: now + back_off + REMEMBERED };
    match entries.entry(who) {
        Entry::Occupied(mut found) => *found.get_mut() = failures,
        Entry::Vacant(free) => drop(free.insert(failures)),
    }
}

/// Makes room for an entry: first what has ended leaves, then the tenth that ends first. A tenth, because looking for them
/// costs a pass over all.
fn make_room(entries: &mut HashMap<Counted, Failures>, now: Instant) {
    if entries.len() < ENTRIES_MAX {
        return;
    }
    entries.retain(|_, found| found.end > now);
    let excess = (entries.len() + ENTRIES_MAX / 10).saturating_sub(ENTRIES_MAX);
    if excess > 0 {
        let mut ends: Vec<Instant> = entries.values().map(|found| found.end).collect();
        let (_, &mut last, _) = ends.select_nth_unstable(excess.min(entries.len()) - 1);
        entries.retain(|_, found| found.end > last);
    }
}

/// An address as it is counted: of version 6 its network, of which one subscriber has all addresses.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => IpAddr::V6((u128::from(address) & !u128::from(u64::MAX)).into()),
    }
}

/// The names of users by role (`[roles]`).
pub type Roles = HashMap<String, Vec<String>>;

/// The users of the server (`[users]`), which a reload may replace.
#[derive(Debug, Default)]
pub struct Users {
    known: RwLock<Arc<HashMap<String, String>>>,
    /// The names of users by role.
    roles: RwLock<Arc<Roles>>,
    /// Attempts of all logins of the process.
    pub logins: Arc<Logins>,
}

impl Users {
    /// Users by name, with their passwords.
    pub fn new(known: HashMap<String, String>, logins: Arc<Logins>) -> Users {
        Users { known: RwLock::new(Arc::new(known)), roles: RwLock::default(), logins }
    }

    /// The same users with roles.
    pub fn with_roles(self, roles: Roles) -> Users {
        self.replace_roles(roles);
        self
    }

    /// Replaces the roles; the next request sees them.
    pub fn replace_roles(&self, roles: Roles) {
        *self.roles.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(roles);
    }

    /// The roles of a user, sorted.
    pub fn roles(&self, name: &str) -> Vec<String> {
        let all = self.roles.read().unwrap_or_else(PoisonError::into_inner).clone();
        let of_user = all.iter().filter(|(_, users)| users.iter().any(|user| user == name));
        let mut roles: Vec<String> = of_user.map(|(role, _)| role.clone()).collect();
        roles.sort();
        roles
    }

    /// Replaces the users; the next attempt sees them.
    pub fn replace(&self, known: HashMap<String, String>) {
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(known);
    }

    /// Whether a name and a password are those of a user.
    pub fn login(&self, name: &str, password: &str, address: IpAddr) -> Login {
        self.logins.attempt(Realm::Users, name, address, || {
            let known = self.password(name);
            // Also compared for a name that no user has, so that the time does not reveal which names exist.
            let holds = is_secret(known.as_deref().unwrap_or_default().as_bytes(), password.as_bytes());
            holds & known.is_some()
        })
    }

    /// The password of a user, for proofs that contain it. Attempts are counted with [`Users::logins`].
    pub fn password(&self, name: &str) -> Option<String> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }
}

impl<const N: usize> From<[(String, String); N]> for Users {
    fn from(known: [(String, String); N]) -> Users {
        Users::new(known.into(), Arc::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: &str = "192.0.2.1";
    const THERE: &str = "198.51.100.7";

    struct Attempts {
        logins: Logins,
        now: Instant,
    }

    impl Attempts {
        fn new() -> Attempts {
            Attempts { logins: Logins::default(), now: Instant::now() }
        }

        fn attempt(&self, name: &str, address: &str, right: bool) -> Login {
            self.logins.attempt_at(Realm::Users, name, address.parse().unwrap(), self.now, || right)
        }
    }

    #[test]
    fn failures_of_an_account_double_its_back_off() {
        let mut attempts = Attempts::new();
        for _ in 0..=FREE_BY_ACCOUNT {
            assert_eq!(attempts.attempt("anna", HERE, false), Login::Refused);
        }
        for seconds in [1, 2, 4, 8, 16, 32, 60, 60] {
            let back_off = Duration::from_secs(seconds);
            assert_eq!(attempts.attempt("anna", THERE, true), Login::BackOff(back_off));
            attempts.now += back_off;
            assert_eq!(attempts.attempt("anna", HERE, false), Login::Refused, "{seconds}");
        }
        assert_eq!(attempts.attempt("ben", THERE, true), Login::Accepted);
        attempts.now += BACK_OFF_MAX;
        assert_eq!(attempts.attempt("anna", HERE, true), Login::Accepted);
    }

    #[test]
    fn failures_of_an_address_count_over_all_accounts() {
        let attempts = Attempts::new();
        for number in 0..=FREE_BY_ADDRESS {
            assert_eq!(attempts.attempt(&format!("user{number}"), HERE, false), Login::Refused);
        }
        assert_eq!(attempts.attempt("anna", HERE, true), Login::BackOff(BACK_OFF_FIRST));
        assert_eq!(attempts.attempt("anna", THERE, true), Login::Accepted);
    }

    #[test]
    fn a_client_that_logged_in_is_not_locked_out_by_others() {
        let mut attempts = Attempts::new();
        assert_eq!(attempts.attempt("anna", THERE, false), Login::Refused);
        assert_eq!(attempts.attempt("anna", HERE, true), Login::Accepted);
        for _ in 0..20 {
            attempts.attempt("anna", THERE, false);
        }
        assert!(matches!(attempts.attempt("anna", THERE, true), Login::BackOff(_)));
        assert_eq!(attempts.attempt("anna", HERE, true), Login::Accepted);
        for _ in 0..=FREE_BY_ACCOUNT {
            attempts.attempt("anna", HERE, false);
        }
        assert_eq!(attempts.attempt("anna", HERE, true), Login::BackOff(BACK_OFF_FIRST), "its own failures count");
        attempts.now += BACK_OFF_FIRST;
        assert_eq!(attempts.attempt("anna", HERE, true), Login::Accepted);
    }

    #[test]
    fn failures_are_forgotten() {
        let mut attempts = Attempts::new();
        for _ in 0..FREE_BY_ACCOUNT {
            attempts.attempt("anna", HERE, false);
        }
        attempts.now += REMEMBERED;
        for _ in 0..FREE_BY_ACCOUNT {
            assert_eq!(attempts.attempt("anna", HERE, false), Login::Refused);
        }
        assert_eq!(attempts.attempt("anna", HERE, true), Login::Accepted);
        assert_eq!(attempts.attempt("anna", HERE, false), Login::Refused, "a success ends the count");
    }

    #[test]
    fn memory_is_bounded() {
        let attempts = Attempts::new();
        for number in 0..(ENTRIES_MAX as u32 + 100) {
            let address = IpAddr::V4(number.into());
            attempts.logins.attempt_at(Realm::Users, &number.to_string(), address, attempts.now, || false);
        }
        let count = attempts.logins.count.load(Ordering::Relaxed);
        assert!(count <= ENTRIES_MAX && count > 0, "{count}");
    }

    #[test]
    fn addresses_of_one_network_are_one() {
        let attempts = Attempts::new();
        for number in 0..=FREE_BY_ADDRESS {
            attempts.attempt(&format!("user{number}"), &format!("2001:db8::{number:x}"), false);
        }
        assert!(matches!(attempts.attempt("anna", "2001:db8::ffff", true), Login::BackOff(_)));
        assert_eq!(attempts.attempt("anna", "2001:db8:0:1::1", true), Login::Accepted);
    }

    #[test]
    fn users_are_replaced_and_unknown_names_prove_nothing() {
        let users = Users::from([("anna".to_owned(), "secret".to_owned())]);
        let here: IpAddr = HERE.parse().unwrap();
        assert!(users.login("anna", "secret", here).is_accepted());
        assert!(!users.login("anna", "Secret", here).is_accepted());
        assert!(!users.login("ben", "", here).is_accepted());
        users.replace(HashMap::from([("ben".to_owned(), "other".to_owned())]));
        assert!(users.login("ben", "other", here).is_accepted());
        assert!(!users.login("anna", "secret", here).is_accepted());
    }
}
