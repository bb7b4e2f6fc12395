//! Text: string values under way, and text nodes that are answers themselves.

use super::super::super::plan::{Mask, bits};
use super::{Matcher, note};

impl Matcher<'_> {
    /// Whether text that comes now matters.
    #[inline]
    pub(in super::super) fn wants_text(&self) -> bool {
        let frame = self.frames[self.frames.len() - 1];
        !self.collectors.is_empty() || (frame.here | frame.below) & self.plan.text_steps != 0
    }

    /// A piece of text.
    pub(in super::super) fn text(&mut self, piece: &str) {
        if piece.is_empty() {
            return;
        }
        for collector in &mut self.collectors {
            collector.text.push_str(piece);
        }
        if let Some((_, text)) = &mut self.text_node {
            text.push_str(piece);
            return;
        }
        let frame = self.frames[self.frames.len() - 1];
        let steps = (frame.here | frame.below) & self.plan.text_steps;
        if self.in_text || steps == 0 {
            return;
        }
        self.in_text = true;
        let mut questions: Mask = 0;
        bits(steps).for_each(|index| note(self.plan.steps[index].next, &mut 0, &mut questions));
        let wanted = bits(questions).fold(0, |wanted, question| wanted | Mask::from(self.found(question)) << question);
        if wanted != 0 {
            self.text_node = Some((wanted, piece.to_owned()));
        }
    }

    /// Something that is no text came: a text node, if one was under way, is complete.
    #[inline]
    pub(in super::super) fn end_text(&mut self) {
        if !self.in_text {
            return;
        }
        self.in_text = false;
        if let Some((questions, text)) = self.text_node.take() {
            bits(questions).for_each(|question| self.value_of(question, text.clone()));
        }
    }
}
