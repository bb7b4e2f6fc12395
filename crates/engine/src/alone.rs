//! A sequence run by itself, with no service around it: what unit tests of sequences are made of.

use penstock_message::Message;

use crate::run::{self, End};
use crate::{Exchange, Fault, SequenceId, wait};

/// What became of a sequence that ran by itself.
pub struct Alone {
    /// The exchange as the sequence left it.
    pub exchange: Box<Exchange>,
    /// What it answered the client, when it did.
    pub reply: Option<Message>,
    /// The fault that nothing inside handled.
    pub fault: Option<Fault>,
}

/// Runs a sequence of the exchange's program on its message until nothing is left to do. Must run on a
/// [`tokio::task::LocalSet`]: branches without a waiter live on it.
pub async fn run_alone(mut exchange: Box<Exchange>, sequence: SequenceId) -> Alone {
    let end = match run::enter(&mut exchange, sequence) {
        Ok(()) => run::run(&mut exchange).await,
        Err(fault) => End::Failed(Box::new(fault)),
    };
    let mut fault = match end {
        End::Failed(fault) => Some(*fault),
        End::Finished | End::Stopped => None,
    };
    let mut reply = exchange.reply.take().map(|reply| *reply);
    let limit = exchange.program().limits.body_bytes_max;
    let bodies = [Some(&mut exchange.message), reply.as_mut()];
    for message in bodies.into_iter().flatten() {
        if let Err(error) = wait::buffer(&mut message.body, limit).await {
            fault.get_or_insert_with(|| error.into());
        }
    }
    Alone { exchange, reply, fault }
}
