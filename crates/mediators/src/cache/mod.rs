//! `<cache>`: answers kept for requests that are the same.
//!
//! The finder (`collector="false"`) stands in the request path: it answers from the cache, or leaves a
//! note which answer is wanted. The collector stands in the response path and keeps the answer.

mod control;
mod key;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use penstock_compile::{Compiler, Element, MediatorKind};
use penstock_engine::kept::{self, Key, Measured, Store};
use penstock_engine::{Direction, Exchange, Fault, Flow, Mediator, SequenceId, Step};
use penstock_message::{Body, Form, Headers, Message, Shape, SizeHint, Value};
use regex::Regex;

use control::Control;
use key::KeyRule;

/// The kind.
pub const KIND: MediatorKind = MediatorKind { name: "cache", compile };

/// Default lifetime of responses, that of Micro Integrator.
const TIMEOUT_SECONDS: u64 = 5000;
/// The properties by which a collector finds the request's cache and key.
const CACHE_PROPERTY: &str = "CachableResponse";
const HASH_PROPERTY: &str = "requestHash";

/// Larger answers are files; they stream. Two of them fill a shard of the store.
const ENTRY_BYTES_MAX: usize = 4 << 20;

/// A kept answer. It holds nothing of the buffers it was read into.
struct Answer {
    status: u16,
    reason: Option<Arc<str>>,
    headers: Headers,
    content_type: Option<String>,
    body: Bytes,
    /// When the backend made it.
    fetched: SystemTime,
}

impl Answer {
    /// What a backend answered, with the body as it was put out for it.
    fn from_reply(message: &Message, status: u16, body: &[u8], content_type: Option<String>, decoded: bool) -> Answer {
        let mut headers = Headers::new();
        for (name, value) in message.headers.iter() {
            let is = |field: &str| name.eq_ignore_ascii_case(field.as_bytes());
            let framing = ["Content-Length", "Transfer-Encoding", "Connection", "Keep-Alive"].into_iter().any(is);
            let undone = decoded && is("Content-Encoding");
            if !framing && !undone {
                headers.append(&String::from_utf8_lossy(name), value);
            }
        }
        Answer {
            status,
            reason: message.reason.clone(),
            content_type: content_type.or_else(|| message.content_type().map(str::to_owned)),
            body: Bytes::copy_from_slice(body),
            fetched: headers.get("Date").and_then(control::http_date).unwrap_or_else(SystemTime::now),
            headers,
        }
    }
}

impl Measured for Answer {
    fn bytes(&self) -> usize {
        self.body.len() + kept::field_bytes(self.headers.iter()) + self.content_type.as_ref().map_or(0, String::len)
    }
}

/// What a finder and its collectors share.
struct Cache {
    name: Arc<str>,
    store: Store<Answer>,
    timeout: Duration,
    rule: KeyRule,
    /// `None`: every method.
    methods: Option<Vec<String>>,
    codes: Regex,
    body_bytes_max: usize,
    cache_control: bool,
    age: bool,
    is_http: bool,
}

struct Finder {
    cache: Arc<Cache>,
    on_hit: Option<SequenceId>,
}

struct Collector;

fn compile(el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    // Of older configurations; what they chose is done in one way now.
    for tolerated in ["scope", "hashGenerator"] {
        el.attribute(tolerated);
    }
    match el.required(cx, "collector")?.trim() {
        "true" => {
            for tolerated in ["id", "timeout", "maxMessageSize"] {
                el.attribute(tolerated);
            }
            Some(Box::new(Collector))
        }
        "false" => finder(el, cx),
        other => {
            cx.error(el.attribute_place("collector"), format!("`collector` is true or false, not `{other}`"));
            None
        }
    }
}

/// A number of an attribute; -1 and nothing are none.
fn number(el: &Element<'_>, cx: &mut Compiler<'_>, name: &'static str) -> Option<u64> {
    let text = el.attribute(name)?.trim();
    match text.parse::<i64>() {
        Ok(number) => u64::try_from(number).ok(),
        Err(_) => {
            cx.error(el.attribute_place(name), format!("`{text}` is not a number"));
            None
        }
    }
}

