//! `<throttle>`: how many requests at once, and how many in a time, by a WS-Policy.
//!
//! Counting is exact across cores: one atomic number for what runs at once, one short lock for each
//! rule of a rate. A throttle without a policy in the response path gives a place back; at the latest
//! it is free when the exchange is over.

mod policy;
mod rate;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Instant;

use penstock_compile::{Compiler, Element, MediatorKind, NameKind, SourceDocument};
use penstock_engine::ports::Level;
use penstock_engine::{Direction, Exchange, Fault, Flow, Joins, Mediator, SequenceId};

use policy::{Policy, Rule};

/// The kind.
pub const KIND: MediatorKind = MediatorKind { name: "throttle", compile };

/// How many run at once, shared by the throttles of one `id`.
#[derive(Debug, Default)]
struct Places {
    taken: AtomicI64,
}

/// A place that is taken; dropping it gives it back.
struct Place(Arc<Places>);

impl Places {
    fn take(self: &Arc<Places>, limit: i64) -> Option<Place> {
        let taken =
            self.taken.fetch_update(Ordering::AcqRel, Ordering::Acquire, |taken| (taken < limit).then_some(taken + 1));
        taken.ok().map(|_| Place(self.clone()))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.taken.fetch_sub(1, Ordering::AcqRel);
    }
}

struct Throttle {
    /// By this name an exchange holds its place.
    name: Arc<str>,
    places: Arc<Places>,
    policy: Rules,
    on_accept: Option<SequenceId>,
    on_reject: Option<SequenceId>,
}

enum Rules {
    /// Nothing is limited here.
    None,
    Given(Policy),
    /// A key that leads nowhere: a fault when a request gets here.
    Missing(Arc<str>),
}

fn compile(el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    static NUMBERS: AtomicU64 = AtomicU64::new(0);
    let name: Arc<str> = match el.attribute("id").map(str::trim).filter(|id| !id.is_empty()) {
        Some(id) => format!("throttle:{id}").into(),
        None => format!("throttle {}", NUMBERS.fetch_add(1, Ordering::Relaxed)).into(),
    };
    let policy = match el.child("policy") {
        Some(policy) => {
            let rules = rules_of(&policy, cx);
            policy.finish(cx);
            rules
        }
        None => Rules::None,
    };
    let on_accept = branch(el, cx, "onAccept");
    let on_reject = branch(el, cx, "onReject");
    let places = cx.shared(&name, Places::default);
    Some(Box::new(Throttle { name, places, policy, on_accept, on_reject }))
}

/// An attribute that names a sequence, or a child that is one.
fn branch(el: &Element<'_>, cx: &mut Compiler<'_>, name: &'static str) -> Option<SequenceId> {
    if let Some(key) = el.attribute(name) {
        return Some(cx.sequence_ref(key, el.attribute_place(name)));
    }
    let child = el.child(name)?;
    let sequence = match child.attribute("sequence") {
        Some(key) => cx.sequence_ref(key, child.attribute_place("sequence")),
        None => cx.sequence_of(&child),
    };
    Some(sequence)
}

fn rules_of(el: &Element<'_>, cx: &mut Compiler<'_>) -> Rules {
    let parsed = match el.attribute("key") {
        Some(key) => {
            let Some(resource) = cx.resource(key) else {
                cx.unknown(NameKind::RESOURCE, key, el.attribute_place("key"));
                return Rules::Missing(key.into());
            };
            let options = penstock_xml::ParseOptions::default();
            match penstock_xml::Document::parse(resource.bytes.clone(), &options) {
                Ok(document) => {
                    let source = SourceDocument::new(resource.at.file.clone(), Arc::new(document));
                    source.root().map(|root| Policy::read(&root))
                }
                Err(error) => {
                    cx.warn(
                        resource.at.clone(),
                        format!("the throttle policy `{key}` is not well-formed XML: {error}"),
                    );
                    return Rules::Missing(key.into());
                }
            }
        }
        None => {
            el.accept_all();
            el.children().next().map(|inline| Policy::read(&inline))
        }
    };
    match parsed {
        Some(Ok(policy)) => Rules::Given(policy),
        Some(Err(why)) => {
            // Micro Integrator serves such a flow without a limit.
            cx.warn(el.place(), format!("the throttle policy limits nothing: {why}"));
            Rules::None
        }
        None => Rules::None,
    }
}

impl Throttle {
    /// Whether the request may pass; its place is kept with the exchange.
    fn admits(&self, exchange: &mut Exchange) -> Result<bool, Fault> {
        let policy = match &self.policy {
            Rules::None => return Ok(true),
            Rules::Missing(key) => {
                return Err(Fault::new(format!("Cannot find throttling policy using key : {key}")));
            }
            Rules::Given(policy) => policy,
        };
        let place = match policy.at_once {
            Some(limit) => match self.places.take(limit) {
                Some(place) => Some(place),
                None => return Ok(false),
            },
            None => None,
        };
        let caller = exchange.client.address;
        let admitted = match policy.rule_for(caller) {
            None | Some(Rule::Allow) => true,
            Some(Rule::Deny) => false,
            Some(Rule::Rate(rate)) => rate.admits(Instant::now()),
        };
        if !admitted {
            exchange.log(
                Level::Info,
                "AccessRateController",
                "You cannot access this service since you have exceeded the allocated quota.",
            );
        } else if let Some(place) = place {
            exchange.held.borrow_mut().push((self.name.clone(), Box::new(place)));
        }
        Ok(admitted)
    }
}

/// A request that may not pass, with no sequence for it. Micro Integrator ends such a flow, and the client reads 202.
fn refused() -> Fault {
    let mut fault = Fault::new("the request exceeds the limit of the throttle").public().with_status(429);
    fault.quiet = true;
    fault
}

impl Mediator for Throttle {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let admitted = if exchange.direction == Direction::Response || exchange.message.is_reply {
            // On the way back a place is given back, and everything passes.
            exchange.held.borrow_mut().retain(|(name, _)| *name != self.name);
            true
        } else {
            self.admits(exchange)?
        };
        Ok(match (admitted, self.on_accept, self.on_reject) {
            (true, Some(sequence), _) | (false, _, Some(sequence)) => Flow::Enter(sequence),
            (true, None, _) => Flow::Next,
            (false, _, None) => return Err(refused()),
        })
    }

    fn joins(&self) -> Joins {
        Joins::Inside(self.on_accept.into_iter().chain(self.on_reject).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_exactly_across_threads() {
        let places = Arc::new(Places::default());
        let most = Arc::new(AtomicI64::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..2000 {
                        let place = places.take(3);
                        most.fetch_max(places.taken.load(Ordering::SeqCst), Ordering::SeqCst);
                        drop(place);
                    }
                });
            }
        });
        assert!(most.load(Ordering::SeqCst) <= 3);
        assert_eq!(places.taken.load(Ordering::SeqCst), 0);
        let all: Vec<_> = (0..5).map(|_| places.take(3)).collect();
        assert_eq!(all.iter().filter(|place| place.is_some()).count(), 3);
    }
}
