//! `<transaction>`: begins, ends, sets aside and takes up the transaction of a message.

use std::rc::Rc;

use penstock_compile::{Compiler, Element, MediatorKind, suggestion};
use penstock_engine::database::{DatabaseError, Transaction};
use penstock_engine::ports::LocalFuture;
use penstock_engine::{Exchange, Fault, Flow, Mediator, Resume};

/// The kind.
pub const KIND: MediatorKind = MediatorKind { name: "transaction", compile };

/// What is done, by the word of the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    New,
    UseExistingOrNew,
    FaultIfNone,
    Commit,
    Rollback,
    Suspend,
    Resume,
}

const ACTIONS: [(&str, Action); 7] = [
    ("new", Action::New),
    ("use-existing-or-new", Action::UseExistingOrNew),
    ("fault-if-no-tx", Action::FaultIfNone),
    ("commit", Action::Commit),
    ("rollback", Action::Rollback),
    ("suspend", Action::Suspend),
    ("resume", Action::Resume),
];

fn compile(el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    let word = el.required(cx, "action")?;
    let Some((_, action)) = ACTIONS.iter().find(|(name, _)| *name == word) else {
        let names = ACTIONS.map(|(name, _)| name);
        let hint = suggestion(word, names.into_iter())
            .map_or_else(|| format!(": {}", names.join(", ")), |meant| format!(", did you mean `{meant}`?"));
        cx.error(el.attribute_place("action"), format!("`{word}` is not an action of a transaction{hint}"));
        return None;
    };
    Some(Box::new(*action))
}

impl Mediator for Action {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let transactions = &mut exchange.transactions;
        match self {
            Action::New if transactions.active.is_some() => {
                return Err(Fault::new("Require to begin a new transaction, but a tansaction already exist"));
            }
            Action::UseExistingOrNew if transactions.active.is_some() => {}
            Action::New | Action::UseExistingOrNew => {
                let begun = exchange.core().databases()?.begin();
                exchange.transactions.active = Some(begun);
            }
            Action::FaultIfNone if transactions.active.is_none() => {
                return Err(Fault::new("No active transaction. Require an active transaction"));
            }
            Action::FaultIfNone => {}
            Action::Commit => return end(transactions.active.take(), "Unable to commit transaction", |it| it.commit()),
            Action::Rollback => {
                return end(transactions.active.take(), "Unable to rollback transaction", |it| it.rollback());
            }
            Action::Suspend => transactions.suspended = transactions.active.take(),
            Action::Resume if transactions.active.is_some() => {
                return Err(Fault::new("Unable to resume transaction"));
            }
            Action::Resume => match transactions.suspended.take() {
                Some(suspended) => transactions.active = Some(suspended),
                None => return Err(Fault::new("Couldn't find a suspended transaction to resume")),
            },
        }
        Ok(Flow::Next)
    }
}

/// Ends a transaction, also on failure.
fn end(
    transaction: Option<Rc<dyn Transaction>>,
    failure: &'static str,
    how: fn(&dyn Transaction) -> LocalFuture<'static, Result<(), DatabaseError>>,
) -> Result<Flow, Fault> {
    let failed = move |cause: &str| Fault { detail: Some(format!("{failure}: {cause}").into()), ..Fault::new(failure) };
    let Some(transaction) = transaction else { return Err(failed("there is no active transaction")) };
    let ended = how(&*transaction);
    Ok(Flow::Wait(Box::pin(async move {
        let outcome = ended.await;
        Resume::new(move |_: &mut Exchange, ()| match outcome {
            Ok(()) => Ok(Flow::Next),
            Err(error) => Err(failed(&error.message)),
        })
    })))
}
