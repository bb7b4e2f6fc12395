//! Users over HTTP/2: a group shares one connection, each user has one stream open at a time.
use super::connection::{Broken, Stream, open};
use super::user::{KNOCK_PAUSE, wait_for_turn};
use super::worker::Shared;
use crate::http::response::SAMPLE_BYTES;
use crate::jtl::Sample;
use bytes::Bytes;
use h2::client::SendRequest;
use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::time::Instant;

/// Window of each stream and connection: a 100 KB body never waits for a window update.
const WINDOW_BYTES: u32 = 4 * 1024 * 1024;

/// The connection of a group, once somebody opened it, and how often that happened.
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
    received_bytes: u64,
    sample: Vec<u8>,
}

async fn run_user(shared: Rc<Shared>, group: Rc<Group>, number: usize) {
    wait_for_turn(&shared, number).await;
    let spec = &shared.part.spec;
    let mut previous_end = Instant::now();
    let mut requests = 0;
    loop {
        let intended = match &shared.pacer {
            None => previous_end,
            Some(pacer) => match pacer.next().await {
                Some(moment) => moment,
                None => return,
            },
        };
        if shared.over(intended) {
            return;
        }
        let mut first_byte = None;
        let exchange = exchange(&shared, &group, &mut first_byte);
        let outcome = tokio::time::timeout(spec.response_timeout, exchange).await.unwrap_or(Err(Broken::Timeout));
        let end = Instant::now();
        previous_end = end;
        let verdict = match &outcome {
            Ok(answer) => spec
                .expect
                .check(answer.status, spec.request.body.len() as u64, answer.body_bytes, &answer.sample)
                .map_err(|unexpected| spec.expect.explain(&unexpected)),
            Err(broken) => Err(broken.to_string()),
        };
        let received_bytes = outcome.as_ref().map_or(0, |answer| answer.received_bytes);
        // The compressed head is not counted: its size depends on what was sent before.
        let sent_bytes = spec.request.body.len() as u64;
        if shared.measured(end) {
            let mut tally = shared.tally.borrow_mut();
            tally.record(end - intended, sent_bytes, received_bytes);
            if let Err(reason) = &verdict {
                tally.record_failure(reason);
            }
        }
        if let Err(reason) = &verdict {
            let response = outcome.as_ref().map_or_else(|_| Vec::new(), shown);
            shared.keep_failure(end, reason, &shared.part.template.fill(""), &response);
        }
        if let Some(jtl) = &shared.jtl {
            jtl.borrow_mut().write(&Sample {
                start: intended,
                end,
                status: outcome.as_ref().map_or(0, |answer| answer.status),
                failure: verdict.as_ref().err().map(String::as_str),
                user: number,
                users: shared.users_started.get() * shared.part.threads,
                received_bytes,
                sent_bytes,
                first_byte,
                connected_after: std::time::Duration::ZERO,
            });
        }
        requests += 1;
        if shared.had_enough(requests) {
            return;
        }
        if matches!(outcome, Err(Broken::Connect(_) | Broken::ConnectTimeout | Broken::Tls(_))) {
            tokio::time::sleep(KNOCK_PAUSE).await;
        }
    }
}

fn shown(answer: &Answer) -> Vec<u8> {
    [format!("HTTP/2 {}\n\n", answer.status).as_bytes(), &answer.sample].concat()
}

async fn exchange(shared: &Rc<Shared>, group: &Group, first_byte: &mut Option<Instant>) -> Result<Answer, Broken> {
    let (generation, sender) = connected(shared, group).await?;
    let outcome = send(shared, sender, first_byte).await;
    if outcome.is_err() {
        let mut current = group.sender.borrow_mut();
        // Whoever notices first drops the broken connection; the next request opens another.
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
    let sender = match open(shared).await? {
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
    *first_byte = shared.jtl.is_some().then(Instant::now);
    let kept_bytes = spec.expect.body_bytes_needed().max(SAMPLE_BYTES);
    let mut answer =
        Answer { status: response.status().as_u16(), body_bytes: 0, received_bytes: 0, sample: Vec::new() };
    let mut body = response.into_body();
    while let Some(data) = body.data().await {
        let data = data.map_err(failed)?;
        let _ = body.flow_control().release_capacity(data.len());
        answer.body_bytes += data.len() as u64;
        let room = kept_bytes.saturating_sub(answer.sample.len()).min(data.len());
        answer.sample.extend_from_slice(&data[..room]);
    }
    answer.received_bytes = answer.body_bytes;
    Ok(answer)
}

fn failed(error: h2::Error) -> Broken {
    Broken::Io(io::Error::other(error))
}
