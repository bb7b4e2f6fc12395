//! Boxcars of sessions: `begin_boxcar` opens one, requests of the session wait in it, and `end_boxcar` runs them in one
//! transaction. The session is a cookie, as in Micro Integrator; `abort_boxcar` discards the requests.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use penstock_engine::Exchange;
use ring::rand::{SecureRandom, SystemRandom};

use crate::fault::{DataServiceFault, FaultCode};
use crate::model::DataService;
use crate::parameter::GivenParameters;
use crate::request::Action;
use crate::run::{BoxFrame, Work};

/// The cookie of a session, as servers of Java name it.
const COOKIE: &str = "JSESSIONID";

/// Boxcars of a service at once. A client that never ends one cannot exhaust memory.
const BOXCARS_MAX: usize = 1000;

/// Bytes of parameters that wait in all boxcars of a service.
const BYTES_MAX: usize = 64 << 20;

/// Requests in one boxcar.
const REQUESTS_MAX: usize = 10_000;

/// A boxcar that is not ended by then is discarded; sessions of Micro Integrator last as long.
const LIFETIME: Duration = Duration::from_secs(30 * 60);

/// The boxcars of a service.
#[derive(Default)]
pub struct Boxcars {
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    boxcars: HashMap<String, Boxcar>,
    bytes: usize,
}

struct Boxcar {
    requests: Vec<(usize, GivenParameters)>,
    bytes: usize,
    begun: Instant,
}

/// A request that begins or ends a boxcar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BoxcarStep {
    /// `begin_boxcar`.
    Begin,
    /// `end_boxcar`.
    End,
    /// `abort_boxcar`.
    Abort,
}

/// What a request does, after its boxcar.
pub enum Step {
    /// It runs this.
    Run(Work),
    /// It is accepted; a new session has a cookie.
    Accepted(Option<String>),
}

impl BoxcarStep {
    /// The step that an operation name means.
    pub fn parse(name: &str) -> Option<BoxcarStep> {
        Some(match name {
            "begin_boxcar" => BoxcarStep::Begin,
            "end_boxcar" => BoxcarStep::End,
            "abort_boxcar" => BoxcarStep::Abort,
            _ => return None,
        })
    }
}

/// Puts a request into the boxcar of its session, or takes the requests out of it.
pub fn step(service: &DataService, exchange: &Exchange, action: Action) -> Result<Step, DataServiceFault> {
    let Some(boxcars) = &service.boxcars else {
        return match action {
            Action::Run(work) => Ok(Step::Run(work)),
            Action::Boxcar(_) => Err(fault("the service has no boxcars")),
        };
    };
    let session = exchange.message.headers.get("Cookie").and_then(session_of).map(str::to_owned);
    let session = session.as_deref();
    match action {
        Action::Boxcar(BoxcarStep::Begin) => {
            let id = boxcars.begin(Instant::now())?;
            Ok(Step::Accepted(Some(format!("{COOKIE}={id}; Path=/services/{}; HttpOnly", service.name))))
        }
        Action::Boxcar(BoxcarStep::End) => {
            let requests = session.and_then(|id| boxcars.take(id)).ok_or_else(|| fault("the session has no boxcar"))?;
            match requests.is_empty() {
                true => Ok(Step::Accepted(None)),
                false => Ok(Step::Run(Work::Boxed(requests, BoxFrame::None))),
            }
        }
        Action::Boxcar(BoxcarStep::Abort) => {
            session.and_then(|id| boxcars.take(id));
            Ok(Step::Accepted(None))
        }
        Action::Run(work) => match session.filter(|id| boxcars.is_open(id, Instant::now())) {
            None => Ok(Step::Run(work)),
            Some(id) => {
                let requests = match work {
                    Work::Single(operation, given) => vec![(operation, given)],
                    Work::Batch(operation, all) => all.into_iter().map(|given| (operation, given)).collect(),
                    Work::Boxed(items, _) => items,
                };
                boxcars.add(id, requests)?;
                Ok(Step::Accepted(None))
            }
        },
    }
}

fn session_of(cookies: &str) -> Option<&str> {
    cookies.split(';').find_map(|pair| pair.trim().strip_prefix(COOKIE)?.strip_prefix('='))
}

