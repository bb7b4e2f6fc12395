//! The matcher: for each open element the set of steps that apply to its children.

mod misses;
mod predicates;
mod text;

use penstock_xml::{Reader, XmlError};

use super::super::plan::{Mask, Next, Plan, Predicate, Question, Value, bits};
use super::super::scalar::compare;
use super::Pass;
use super::element::{Named, Tag, VirtualTag};
use misses::Misses;

pub(in super::super) struct Matcher<'p> {
    plan: &'p Plan,
    frames: Vec<Frame>,
    /// For each open element, the counters of its children.
    counters: Vec<u32>,
    /// Counters as they were before a tag that may have to be read again.
    saved: Vec<u32>,
    /// String values under way.
    collectors: Vec<Collector>,
    /// The text node under way: the questions it answers, and its text.
    text_node: Option<(Mask, String)>,
    in_text: bool,
    answers: Vec<Value>,
    /// Questions that are answered.
    decided: Mask,
    /// Questions for the first node that have found it.
    taken: Mask,
    all: Mask,
    context_depth: Option<usize>,
    looked_ahead: usize,
    pub(super) misses: Misses,
}

#[derive(Clone, Copy)]
struct Frame {
    /// Steps for which this element is a context.
    here: Mask,
    /// Steps for which an ancestor is, and which apply at any depth.
    below: Mask,
}

struct Collector {
    question: usize,
    depth: usize,
    text: String,
}

type Stepped = Result<Result<(), Pass>, XmlError>;

