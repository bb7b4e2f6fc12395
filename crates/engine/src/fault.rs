//! What goes wrong in a flow, with the numeric codes of Micro Integrator in one table.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use penstock_message::{BodyError, Value};

/// Who is to blame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The client sent something wrong.
    Client,
    /// The backend failed.
    Backend,
    /// Penstock or its configuration.
    Us,
}

/// A place in the user's configuration.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Place {
    /// The file, `archive!entry` inside an archive.
    pub file: Arc<str>,
    /// 1-based.
    pub line: u32,
    /// 1-based, in characters.
    pub column: u32,
}

impl Place {
    /// Whether it names a file: what a program brings along itself stands in none.
    pub fn is_known(&self) -> bool {
        !self.file.is_empty()
    }
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// A fault on its way to the nearest handler.
#[derive(Debug, Clone)]
pub struct Fault {
    /// `ERROR_CODE`: one of [`codes`], or what `throwError` names.
    pub code: FaultCode,
    /// Who is to blame.
    pub side: Side,
    /// Whether the same request may be sent again elsewhere.
    pub retry: bool,
    /// Where in the configuration, filled in by the loop when the raiser does not know.
    pub at: Option<Place>,
    /// `ERROR_MESSAGE`: one line.
    pub message: Arc<str>,
    /// `ERROR_DETAIL`: more, when there is more.
    pub detail: Option<Arc<str>>,
    /// Whether it is expected in operation: a limit that is reached, an unknown path. It is not logged at the
    /// default level, because clients could flood the log.
    pub quiet: bool,
    /// The status of the answer when no sequence answers the fault. Without it side and code decide.
    pub status: Option<u16>,
    /// When the same request may succeed: `Retry-After`.
    pub retry_after: Option<Duration>,
    /// Whether the client may read `message`: it names neither an address nor anything of the configuration.
    pub is_public: bool,
    /// Whether `side` was decided while the body was at hand whose reading failed.
    pub is_blamed: bool,
}

/// `ERROR_CODE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FaultCode {
    /// A number of the table.
    Number(u32),
    /// A word, from `throwError`.
    Word(Arc<str>),
}

impl FaultCode {
    /// As a property value.
    pub fn to_value(&self) -> Value {
        match self {
            FaultCode::Number(number) => Value::Integer(i64::from(*number)),
            FaultCode::Word(word) => Value::String(word.clone()),
        }
    }
}

impl Fault {
    /// What a template answers that is called without a parameter it needs, in Micro Integrator's words.
    pub fn missing_parameter(template: &str, parameter: &str) -> Fault {
        let why = format!(
            "Neither a value nor default value is provided for mandatory parameter: {parameter} in seq-template {template}"
        );
        Fault::coded(codes::TEMPLATE_PARAMETER, Side::Us, why)
    }

    /// A fault of ours with code 0, what a failing mediator raises.
    pub fn new(message: impl Into<Arc<str>>) -> Fault {
        Fault::coded(codes::DEFAULT, Side::Us, message)
    }

    /// A fault with a code of the table.
    pub fn coded(code: u32, side: Side, message: impl Into<Arc<str>>) -> Fault {
        Fault {
            code: FaultCode::Number(code),
            side,
            retry: false,
            at: None,
            message: message.into(),
            detail: None,
            quiet: false,
            status: None,
            retry_after: None,
            is_public: false,
            is_blamed: false,
        }
    }

    /// The request took longer than `timeouts.deadline`. No endpoint is to blame: earlier parts of the request may have
    /// used the time up.
    pub fn deadline() -> Fault {
        let fault = Fault::coded(codes::CONNECTION_TIMED_OUT, Side::Us, "the deadline of the request has passed");
        fault.public().with_status(504)
    }

    /// A body that could not be read, from the side that sent it.
    pub fn of_body(error: BodyError, side: Side) -> Fault {
        Fault::from(error).sent_by(side)
    }

    /// The same for a body that another side than the client sent. Changes nothing of other faults.
    #[must_use]
    pub fn sent_by(mut self, side: Side) -> Fault {
        if self.side != Side::Client || self.status.is_none() || side == Side::Client {
            return self;
        }
        self.side = side;
        self.status = self.status.filter(|status| side == Side::Backend && *status == 408).map(|_| 504);
        if side == Side::Backend && self.number() == Some(codes::RECEIVER_IO_RECEIVING) {
            self.code = FaultCode::Number(codes::SENDER_IO_RECEIVING);
        }
        self
    }

    /// The same, answered with this status when no sequence answers it.
    #[must_use]
    pub fn with_status(mut self, status: u16) -> Fault {
        self.status = Some(status);
        self
    }

