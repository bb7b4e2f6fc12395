//! Predicates: positions, and conditions that may read the content of an element ahead.

use penstock_xml::XmlError;

use super::super::super::plan::{Plan, Predicate};
use super::super::super::scalar::holds;
use super::super::Pass;
use super::super::element::{Tag, TagFacts};
use super::Matcher;
use crate::ast::Comparison;

/// Bytes that predicates may look ahead, beside a multiple of what was read. Elements inside one another with predicates
/// on their content would otherwise be read once per level.
const AHEAD_FREE: usize = 256 << 10;
const AHEAD_FACTOR: usize = 4;

impl<'p> Matcher<'p> {
    pub(super) fn position(&mut self, comparison: Comparison, number: f64, counter: usize) -> bool {
        let level = self.counters.len() - self.plan.counters;
        self.counters[level + counter] += 1;
        holds(comparison, f64::from(self.counters[level + counter]), number)
    }

    pub(super) fn predicates(
        &mut self,
        predicates: &'p [Predicate],
        tag: &Tag<'_, '_>,
        empty: bool,
    ) -> Result<Result<bool, Pass>, XmlError> {
        for predicate in predicates {
            let passed = match predicate {
                Predicate::Position { comparison, number, counter } => self.position(*comparison, *number, *counter),
                Predicate::Condition(plan) => match self.condition(plan, tag, empty)? {
                    Ok(passed) => passed,
                    Err(pass) => return Ok(Err(pass)),
                },
            };
            if !passed {
                return Ok(Ok(false));
            }
        }
        Ok(Ok(true))
    }

    /// Whether a condition holds for an element; its content is read ahead if the condition needs it.
    fn condition(&mut self, plan: &'p Plan, tag: &Tag<'_, '_>, empty: bool) -> Result<Result<bool, Pass>, XmlError> {
        if plan.questions.is_empty() {
            return Ok(Ok(plan.scalar.value(&TagFacts { tag, answers: &[] }).boolean()));
        }
        let mut inner = Matcher::new(plan, plan.at_context);
        inner.looked_ahead = self.looked_ahead;
        let own = (inner.frames[0].here | inner.frames[0].below) & plan.attribute_steps;
        inner.attributes(own, tag)?;
        if !empty && !inner.is_decided() {
            let mut reader = tag.reader.look_ahead();
            let start = reader.next_offset();
            let pass = inner.pass(&mut reader)?;
            self.looked_ahead = inner.looked_ahead + (reader.next_offset() - start);
            if self.looked_ahead > AHEAD_FREE + AHEAD_FACTOR * start {
                return Ok(Err(Pass::Unsuitable("its predicates would read it too often")));
            }
            if !matches!(pass, Pass::Known | Pass::Ended) {
                return Ok(Err(pass));
            }
        }
        let answers = inner.finish();
        Ok(Ok(plan.scalar.value(&TagFacts { tag, answers }).boolean()))
    }
}
