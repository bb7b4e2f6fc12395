//! Errors of the REST APIs: the status, the code and the texts that clients compare.

use serde_json::{Value, json};

use crate::http::Response;

/// Why an operation failed.
#[derive(Debug, Clone)]
pub struct Problem {
    /// The HTTP status.
    pub status: u16,
    /// The code in the body; the status for errors without one.
    pub code: u32,
    /// The short text.
    pub message: String,
    /// The long text.
    pub description: String,
    /// Single errors: code and message.
    pub errors: Vec<(String, String)>,
}

impl Problem {
    /// An error with a code of its own.
    pub(crate) fn new(status: u16, code: u32, message: &str, description: impl Into<String>) -> Problem {
        Problem { status, code, message: message.to_owned(), description: description.into(), errors: Vec::new() }
    }

    /// An error whose code is its status.
    fn generic(status: u16, message: &str, description: impl Into<String>) -> Problem {
        Problem::new(status, u32::from(status), message, description)
    }

    /// 400.
    pub(crate) fn bad_request(description: impl Into<String>) -> Problem {
        Problem::generic(400, "Bad Request", description)
    }

    /// 400 for a field of a body.
    pub(crate) fn invalid(field: &str, why: impl Into<String>) -> Problem {
        let mut problem = Problem::bad_request("Validation Error");
        problem.errors.push((format!("400_{field}"), why.into()));
        problem
    }

    /// 400 with a code.
    pub(crate) fn rejected(code: u32, message: &str, description: impl Into<String>) -> Problem {
        Problem::new(400, code, message, description)
    }

    /// 401: the same for a missing token, an invalid one, and one without the scope.
    pub(crate) fn unauthenticated() -> Problem {
        Problem::generic(401, "", "Unauthenticated request")
    }

    /// 403.
    pub(crate) fn forbidden(description: impl Into<String>) -> Problem {
        Problem::generic(403, "Forbidden", description)
    }

    /// 404 for an object by its id.
    pub(crate) fn not_found(what: &str, id: &str) -> Problem {
        Problem::generic(404, "Not Found", format!("Requested {what} with Id '{id}' not found"))
    }

    /// 409.
    pub(crate) fn conflict(code: u32, message: &str, description: impl Into<String>) -> Problem {
        Problem::new(409, code, message, description)
    }

    /// 409: the object changed since it was read.
    pub(crate) fn changed_meanwhile() -> Problem {
        Problem::generic(409, "Conflict", "The object was changed by another request at the same time")
    }

    /// 413.
    pub(crate) fn too_large(bytes_max: usize) -> Problem {
        Problem::generic(413, "Payload Too Large", format!("A body must not be larger than {bytes_max} bytes"))
    }

    /// 500; the cause belongs into the log.
    pub(crate) fn internal() -> Problem {
        Problem::new(500, 900_967, "General Error", "Server Error Occurred")
    }

    /// 501, with the name of the operation.
    pub(crate) fn not_implemented(operation: &str) -> Problem {
        Problem::generic(501, "Not Implemented", format!("The operation `{operation}` is not implemented"))
    }

    /// The body.
    pub fn body(&self) -> Value {
        let errors: Vec<Value> =
            self.errors.iter().map(|(code, message)| json!({"code": code, "message": message})).collect();
        json!({
            "code": self.code, "message": self.message, "description": self.description, "moreInfo": "", "error": errors
        })
    }

    /// The response.
    pub(crate) fn response(&self) -> Response {
        let response = Response::json(self.status, &self.body());
        if self.status == 401 {
            response.with("WWW-Authenticate", "Bearer, Basic realm=\"Penstock\"")
        } else {
            response
        }
    }
}

impl From<rusqlite::Error> for Problem {
    fn from(error: rusqlite::Error) -> Problem {
        Problem { errors: vec![(CAUSE.to_owned(), error.to_string())], ..Problem::internal() }
    }
}

/// The error that goes to the log in place of the body.
const CAUSE: &str = "cause";

impl Problem {
    /// An internal error with a cause for the log.
    pub(crate) fn caused(cause: impl std::fmt::Display) -> Problem {
        Problem { errors: vec![(CAUSE.to_owned(), cause.to_string())], ..Problem::internal() }
    }

    /// Takes the cause of an internal error out, for the log.
    pub(crate) fn take_cause(&mut self) -> Option<String> {
        let index = self.errors.iter().position(|(code, _)| code == CAUSE)?;
        Some(self.errors.swap_remove(index).1)
    }
}
