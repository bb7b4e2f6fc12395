//! Branches: `iterate`, `clone`, `foreach`, `scatter-gather`.
//!
//! Branches that run one after another run in the transactions of their parent; those that run side by side have none.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;

use futures_util::stream::{FuturesUnordered, StreamExt};

use penstock_message::Value;

use crate::mediator::{Branch, BranchEnd, Fork, Joins, Kinship, Resume};
use crate::ports::Level;
use crate::run::{self, End};
use crate::{Exchange, Family, Fault, Flow, Program, SequenceId, wait};

/// How deep an aggregate is looked for in the sequences that follow a fork; they may enter each other in a circle.
const NESTED_JOIN_DEPTH_MAX: usize = 8;

/// What the parent does after a fork.
pub(crate) enum After {
    /// Acts on this.
    Continue(Flow),
    /// Ends.
    End,
}

/// Runs a fork. Without `join`, the parent (when it goes on) and the branches run side by side and
/// this returns when all have ended. The first fault of theirs becomes the exchange's: when the client has no answer then,
/// that is why, because an aggregate misses the branch that failed.
pub(crate) async fn run(exchange: &mut Exchange, mut work: Fork) -> Result<After, Fault> {
    let limit = exchange.program().limits.branches_max;
    if work.branches.len() > limit {
        return Err(Fault::new(format!("{} branches are more than {limit}", work.branches.len())).public());
    }
    // Made on first use; each branch would make its own.
    let id = exchange.correlation_id();
    for branch in &mut work.branches {
        branch.message.operation.set("correlation_id", Value::String(id.clone()));
    }
    match work.join {
        Some(join) => joined(exchange, work.branches, work.parallel, join).await,
        None => detached(exchange, work).await,
    }
}

async fn joined(
    exchange: &mut Exchange,
    branches: Vec<Branch>,
    parallel: bool,
    join: Resume<Vec<BranchEnd>>,
) -> Result<After, Fault> {
    let mut children: Vec<Exchange> = Vec::with_capacity(branches.len());
    let mut plans = Vec::with_capacity(branches.len());
    for branch in branches {
        let mut child = exchange.branch(branch.message, None);
        // A joined branch is on its own: it neither runs into the parent nor into its handlers.
        child.frames.clear();
        child.handlers.clear();
        child.floor = 0;
        plans.push((branch.sequence, branch.endpoint));
        children.push(child);
    }
    let mut faults: Vec<Option<Fault>> = vec![None; children.len()];
    let work = children.iter_mut().zip(plans);
    if parallel {
        let run = |(child, (sequence, endpoint))| {
            Box::pin(to_join(child, sequence, endpoint)) as Pin<Box<dyn Future<Output = Option<Fault>> + '_>>
        };
        faults = all(work.map(run).collect()).await;
    } else {
        for (slot, (child, (sequence, endpoint))) in faults.iter_mut().zip(work) {
            std::mem::swap(&mut exchange.transactions, &mut child.transactions);
            *slot = to_join(child, sequence, endpoint).await;
            std::mem::swap(&mut exchange.transactions, &mut child.transactions);
        }
    }
    exchange.steps = children.iter().map(|child| child.steps).max().unwrap_or(exchange.steps).max(exchange.steps);
    if exchange.reply.is_answered() {
        return Ok(After::End);
    }
    let ends =
        children.into_iter().zip(faults).map(|(child, fault)| BranchEnd { message: child.message, fault }).collect();
    run::resume(exchange, join, ends).await.map(After::Continue)
}

/// Runs a branch and reads what became of it, for the mediator that joins it.
async fn to_join(
    child: &mut Exchange,
    sequence: Option<SequenceId>,
    endpoint: Option<crate::Destination>,
) -> Option<Fault> {
    match start(child, sequence, endpoint).await {
        End::Failed(fault) => Some(*fault),
        _ if child.lost_branch => child.fault.take(),
        _ => match wait::buffer_body(child).await {
            Ok(()) => None,
            Err(fault) => Some(child.blamed(fault)),
        },
    }
}