fn finder(el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    static NUMBERS: AtomicU64 = AtomicU64::new(0);
    let timeout = Duration::from_secs(number(el, cx, "timeout").unwrap_or(TIMEOUT_SECONDS));
    let body_bytes_max = number(el, cx, "maxMessageSize").map_or(usize::MAX, |bytes| bytes as usize);
    let implementation = el.child("implementation");
    let entries_max = implementation.and_then(|implementation| {
        implementation.attribute("type");
        let size = number(&implementation, cx, "maxSize");
        implementation.finish(cx);
        size.map(|size| size as usize)
    });
    let mut cache = Cache {
        name: match el.attribute("id").map(str::trim).filter(|id| !id.is_empty()) {
            Some(id) => id.into(),
            None => format!("cache {}", NUMBERS.fetch_add(1, Ordering::Relaxed)).into(),
        },
        store: Store::new(entries_max),
        timeout,
        rule: KeyRule::default(),
        methods: None,
        codes: Regex::new("^(?:.*)$").expect("the pattern is a constant"),
        body_bytes_max,
        cache_control: false,
        age: false,
        is_http: true,
    };
    if let Some(protocol) = el.child("protocol") {
        protocol_of(&protocol, cx, &mut cache)?;
    }
    let on_hit = match el.child("onCacheHit") {
        Some(on_hit) => {
            let sequence = match on_hit.attribute("sequence") {
                Some(key) => Some(cx.sequence_ref(key, on_hit.attribute_place("sequence"))),
                None if on_hit.children().next().is_some() => Some(cx.sequence_of(&on_hit)),
                None => None,
            };
            on_hit.finish(cx);
            sequence.map(|sequence| {
                // A hit ends the flow, even if the sequence does not.
                let step = |mediator: Box<dyn Mediator>| Step { mediator, kind: "cache", at: el.place() };
                cx.add_sequence(vec![step(Box::new(Then(Some(sequence)))), step(Box::new(Then(None)))])
            })
        }
        None => None,
    };
    // Finders of one `id` share what they keep.
    let name = cache.name.clone();
    let cache = cx.shared(&name, || cache);
    Some(Box::new(Finder { cache, on_hit }))
}

fn protocol_of(protocol: &Element<'_>, cx: &mut Compiler<'_>, cache: &mut Cache) -> Option<()> {
    cache.is_http = protocol.attribute("type").is_none_or(|kind| kind.trim().eq_ignore_ascii_case("http"));
    let list = |name| {
        let text: String = protocol.child_text(name).unwrap_or_default();
        text.split(',').map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect::<Vec<_>>()
    };
    let methods = list("methods");
    if !methods.is_empty() && !methods.iter().any(|method| method == "*") {
        cache.methods = Some(methods.into_iter().map(|method| method.to_ascii_uppercase()).collect());
    }
    cache.rule = KeyRule { include: list("headersToIncludeInHash"), exclude: list("headersToExcludeInHash") };
    if let Some(codes) = protocol.child_text("responseCodes").filter(|codes| !codes.is_empty()) {
        match Regex::new(&format!("^(?:{codes})$")) {
            Ok(regex) => cache.codes = regex,
            Err(error) => {
                // The last line says what is wrong, those before it draw a picture.
                let why = error.to_string();
                let why = why.lines().last().unwrap_or_default().trim_start_matches("error: ");
                cx.error(protocol.place(), format!("the regular expression `{codes}` is not valid: {why}"));
                return None;
            }
        }
    }
    let flag = |name| protocol.child_text(name).is_some_and(|text| text.eq_ignore_ascii_case("true"));
    cache.cache_control = flag("enableCacheControl");
    cache.age = flag("includeAgeHeader");
    protocol.child("hashGenerator");
    protocol.finish(cx);
    Some(())
}

/// Enters a sequence, or ends the flow.
struct Then(Option<SequenceId>);

impl Mediator for Then {
    fn run(&self, _exchange: &mut Exchange) -> Result<Flow, Fault> {
        Ok(self.0.map_or(Flow::Stop, Flow::Enter))
    }
}

impl Mediator for Finder {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        if exchange.direction == Direction::Response || exchange.message.is_reply {
            return Err(Fault::new("Response messages cannot be handled in a non collector cache"));
        }
        if key::needs_body(exchange) && exchange.message.body.is_stream() {
            return Ok(Flow::Buffer);
        }
        let key = self.cache.rule.key(exchange)?;
        let properties = &mut exchange.message.properties;
        properties.set(HASH_PROPERTY, Value::string(key.to_text()));
        properties.set(CACHE_PROPERTY, Value::String(self.cache.name.clone()));
        properties.set("cacheRequestMethod", Value::string(exchange.message.method.as_str()));
        let Some(answer) = self.cache.store.get(&key, Instant::now()) else { return Ok(Flow::Next) };
        if self.cache.is_http && self.cache.cache_control {
            let control = Control::from_headers(&answer.headers);
            if control.is_expired(answer.fetched) {
                return Ok(Flow::Next);
            }
            if let (true, Some(tag)) = (control.no_cache, answer.headers.get("ETag")) {
                // The backend says whether it still holds; nothing else of the request's header goes there.
                let tag = tag.to_owned();
                exchange.message.headers.clear();
                exchange.message.headers.set("If-None-Match", tag);
                return Ok(Flow::Next);
            }
        }
        self.cache.restore(exchange, &answer);
        Ok(self.on_hit.map_or(Flow::Respond, Flow::Enter))
    }
}