impl<'p> Matcher<'p> {
    pub(super) fn for_document(plan: &'p Plan, context_depth: usize) -> Matcher<'p> {
        let at_context = if context_depth == 0 { plan.at_context } else { 0 };
        let mut matcher = Matcher::new(plan, plan.at_root | at_context);
        matcher.context_depth = Some(context_depth).filter(|&depth| depth > 0);
        matcher
    }

    fn new(plan: &'p Plan, here: Mask) -> Matcher<'p> {
        let initial = |question: &Question| match question {
            Question::First => Value::Text(String::new()),
            Question::Exists | Question::Any(..) => Value::Boolean(false),
            Question::Count => Value::Number(0.0),
        };
        let mut frames = Vec::with_capacity(16);
        frames.push(Frame { here, below: here & plan.deep });
        Matcher {
            plan,
            frames,
            counters: vec![0; plan.counters],
            saved: Vec::new(),
            collectors: Vec::new(),
            text_node: None,
            in_text: false,
            answers: plan.questions.iter().map(initial).collect(),
            decided: 0,
            taken: 0,
            // No plan has more questions than steps, and no question is without a step.
            all: Mask::MAX.checked_shr(Mask::BITS - plan.questions.len() as u32).unwrap_or(0),
            context_depth: None,
            looked_ahead: 0,
            misses: Misses::default(),
        }
    }

    #[inline]
    pub(super) fn is_decided(&self) -> bool {
        self.decided == self.all
    }

    /// The answers; what was not found by now is not there.
    pub(super) fn finish(&mut self) -> &[Value] {
        self.end_text();
        while let Some(collector) = self.collectors.pop() {
            self.value_of(collector.question, collector.text);
        }
        &self.answers
    }

    fn decide(&mut self, question: usize, value: Value) {
        if self.decided & 1 << question == 0 {
            self.decided |= 1 << question;
            self.answers[question] = value;
        }
    }

    /// A node that answers a question, with its string value.
    fn value_of(&mut self, question: usize, text: String) {
        match &self.plan.questions[question] {
            Question::First => self.decide(question, Value::Text(text)),
            Question::Any(comparison, right) => {
                if compare(*comparison, &Value::Text(text), right) {
                    self.decide(question, Value::Boolean(true));
                }
            }
            Question::Exists | Question::Count => {}
        }
    }

    /// A node was found: true when its string value is wanted.
    fn found(&mut self, question: usize) -> bool {
        let bit = 1 << question;
        if self.decided & bit != 0 {
            return false;
        }
        match &self.plan.questions[question] {
            Question::Exists => {
                self.decide(question, Value::Boolean(true));
                false
            }
            Question::Count => {
                if let Value::Number(count) = &mut self.answers[question] {
                    *count += 1.0;
                }
                false
            }
            Question::First => {
                let is_first = self.taken & bit == 0;
                self.taken |= bit;
                is_first
            }
            Question::Any(..) => true,
        }
    }

    pub(super) fn start_virtual(&mut self, tag: &VirtualTag<'_>, is_open: bool) -> Result<(), &'static str> {
        let parent = self.frames[self.frames.len() - 1];
        let (mut here, mut questions) = (0, 0);
        for index in bits((parent.here | parent.below) & self.plan.child_steps) {
            let step = &self.plan.steps[index];
            if !tag.passes(&step.test) {
                continue;
            }
            let mut passed = true;
            for predicate in &step.predicates {
                let Predicate::Position { comparison, number, counter } = predicate else {
                    return Err("a predicate looks into an element around the document");
                };
                passed = passed && self.position(*comparison, *number, *counter);
            }
            if passed {
                note(step.next, &mut here, &mut questions);
            }
        }
        self.open(here, questions, !is_open);
        Ok(())
    }

    /// A start tag that no step can match, which is what most are: true when this was one.
    #[inline]
    pub(super) fn start_other(&mut self, reader: &Reader<'_>, empty: bool) -> bool {
        if self.in_text {
            self.end_text();
        }
        let parent = self.frames[self.frames.len() - 1];
        let applying = (parent.here | parent.below) & self.plan.child_steps;
        if !self.misses.cover(reader.name_number(), applying)
            || self.context_depth.is_some()
            || parent.below & self.plan.attribute_steps != 0
        {
            return false;
        }
        if !empty {
            self.push_frame(Frame { here: 0, below: parent.below });
        }
        true
    }

    #[inline]
    fn push_frame(&mut self, frame: Frame) {
        self.frames.push(frame);
        if self.plan.counters > 0 {
            self.counters.resize(self.counters.len() + self.plan.counters, 0);
        }
    }

    /// The steps that apply to the children of the innermost element, and those that apply further inside, when nothing
    /// but start tags can matter now.
    #[inline]
    pub(super) fn steps_to_skim_for(&self) -> Option<(Mask, Mask)> {
        let Frame { here, below } = self.frames[self.frames.len() - 1];
        let looks_closer = self.in_text
            || self.context_depth.is_some()
            || !self.collectors.is_empty()
            || (here | below) & self.plan.text_steps != 0
            || below & self.plan.attribute_steps != 0;
        if looks_closer {
            return None;
        }
        Some(((here | below) & self.plan.child_steps, below & self.plan.child_steps))
    }

    /// Opens an element that no step matched.
    pub(super) fn open_unmatched(&mut self) {
        let below = self.frames[self.frames.len() - 1].below;
        self.push_frame(Frame { here: 0, below });
    }

    /// Remembers which steps the element just started cannot pass.
    fn remember_misses(&mut self, reader: &Reader<'_>) {
        let name = reader.element_name();
        let missed = bits(self.plan.child_steps)
            .filter(|&index| !self.plan.steps[index].test.allows(name.local()))
            .fold(0, |missed, index| missed | 1 << index);
        self.misses.remember(reader.name_number(), missed);
    }

    /// A start tag of the reader.
    pub(super) fn start_element(&mut self, reader: &Reader<'_>, empty: bool) -> Stepped {
        self.remember_misses(reader);
        let parent = self.frames[self.frames.len() - 1];
        let candidates = (parent.here | parent.below) & self.plan.child_steps;
        let (mut here, mut questions) = (0, 0);
        if candidates != 0 {
            let tag = Tag { reader, name: reader.element_name() };
            let level = self.counters.len() - self.plan.counters;
            let mut saved = std::mem::take(&mut self.saved);
            saved.clear();
            saved.extend_from_slice(&self.counters[level..]);
            for index in bits(candidates) {
                let step = &self.plan.steps[index];
                if !tag.passes(&step.test) {
                    continue;
                }
                match self.predicates(&step.predicates, &tag, empty)? {
                    Ok(true) => note(step.next, &mut here, &mut questions),
                    Ok(false) => {}
                    Err(pass) => {
                        // The tag will be read again when more of the document is there.
                        self.counters[level..].copy_from_slice(&saved);
                        return Ok(Err(pass));
                    }
                }
            }
            self.saved = saved;
        }
        let attribute_steps = self.open(here, questions, empty) & self.plan.attribute_steps;
        if attribute_steps != 0 {
            self.attributes(attribute_steps, &Tag { reader, name: reader.element_name() })?;
        }
        Ok(Ok(()))
    }

    /// Opens an element that matched; returns the steps for which it is a context.
    #[inline]
    fn open(&mut self, mut here: Mask, questions: Mask, empty: bool) -> Mask {
        let depth = self.frames.len();
        let parent = self.frames[depth - 1];
        if self.context_depth == Some(depth) {
            self.context_depth = None;
            here |= self.plan.at_context;
        }
        let below = parent.below | (here & self.plan.deep);
        for question in bits(questions) {
            if !self.found(question) {
                continue;
            }
            if empty {
                self.value_of(question, String::new());
            } else {
                self.collectors.push(Collector { question, depth, text: String::new() });
            }
        }
        if !empty {
            self.push_frame(Frame { here, below });
        }
        here | below
    }

    #[inline]
    pub(super) fn end_element(&mut self) {
        let depth = self.frames.len() - 1;
        while self.collectors.last().is_some_and(|collector| collector.depth >= depth) {
            if let Some(collector) = self.collectors.pop() {
                self.value_of(collector.question, collector.text);
            }
        }
        if depth > 0 {
            self.frames.pop();
            self.counters.truncate(self.counters.len() - self.plan.counters);
        }
    }

    fn attributes(&mut self, steps: Mask, tag: &Tag<'_, '_>) -> Result<(), XmlError> {
        let mut counted = 0;
        for index in bits(steps) {
            let step = &self.plan.steps[index];
            let Next::Question(question) = step.next else { continue };
            for value in tag.attributes(&step.test)? {
                let is_count = matches!(self.plan.questions[question], Question::Count);
                // Two paths to one attribute would count it twice; only unions have two.
                if is_count && counted & 1 << question != 0 && self.plan.attribute_steps.count_ones() > 1 {
                    continue;
                }
                counted |= 1 << question;
                if self.found(question) {
                    self.value_of(question, value.into_owned());
                }
            }
        }
        Ok(())
    }
}

/// What follows a step that matched.
#[inline]
fn note(next: Next, here: &mut Mask, questions: &mut Mask) {
    match next {
        Next::Step(step) => *here |= 1 << step,
        Next::Question(question) => *questions |= 1 << question,
    }
}
