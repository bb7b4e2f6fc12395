use std::any::Any;
use std::task::Waker;

use super::*;

/// A stream of one chunk and what follows it.
struct Chunk(Option<Bytes>, Option<Headers>);

impl BodyStream for Chunk {
    fn poll_chunk(&mut self, _cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyError>>> {
        Poll::Ready(self.0.take().map(Ok))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::Unknown
    }

    fn trailers(&mut self) -> Option<Headers> {
        self.1.take()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

fn arrived(data: &'static str, trailers: &[(&str, &str)]) -> Body {
    let mut fields = Headers::new();
    trailers.iter().for_each(|(name, value)| fields.append(name, value));
    let chunk = Some(Bytes::from_static(data.as_bytes())).filter(|data| !data.is_empty());
    let mut body = Body::stream(Box::new(Chunk(chunk, Some(fields))));
    let pulled = body.poll_pull(&mut Context::from_waker(Waker::noop()), usize::MAX, 100);
    assert_eq!(pulled, Poll::Ready(Ok(())));
    body
}

fn ends_with(body: &mut Body) -> Option<String> {
    let Form::Stream { mut rest, .. } = body.take_to_send() else { return None };
    rest.trailers().and_then(|trailers| trailers.get("x").map(str::to_owned))
}

#[test]
fn what_follows_a_body_stays_with_it_until_another_takes_its_place() {
    let followed = || arrived("a", &[("X", "1")]);
    assert_eq!(ends_with(&mut followed()).as_deref(), Some("1"));
    assert_eq!(ends_with(&mut arrived("", &[("X", "1")])).as_deref(), Some("1"));
    assert_eq!(ends_with(&mut followed().share().expect("all is here")).as_deref(), Some("1"));
    let mut put = followed();
    put.put(Form::Text("b".into()));
    assert_eq!(ends_with(&mut put).as_deref(), Some("1"));
    let mut set = followed();
    set.set(Form::Text("b".into()));
    assert!(set.trailers().is_none() && matches!(set.take_to_send(), Form::Text(_)));
    let mut removed = followed();
    removed.change_trailers(Headers::clear);
    assert!(removed.trailers().is_none() && matches!(removed.take_to_send(), Form::Bytes(_)));
    assert!(matches!(arrived("a", &[]).take_to_send(), Form::Bytes(_)));
}

#[test]
fn what_follows_a_body_goes_out_with_it_unless_it_is_converted() {
    for (wanted, expected) in [(None, Some("1")), (Some("application/json"), None)] {
        let mut message = crate::Message { body: arrived("<a>1</a>", &[("X", "1")]), ..Default::default() };
        message.headers.set("Content-Type", "application/xml");
        if let Some(wanted) = wanted {
            message.axis2.set("messageType", crate::Value::String(wanted.into()));
        }
        let output = message.output(&crate::Conversion::default(), crate::Shape::Same).expect("it converts");
        assert_eq!(ends_with(&mut output.into_body()).as_deref(), expected, "{wanted:?}");
    }
}

#[test]
fn a_body_in_many_pieces_grows_where_it_is() {
    let piece = [b'x'; 1024];
    let mut all = joined(Bytes::from_static(b"first"), &piece, SizeHint::Exact(1 << 20));
    let mut moves = 0;
    for count in 1..1_000 {
        let before = all.as_ptr();
        all = joined(all.freeze(), &piece, SizeHint::Exact(1 << 20));
        moves += usize::from(all.as_ptr() != before);
        assert_eq!(all.len(), 5 + (count + 1) * piece.len());
    }
    assert!(moves < 10, "the pieces were moved {moves} times");
}