fn fault(message: &str) -> DataServiceFault {
    DataServiceFault::new(FaultCode::Unknown, message)
}

impl Boxcars {
    fn begin(&self, now: Instant) -> Result<String, DataServiceFault> {
        let mut bytes = [0; 16];
        SystemRandom::new().fill(&mut bytes).map_err(|_| fault("the system has no random numbers"))?;
        let id: String = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.expire(now);
        if open.boxcars.len() >= BOXCARS_MAX {
            return Err(fault(&format!("{BOXCARS_MAX} boxcars are open")));
        }
        open.boxcars.insert(id.clone(), Boxcar { requests: Vec::new(), bytes: 0, begun: now });
        Ok(id)
    }

    fn is_open(&self, id: &str, now: Instant) -> bool {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.expire(now);
        open.boxcars.contains_key(id)
    }

    fn add(&self, id: &str, requests: Vec<(usize, GivenParameters)>) -> Result<(), DataServiceFault> {
        let size: usize = requests.iter().map(|(_, given)| given.bytes()).sum();
        let mut guard = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let open = &mut *guard;
        if open.bytes + size > BYTES_MAX {
            return Err(fault(&format!("the boxcars of the service hold more than {BYTES_MAX} bytes")));
        }
        // A boxcar that ended meanwhile takes no more requests.
        let boxcar = open.boxcars.get_mut(id).ok_or_else(|| fault("the boxcar of the session has ended"))?;
        if boxcar.requests.len() + requests.len() > REQUESTS_MAX {
            return Err(fault(&format!("a boxcar has more than {REQUESTS_MAX} requests")));
        }
        boxcar.requests.extend(requests);
        boxcar.bytes += size;
        open.bytes += size;
        Ok(())
    }

    fn take(&self, id: &str) -> Option<Vec<(usize, GivenParameters)>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let boxcar = open.boxcars.remove(id)?;
        open.bytes -= boxcar.bytes;
        Some(boxcar.requests)
    }
}

impl Open {
    fn expire(&mut self, now: Instant) {
        let bytes = &mut self.bytes;
        self.boxcars.retain(|_, boxcar| {
            let is_alive = now.saturating_duration_since(boxcar.begun) < LIFETIME;
            *bytes -= if is_alive { 0 } else { boxcar.bytes };
            is_alive
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(text: &str) -> Vec<(usize, GivenParameters)> {
        let mut given = GivenParameters::default();
        given.add("name", Some(text.into()));
        vec![(0, given)]
    }

    #[test]
    fn requests_wait_until_the_boxcar_ends() {
        let boxcars = Boxcars::default();
        let now = Instant::now();
        let (one, other) = (boxcars.begin(now).unwrap(), boxcars.begin(now).unwrap());
        assert_ne!(one, other);
        boxcars.add(&one, request("a")).unwrap();
        boxcars.add(&one, request("b")).unwrap();
        boxcars.add(&other, request("c")).unwrap();
        let taken = boxcars.take(&one).unwrap();
        assert_eq!(taken.iter().map(|(_, given)| given.describe()).collect::<Vec<_>>(), ["{name=a}", "{name=b}"]);
        assert!(boxcars.take(&one).is_none());
        assert!(boxcars.add(&one, request("d")).is_err());
    }

    #[test]
    fn what_waits_is_limited_and_expires() {
        let boxcars = Boxcars::default();
        let now = Instant::now();
        let id = boxcars.begin(now).unwrap();
        let large = "x".repeat(BYTES_MAX / 2);
        boxcars.add(&id, request(&large)).unwrap();
        assert!(boxcars.add(&id, request(&large)).is_err());
        assert!(boxcars.is_open(&id, now + LIFETIME / 2));
        assert!(!boxcars.is_open(&id, now + LIFETIME));
        let id = boxcars.begin(now).unwrap();
        boxcars.add(&id, request(&large)).unwrap();
        assert!(boxcars.add(&id, vec![request("").remove(0); REQUESTS_MAX]).is_err());
    }

    #[test]
    fn the_cookie_names_the_session() {
        assert_eq!(session_of("a=1; JSESSIONID=7F; b=2"), Some("7F"));
        assert_eq!(session_of("XJSESSIONID=7F"), None);
    }
}
