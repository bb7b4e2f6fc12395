//! The pull reader: events over bytes, one at a time, stopping wherever the caller stops.
//!
//! The reader checks its input in growing windows, so that asking for the first element of a large document does
//! not touch the rest. The end of a window and the end of what has arrived are the same thing to the scanner: the
//! token is given up, and begun again once there is more.

mod event;
mod failure;
mod namespaces;
mod seen;
mod skim;
mod tag;
mod token;
mod window;

use std::cell::Cell;
use std::sync::Arc;

use crate::chars::Contents;
use crate::dtd::Dtd;
use crate::error::{Position, XmlError};
use crate::options::ParseOptions;
use crate::text::Text;

pub use event::{Event, RawName, RawText};
use namespaces::Binding;
pub(crate) use namespaces::declares_namespace;
use seen::SeenNames;
pub use tag::Attribute;
pub(crate) use tag::{NameToken, RawAttribute};
pub use token::Token;

/// Why a token could not be read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The window ends inside it.
    Short,
    /// It is wrong; the reader keeps the error.
    Wrong,
}

pub(crate) type Step<T> = Result<T, Stop>;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// Nothing was read yet.
    Start,
    /// Before the document element.
    Prolog,
    /// Inside the document element, or inside a fragment.
    Content,
    /// After the document element.
    Epilog,
}

/// A pull reader over a document in UTF-8.
///
/// It checks what it passes: names, nesting, references, duplicate attributes. What comes after the point where
/// the caller stops is not read. Prefixes are resolved on demand.
pub struct Reader<'a> {
    input: &'a [u8],
    /// The part of the input that was checked to be characters.
    text: &'a str,
    contents: Contents,
    complete: bool,
    pub(crate) state: State,
}

/// Everything about a [`Reader`] but its input: hand it to [`Reader::resume`] when more has arrived.
pub struct State {
    pub(crate) at: usize,
    pub(crate) token_start: usize,
    /// The name of the last token that has one.
    pub(crate) name: NameToken,
    /// Where the content of the last token is, of those that have some.
    pub(crate) content: (u32, u32),
    failure: Cell<Option<Box<XmlError>>>,
    pub(crate) seen: SeenNames,
    stage: Stage,
    fragment: bool,
    pub(crate) open: Vec<(u32, u32)>,
    pub(crate) attributes: Vec<RawAttribute>,
    pub(crate) dtd: Option<Arc<Dtd>>,
    track_namespaces: bool,
    bindings: Vec<Binding>,
    /// What entities have added so far.
    pub(crate) used: Cell<usize>,
    pub(crate) options: ParseOptions,
}

