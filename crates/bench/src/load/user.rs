//! One user over HTTP/1.1: takes turns between waiting, sending, and recording.
use super::connection::{Broken, Connection, Patience};
use super::recorder::Finished;
use super::worker::Shared;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// A user whose connection is refused waits this long before the next attempt: a thousand users must not
/// spend the machine on knocking at a closed door.
pub const KNOCK_PAUSE: Duration = Duration::from_millis(100);

/// Runs user `number` until the load is over.
pub async fn run(shared: Rc<Shared>, number: usize) {
    wait_for_turn(&shared, number).await;
    let mut patience = Patience::new(shared.part.spec.response_timeout);
    let mut connection: Option<Connection> = None;
    let mut now = Instant::now();
    let mut requests = 0;
    while let Some(start) = shared.next_start(now, number).await {
        let request = shared.part.template.fill(shared.token());
        let mut attempt = Attempt::default();
        // The time limit counts from sending, also for a request that was due earlier.
        patience.begin(if shared.pacer.is_some() { Instant::now() } else { start });
        let outcome = exchange(&shared, &mut connection, &request, &mut patience, &mut attempt).await;
        now = Instant::now();
        let failure = failure(&shared, &outcome, connection.as_ref());
        let reader = connection.as_ref().map(|connection| &connection.reader);
        shared.record(&Finished {
            start,
            end: now,
            user: number,
            status: reader.filter(|_| outcome.is_ok()).map_or(0, |reader| reader.status),
            failure: failure.as_deref(),
            request: &request,
            response_head: reader.map_or(&[], |reader| &reader.head),
            response_body: reader.map_or(&[], |reader| &reader.sample),
            sent_bytes: if connection.is_some() { request.len() as u64 } else { 0 },
            received_bytes: reader.map_or(0, |reader| reader.received_bytes),
            first_byte: attempt.first_byte,
            connecting: attempt.connecting,
            reconnected: attempt.reconnected,
        });
        requests += 1;
        if shared.had_enough(requests) {
            return;
        }
        let open = outcome.is_ok() && reader.is_some_and(|reader| reader.keep_alive);
        if !open || !shared.part.spec.request.keep_alive {
            connection = None;
        }
        if matches!(outcome, Err(Broken::Connect(_) | Broken::ConnectTimeout | Broken::Tls(_))) {
            tokio::time::sleep(KNOCK_PAUSE).await;
            now = Instant::now();
        }
    }
}

/// Why the exchange does not count as a success, if it does not.
fn failure(shared: &Shared, outcome: &Result<(), Broken>, connection: Option<&Connection>) -> Option<String> {
    if let Err(broken) = outcome {
        return Some(broken.to_string());
    }
    let (reader, expect) = (&connection?.reader, &shared.part.spec.expect);
    let checked = expect.check(reader.status, &shared.part.spec.request.body, reader.body_bytes, &reader.sample);
    checked.err().map(|unexpected| expect.explain(&unexpected))
}

/// The ramp-up: user `number` of N starts after that share of the ramp-up time.
pub async fn wait_for_turn(shared: &Shared, number: usize) {
    let spec = &shared.part.spec;
    let share = spec.ramp_up.mul_f64(ratio(number, spec.users));
    tokio::time::sleep_until((shared.part.span.start + share).into()).await;
    shared.users_started.set(shared.users_started.get() + 1);
}

fn ratio(part: usize, whole: usize) -> f64 {
    part as f64 / whole.max(1) as f64
}

/// What is known about an exchange besides its outcome.
#[derive(Default)]
struct Attempt {
    first_byte: Option<Instant>,
    /// How long opening a connection took, if one was opened.
    connecting: Option<Duration>,
    /// Whether the kept connection was closed by the server before the request was written.
    reconnected: bool,
}

/// One exchange, on the open connection if there is one. A connection that the server closed before this request was
/// written is replaced, and the replacement is counted. A request that was written is never sent again: a server that
/// reads a request and closes the connection has dropped it.
async fn exchange(
    shared: &Shared,
    connection: &mut Option<Connection>,
    request: &[u8],
    patience: &mut Patience,
    attempt: &mut Attempt,
) -> Result<(), Broken> {
    if let Some(kept) = connection
        && kept.closed_while_idle(&shared.read_buffer).await?
    {
        *connection = None;
        attempt.reconnected = true;
    }
    let open_connection = match connection {
        Some(open_connection) => open_connection,
        None => {
            let begun = Instant::now();
            let stream = shared.open().await?;
            attempt.connecting = Some(begun.elapsed());
            let spec = &shared.part.spec;
            let opened = connection.insert(Connection::new(stream, spec.expect.body_bytes_needed()));
            opened.reader.set_head_request(spec.request.method == "HEAD");
            opened
        }
    };
    let first_byte = shared.recorder.writes_lines().then_some(&mut attempt.first_byte);
    open_connection.exchange(request, &shared.read_buffer, patience, first_byte).await
}