async fn detached(exchange: &mut Exchange, work: Fork) -> Result<After, Fault> {
    let size = work.branches.len();
    let family = Family::new(work.id, size);
    let unjoined = &Unjoined::default();
    let mut children: Vec<(Exchange, Option<SequenceId>, Option<crate::Destination>)> = work
        .branches
        .into_iter()
        .enumerate()
        .map(|(index, branch)| {
            let kinship = Kinship { family: family.clone(), index };
            (exchange.branch(branch.message, Some(kinship)), branch.sequence, branch.endpoint)
        })
        .collect();
    let mut done = Vec::new();
    if !work.parallel && exchange.transactions.any() {
        // What Micro Integrator does on one thread: the branches in turn, all in the transaction, then the parent with it.
        for (mut child, sequence, mut endpoint) in children.drain(..) {
            std::mem::swap(&mut exchange.transactions, &mut child.transactions);
            alone(&mut child, sequence, endpoint.take(), unjoined).await;
            std::mem::swap(&mut exchange.transactions, &mut child.transactions);
            done.push((child, sequence, endpoint));
        }
    }
    // The parent's future gives its exchange back, a branch's gives nothing.
    let mut runs: Vec<Pin<Box<dyn Future<Output = Option<Exchange>> + '_>>> = Vec::with_capacity(children.len() + 1);
    if work.parallel {
        for (child, sequence, endpoint) in &mut children {
            runs.push(Box::pin(async move {
                alone(child, *sequence, endpoint.take(), unjoined).await;
                None
            }));
        }
    } else {
        let children = &mut children;
        runs.push(Box::pin(async move {
            for (child, sequence, endpoint) in children.iter_mut() {
                alone(child, *sequence, endpoint.take(), unjoined).await;
            }
            None
        }));
    }
    if work.continue_parent {
        let message = std::mem::take(&mut exchange.message);
        let mut parent = exchange.branch(message, None);
        parent.floor = exchange.floor;
        parent.called = exchange.called;
        parent.fault.clone_from(&exchange.fault);
        parent.transactions = std::mem::take(&mut exchange.transactions);
        runs.push(Box::pin(async move {
            let end = run::run(&mut parent).await;
            if let End::Failed(fault) = parent.finish_path(end).await {
                let id = parent.correlation_id();
                let text = format!("the message that was split failed: {fault}, correlation_id: {id}");
                parent.log(Level::Error, "Mediation", &text);
                parent.fault = Some(*fault);
                parent.lost_branch = true;
            }
            Some(parent)
        }));
    }
    let parent = all(runs).await.into_iter().flatten().next();
    for (mut child, ..) in children.into_iter().chain(done) {
        exchange.sent |= child.sent;
        exchange.lost_branch |= child.lost_branch;
        exchange.fault = exchange.fault.take().or(child.fault.take());
    }
    if let Some(parent) = parent {
        exchange.message = parent.message;
        exchange.fault = parent.fault.or(exchange.fault.take());
        exchange.sent |= parent.sent;
        exchange.lost_branch |= parent.lost_branch;
        unjoined.borrow_mut().clear();
    }
    let incomplete = incomplete(exchange, &family, &unjoined.borrow());
    match incomplete {
        Some(fault) => Err(fault),
        None => Ok(After::End),
    }
}

/// The paths of branches that came to their end and were not joined: the sequence of the out path, or none for a branch
/// that ended where its parent's sequences do.
type Unjoined = RefCell<Vec<Option<SequenceId>>>;

/// The fault of an aggregate that can no longer complete: all branches ended, none failed, the client has no answer, and
/// messages were collected that did not go on, or none came although the aggregate is on a branch's path.
///
/// Micro Integrator keeps such a group for ever and acknowledges with 202, or leaves the client waiting once a backend was
/// called.
fn incomplete(exchange: &Exchange, family: &Family, unjoined: &[Option<SequenceId>]) -> Option<Fault> {
    if exchange.reply.is_answered() || exchange.fault.is_some() {
        return None;
    }
    if exchange.acknowledges_faults() && !exchange.sent {
        return None;
    }
    let program = &exchange.loaded.program;
    let is_joined = |path: &Option<SequenceId>| match path {
        Some(out) => joins(program, *out, 0, 0),
        None => exchange.frames.iter().any(|frame| joins(program, frame.sequence, frame.next as usize, 0)),
    };
    let (collected, size) = (family.collected.get(), family.size);
    if collected > 0 || !family.completed.get() && unjoined.iter().any(is_joined) {
        let text =
            format!("the aggregate is incomplete: it has {collected} of {size} messages, and all branches ended");
        return Some(Fault::new(text).public());
    }
    None
}

/// Whether branches are joined in a sequence, from a step on.
fn joins(program: &Program, sequence: SequenceId, from: usize, depth: usize) -> bool {
    let steps = program.sequence(sequence).steps.get(from..).unwrap_or_default();
    depth < NESTED_JOIN_DEPTH_MAX
        && steps.iter().any(|step| match step.mediator.joins() {
            Joins::Nothing => false,
            Joins::Branches => true,
            Joins::Inside(sequences) => sequences.iter().any(|inner| joins(program, *inner, 0, depth + 1)),
        })
}

/// Runs a branch that is not joined; the others go on when it fails.
async fn alone(
    child: &mut Exchange,
    sequence: Option<SequenceId>,
    endpoint: Option<crate::Destination>,
    unjoined: &Unjoined,
) {
    match start(child, sequence, endpoint).await {
        End::Failed(fault) => {
            let id = child.correlation_id();
            child.log(Level::Error, "Mediation", &format!("branch failed: {fault}, correlation_id: {id}"));
            child.fault = Some(*fault);
            child.lost_branch = true;
        }
        End::Finished => unjoined.borrow_mut().push(child.out_path),
        End::Stopped => {}
    }
}

/// Runs a branch's sequence, then sends it when it has an endpoint.
async fn start(child: &mut Exchange, sequence: Option<SequenceId>, endpoint: Option<crate::Destination>) -> End {
    if let Some(sequence) = sequence {
        if let Err(fault) = run::enter(child, sequence) {
            return End::Failed(Box::new(fault));
        }
        match run::run(child).await {
            End::Finished => {}
            end => return end,
        }
    }
    match endpoint {
        Some(endpoint) if !child.called => run::send_and_run(child, endpoint).await,
        _ => End::Finished,
    }
}

/// Runs futures side by side in this task and returns their outputs in order. Only those that were
/// woken are polled, so thousands of branches cost no more than their own work.
async fn all<T>(futures: Vec<Pin<Box<dyn Future<Output = T> + '_>>>) -> Vec<T> {
    let mut outputs: Vec<Option<T>> = futures.iter().map(|_| None).collect();
    let mut running: FuturesUnordered<_> =
        futures.into_iter().enumerate().map(|(index, future)| async move { (index, future.await) }).collect();
    while let Some((index, output)) = running.next().await {
        outputs[index] = Some(output);
    }
    outputs.into_iter().flatten().collect()
}