impl<'a> Reader<'a> {
    /// A reader over a whole document.
    pub fn new(input: &'a [u8], options: &ParseOptions) -> Reader<'a> {
        Reader::with_input(input, true, options)
    }

    /// A reader over the beginning of a document of which more may come.
    pub fn partial(input: &'a [u8], options: &ParseOptions) -> Reader<'a> {
        Reader::with_input(input, false, options)
    }

    fn with_input(input: &'a [u8], complete: bool, options: &ParseOptions) -> Reader<'a> {
        let state = State::new(options, true);
        Reader { input, text: "", contents: Contents::default(), complete, state }
    }

    /// A reader for the tree: over text that is checked already, without namespaces.
    pub(crate) fn over(text: &'a Text, options: &ParseOptions) -> Reader<'a> {
        let state = State::new(options, false);
        Reader { input: text.bytes(), text: text.as_str(), contents: text.contents(), complete: true, state }
    }

    /// A reader over the replacement text of an entity.
    pub(crate) fn fragment(text: &'a str, dtd: Option<Arc<Dtd>>, options: &ParseOptions) -> Reader<'a> {
        let mut state = State::new(options, false);
        state.fragment = true;
        state.seen = SeenNames::starting_at(1);
        state.stage = Stage::Content;
        state.dtd = dtd;
        let contents = Contents::scan(text.as_bytes());
        Reader { input: text.as_bytes(), text, contents, complete: true, state }
    }

    /// Puts the reader aside, so that its input can grow.
    pub fn suspend(self) -> State {
        self.state
    }

    /// Goes on where a reader was suspended. `input` begins with everything the earlier reader had.
    pub fn resume(state: State, input: &'a [u8], complete: bool) -> Reader<'a> {
        Reader { input, text: "", contents: Contents::default(), complete, state }
    }

    /// Makes the start tag of the last event the next event once more.
    pub fn step_back(&mut self) {
        let tag = self.text.as_bytes().get(self.state.token_start..self.state.at).unwrap_or_default();
        if !tag.ends_with(b"/>") {
            self.state.open.pop();
        }
        self.state.attributes.clear();
        self.state.at = self.state.token_start;
        if self.state.open.is_empty() && !self.state.fragment {
            self.state.stage = Stage::Prolog;
        }
    }

    /// A second reader over the content of the element that the last event opened. It ends where the element ends,
    /// and leaves this reader where it is.
    pub fn look_ahead(&self) -> Reader<'a> {
        let mut state = State::new(&self.state.options, true);
        state.at = self.state.at;
        state.stage = Stage::Content;
        state.dtd.clone_from(&self.state.dtd);
        state.used.set(self.state.used.get());
        state.open.extend(self.state.open.last());
        state.options.limits.depth_max = state.options.limits.depth_max.saturating_sub(self.state.open.len());
        for binding in &self.state.bindings {
            state.bindings.push(Binding { prefix: binding.prefix, namespace: binding.namespace.clone(), depth: 0 });
        }
        Reader { input: self.input, text: self.text, contents: self.contents, complete: self.complete, state }
    }

    /// The number of elements that are open. Inside the event of a start tag its own element counts, unless empty.
    pub fn depth(&self) -> usize {
        self.state.open.len()
    }

    /// Where the last event begins.
    pub fn offset(&self) -> usize {
        self.state.token_start
    }

    /// Where the next event begins.
    pub fn next_offset(&self) -> usize {
        self.state.at
    }

    /// The place of a byte of the input.
    pub fn position(&self, offset: usize) -> Position {
        Position::locate(self.input, offset)
    }

    /// The next event.
    pub fn next_event(&mut self) -> Result<Event<'a>, XmlError> {
        let token = self.advance()?;
        Ok(match token {
            Token::Start => Event::StartElement { name: self.element_name(), empty: false },
            Token::Empty => Event::StartElement { name: self.element_name(), empty: true },
            Token::End => Event::EndElement { name: self.end_name() },
            Token::Verbatim | Token::Text => Event::Text(self.raw_text(token)),
            Token::CData => Event::CData(self.raw_text(token)),
            Token::Comment => Event::Comment(self.content()),
            Token::Instruction => {
                Event::ProcessingInstruction { target: self.element_name().text, data: self.content() }
            }
            Token::Doctype => Event::Doctype,
            Token::Reference => Event::EntityReference(self.content()),
            Token::NeedMore => Event::NeedMore,
            Token::EndOfInput => Event::End,
        })
    }

    /// The name of the last start tag, or the target of the last processing instruction.
    #[inline]
    pub fn element_name(&self) -> RawName<'a> {
        self.raw_name(self.state.name)
    }

    /// A number for the name of the last start tag: never the same for different names, mostly the same for the same one
    /// again. Zero says nothing. A caller can use it to remember what it found out about a name.
    #[inline]
    pub fn name_number(&self) -> u32 {
        self.state.name.number
    }

    /// What the last token contains, as written: text, the text of a comment, the data of a processing instruction.
    #[inline]
    pub fn content(&self) -> &'a str {
        let (start, end) = self.state.content;
        self.piece(start, end)
    }

    /// The text that the last token, one of the three kinds of text, means.
    #[inline]
    pub fn text_value(&self, token: Token) -> std::borrow::Cow<'a, str> {
        self.raw_text(token).value()
    }

    #[inline]
    fn raw_text(&self, token: Token) -> RawText<'a> {
        RawText { raw: self.content(), verbatim: token == Token::Verbatim, references: token == Token::Text }
    }

    fn end_name(&self) -> RawName<'a> {
        let text = self.content();
        RawName { text, colon: text.find(':').unwrap_or(0) }
    }

    /// A piece of the checked input.
    #[inline]
    pub(crate) fn piece(&self, start: u32, end: u32) -> &'a str {
        &self.text[start as usize..end as usize]
    }

    #[inline]
    fn raw_name(&self, name: NameToken) -> RawName<'a> {
        RawName { text: self.piece(name.start, name.start + name.len), colon: name.colon as usize }
    }

    /// The kind of the next event, for those who want to pay for nothing else: the quicker form of
    /// [`Reader::next_event`].
    #[inline]
    pub fn advance(&mut self) -> Result<Token, Box<XmlError>> {
        loop {
            self.state.token_start = self.state.at;
            match self.token() {
                Ok(token) => return Ok(token),
                Err(stop) => {
                    if let Some(token) = self.stopped(stop)? {
                        return Ok(token);
                    }
                }
            }
        }
    }

    /// Whether the window reaches to the end of a document that is all there.
    #[inline]
    fn at_true_end(&self) -> bool {
        self.complete && self.text.len() == self.input.len()
    }

    /// What the document type declaration said about entities.
    pub(crate) fn dtd(&self) -> Option<&Arc<Dtd>> {
        self.state.dtd.as_ref()
    }
}

impl State {
    fn new(options: &ParseOptions, track_namespaces: bool) -> State {
        State {
            at: 0,
            token_start: 0,
            name: NameToken::default(),
            content: (0, 0),
            failure: Cell::new(None),
            seen: SeenNames::kept(),
            stage: Stage::Start,
            fragment: false,
            open: Vec::with_capacity(16),
            attributes: Vec::with_capacity(8),
            dtd: None,
            track_namespaces,
            bindings: Vec::new(),
            used: Cell::new(0),
            options: options.clone(),
        }
    }
}