    /// The same, with a message that clients may read.
    #[must_use]
    pub fn public(mut self) -> Fault {
        self.is_public = true;
        self
    }

    /// The same, worth another try on another endpoint.
    pub fn retryable(mut self) -> Fault {
        self.retry = true;
        self
    }

    /// What Micro Integrator says of a backend that fails. Artifacts compare it and put it into their payloads; what
    /// happened in particular is in `ERROR_DETAIL` and in the log.
    pub fn synapse_message(&self) -> Option<&'static str> {
        if self.side != Side::Backend {
            return None;
        }
        match self.number()? {
            codes::CONNECTION_TIMED_OUT => Some("Send timeout"),
            codes::CONNECTION_FAILED | codes::CONNECT_TIMEOUT => Some("Error connecting to the back end"),
            codes::SENDER_IO_SENDING
            | codes::SENDER_IO_RECEIVING
            | codes::CONNECTION_CLOSED
            | codes::PROTOCOL_VIOLATION => Some("Error in Sender"),
            _ => None,
        }
    }

    /// The numeric code, when it is one.
    pub fn number(&self) -> Option<u32> {
        match self.code {
            FaultCode::Number(number) => Some(number),
            FaultCode::Word(_) => None,
        }
    }
}

impl From<BodyError> for Fault {
    fn from(error: BodyError) -> Fault {
        let (code, status) = match error {
            BodyError::Timeout => (codes::RECEIVER_IO_RECEIVING, 408),
            BodyError::Incomplete(_) => (codes::RECEIVER_IO_RECEIVING, 400),
            BodyError::TooLarge { .. } | BodyError::TooManyNodes { .. } => (codes::MESSAGE_PARSING, 413),
            BodyError::Malformed(_) | BodyError::Unsupported { .. } => (codes::MESSAGE_PARSING, 400),
        };
        Fault::coded(code, Side::Client, error.to_string()).public().with_status(status)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.message)
    }
}

/// The codes of Micro Integrator.
pub mod codes {
    /// No particular code.
    pub const DEFAULT: u32 = 0;
    /// Sending to the client failed.
    pub const RECEIVER_IO_SENDING: u32 = 101000;
    /// Receiving from the client failed.
    pub const RECEIVER_IO_RECEIVING: u32 = 101001;
    /// Sending to the backend failed.
    pub const SENDER_IO_SENDING: u32 = 101500;
    /// Receiving from the backend failed.
    pub const SENDER_IO_RECEIVING: u32 = 101501;
    /// The backend refused the connection.
    pub const CONNECTION_FAILED: u32 = 101503;
    /// The backend did not respond in time.
    pub const CONNECTION_TIMED_OUT: u32 = 101504;
    /// The backend closed the connection.
    pub const CONNECTION_CLOSED: u32 = 101505;
    /// The backend's answer is not HTTP.
    pub const PROTOCOL_VIOLATION: u32 = 101506;
    /// Connecting was given up.
    pub const CONNECT_CANCEL: u32 = 101507;
    /// Connecting took too long.
    pub const CONNECT_TIMEOUT: u32 = 101508;
    /// Sending was given up.
    pub const SEND_ABORTED: u32 = 101509;
    /// The backend's answer could not be processed.
    pub const RESPONSE_PROCESSING: u32 = 101510;
    /// No member of a group is ready.
    pub const GROUP_NOT_READY: u32 = 303000;
    /// An address or http endpoint is suspended or off.
    pub const ENDPOINT_NOT_READY: u32 = 303001;
    /// A WSDL endpoint is not ready.
    pub const WSDL_NOT_READY: u32 = 303002;
    /// Endpoint authentication failed.
    pub const ENDPOINT_AUTHENTICATION: u32 = 303003;
    /// Every member of a load balance group failed.
    pub const LOAD_BALANCE_FAILED: u32 = 303100;
    /// Every member of a failover group failed.
    pub const FAILOVER_FAILED: u32 = 304100;
    /// The key of an indirect endpoint names nothing.
    pub const INDIRECT_MISSING: u32 = 305100;
    /// A `callout` failed.
    pub const CALLOUT: u32 = 401000;
    /// A blocking call failed.
    pub const BLOCKING_CALL: u32 = 401001;
    /// The sender of a blocking call failed.
    pub const BLOCKING_SENDER: u32 = 401002;
    /// A non-blocking call failed.
    pub const NON_BLOCKING_CALL: u32 = 401003;
    /// A SOAP fault or a status the configuration calls an error.
    pub const ENDPOINT_CUSTOM: u32 = 500000;
    /// A template was called without a parameter it needs.
    pub const TEMPLATE_PARAMETER: u32 = 500101;
    /// The body is not what its content type says.
    pub const MESSAGE_PARSING: u32 = 601000;
}
