//! What a text of a plan is evaluated in: the variables of one user, and what functions need besides.
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

/// Values of `-Jname=value`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Properties(BTreeMap<String, String>);

impl Properties {
    /// Adds `name=value`; `false` if the text is none.
    pub fn add(&mut self, text: &str) -> bool {
        match text.split_once('=') {
            Some((name, value)) if !name.is_empty() => {
                self.0.insert(name.to_owned(), value.to_owned());
                true
            }
            _ => false,
        }
    }

    /// The value of a property.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }
}

/// The state of one user.
#[derive(Debug, Clone)]
pub struct Context {
    /// The user's variables.
    pub variables: HashMap<String, String>,
    /// Values of `-Jname=value`.
    pub properties: Arc<Properties>,
    /// Name of the plan.
    pub plan: Arc<str>,
    /// Name of the thread group.
    pub group: Arc<str>,
    /// Number of the user in its group, from 1; 0 before users exist.
    pub user: usize,
    /// Iteration of the thread group, from 1.
    pub iteration: u64,
    /// Name of the request that is made.
    pub request: String,
    /// Random numbers.
    pub random: Random,
    /// Counts of `__counter(TRUE)`, by function.
    pub counts: HashMap<usize, u64>,
    /// Why a text could not be evaluated, until the next request reports it.
    failure: Option<String>,
}

impl Context {
    /// The state before there are users.
    pub fn new(properties: Arc<Properties>) -> Context {
        Context {
            variables: HashMap::new(),
            properties,
            plan: "".into(),
            group: "".into(),
            user: 0,
            iteration: 0,
            request: String::new(),
            random: Random::new(),
            counts: HashMap::new(),
            failure: None,
        }
    }

    /// Notes why a text could not be evaluated. The first reason is kept.
    pub fn fail(&mut self, why: String) {
        self.failure.get_or_insert(why);
    }

    /// Takes the reason noted last.
    pub fn take_failure(&mut self) -> Option<String> {
        self.failure.take()
    }
}

/// Random numbers that need not be secret (SplitMix64).
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// Numbers that differ from user to user and from run to run.
    pub fn new() -> Random {
        Random(RandomState::new().hash_one(0))
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// A number from `least` to `greatest`, both included.
    pub fn between(&mut self, least: i64, greatest: i64) -> i64 {
        let span = i128::from(greatest) - i128::from(least) + 1;
        let offset = i128::from(self.bits()) % span.max(1);
        i64::try_from(i128::from(least) + offset).unwrap_or(least)
    }

    /// A number from 0 up to but not including `count`.
    pub fn below(&mut self, count: usize) -> usize {
        usize::try_from(self.bits() % (count.max(1) as u64)).unwrap_or(0)
    }

    /// A number from 0 to 1.
    pub fn fraction(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A number of the normal distribution with mean 0 and deviation 1.
    pub fn gaussian(&mut self) -> f64 {
        // Box and Muller; 1 − x keeps the logarithm away from zero.
        let radius = (-2.0 * (1.0 - self.fraction()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.fraction()).cos()
    }
}
