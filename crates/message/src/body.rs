//! The body and its forms.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};

use crate::stream::{Available, BodyStream, Ended, SizeHint};
use crate::{Envelope, Headers};

/// Why a body could not be read, converted or buffered. Becomes fault 601000 or a 4xx by kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BodyError {
    /// More bytes than the limit allows.
    TooLarge {
        /// The limit that was hit, in bytes.
        limit_bytes: usize,
    },
    /// More nodes of XML, or values of JSON, than the limit allows.
    TooManyNodes {
        /// The limit that was hit.
        limit: usize,
    },
    /// The peer closed or broke the framing before the body was complete.
    Incomplete(String),
    /// The peer did not send in time.
    Timeout,
    /// The bytes are not what their content type says; the text says where and why.
    Malformed(String),
    /// There is no way from the form it has to the form that is wanted.
    Unsupported {
        /// What the body is.
        from: &'static str,
        /// The requested size.
        wanted: &'static str,
    },
}

impl fmt::Display for BodyError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BodyError::TooLarge { limit_bytes } => write!(out, "the body is larger than {limit_bytes} bytes"),
            BodyError::TooManyNodes { limit } => {
                write!(out, "the body has more than {limit} nodes or values (`limits.nodes`)")
            }
            BodyError::Incomplete(why) => write!(out, "the body ended early: {why}"),
            BodyError::Timeout => write!(out, "the body did not arrive in time"),
            BodyError::Malformed(why) => write!(out, "{why}"),
            BodyError::Unsupported { from, wanted } => {
                write!(out, "the body is {from}, which cannot be read as {wanted}")
            }
        }
    }
}

impl std::error::Error for BodyError {}

/// Room that is made for a body because its length was announced. A peer that announces more has to send it.
const RESERVED_MAX: usize = 1 << 20;

/// The forms a body can have.
pub enum Form {
    /// No body.
    Empty,
    /// Arriving. `head` holds bytes that were pulled to be looked at and not consumed.
    Stream {
        /// The bytes that came first.
        head: Bytes,
        /// The rest.
        rest: Box<dyn BodyStream>,
    },
    /// All there, not interpreted.
    Bytes(Bytes),
    /// An XML infoset: always a SOAP envelope, real or synthesized around plain XML.
    Xml(Arc<Envelope>),
    /// A JSON value.
    Json(Arc<serde_json::Value>),
    /// Text.
    Text(Arc<str>),
}

impl fmt::Debug for Form {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Form::Empty => write!(out, "Empty"),
            Form::Stream { head, rest } => {
                write!(out, "Stream({} bytes read, {:?} to come)", head.len(), rest.size_hint())
            }
            Form::Bytes(bytes) => write!(out, "Bytes({})", bytes.len()),
            Form::Xml(_) => write!(out, "Xml"),
            Form::Json(value) => write!(out, "Json({value})"),
            Form::Text(text) => write!(out, "Text({text:?})"),
        }
    }
}

/// The body of a message.
///
/// Invariant: `form` is authoritative; `xml` and `json` are views of it that were computed because
/// they were read. Writing through any setter drops the views.
#[derive(Debug)]
pub struct Body {
    form: Form,
    /// Boxed, because messages are moved often and a body that is passed through has none of it.
    rare: Option<Box<Rare>>,
}

/// What a body has that was read, was sent as another type, or has trailers.
#[derive(Debug, Clone, Default)]
struct Rare {
    xml: Option<Arc<Envelope>>,
    json: Option<Arc<serde_json::Value>>,
    /// The media type of the bytes, once the message's Content-Type differs.
    source_type: Option<Arc<str>>,
    /// The result of the lenient JSON reader; only lenient readers may use it as the body.
    forgiven: Option<Arc<serde_json::Value>>,
    /// The fields that follow the body: one or more. Those of a stream that has not ended are its own.
    trailers: Option<Headers>,
}

impl Rare {
    fn drop_views(&mut self) {
        self.xml = None;
        self.json = None;
        self.forgiven = None;
    }
}

impl Default for Body {
    fn default() -> Body {
        Body::empty()
    }
}

impl Body {
    /// No body.
    pub fn empty() -> Body {
        Body::from_form(Form::Empty)
    }

    /// A body whose bytes are all there; none when they are empty.
    pub fn bytes(bytes: impl Into<Bytes>) -> Body {
        let bytes = bytes.into();
        Body::from_form(if bytes.is_empty() { Form::Empty } else { Form::Bytes(bytes) })
    }

    /// A body that is still arriving.
    pub fn stream(rest: Box<dyn BodyStream>) -> Body {
        Body::from_form(Form::Stream { head: Bytes::new(), rest })
    }

    /// A body of the given form.
    #[inline]
    pub fn from_form(form: Form) -> Body {
        Body { form, rare: None }
    }

