//! Requests: cookies, exchanges with redirects, extractors and assertions.
use super::super::UnderWay;
use super::{Flow, User};
use crate::http::request::Request;
use crate::http::url::Url;
use crate::jmx::cookies::{Cookie, CookieSettings, Jar};
use crate::jmx::request;
use crate::jmx::response::{self, Response, SEARCHED_BYTES_MAX};
use crate::jmx::script::{Block, OnError, Redirects, RequestParts, Sampler, Step};
use crate::load::connection::{Broken, Connection, Patience, open};
use crate::load::recorder::Finished;
use crate::load::user::KNOCK_PAUSE;
use std::time::{Duration, Instant};

/// JMeter waits without a limit; a load must end.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(600);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(60);
/// JMeter's own limit on redirects of one request.
const REDIRECTS_MAX: usize = 20;

impl<'a> User<'a> {
    pub(super) fn forget_cookies(&mut self) {
        let settings = self.group_cookies();
        let forget = settings.is_some_and(|settings| {
            settings.clear_each_iteration || (settings.clear_with_user && !self.group.same_user)
        });
        if forget {
            self.jar.clear();
            self.cookies_given = false;
        }
    }

    fn group_cookies(&self) -> Option<&'a CookieSettings> {
        first_cookies(&self.group.body)
    }

    pub(super) async fn request(&mut self, sampler: &Sampler) -> Flow {
        for parameters in &sampler.before {
            self.give_parameters(parameters);
        }
        let delay_ms = self.delay_ms(&sampler.timers);
        self.pause(delay_ms).await;
        if self.is_over() {
            return Flow::StopUser;
        }
        self.idle_passes = 0;
        let name = sampler.name.evaluate(&mut self.context);
        self.context.request.clone_from(&name);
        self.give_cookies(sampler);
        let sent = self.send(sampler, &name).await;
        self.last_ok = sent;
        self.context.variables.insert("JMeterThread.last_sample_ok".to_owned(), sent.to_string());
        if sent {
            return Flow::Next;
        }
        self.failed_requests += 1;
        match self.group.on_error {
            OnError::Continue => Flow::Next,
            OnError::NextLoop => Flow::ThreadLoop,
            OnError::StopUser => Flow::StopUser,
            OnError::StopTest => Flow::StopTest,
        }
    }

    fn give_cookies(&mut self, sampler: &Sampler) {
        let Some(settings) = &sampler.request.cookies else { return };
        if std::mem::replace(&mut self.cookies_given, true) {
            return;
        }
        for cookie in &settings.initial {
            let domain = cookie.domain.evaluate(&mut self.context).trim().to_ascii_lowercase();
            let path = cookie.path.evaluate(&mut self.context);
            let cookie = Cookie {
                name: cookie.name.evaluate(&mut self.context),
                value: cookie.value.evaluate(&mut self.context),
                below_domain: domain.starts_with('.'),
                domain: domain.trim_start_matches('.').to_owned(),
                path: if path.is_empty() { "/".to_owned() } else { path },
                secure: cookie.secure,
            };
            self.jar.add(cookie);
        }
    }

    /// Sends a request with its redirects, extracts, checks, and records the sample; whether it succeeded.
    async fn send(&mut self, sampler: &Sampler, name: &str) -> bool {
        let jar = std::mem::take(&mut self.jar);
        let empty = Jar::default();
        let used = if sampler.request.cookies.is_some() { &jar } else { &empty };
        let filled = request::fill(&sampler.request, &mut self.context, used);
        self.jar = jar;
        let filled = match (self.context.take_failure(), filled) {
            (Some(why), _) | (None, Err(why)) => Err(why),
            (None, Ok(filled)) => Ok(filled),
        };
        let start = Instant::now();
        let under_way = UnderWay { start, user: self.number, label: sampler.label };
        self.thread.under_way.borrow_mut()[self.place] = Some(under_way);
        let mut attempt = Attempt::default();
        let (url, outcome) = match filled {
            Ok(filled) => {
                let url = filled.url.to_string();
                (url, self.exchanges(sampler, filled, &mut attempt).await)
            }
            Err(why) => (String::new(), Err(Failure::Unsent(why))),
        };
        let end = Instant::now();
        self.thread.under_way.borrow_mut()[self.place] = None;
        let failure = match &outcome {
            Ok(exchanged) => self.judge(sampler, exchanged, &mut attempt, end.duration_since(start)),
            Err(failure) => Some(failure.to_string()),
        };
        let mut exchange = Finished::empty(start, end, self.number);
        exchange.status = outcome.as_ref().map_or(0, |status| *status);
        exchange.failure = failure.as_deref();
        exchange.request = &attempt.request;
        exchange.response_head = attempt.response.head.as_bytes();
        exchange.response_body = attempt.response.body.as_bytes();
        (exchange.sent_bytes, exchange.received_bytes) = (attempt.sent_bytes, attempt.received_bytes);
        (exchange.first_byte, exchange.connecting) = (attempt.first_byte, attempt.connecting);
        exchange.reconnected = attempt.reconnected;
        let names = (self.covered == 0).then(|| self.names(name, &url));
        self.thread.record(&exchange, self.group_index, sampler.label, names);
        if matches!(outcome, Err(Failure::Broken(Broken::Connect(_) | Broken::ConnectTimeout | Broken::Tls(_)))) {
            tokio::time::sleep(KNOCK_PAUSE).await;
        } else if matches!(outcome, Err(Failure::Unsent(_))) {
            // What cannot be sent takes no time; all users of the thread need some.
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        failure.is_none()
    }

    /// The exchanges of a request: one, and one for each redirect that is followed. Gives the last status.
    async fn exchanges(&mut self, sampler: &Sampler, first: Request, attempt: &mut Attempt) -> Result<u16, Failure> {
        let parts = &sampler.request;
        let reads_body = !sampler.extractors.is_empty() || sampler.assertions.iter().any(|one| one.reads_body());
        let sample_bytes = if reads_body { SEARCHED_BYTES_MAX } else { 0 };
        let mut patience = Patience::new(parts.response_timeout.unwrap_or(RESPONSE_TIMEOUT));
        let mut request = first;
        for _ in 0..=REDIRECTS_MAX {
            let head = request.head().map_err(|error| Failure::Unsent(error.to_string()))?;
            let status = self.exchange(parts, &request, &head, sample_bytes, &mut patience, attempt).await?;
            if parts.cookies.is_some() {
                for field in attempt.response.fields("set-cookie") {
                    self.jar.take(field, &request.url);
                }
            }
            let reads = matches!(request.method.as_str(), "GET" | "HEAD");
            let followed = match (parts.redirects, status) {
                (Redirects::None, _) => false,
                (Redirects::Reads, 301 | 302 | 303 | 307 | 308) => reads,
                (Redirects::All, 301..=303) => true,
                (Redirects::All, 307 | 308) => reads,
                _ => false,
            };
            let location = attempt.response.fields("location").next().filter(|_| followed);
            let Some(location) = location else {
                attempt.response.request_body = String::from_utf8_lossy(&request.body).into_owned();
                return Ok(status);
            };
            let url = resolve(&request.url, location).map_err(Failure::Unsent)?;
            request = redirected(request, url, if parts.cookies.is_some() { Some(&self.jar) } else { None });
        }
        Err(Failure::Unsent(format!("more than {REDIRECTS_MAX} redirects")))
    }

    /// One exchange on the user's connection to the host.
    async fn exchange(
        &mut self,
        parts: &RequestParts,
        request: &Request,
        head: &str,
        sample_bytes: usize,
        patience: &mut Patience,
        attempt: &mut Attempt,
    ) -> Result<u16, Failure> {
        let url = &request.url;
        let key = (url.tls, url.host.clone(), url.port);
        let mut kept = self.connections.remove(&key);
        if let Some(connection) = &mut kept
            && connection.closed_while_idle(&self.thread.read_buffer).await?
        {
            kept = None;
            attempt.reconnected = true;
        }
        let mut connection = match kept {
            Some(connection) => connection,
            None => {
                let begun = Instant::now();
                let timeout = parts.connect_timeout.unwrap_or(CONNECT_TIMEOUT);
                let tls = url.tls.then_some(&self.thread.tls);
                let stream = open((url.host.as_str(), url.port), &url.host, tls, timeout).await?;
                attempt.connecting = Some(attempt.connecting.unwrap_or_default() + begun.elapsed());
                Connection::new(stream, SEARCHED_BYTES_MAX)
            }
        };
        connection.reader.set_head_request(request.method == "HEAD");
        connection.reader.set_sample_bytes(sample_bytes);
        let mut bytes = Vec::with_capacity(head.len() + request.body.len());
        bytes.extend_from_slice(head.as_bytes());
        bytes.extend_from_slice(&request.body);
        patience.begin(Instant::now());
        let first_byte = self.thread.recorder.writes_lines().then_some(&mut attempt.first_byte);
        let outcome = connection.exchange(&bytes, &self.thread.read_buffer, patience, first_byte).await;
        attempt.sent_bytes += bytes.len() as u64;
        attempt.request = bytes;
        let reader = &connection.reader;
        attempt.received_bytes += reader.received_bytes;
        attempt.response = Response {
            status: reader.status,
            head: String::from_utf8_lossy(&reader.head).replace('\r', ""),
            body_bytes: reader.body_bytes,
            received_bytes: reader.received_bytes,
            url: url.to_string(),
            request_head: head
                .lines()
                .skip(1)
                .map(|line| format!("{line}\n"))
                .collect::<String>()
                .trim_end()
                .to_owned(),
            ..Response::default()
        };
        attempt.body.clear();
        attempt.body.extend_from_slice(&reader.sample);
        outcome?;
        let status = reader.status;
        if reader.keep_alive && request.keep_alive {
            self.connections.insert(key, connection);
        }
        Ok(status)
    }

    /// Extracts and checks; why the sample failed, if it did.
    fn judge(&mut self, sampler: &Sampler, status: &u16, attempt: &mut Attempt, elapsed: Duration) -> Option<String> {
        let ignore_status = sampler.assertions.iter().any(|assertion| assertion.ignores_status());
        let status_failure =
            (!(200..400).contains(status) && !ignore_status).then(|| format!("status {status} is not a success"));
        let decoded = response::decode(&attempt.body, attempt.response.fields("content-encoding").next());
        let checked = !sampler.extractors.is_empty() || !sampler.assertions.is_empty();
        match decoded {
            Ok(body) => attempt.response.body = body,
            Err(why) if checked => return Some(why),
            Err(_) => {}
        }
        attempt.response.elapsed_ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
        for extractor in &sampler.extractors {
            if let Err(why) = extractor.run(&attempt.response, &mut self.context, &mut self.patterns) {
                return Some(why);
            }
        }
        let mut failures = sampler
            .assertions
            .iter()
            .filter_map(|assertion| assertion.failure(&attempt.response, &mut self.context, &mut self.patterns));
        let failure = failures.next();
        status_failure.or(failure)
    }
}