impl Cache {
    /// Makes the message the kept answer.
    fn restore(&self, exchange: &mut Exchange, answer: &Answer) {
        exchange.direction = Direction::Response;
        let message = &mut exchange.message;
        let mut headers = answer.headers.clone();
        if let Some(content_type) = &answer.content_type {
            headers.set("Content-Type", content_type);
        }
        let body = Body::bytes(answer.body.clone());
        message.replace_by_reply(Message { headers, body, ..Message::default() });
        if self.is_http {
            message.status = answer.status;
            message.reason = answer.reason.clone();
            if self.age {
                let age = SystemTime::now().duration_since(answer.fetched).unwrap_or_default().as_secs();
                message.headers.set("Age", age.to_string());
            }
        }
    }

    /// Whether an answer with this status to a request with this method is kept.
    fn takes(&self, status: u16, method: &str) -> bool {
        !self.is_http
            || self.codes.is_match(&status.to_string())
                && self.methods.as_ref().is_none_or(|methods| methods.iter().any(|one| one == method))
    }
}

impl Mediator for Collector {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        if exchange.direction == Direction::Request && !exchange.message.is_reply {
            return Err(Fault::new("Request messages cannot be handled in a collector cache"));
        }
        let properties = &exchange.message.properties;
        let name = properties.get(CACHE_PROPERTY).map(|name| name.to_text().into_owned());
        let key = properties.get(HASH_PROPERTY).and_then(|key| Key::parse(&key.to_text()));
        let cache = name.and_then(|name| exchange.program().shared.get::<Cache>(&name));
        let (Some(cache), Some(key)) = (cache, key) else {
            exchange.log(
                penstock_engine::ports::Level::Warn,
                "CacheMediator",
                "A response message without a valid mapping to the request hash found. Unable to store the response in cache",
            );
            return Ok(Flow::Next);
        };
        if cache.is_http && cache.cache_control && Control::from_headers(&exchange.message.headers).no_store {
            cache.store.remove(&key);
            return Ok(Flow::Next);
        }
        let status = status_of(exchange);
        if cache.is_http
            && status == 304
            && let Some(answer) = cache.store.get(&key, Instant::now())
        {
            cache.restore(exchange, &answer);
            return Ok(Flow::Respond);
        }
        let method = exchange.message.property_text("cacheRequestMethod").unwrap_or_default();
        if !cache.takes(status, &method) {
            cache.store.remove(&key);
            return Ok(Flow::Next);
        }
        if exchange.message.body.is_stream() {
            // What is known to be too large streams on; the rest must be here to be kept.
            return Ok(if too_large(exchange, cache.body_bytes_max) { Flow::Next } else { Flow::Buffer });
        }
        keep(exchange, &cache, key, status)?;
        Ok(Flow::Next)
    }
}

fn status_of(exchange: &Exchange) -> u16 {
    let set = exchange.message.axis2.get("HTTP_SC").and_then(|status| status.to_text().trim().parse().ok());
    set.unwrap_or(if exchange.message.status == 0 { 200 } else { exchange.message.status })
}

fn too_large(exchange: &Exchange, body_bytes_max: usize) -> bool {
    let limit = body_bytes_max.min(ENTRY_BYTES_MAX) as u64;
    match exchange.message.body.form() {
        Form::Stream { rest, .. } => matches!(rest.size_hint(), SizeHint::Exact(size) if size > limit),
        _ => false,
    }
}

fn keep(exchange: &mut Exchange, cache: &Cache, key: Key, status: u16) -> Result<(), Fault> {
    let program = exchange.program().clone();
    let output = exchange.message.output(&program.conversion, Shape::Same)?;
    let body = match output.form {
        Form::Bytes(bytes) => bytes,
        Form::Empty => Bytes::new(),
        _ => return Ok(()),
    };
    if body.len() > cache.body_bytes_max.min(ENTRY_BYTES_MAX) {
        return Ok(());
    }
    let answer = Answer::from_reply(&exchange.message, status, &body, output.content_type, output.decoded);
    cache.store.put(key, answer, cache.timeout, Instant::now());
    Ok(())
}

#[cfg(test)]
mod tests {
    use penstock_message::HeaderBlock;

    use super::*;

    #[test]
    fn a_kept_answer_counts_its_fields_and_holds_nothing_of_the_buffer_it_came_in() {
        let buffer = Bytes::from([b"X-A: value".as_slice(), &[b' '; 60_000]].concat());
        let block = HeaderBlock { bytes: buffer.slice(..10), fields: vec![(0..3, 5..10)] };
        let message = Message { headers: Headers::from_block(block), ..Message::default() };
        let answer = Answer::from_reply(&message, 200, &buffer.slice(20..23), None, false);
        drop(message);
        assert!(buffer.is_unique());
        assert_eq!((answer.headers.get("x-a"), &*answer.body), (Some("value"), b"   ".as_slice()));
        assert!(answer.bytes() > 3 + 3 + 5, "{}", answer.bytes());
    }
}