    #[inline]
    pub(crate) fn followed_by(form: Form, trailers: Option<Headers>) -> Body {
        let mut body = Body::from_form(form);
        if trailers.is_some() {
            body.rare_mut().trailers = trailers;
        }
        body
    }

    fn rare_mut(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    fn take_trailers(&mut self) -> Option<Headers> {
        self.rare.as_mut().and_then(|rare| rare.trailers.take())
    }

    /// The authoritative form.
    pub fn form(&self) -> &Form {
        &self.form
    }

    /// The fields that follow the body, once all of it is here.
    pub fn trailers(&self) -> Option<&Headers> {
        self.rare.as_ref().and_then(|rare| rare.trailers.as_ref())
    }

    /// Changes the fields that follow a body of which all is here.
    pub fn change_trailers(&mut self, change: impl FnOnce(&mut Headers)) {
        let mut trailers = self.take_trailers().unwrap_or_default();
        change(&mut trailers);
        self.rare_mut().trailers = Some(trailers).filter(|trailers| !trailers.is_empty());
    }

    /// Takes what a transport sends: fields that follow bytes come at the end of a stream.
    #[inline]
    pub fn take_to_send(&mut self) -> Form {
        let form = self.take();
        match self.take_trailers() {
            None => form,
            Some(trailers) => ending_with(form, trailers),
        }
    }

    /// Takes the form out and leaves the body empty; what follows it stays.
    #[inline]
    pub fn take(&mut self) -> Form {
        if let Some(rare) = &mut self.rare {
            rare.drop_views();
        }
        std::mem::replace(&mut self.form, Form::Empty)
    }

    /// Puts another form in the place of the old one; what follows the body stays.
    pub fn put(&mut self, form: Form) {
        *self = Body::followed_by(form, self.take_trailers());
    }

    /// Replaces the body and what follows it.
    pub fn set(&mut self, form: Form) {
        *self = Body::from_form(form);
    }

    /// Whether there is nothing to send.
    pub fn is_empty(&self) -> bool {
        matches!(self.form, Form::Empty)
    }

    /// Whether bytes are still arriving.
    pub fn is_stream(&self) -> bool {
        matches!(self.form, Form::Stream { .. })
    }

    /// The bytes that are here without waiting: all of them, those pulled so far, or those that a stream shows.
    pub fn available(&self) -> Available<'_> {
        match &self.form {
            Form::Stream { head, rest } if head.is_empty() => rest.peek().map_or(Available::Own(&[]), Available::Lent),
            Form::Stream { head, .. } => Available::Own(head),
            Form::Bytes(bytes) => Available::Own(bytes),
            _ => Available::Own(&[]),
        }
    }

    /// Whether [`Body::available`] is all there will be.
    pub fn is_all_available(&self) -> bool {
        match &self.form {
            Form::Stream { head, rest } if head.is_empty() => {
                rest.peek().is_some_and(|bytes| rest.size_hint() == SizeHint::Exact(bytes.len() as u64))
            }
            Form::Stream { .. } => false,
            _ => true,
        }
    }

    /// A second body with the same content; `None` while bytes are still arriving.
    pub fn share(&self) -> Option<Body> {
        let form = match &self.form {
            Form::Empty => Form::Empty,
            Form::Stream { .. } => return None,
            Form::Bytes(bytes) => Form::Bytes(bytes.clone()),
            Form::Xml(envelope) => Form::Xml(envelope.clone()),
            Form::Json(value) => Form::Json(value.clone()),
            Form::Text(text) => Form::Text(text.clone()),
        };
        Some(Body { form, rare: self.rare.clone() })
    }

    pub(crate) fn view_xml(&self) -> Option<&Arc<Envelope>> {
        match &self.form {
            Form::Xml(envelope) => Some(envelope),
            _ => self.rare.as_ref()?.xml.as_ref(),
        }
    }

    pub(crate) fn view_json(&self) -> Option<&Arc<serde_json::Value>> {
        match &self.form {
            Form::Json(value) => Some(value),
            _ => self.rare.as_ref()?.json.as_ref(),
        }
    }

    pub(crate) fn source_type(&self) -> Option<&str> {
        self.rare.as_ref()?.source_type.as_deref()
    }

    pub(crate) fn set_source_type(&mut self, content_type: Arc<str>) {
        self.rare_mut().source_type = Some(content_type);
    }

    pub(crate) fn cache_xml(&mut self, envelope: Arc<Envelope>) {
        self.rare_mut().xml = Some(envelope);
    }

    pub(crate) fn cache_json(&mut self, value: Arc<serde_json::Value>) {
        self.rare_mut().json = Some(value);
    }

    pub(crate) fn forgiven(&self) -> Option<&Arc<serde_json::Value>> {
        self.rare.as_ref()?.forgiven.as_ref()
    }

