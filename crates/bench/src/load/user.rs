//! One user over HTTP/1.1: takes turns between waiting, sending, and recording.
use super::connection::{Broken, Connection, Patience, open};
use super::worker::Shared;
use crate::jtl::Sample;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// A user whose connection is refused waits this long before the next attempt: a thousand users must not
/// spend the machine on knocking at a closed door.
pub const KNOCK_PAUSE: Duration = Duration::from_millis(100);

/// Runs user `number` until the load is over.
pub async fn run(shared: Rc<Shared>, number: usize) {
    wait_for_turn(&shared, number).await;
    let spec = &shared.part.spec;
    let sent_body_bytes = shared.part.template.body_bytes as u64;
    let mut patience = Patience::new(spec.response_timeout);
    let mut connection: Option<Connection> = None;
    let mut previous_end = Instant::now();
    let mut requests = 0;
    loop {
        let intended = match &shared.pacer {
            // The closed loop starts the next request the moment the previous response ends.
            None => previous_end,
            Some(pacer) => match pacer.next().await {
                Some(moment) => moment,
                None => return,
            },
        };
        if shared.over(intended) {
            return;
        }
        let request = shared.part.template.fill(shared.token());
        let mut attempt = Attempt::default();
        let begun = if shared.pacer.is_some() { Instant::now() } else { intended };
        patience.begin(begun);
        let outcome = exchange(&shared, &mut connection, &request, &mut patience, &mut attempt).await;
        let end = Instant::now();
        previous_end = end;
        let verdict = match &outcome {
            Ok(()) => connection.as_ref().map_or(Ok(()), |connection| {
                let reader = &connection.reader;
                let checked = spec.expect.check(reader.status, sent_body_bytes, reader.body_bytes, &reader.sample);
                checked.map_err(|unexpected| spec.expect.explain(&unexpected))
            }),
            Err(broken) => Err(broken.to_string()),
        };
        let received_bytes = connection.as_ref().map_or(0, |connection| connection.reader.received_bytes);
        if shared.measured(end) {
            let mut tally = shared.tally.borrow_mut();
            tally.record(end - intended, request.len() as u64, received_bytes);
            tally.reconnects += u64::from(attempt.reconnected);
            if let Err(reason) = &verdict {
                tally.record_failure(reason);
            }
        }
        if let Err(reason) = &verdict {
            let response = connection.as_ref().map(|c| [&c.reader.head[..], &c.reader.sample[..]].concat());
            shared.keep_failure(end, reason, &request, &response.unwrap_or_default());
        }
        if let Some(jtl) = &shared.jtl {
            let status =
                connection.as_ref().filter(|_| outcome.is_ok()).map_or(0, |connection| connection.reader.status);
            jtl.borrow_mut().write(&Sample {
                start: intended,
                end,
                status,
                failure: verdict.as_ref().err().map(String::as_str),
                user: number,
                users: shared.users_started.get() * shared.part.threads,
                received_bytes,
                sent_bytes: request.len() as u64,
                first_byte: attempt.first_byte,
                connected_after: attempt.connecting,
            });
        }
        requests += 1;
        if shared.had_enough(requests) {
            return;
        }
        let keep = outcome.is_ok() && connection.as_ref().is_some_and(|connection| connection.reader.keep_alive);
        if !keep || !spec.request.keep_alive {
            connection = None;
        }
        if matches!(outcome, Err(Broken::Connect(_) | Broken::ConnectTimeout | Broken::Tls(_))) {
            tokio::time::sleep(KNOCK_PAUSE).await;
        }
    }
}

/// The ramp-up: user `number` of N starts after that share of the ramp-up time.
pub async fn wait_for_turn(shared: &Shared, number: usize) {
    let spec = &shared.part.spec;
    let share = spec.ramp_up.mul_f64(ratio(number, spec.users));
    tokio::time::sleep_until((shared.part.start + share).into()).await;
    shared.users_started.set(shared.users_started.get() + 1);
}

fn ratio(part: usize, whole: usize) -> f64 {
    part as f64 / whole.max(1) as f64
}

/// What is known about an exchange besides its outcome.
#[derive(Default)]
struct Attempt {
    reconnected: bool,
    first_byte: Option<Instant>,
    connecting: Duration,
}

/// One exchange, on the open connection if there is one. A server may close an idle connection at the very moment the
/// next request leaves; that is nobody's failure, so such a request goes out once more on a fresh connection.
async fn exchange(
    shared: &Shared,
    connection: &mut Option<Connection>,
    request: &[u8],
    patience: &mut Patience,
    attempt: &mut Attempt,
) -> Result<(), Broken> {
    loop {
        let reused = connection.is_some();
        let open_connection = match connection {
            Some(open_connection) => open_connection,
            None => {
                let begun = Instant::now();
                let stream = open(shared).await?;
                attempt.connecting = begun.elapsed();
                attempt.reconnected = true;
                connection.insert(Connection::new(stream, shared))
            }
        };
        let first_byte = shared.jtl.is_some().then_some(&mut attempt.first_byte);
        match open_connection.exchange(request, shared, patience, first_byte).await {
            Err(Broken::Closed) if reused && open_connection.reader.received_bytes == 0 => *connection = None,
            outcome => return outcome,
        }
    }
}
