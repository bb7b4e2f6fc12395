//! What a plan does, ready to run: groups of users, each with steps that its users go through.
use super::cookies::CookieSettings;
use super::data::CsvData;
use super::text::Text;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

/// A plan.
#[derive(Debug, Default)]
pub struct Script {
    /// Name of the plan.
    pub name: String,
    /// Variables that every user starts with, with their values.
    pub variables: Vec<(String, String)>,
    /// Thread groups in the order of the plan.
    pub groups: Vec<Group>,
    /// Whether the groups run one after another.
    pub serial: bool,
    /// Whether tearDown groups run after a stop.
    pub tear_down_after_stop: bool,
    /// Names of requests, by [`Sampler::label`].
    pub labels: Vec<String>,
    /// Controllers and timers that keep state: so many places each user needs for it.
    pub states: usize,
}

/// When a thread group runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    SetUp,
    Main,
    TearDown,
}

/// What a user does after a failed request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnError {
    Continue,
    NextLoop,
    StopUser,
    StopTest,
}

/// A thread group.
#[derive(Debug)]
pub struct Group {
    pub name: Arc<str>,
    pub phase: Phase,
    pub users: usize,
    pub ramp_up: Duration,
    /// Time before the first user starts.
    pub delay: Duration,
    /// Iterations of each user; `None` is no limit.
    pub loops: Option<u64>,
    /// Time from the start of the first user to the end.
    pub duration: Option<Duration>,
    pub on_error: OnError,
    /// Whether connections and cookies outlive an iteration.
    pub same_user: bool,
    pub body: Block,
}

/// Steps that are gone through in order, and what happens before each pass.
#[derive(Debug, Default)]
pub struct Block {
    pub before_pass: Vec<BeforePass>,
    pub steps: Vec<Step>,
}

/// What happens before each pass through a block.
#[derive(Debug)]
pub enum BeforePass {
    /// The next record of a CSV data set.
    Csv(Arc<CsvData>),
    Counter(CounterConfig),
    /// A random variable from a range.
    RandomVariable {
        name: String,
        least: Text,
        greatest: Text,
        digits: usize,
    },
    /// User parameters: the column of the user's number.
    UserParameters(UserParameters),
}

/// A counter of the plan.
#[derive(Debug)]
pub struct CounterConfig {
    pub name: String,
    pub start: i64,
    pub end: i64,
    pub step: i64,
    /// Digits at least, from a format of zeros.
    pub digits: usize,
    /// Place in the state of the user, for a counter of each user.
    pub state: usize,
    /// Values given to all users so far.
    pub shared: Option<Arc<AtomicU64>>,
}

/// Variables with a value for each user.
#[derive(Debug, Clone)]
pub struct UserParameters {
    pub names: Vec<String>,
    /// Values by user.
    pub values: Vec<Vec<Text>>,
}

/// A step.
#[derive(Debug)]
pub enum Step {
    Request(Box<Sampler>),
    Control {
        kind: Control,
        state: usize,
        name: String,
        body: Block,
    },
    /// A pause, after the timers of its place.
    Pause {
        time_ms: Text,
        timers: Vec<Timer>,
        name: String,
    },
    Stop {
        whole_test: bool,
    },
    Skip(Skip),
}

/// What a flow control action skips.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Skip {
    /// The rest of the iteration of the thread group.
    ThreadLoop,
    /// The rest of this pass through the loop.
    LoopPass,
    /// The rest of the loop.
    Loop,
}

/// How a controller runs its steps.
#[derive(Debug)]
pub enum Control {
    /// Once, in order.
    Simple,
    /// In order; the time of all of them is reported together.
    Transaction {
        label: usize,
        with_timers: bool,
        parent: bool,
    },
    Loop {
        count: Text,
    },
    While {
        condition: Text,
    },
    If {
        condition: Text,
        expression: bool,
        before_each: bool,
    },
    OnceOnly,
    ForEach {
        input: Text,
        output: Text,
        separator: bool,
        start: Text,
        end: Text,
    },
    /// The next step with each pass.
    Interleave,
    /// One step, at random.
    Random,
    /// All steps, in random order.
    RandomOrder,
    /// A share of the passes, in percent, or a number of them.
    Throughput {
        percent: bool,
        amount: Text,
        shared: Option<Arc<SharedCounts>>,
    },
    Switch {
        choice: Text,
    },
    Runtime {
        seconds: Text,
    },
}

/// Passes and runs of a throughput controller over all users.
#[derive(Debug, Default)]
pub struct SharedCounts {
    pub passes: AtomicU64,
    pub runs: AtomicU64,
}

/// A request with everything that belongs to it.
#[derive(Debug)]
pub struct Sampler {
    pub name: Text,
    /// Number of its name among [`Script::labels`].
    pub label: usize,
    pub request: RequestParts,
    pub before: Vec<UserParameters>,
    pub timers: Vec<Timer>,
    pub extractors: Vec<super::extract::Extractor>,
    pub assertions: Vec<super::assertion::Assertion>,
}

/// The parts that a request is put together from.
#[derive(Debug, Default)]
pub struct RequestParts {
    pub protocol: Text,
    pub domain: Text,
    pub port: Text,
    pub path: Text,
    pub method: Text,
    pub headers: Vec<(Text, Text)>,
    pub body: Body,
    pub keep_alive: bool,
    pub redirects: Redirects,
    pub connect_timeout: Option<Duration>,
    pub response_timeout: Option<Duration>,
    pub cookies: Option<Arc<CookieSettings>>,
    pub authorizations: Vec<Authorization>,
}

/// Which redirects are followed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Redirects {
    #[default]
    None,
    /// Those of requests that only read.
    Reads,
    All,
}

/// What a request carries.
#[derive(Debug, Default)]
pub enum Body {
    #[default]
    None,
    /// The texts, one after another.
    Raw {
        texts: Vec<Text>,
        latin1: bool,
    },
    /// Names and values: a query or a form.
    Parameters(Vec<Parameter>),
    File {
        bytes: bytes::Bytes,
        media_type: Option<Text>,
    },
}

/// A parameter of a request.
#[derive(Debug, Clone)]
pub struct Parameter {
    pub name: Text,
    pub value: Text,
    /// Whether the plan holds it unencoded.
    pub encode: bool,
    pub equals_sign: bool,
}

/// Basic authentication for addresses that start with a prefix.
#[derive(Debug, Clone)]
pub struct Authorization {
    pub prefix: Text,
    pub user: Text,
    pub password: Text,
}

/// A wait before a request.
#[derive(Debug, Clone)]
pub enum Timer {
    Constant(Text),
    /// An offset and a random part of a range.
    Uniform {
        offset: Text,
        range: Text,
    },
    Gaussian {
        offset: Text,
        deviation: Text,
    },
    Poisson {
        offset: Text,
        mean: Text,
    },
    Throughput {
        per_minute: Text,
        mode: PaceMode,
        state: usize,
        shared: Arc<AtomicU64>,
    },
}

/// Whom the rate of a throughput timer is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PaceMode {
    /// Each user.
    User,
    /// All active users together; each paces itself by its share.
    All,
    /// All active users of the group.
    Group,
    /// All users together, with one schedule.
    AllShared,
}
