//! `<in>` and `<out>`: children that run for requests only, or for responses only.

use penstock_compile::{Compiler, Element, MediatorKind};
use penstock_engine::{Direction, Exchange, Fault, Flow, Joins, Mediator, SequenceId};

/// The kind of `<in>`.
pub const IN: MediatorKind = MediatorKind { name: "in", compile: |el, cx| compile(el, cx, Direction::Request) };
/// The kind of `<out>`.
pub const OUT: MediatorKind = MediatorKind { name: "out", compile: |el, cx| compile(el, cx, Direction::Response) };

struct ForDirection {
    direction: Direction,
    children: SequenceId,
}

fn compile(el: &Element<'_>, cx: &mut Compiler<'_>, direction: Direction) -> Option<Box<dyn Mediator>> {
    Some(Box::new(ForDirection { direction, children: cx.sequence_of(el) }))
}

impl Mediator for ForDirection {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let direction = if exchange.is_response() { Direction::Response } else { Direction::Request };
        Ok(if direction == self.direction { Flow::Enter(self.children) } else { Flow::Next })
    }

    fn joins(&self) -> Joins {
        Joins::Inside(vec![self.children])
    }
}
