//! Work that may take long, a slice at a time, so that the core serves others in between.
//!
//! A message whose work is done within its first slice never gets here. Of the others on a core one runs at a time; after its
//! slice the core looks after its sockets, then the next has its turn: clients in rotation, and the messages of one client
//! among themselves, so that a client with many large messages delays its own.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::net::IpAddr;
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::time::Instant;

use penstock_budget::{Slices, Stop};

use crate::ports::LocalFuture;
use crate::{Exchange, Fault};

/// Messages of one core that are paused. Each has a stack, of which it uses some tens of kilobytes; a core that has so many
/// to do is hours behind.
const PAUSED_MAX: usize = 512;

/// 64 KiB are parsed or copied within a tenth of a slice.
const SMALL_BYTES_MAX: usize = 64 << 10;

/// Whether the request holds so little memory that work which is linear in it needs neither pauses nor a stack of its own.
pub(crate) fn is_small() -> bool {
    penstock_budget::held() <= SMALL_BYTES_MAX
}

/// What is done, or what is left to wait for.
enum Begun<'w, T> {
    Done(Result<T, Fault>),
    Paused(LocalFuture<'w, Result<T, Fault>>),
}

/// Runs work on an exchange, with pauses when it takes longer than a slice.
pub(crate) async fn run<'w, T: 'w>(
    exchange: &'w mut Exchange,
    work: impl FnOnce(&mut Exchange) -> Result<T, Fault> + 'w,
) -> Result<T, Fault> {
    match begin(exchange, work) {
        Begun::Done(outcome) => outcome,
        Begun::Paused(rest) => rest.await,
    }
}

/// The first slice. Not part of the future above, so that its size does not depend on the work.
fn begin<'w, T: 'w>(
    exchange: &'w mut Exchange,
    work: impl FnOnce(&mut Exchange) -> Result<T, Fault> + 'w,
) -> Begun<'w, T> {
    let client = exchange.client.peer.ip();
    let deadline = exchange.deadline;
    let mut slices = match Slices::new(move || work(exchange)) {
        Ok(slices) => slices,
        Err(work) => return Begun::Done(flatten(penstock_budget::run(work))),
    };
    match slices.resume() {
        Some(outcome) => Begun::Done(flatten(outcome)),
        None if TURNS.with_borrow(|turns| turns.paused) >= PAUSED_MAX => {
            drop(slices);
            let fault = Fault::new("too many messages that take long are being worked on");
            Begun::Done(Err(fault.public().with_status(503)))
        }
        None => Begun::Paused(Box::pin(continued(slices, client, deadline))),
    }
}

async fn continued<T>(mut slices: Slices<'_, Result<T, Fault>>, client: IpAddr, deadline: Instant) -> Result<T, Fault> {
    let mut turn = Turn::new(client);
    loop {
        turn.wait().await;
        if Instant::now() > deadline {
            return Err(Fault::deadline());
        }
        if let Some(outcome) = slices.resume() {
            return flatten(outcome);
        }
        // The runtime looks at its sockets before it polls this again.
        tokio::task::yield_now().await;
        turn.pass_on();
    }
}

/// Runs work that is short as a rule on the stack of the thread; the limits hold, pauses there are none.
pub(crate) fn run_at_once<T>(
    exchange: &mut Exchange,
    work: impl FnOnce(&mut Exchange) -> Result<T, Fault>,
) -> Result<T, Fault> {
    flatten(penstock_budget::run(|| work(exchange)))
}

fn flatten<T>(outcome: Result<Result<T, Fault>, Stop>) -> Result<T, Fault> {
    outcome.unwrap_or_else(|stop| Err(Fault::new(stop.to_string()).public()))
}

thread_local! {
    static TURNS: RefCell<Turns> = const { RefCell::new(Turns { clients: VecDeque::new(), taken: false, paused: 0 }) };
}

/// Who works next on this core.
struct Turns {
    /// Waiting messages by client; the first of the first client is next.
    clients: VecDeque<(IpAddr, VecDeque<Rc<Place>>)>,
    taken: bool,
    paused: usize,
}

/// A place in the queue.
#[derive(Default)]
struct Place {
    state: RefCell<Waiting>,
}

#[derive(Default)]
struct Waiting {
    granted: bool,
    waker: Option<Waker>,
}