    pub(crate) fn cache_forgiven(&mut self, value: Arc<serde_json::Value>) {
        self.rare_mut().forgiven = Some(value);
    }

    /// Waits for at least twice of what is available, so that who looks again and again reads every byte twice at the
    /// most. As long as the stream can show them the bytes stay where they are, and are forwarded as if unread. When
    /// all was to be seen and that was not enough, the whole is pulled.
    pub fn poll_more(&mut self, cx: &mut Context<'_>, limit_bytes: usize) -> Poll<Result<(), BodyError>> {
        if self.is_all_available() {
            return self.poll_pull(cx, usize::MAX, limit_bytes);
        }
        let wanted_bytes = self.available().len().saturating_mul(2).max(1);
        if let Form::Stream { head, rest } = &mut self.form
            && head.is_empty()
            && !exceeds(rest.size_hint(), 0, limit_bytes)
            && ready!(rest.poll_peekable(cx, wanted_bytes))?
        {
            return Poll::Ready(Ok(()));
        }
        self.poll_pull(cx, wanted_bytes, limit_bytes)
    }

    /// Pulls until at least `wanted_bytes` are available or the stream has ended; then a stream that
    /// ended has become bytes. More than `limit_bytes` is an error.
    pub fn poll_pull(
        &mut self,
        cx: &mut Context<'_>,
        wanted_bytes: usize,
        limit_bytes: usize,
    ) -> Poll<Result<(), BodyError>> {
        let Form::Stream { head, rest } = &mut self.form else { return Poll::Ready(Ok(())) };
        if exceeds(rest.size_hint(), head.len(), limit_bytes) {
            return Poll::Ready(Err(BodyError::TooLarge { limit_bytes }));
        }
        let mut collected: Option<BytesMut> = None;
        let outcome = loop {
            let have = collected.as_ref().map_or(head.len(), BytesMut::len);
            if have > limit_bytes {
                break Poll::Ready(Err(BodyError::TooLarge { limit_bytes }));
            }
            if have >= wanted_bytes {
                break Poll::Ready(Ok(false));
            }
            match rest.poll_chunk(cx) {
                Poll::Pending => break Poll::Pending,
                Poll::Ready(None) => break Poll::Ready(Ok(true)),
                Poll::Ready(Some(Err(error))) => break Poll::Ready(Err(error)),
                Poll::Ready(Some(Ok(chunk))) => match &mut collected {
                    Some(all) => all.extend_from_slice(&chunk),
                    None if head.is_empty() => *head = chunk,
                    None => collected = Some(joined(std::mem::take(head), &chunk, rest.size_hint())),
                },
            }
        };
        if let Some(all) = collected {
            *head = all.freeze();
        }
        match outcome {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Ready(Ok(false)) => Poll::Ready(Ok(())),
            Poll::Ready(Ok(true)) => {
                let all = std::mem::take(head);
                let trailers = rest.trailers().filter(|trailers| !trailers.is_empty());
                self.form = if all.is_empty() { Form::Empty } else { Form::Bytes(all) };
                if trailers.is_some() {
                    self.rare_mut().trailers = trailers;
                }
                Poll::Ready(Ok(()))
            }
        }
    }
}

/// Bytes and the fields that follow them, as a stream that ends with them.
#[cold]
fn ending_with(form: Form, trailers: Headers) -> Form {
    let head = match form {
        Form::Empty => Bytes::new(),
        Form::Bytes(bytes) => bytes,
        Form::Text(text) => Bytes::copy_from_slice(text.as_bytes()),
        other => return other,
    };
    Form::Stream { head, rest: Box::new(Ended::with(trailers)) }
}

/// What came first and the next piece, in the block of the first where nothing else refers to it: a body arrives in many
/// pieces, and copying the whole for each of them would take longer than the processing.
fn joined(head: Bytes, chunk: &[u8], to_come: SizeHint) -> BytesMut {
    let here = head.len() + chunk.len();
    let mut all = head.try_into_mut().unwrap_or_else(|shared| {
        let mut copy = BytesMut::with_capacity(here);
        copy.extend_from_slice(&shared);
        copy
    });
    if all.capacity() < here {
        let ahead = match to_come {
            SizeHint::Exact(size) => {
                usize::try_from(size).map_or(RESERVED_MAX, |size| size.min(RESERVED_MAX.max(here / 2)))
            }
            SizeHint::Unknown => here,
        };
        all.reserve(chunk.len() + ahead);
    }
    all.extend_from_slice(chunk);
    all
}

/// Whether what was read and what is to come are too much together, as far as that is known.
fn exceeds(to_come: SizeHint, read_bytes: usize, limit_bytes: usize) -> bool {
    match to_come {
        SizeHint::Exact(size) => size.saturating_add(read_bytes as u64) > limit_bytes as u64,
        SizeHint::Unknown => false,
    }
}

#[cfg(test)]
mod tests;
