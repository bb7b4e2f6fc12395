//! Answering: the reader's events go by, the matcher keeps what it needs of them.

mod element;
mod matcher;
mod skim;

use std::borrow::Cow;

use penstock_xml::{ParseOptions, Reader, ReaderState, Token, XmlError};

use super::plan::{Test, Value};
use super::scalar::Facts;
use super::{Stream, Want};
use element::VirtualTag;
use matcher::Matcher;

/// An element that is not in the document but around it, as a SOAP envelope is around a plain XML body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Virtual {
    /// What follows, and in the end the document, is inside it.
    Open {
        /// The namespace, empty for none.
        namespace: String,
        /// The local name.
        local: String,
    },
    /// It has no content.
    Empty {
        /// The namespace, empty for none.
        namespace: String,
        /// The local name.
        local: String,
    },
}

/// Where the document stands and where paths begin.
#[derive(Clone, Default)]
pub struct Surroundings {
    /// Elements around the document, outermost first.
    pub around: Vec<Virtual>,
    /// Where paths without a leading slash begin: 0 is the document node, 1 the outermost element and so on.
    pub context_depth: usize,
    /// Limits and policies for the reader.
    pub options: ParseOptions,
}

/// What is known so far.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// The answer, when text was wanted.
    Text(String),
    /// The answer, when a truth value was wanted.
    Boolean(bool),
    /// The answer, when a number was wanted.
    Number(f64),
    /// Not known yet: more of the document must arrive.
    NeedMore,
    /// This document cannot be answered for without a tree, for the reason given.
    Unsuitable(&'static str),
}

/// Below this size a document is looked at again whenever a part arrives; above it only when half as much again has
/// come, because each look checks the characters from the beginning.
const EAGER_BYTES: usize = 64 << 10;

/// The answering of one stream for one document.
pub struct Run<'s> {
    stream: &'s Stream,
    matcher: Matcher<'s>,
    around: Vec<Virtual>,
    options: ParseOptions,
    state: Option<ReaderState>,
    looked_at: usize,
}

/// How a pass over the events ended.
pub(super) enum Pass {
    /// Everything is known.
    Known,
    /// The document, or the element looked into, ended.
    Ended,
    NeedMore,
    Unsuitable(&'static str),
}

impl<'s> Run<'s> {
    pub(super) fn new(stream: &'s Stream, surroundings: &Surroundings) -> Run<'s> {
        Run {
            stream,
            matcher: Matcher::for_document(&stream.plan, surroundings.context_depth),
            around: surroundings.around.clone(),
            options: surroundings.options.clone(),
            state: None,
            looked_at: 0,
        }
    }

    /// Goes on with all of the document that has arrived, from its first byte; `complete` says that this is the whole.
    /// Once the answer is known, do not feed again.
    pub fn feed(&mut self, arrived: &[u8], complete: bool) -> Result<Answer, XmlError> {
        let worth_it = arrived.len() < EAGER_BYTES || arrived.len() >= self.looked_at + self.looked_at / 2;
        if !complete && !worth_it {
            return Ok(Answer::NeedMore);
        }
        self.looked_at = arrived.len();
        let mut reader = match self.state.take() {
            Some(state) => Reader::resume(state, arrived, complete),
            None if complete => Reader::new(arrived, &self.options),
            None => Reader::partial(arrived, &self.options),
        };
        for element in std::mem::take(&mut self.around) {
            let (Virtual::Open { namespace, local } | Virtual::Empty { namespace, local }) = &element;
            let tag = VirtualTag { namespace, local };
            let is_open = matches!(element, Virtual::Open { .. });
            if let Err(reason) = self.matcher.start_virtual(&tag, is_open) {
                return Ok(Answer::Unsuitable(reason));
            }
        }
        Ok(match self.matcher.pass(&mut reader)? {
            Pass::Known | Pass::Ended => self.answer(),
            Pass::Unsuitable(reason) => Answer::Unsuitable(reason),
            Pass::NeedMore => {
                self.state = Some(reader.suspend());
                Answer::NeedMore
            }
        })
    }

    fn answer(&mut self) -> Answer {
        let answers = self.matcher.finish();
        let value = self.stream.plan.scalar.value(&Answers(answers));
        match self.stream.want {
            Want::Text => match value {
                Value::Text(text) => Answer::Text(text),
                other => Answer::Text(other.text().into_owned()),
            },
            Want::Boolean => Answer::Boolean(value.boolean()),
            Want::Number => Answer::Number(value.number()),
        }
    }
}

/// The facts of an expression that is about no element.
struct Answers<'a>(&'a [Value]);

impl Facts for Answers<'_> {
    fn answer(&self, question: usize) -> Value {
        self.0[question].clone()
    }

    fn attribute(&self, _test: &Test) -> Option<String> {
        None
    }

    fn name(&self) -> (Cow<'_, str>, Cow<'_, str>, Cow<'_, str>) {
        ("".into(), "".into(), "".into())
    }
}

impl Matcher<'_> {
    /// Reads until everything is known or nothing more comes.
    pub(super) fn pass(&mut self, reader: &mut Reader<'_>) -> Result<Pass, XmlError> {
        loop {
            penstock_budget::step();
            if self.is_decided() {
                return Ok(Pass::Known);
            }
            match self.next_of_interest(reader)? {
                token @ (Token::Start | Token::Empty) => {
                    let empty = token == Token::Empty;
                    if !self.start_other(reader, empty)
                        && let Err(pass) = self.start_element(reader, empty)?
                    {
                        if matches!(pass, Pass::NeedMore) {
                            reader.step_back();
                        }
                        return Ok(pass);
                    }
                    if empty && reader.depth() == 0 {
                        return Ok(Pass::Ended);
                    }
                }
                Token::End => {
                    self.end_text();
                    if reader.depth() == 0 {
                        return Ok(Pass::Ended);
                    }
                    self.end_element();
                }
                token @ (Token::Verbatim | Token::Text | Token::CData) => {
                    if self.wants_text() {
                        self.text(&reader.text_value(token));
                    }
                }
                Token::Comment | Token::Instruction => self.end_text(),
                Token::Doctype => return Ok(Pass::Unsuitable("it has a document type declaration")),
                Token::Reference => return Ok(Pass::Unsuitable("it refers to an entity")),
                Token::NeedMore => return Ok(Pass::NeedMore),
                Token::EndOfInput => return Ok(Pass::Ended),
            }
        }
    }
}
