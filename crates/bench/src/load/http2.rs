//! Users over HTTP/2: a group shares one connection, each user has one stream open at a time.
use super::connection::{Broken, Stream};
use super::recorder::Finished;
use super::user::{KNOCK_PAUSE, wait_for_turn};
use super::worker::Shared;
use crate::http::response::SAMPLE_BYTES;
use bytes::Bytes;
use h2::client::SendRequest;
use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::time::Instant;

/// Window of each stream and connection: a 100 KB body never waits for a window update.
const WINDOW_BYTES: u32 = 4 * 1024 * 1024;

/// The connection of a group, once open, and how often it was opened.
#[derive(Default)]
struct Group {
    sender: RefCell<Option<(u64, SendRequest<Bytes>)>>,
    opening: tokio::sync::Mutex<u64>,
}

/// Runs the users with these numbers on one connection.
pub async fn run_group(shared: Rc<Shared>, numbers: Vec<usize>) {
    let group = Rc::new(Group::default());
    for number in numbers {
        tokio::task::spawn_local(run_user(shared.clone(), group.clone(), number));
    }
}

struct Answer {
    status: u16,
    body_bytes: u64,
    sample: Vec<u8>,
}

async fn run_user(shared: Rc<Shared>, group: Rc<Group>, number: usize) {
    wait_for_turn(&shared, number).await;
    let spec = &shared.part.spec;
    let mut now = Instant::now();
    let mut requests = 0;
    while let Some(start) = shared.next_start(now, number).await {
        let mut first_byte = None;
        let exchange = exchange(&shared, &group, &mut first_byte);
        let outcome = tokio::time::timeout(spec.response_timeout, exchange).await.unwrap_or(Err(Broken::Timeout));
        now = Instant::now();
        let sent_bytes = spec.request.body.len() as u64;
        let failure = match &outcome {
            Ok(answer) => {
                let checked = spec.expect.check(answer.status, &spec.request.body, answer.body_bytes, &answer.sample);
                checked.err().map(|unexpected| spec.expect.explain(&unexpected))
            }
            Err(broken) => Some(broken.to_string()),
        };
        let answer = outcome.as_ref().ok();
        let (request, head) = match &failure {
            Some(_) => (shared.part.template.fill(""), answer.map(|answer| format!("HTTP/2 {}\n\n", answer.status))),
            None => Default::default(),
        };
        shared.record(&Finished {
            start,
            end: now,
            user: number,
            status: answer.map_or(0, |answer| answer.status),
            failure: failure.as_deref(),
            request: &request,
            response_head: head.as_deref().unwrap_or_default().as_bytes(),
            response_body: answer.map_or(&[], |answer| &answer.sample),
            // The compressed heads are not counted: their size depends on what was sent before.
            sent_bytes: if answer.is_some() { sent_bytes } else { 0 },
            received_bytes: answer.map_or(0, |answer| answer.body_bytes),
            first_byte,
            connecting: None,
            reconnected: false,
        });
        requests += 1;
        if shared.had_enough(requests) {
            return;
        }
        if matches!(outcome, Err(Broken::Connect(_) | Broken::ConnectTimeout | Broken::Tls(_))) {
            tokio::time::sleep(KNOCK_PAUSE).await;
            now = Instant::now();
        }
    }
}

async fn exchange(shared: &Rc<Shared>, group: &Group, first_byte: &mut Option<Instant>) -> Result<Answer, Broken> {
    let (generation, sender) = connected(shared, group).await?;
    let outcome = send(shared, sender, first_byte).await;
    if outcome.is_err() {
        let mut current = group.sender.borrow_mut();
        // The first user that notices drops the broken connection; the next request opens another.
        if current.as_ref().is_some_and(|(number, _)| *number == generation) {
            *current = None;
        }
    }
    outcome
}

/// The group's connection, opened by the first user who needs it.
async fn connected(shared: &Rc<Shared>, group: &Group) -> Result<(u64, SendRequest<Bytes>), Broken> {
    let current = || group.sender.borrow().clone();
    if let Some(current) = current() {
        return Ok(current);
    }
    let mut generation = group.opening.lock().await;
    if let Some(current) = current() {
        return Ok(current);
    }
    let mut builder = h2::client::Builder::new();
    builder.initial_window_size(WINDOW_BYTES).initial_connection_window_size(WINDOW_BYTES).enable_push(false);
    let sender = match shared.open().await? {
        Stream::Plain(socket) => {
            let (sender, connection) = builder.handshake(socket).await.map_err(failed)?;
            tokio::task::spawn_local(connection);
            sender
        }
        Stream::Tls(stream) => {
            if stream.get_ref().1.alpn_protocol() != Some(b"h2") {
                return Err(Broken::Tls(io::Error::other("the server does not offer HTTP/2 (ALPN `h2`)")));
            }
            let (sender, connection) = builder.handshake(*stream).await.map_err(failed)?;
            tokio::task::spawn_local(connection);
            sender
        }
    };
    *generation += 1;
    *group.sender.borrow_mut() = Some((*generation, sender.clone()));
    Ok((*generation, sender))
}

async fn send(shared: &Shared, sender: SendRequest<Bytes>, first_byte: &mut Option<Instant>) -> Result<Answer, Broken> {
    let spec = &shared.part.spec;
    let url = &spec.request.url;
    let token = shared.token();
    let scheme = if url.tls { "https" } else { "http" };
    let path = url.path.replace(crate::http::request::TOKEN, token);
    let mut builder = http::Request::builder()
        .method(spec.request.method.as_str())
        .uri(format!("{scheme}://{}{path}", url.authority()));
    for (name, value) in &spec.request.headers {
        builder = builder.header(name.to_ascii_lowercase(), value.replace(crate::http::request::TOKEN, token));
    }
    let request = builder.body(()).map_err(|error| Broken::Io(io::Error::other(error)))?;
    let mut sender = sender.ready().await.map_err(failed)?;
    let body = spec.request.body.clone();
    let (response, mut stream) = sender.send_request(request, body.is_empty()).map_err(failed)?;
    if !body.is_empty() {
        stream.send_data(body, true).map_err(failed)?;
    }
    let response = response.await.map_err(failed)?;
    *first_byte = shared.recorder.writes_lines().then(Instant::now);
    let kept_bytes = spec.expect.body_bytes_needed().max(SAMPLE_BYTES);
    let mut answer = Answer { status: response.status().as_u16(), body_bytes: 0, sample: Vec::new() };
    let mut body = response.into_body();
    while let Some(data) = body.data().await {
        let data = data.map_err(failed)?;
        let _ = body.flow_control().release_capacity(data.len());
        answer.body_bytes += data.len() as u64;
        let room = kept_bytes.saturating_sub(answer.sample.len()).min(data.len());
        answer.sample.extend_from_slice(&data[..room]);
    }
    Ok(answer)
}

fn failed(error: h2::Error) -> Broken {
    Broken::Io(io::Error::other(error))
}
