//! What a mediator is and what it may answer.

use std::rc::Rc;
use std::sync::Arc;

use penstock_message::{Message, Value};

use crate::ports::LocalFuture;
use crate::{Decision, Exchange, Fault, Place, RequestHead};

/// One step of a sequence. It decides; the run loop acts. It never runs other mediators, never
/// waits and holds no state of a message.
pub trait Mediator: Send + Sync {
    /// Does its work and says where to go.
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault>;

    /// What it does to each request with this head, when that depends on nothing else and changes nothing of the message:
    /// such a request is passed on without an exchange.
    fn decide(&self, _head: &RequestHead<'_>) -> Decision<'_> {
        Decision::Unknown
    }

    /// How much of the body it reads, so that unread bodies are not buffered.
    fn needs(&self) -> Needs {
        Needs::Nothing
    }

    /// Whether the branches of a fork are joined here, or in a sequence that it may enter.
    fn joins(&self) -> Joins {
        Joins::Nothing
    }
}

/// Whether a step joins branches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Joins {
    /// It does not.
    Nothing,
    /// It collects messages until all it waits for are there.
    Branches,
    /// It does not, but the sequences that it may enter can.
    Inside(Vec<SequenceId>),
}

/// What a mediator does with the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Needs {
    /// It never looks at it.
    #[default]
    Nothing,
    /// It needs a result that may be known before the body is complete; it returns
    /// [`Flow::Pull`] until it is.
    Peek,
    /// It reads or replaces the whole; the loop buffers the body before it runs.
    Whole,
}

/// Where a sequence lies in its [`crate::Program`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SequenceId {
    /// The number of its [`crate::Unit`]; 0 for the program's own.
    pub unit: u32,
    /// Its place there.
    pub index: u32,
}

/// Where an endpoint lies in its [`crate::Program`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EndpointId {
    /// The number of its [`crate::Unit`]; 0 for the program's own.
    pub unit: u32,
    /// Its place there.
    pub index: u32,
}

/// What the loop does after a mediator.
pub enum Flow {
    /// The next mediator.
    Next,
    /// Run that sequence, then the next mediator.
    Enter(SequenceId),
    /// Run that sequence with parameters of its own (a template), then the next mediator.
    EnterTemplate(SequenceId, Box<FunctionScope>),
    /// More of the body, then this mediator again.
    Pull,
    /// The whole body, then this mediator again.
    Buffer,
    /// Send the message; the answer goes to the out sequence, or to `receive`. Ends the sequence.
    Send(Destination, Option<SequenceId>),
    /// Send the message; the answer replaces it and the next mediator runs.
    Call(Destination),
    /// Send the message; `then` gets the answer (or the fault) and decides. Used where the answer
    /// does not simply replace the message.
    CallWith(Destination, Resume<Result<Message, Fault>>),
    /// Answer the client with this message and stop.
    Respond,
    /// Go to the out sequence, unless already there.
    Loopback,
    /// This message ends here.
    Stop,
    /// Run branches.
    Fork(Box<Fork>),
    /// Wait for something outside, then decide.
    Wait(LocalFuture<'static, Resume<()>>),
    /// The same for a future that ends at the exchange's deadline by itself, so that no second timer is set for it.
    WaitBounded(LocalFuture<'static, Resume<()>>),
}

/// Continues a mediator after the loop has executed its flow.
pub struct Resume<T>(Box<Continuation<T>>);

type Continuation<T> = dyn FnOnce(&mut Exchange, T) -> Result<Flow, Fault>;

impl<T> Resume<T> {
    /// Wraps a continuation.
    pub fn new(then: impl FnOnce(&mut Exchange, T) -> Result<Flow, Fault> + 'static) -> Resume<T> {
        Resume(Box::new(then))
    }

    pub(crate) fn run(self, exchange: &mut Exchange, input: T) -> Result<Flow, Fault> {
        (self.0)(exchange, input)
    }
}

/// Where to send.
#[derive(Clone)]
pub enum Destination {
    /// An endpoint of the program.
    Endpoint(EndpointId),
    /// No endpoint: the message's own `To`, or the client when this is a response.
    Implicit,
    /// A named endpoint looked up now; the fault says when there is none.
    Named(Arc<str>),
    /// An address that was computed.
    Address(Arc<str>),
}

/// Parameters of a running template: `$func:x`, `${params.functionParams.x}`.
#[derive(Debug, Clone, Default)]
pub struct FunctionScope {
    /// The template's name.
    pub template: Arc<str>,
    /// Parameter values.
    pub parameters: Vec<(Arc<str>, Value)>,
    /// Parameters that have the value of the moment; among `parameters` they have that of the call.
    pub late: Vec<(Arc<str>, Arc<dyn Late>)>,
    /// The handler of faults inside, when the call names one.
    pub on_error: Option<SequenceId>,
}

/// A parameter that is evaluated where it is used: `{{…}}`.
pub trait Late: Send + Sync + std::fmt::Debug {
    /// What it is now.
    fn value(&self, exchange: &mut Exchange) -> Result<Option<Value>, Fault>;
}

/// Branches to run.
pub struct Fork {
    /// The branches in order.
    pub branches: Vec<Branch>,
    /// Side by side, or one after another.
    pub parallel: bool,
    /// With `join`, the parent waits and `join` gets what became of each branch. Without, branches
    /// live on their own, as `iterate` and `clone` start them.
    pub join: Option<Resume<Vec<BranchEnd>>>,
    /// Without `join`: whether the parent goes on with its own next mediator.
    pub continue_parent: bool,
    /// What `aggregate` matches branches by: the `id` of the `iterate` or `clone`.
    pub id: Option<Arc<str>>,
}

/// One branch.
pub struct Branch {
    /// Its message.
    pub message: Message,
    /// What it runs.
    pub sequence: Option<SequenceId>,
    /// Where it is sent after (or without) the sequence.
    pub endpoint: Option<Destination>,
}

/// What became of a joined branch.
pub struct BranchEnd {
    /// The message as it was when the branch ended.
    pub message: Message,
    /// Why it failed, when it did and no handler inside caught it.
    pub fault: Option<Fault>,
}

/// A list of mediators with an optional fault handler.
#[derive(Default)]
pub struct Sequence {
    /// The name, when it has one.
    pub name: Option<Arc<str>>,
    /// The steps in order.
    pub steps: Vec<Step>,
    /// `onError`.
    pub on_error: Option<SequenceId>,
}

/// A mediator and the place it was written at.
pub struct Step {
    /// The mediator.
    pub mediator: Box<dyn Mediator>,
    /// Its element's name.
    pub kind: &'static str,
    /// Where it stands.
    pub at: Place,
}

/// A family of messages that came from one by `iterate` or `clone`: where `aggregate` collects.
#[derive(Debug, Clone)]
pub struct Kinship {
    /// Shared by all branches of one fork.
    pub family: Rc<crate::Family>,
    /// 0-based.
    pub index: usize,
}