/// What is known about a request besides its outcome.
#[derive(Default)]
struct Attempt {
    request: Vec<u8>,
    response: Response,
    body: Vec<u8>,
    sent_bytes: u64,
    received_bytes: u64,
    first_byte: Option<Instant>,
    connecting: Option<Duration>,
    reconnected: bool,
}

/// Why a request has no complete response.
enum Failure {
    /// It could not be sent.
    Unsent(String),
    Broken(Broken),
}

impl From<Broken> for Failure {
    fn from(broken: Broken) -> Self {
        Failure::Broken(broken)
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failure::Unsent(why) => f.write_str(why),
            Failure::Broken(broken) => broken.fmt(f),
        }
    }
}

/// The address that a `Location` field means.
fn resolve(base: &Url, location: &str) -> Result<Url, String> {
    let scheme = if base.tls { "https" } else { "http" };
    let absolute = if location.starts_with("http://") || location.starts_with("https://") {
        location.to_owned()
    } else if let Some(rest) = location.strip_prefix("//") {
        format!("{scheme}://{rest}")
    } else if location.starts_with('/') {
        format!("{scheme}://{}{location}", base.authority())
    } else {
        let path = base.path.split('?').next().unwrap_or_default();
        let directory = path.rfind('/').map_or("/", |at| &path[..=at]);
        format!("{scheme}://{}{directory}{location}", base.authority())
    };
    Url::parse(&absolute).map_err(|error| error.to_string())
}

/// The request that follows a redirect: without a body, with the cookies of the new address.
fn redirected(request: Request, url: Url, jar: Option<&Jar>) -> Request {
    let method = if request.method == "HEAD" { "HEAD" } else { "GET" }.to_owned();
    let mut headers = request.headers;
    headers.retain(|(name, _)| !["content-type", "cookie", "host"].iter().any(|gone| name.eq_ignore_ascii_case(gone)));
    if let Some(cookies) = jar.and_then(|jar| jar.field(&url)) {
        headers.push(("Cookie".to_owned(), cookies));
    }
    Request { method, url, headers, body: bytes::Bytes::new(), keep_alive: request.keep_alive }
}

/// The cookie manager of the requests of a block.
fn first_cookies(block: &Block) -> Option<&CookieSettings> {
    block.steps.iter().find_map(|step| match step {
        Step::Request(sampler) => sampler.request.cookies.as_deref(),
        Step::Control { body, .. } => first_cookies(body),
        _ => None,
    })
}
