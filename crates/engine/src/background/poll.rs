//! Polling: asking a source for messages at an interval, or when a schedule fires.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::{Backoff, Control, RunService, ServiceError};
use crate::ports::LocalFuture;

/// When a source is polled.
#[derive(Clone)]
pub enum Pace {
    /// At the start, then after each pause of this length. Polls do not overlap.
    Every(Duration),
    /// After the pause that the function returns; `None` when the schedule never fires again.
    Schedule(Arc<dyn Fn() -> Option<Duration> + Send + Sync>),
}

impl fmt::Debug for Pace {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pace::Every(pause) => write!(out, "Every({pause:?})"),
            Pace::Schedule(_) => write!(out, "Schedule"),
        }
    }
}

/// A source that is polled. One per service; each run of the service opens it anew.
pub trait PollSource: Send + Sync {
    /// A poller without a connection: it connects at its first poll.
    fn open(&self) -> Box<dyn Poll>;
}

/// A poller. It keeps its connection from one poll to the next.
pub trait Poll {
    /// Takes the messages that are there and runs their flows. Ends early when `control` pauses or stops the service:
    /// test [`Control::is_wanted`] between two messages. A temporary error marks the service as faulty, and the next poll
    /// comes later each time; any other error ends it.
    fn poll<'a>(&'a mut self, control: &'a Control) -> LocalFuture<'a, Result<Polled, ServiceError>>;
}

/// What came of a poll.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Polled {
    /// The source works.
    Done,
    /// The source can be reached and has nothing to poll, such as a folder that does not exist: the reason. The service is
    /// faulty, and is polled again at its usual time.
    Missing(String),
}

/// A service that polls a source.
pub struct Polling {
    /// What is polled.
    pub source: Arc<dyn PollSource>,
    /// When.
    pub pace: Pace,
}

impl RunService for Polling {
    fn run(&self, control: Control) -> LocalFuture<'static, Result<(), ServiceError>> {
        let (poller, pace) = (self.source.open(), self.pace.clone());
        Box::pin(poll_repeatedly(poller, pace, control))
    }
}

async fn poll_repeatedly(mut poller: Box<dyn Poll>, pace: Pace, mut control: Control) -> Result<(), ServiceError> {
    let mut backoff = Backoff::default();
    let mut pause = match &pace {
        Pace::Every(_) => Duration::ZERO,
        Pace::Schedule(_) => match wait_for_schedule(&pace, &mut control).await {
            Some(pause) => pause,
            None => return Ok(()),
        },
    };
    while control.sleep(pause).await {
        let failed = match poller.poll(&control).await {
            Ok(polled) => {
                backoff.reset();
                match polled {
                    Polled::Done => control.working(),
                    Polled::Missing(reason) => control.faulty(reason),
                }
                Duration::ZERO
            }
            Err(error) if error.is_temporary => {
                control.faulty(error.reason);
                backoff.next_pause()
            }
            Err(error) => return Err(error),
        };
        let Some(next) = wait_for_schedule(&pace, &mut control).await else { return Ok(()) };
        pause = next.max(failed);
    }
    Ok(())
}

/// The pause before the next poll. A schedule that never fires again is waited out: `None` when the service must stop.
async fn wait_for_schedule(pace: &Pace, control: &mut Control) -> Option<Duration> {
    match pace {
        Pace::Every(pause) => Some(*pause),
        Pace::Schedule(next) => match next() {
            Some(pause) => Some(pause),
            None => {
                while control.next().await {
                    control.until(std::future::pending::<()>()).await;
                }
                None
            }
        },
    }
}
