//! Definitions that clients send: as a file, in the form, or as an address that the server fetches.

use bytes::Bytes;
use serde_json::{Map, Value, json};

use crate::host::{FetchError, FetchRequest};
use crate::multipart::FormPart;
use crate::problem::Problem;
use crate::route::Call;

/// The largest definition that is fetched; API Manager has the same limit.
const FETCHED_BYTES_MAX: usize = 10 << 20;

/// A definition.
pub(super) struct Given {
    pub(super) content: Bytes,
    /// The name of the file, or the address.
    pub(super) name: String,
}

/// A part of a form that is not empty.
pub(super) fn part<'p>(parts: &'p [FormPart], name: &str) -> Option<&'p FormPart> {
    parts.iter().find(|part| part.name == name && !part.content.is_empty())
}

/// The text of a part.
pub(super) fn text(parts: &[FormPart], name: &str) -> Option<String> {
    part(parts, name).map(|part| String::from_utf8_lossy(&part.content).trim().to_owned())
}

/// The definition in the part `file`, at the address in the part `url`, or in a part that has it as text.
pub(super) fn definition(call: &Call<'_>, parts: &[FormPart], inline: &str) -> Result<Given, Problem> {
    let found = part(parts, "file").or_else(|| part(parts, inline));
    if let Some(found) = found {
        let name = found.file_name.clone().unwrap_or_default();
        return Ok(Given { content: found.content.clone(), name });
    }
    match text(parts, "url") {
        Some(url) => Ok(Given { content: fetched(call, &url)?, name: url }),
        None => Err(Problem::bad_request(format!("One of the parts `file`, `url` and `{inline}` is needed"))),
    }
}

/// What an address responds with.
pub(super) fn fetched(call: &Call<'_>, url: &str) -> Result<Bytes, Problem> {
    let request =
        FetchRequest { method: "GET", url, headers: Vec::new(), body: Bytes::new(), bytes_max: FETCHED_BYTES_MAX };
    let failed = |why: String| {
        let mut problem = Problem::rejected(900_756, "Definition retrieval from URL failed", why.clone());
        problem.errors.push(("900756".to_owned(), why));
        problem
    };
    match call.control.host.fetch(&request) {
        Ok(found) if found.status == 200 => Ok(found.body),
        Ok(found) => {
            let why = format!("Response didn't return a 200 OK status, but {}", found.status);
            let mut problem = Problem::rejected(900_757, "Definition retrieval from URL failed", why.clone());
            problem.errors.push(("900757".to_owned(), why));
            Err(problem)
        }
        Err(FetchError::TooLarge) => {
            let why = "Maximum content size exceeded while retrieving content from URL";
            let mut problem = Problem::rejected(902_030, "Content retrieval from URL failed", why);
            problem.errors.push(("902030".to_owned(), why.to_owned()));
            Err(problem)
        }
        Err(FetchError::Malformed(why) | FetchError::NotAllowed(why) | FetchError::Failed(why)) => Err(failed(why)),
    }
}

/// The errors of a definition that is not valid, as `validate` operations list them.
pub(super) fn errors_of(problem: &Problem) -> Vec<Value> {
    let one = |code: &str, why: &str| json!({"code": code, "message": problem.message, "description": why});
    match problem.errors.is_empty() {
        true => vec![one(&problem.code.to_string(), &problem.description)],
        false => problem.errors.iter().map(|(code, why)| one(code, why)).collect(),
    }
}

/// The members of an API in the part `additionalProperties` of a form.
pub(super) fn additional_properties(parts: &[FormPart]) -> Result<Map<String, Value>, Problem> {
    match part(parts, "additionalProperties") {
        None => Ok(Map::new()),
        Some(part) => match serde_json::from_slice(&part.content) {
            Ok(Value::Object(body)) => Ok(body),
            Ok(_) | Err(_) => Err(Problem::bad_request("The part `additionalProperties` is not a JSON object")),
        },
    }
}

/// Sets a member that the client left out.
pub(super) fn set_default(body: &mut Map<String, Value>, name: &str, value: Value) {
    if body.get(name).is_none_or(|known| known.is_null() || known.as_str() == Some("")) {
        body.insert(name.to_owned(), value);
    }
}