impl Turns {
    fn add(&mut self, client: IpAddr, place: Rc<Place>) {
        match self.clients.iter_mut().find(|(other, _)| *other == client) {
            Some((_, places)) => places.push_back(place),
            None => self.clients.push_back((client, VecDeque::from([place]))),
        }
    }

    /// Gives the turn to the next that waits.
    fn grant(&mut self) {
        self.taken = false;
        let Some((client, mut places)) = self.clients.pop_front() else { return };
        let Some(place) = places.pop_front() else { return self.grant() };
        if !places.is_empty() {
            self.clients.push_back((client, places));
        }
        self.taken = true;
        let mut waiting = place.state.borrow_mut();
        waiting.granted = true;
        if let Some(waker) = waiting.waker.take() {
            waker.wake();
        }
    }

    fn remove(&mut self, client: IpAddr, place: &Rc<Place>) {
        if let Some((_, places)) = self.clients.iter_mut().find(|(other, _)| *other == client) {
            places.retain(|other| !Rc::ptr_eq(other, place));
        }
        self.clients.retain(|(_, places)| !places.is_empty());
    }
}

/// The turns of one paused message.
struct Turn {
    client: IpAddr,
    /// Where it waits, or that it has the turn.
    place: Option<Rc<Place>>,
}

impl Turn {
    fn new(client: IpAddr) -> Turn {
        TURNS.with_borrow_mut(|turns| turns.paused += 1);
        Turn { client, place: None }
    }

    async fn wait(&mut self) {
        if self.place.is_none() {
            let place = Rc::new(Place::default());
            TURNS.with_borrow_mut(|turns| {
                turns.add(self.client, place.clone());
                if !turns.taken {
                    turns.grant();
                }
            });
            self.place = Some(place);
        }
        poll_fn(|cx| {
            let Some(place) = &self.place else { return Poll::Ready(()) };
            let mut waiting = place.state.borrow_mut();
            if waiting.granted {
                return Poll::Ready(());
            }
            waiting.waker = Some(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// Gives the turn up, when there is anyone to take it.
    fn pass_on(&mut self) {
        TURNS.with_borrow_mut(|turns| {
            if !turns.clients.is_empty() {
                self.place = None;
                turns.grant();
            }
        });
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        TURNS.with_borrow_mut(|turns| {
            turns.paused -= 1;
            if let Some(place) = self.place.take() {
                let granted = place.state.borrow().granted;
                if granted {
                    turns.grant();
                } else {
                    turns.remove(self.client, &place);
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn clients_are_served_in_rotation() {
        let (greedy, modest) = (IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)));
        let mut turns = Turns { clients: VecDeque::new(), taken: false, paused: 0 };
        let places: Vec<Rc<Place>> = (0..4).map(|_| Rc::default()).collect();
        for place in &places[..3] {
            turns.add(greedy, place.clone());
        }
        turns.add(modest, places[3].clone());
        let mut order = Vec::new();
        while !turns.clients.is_empty() {
            turns.grant();
            let granted = places.iter().position(|place| place.state.take().granted);
            order.extend(granted);
        }
        assert_eq!(order, [0, 3, 1, 2]);
    }

    #[test]
    fn long_work_leaves_its_core_to_others() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let local = tokio::task::LocalSet::new();
        let others = Rc::new(std::cell::Cell::new(0));
        let seen = others.clone();
        let work = move || {
            // Ends only when another task of the same thread has run.
            while seen.get() < 3 {
                penstock_budget::step();
            }
            Ok(seen.get())
        };
        let outcome = local.block_on(&runtime, async move {
            let mut slices = Slices::new(work).ok().unwrap();
            assert!(slices.resume().is_none(), "it cannot be done before another task runs");
            let other = tokio::task::spawn_local(async move {
                for _ in 0..3 {
                    others.set(others.get() + 1);
                    tokio::task::yield_now().await;
                }
            });
            let client = IpAddr::V4(Ipv4Addr::LOCALHOST);
            let outcome = continued(slices, client, Instant::now() + std::time::Duration::from_secs(60)).await;
            other.await.unwrap();
            outcome
        });
        assert_eq!(outcome.unwrap(), 3);
        assert_eq!(TURNS.with_borrow(|turns| (turns.paused, turns.taken, turns.clients.len())), (0, false, 0));
    }
}
