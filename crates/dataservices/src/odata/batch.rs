//! `$batch` (OData 4.0 part 1 §11.7): several requests in one body. The requests of a change set run in one transaction.

use std::rc::Rc;
use std::sync::Arc;

use penstock_engine::database::{DataSource, Databases, Dialect, Transaction};
use penstock_message::Method;
use serde_json::Value as Json;

use super::multipart::{self, BatchPart};
use super::{Refusal, Response, entity};

/// Requests of a batch with those of its change sets.
const REQUESTS_MAX: usize = multipart::PARTS_MAX;

/// Delimits the parts of responses: no JSON has a line that begins so.
const BOUNDARY: &str = "batch_response";
const SET_BOUNDARY: &str = "changeset_response";

/// A batch.
pub struct Batch {
    items: Vec<Item>,
    /// `Prefer: odata.continue-on-error`.
    continues: bool,
    root: Arc<str>,
}

enum Item {
    Request(Operation),
    /// All or none of them.
    ChangeSet(Vec<Operation>),
}

/// A request of a batch. It is read when it runs: its address may refer to what an earlier one created.
struct Operation {
    /// `Content-ID`.
    id: Option<String>,
    method: Method,
    url: String,
    fields: Vec<(String, String)>,
    body: Vec<u8>,
}

/// The path and query of an address below the root of the service: `Orders(1)`, `/odata/S/c/Orders(1)`, `http://h/odata/…`.
pub fn relative<'u>(url: &'u str, root: &str) -> &'u str {
    let path = match url.split_once("://") {
        Some((_, rest)) => rest.find('/').map_or("", |slash| &rest[slash..]),
        None => url,
    };
    path.strip_prefix(root).unwrap_or(path)
}

impl Batch {
    /// Reads a body.
    pub fn parse(body: &[u8], header: &dyn Fn(&str) -> Option<String>, root: &Arc<str>) -> Result<Batch, Refusal> {
        let content_type = header("Content-Type").unwrap_or_default();
        let Some(boundary) = multipart::boundary(&content_type) else {
            return Err(Refusal::status(415, "a batch is multipart/mixed with a boundary"));
        };
        let mut items = Vec::new();
        let mut count = 0;
        for part in multipart::parts(body, boundary)? {
            let nested = part.field("content-type").and_then(multipart::boundary);
            let item = match nested {
                Some(boundary) => {
                    let operations = multipart::parts(part.content, boundary)?;
                    let operations = operations.iter().map(Operation::parse).collect::<Result<Vec<_>, _>>()?;
                    if operations.iter().any(|operation| operation.method == Method::Get) {
                        return Err(Refusal::invalid("a change set has no GET"));
                    }
                    count += operations.len();
                    Item::ChangeSet(operations)
                }
                None => {
                    count += 1;
                    Item::Request(Operation::parse(&part)?)
                }
            };
            if count > REQUESTS_MAX {
                return Err(Refusal::invalid(format!("the batch has more than {REQUESTS_MAX} requests")));
            }
            items.push(item);
        }
        let continues = header("Prefer").is_some_and(|preferences| preferences.contains("odata.continue-on-error"));
        Ok(Batch { items, continues, root: root.clone() })
    }

    /// Runs the requests in their order, up to the first that fails unless the client prefers to continue.
    pub(super) async fn answer(
        &self,
        databases: &Arc<dyn Databases>,
        source: &Arc<DataSource>,
    ) -> Result<Response, Refusal> {
        let dialect = databases.dialect(source)?;
        let mut out = Vec::new();
        for item in &self.items {
            let failed = match item {
                Item::Request(operation) => {
                    let response = match operation.request(&self.root, &[]) {
                        Ok(request) => entity::answer(databases, source, &request).await,
                        Err(refusal) => Err(refusal),
                    };
                    let response = response.unwrap_or_else(|refusal| Response::refused(&refusal));
                    write(&mut out, BOUNDARY, operation, &response);
                    response.status >= 400
                }
                Item::ChangeSet(operations) => {
                    let session = databases.begin();
                    match self.change_set(&session, source, dialect, operations).await {
                        Ok(set) => {
                            session.commit().await?;
                            let head = format!(
                                "--{BOUNDARY}\r\nContent-Type: multipart/mixed; boundary={SET_BOUNDARY}\r\n\r\n"
                            );
                            out.extend_from_slice(head.as_bytes());
                            out.extend_from_slice(&set);
                            false
                        }
                        Err((operation, refusal)) => {
                            session.rollback().await?;
                            write(&mut out, BOUNDARY, operation, &Response::refused(&refusal));
                            true
                        }
                    }
                }
            };
            if failed && !self.continues {
                break;
            }
        }
        out.extend_from_slice(format!("--{BOUNDARY}--\r\n").as_bytes());
        let content_type = format!("multipart/mixed; boundary={BOUNDARY}");
        Ok(Response { status: 200, headers: vec![("Content-Type", content_type)], body: out })
    }

    /// The responses of a change set, or the request that failed.
    async fn change_set<'s>(
        &self,
        session: &Rc<dyn Transaction>,
        source: &Arc<DataSource>,
        dialect: Dialect,
        operations: &'s [Operation],
    ) -> Result<Vec<u8>, (&'s Operation, Refusal)> {
        let mut out = Vec::new();
        // The addresses of entities by the Content-ID of the request that created them.
        let mut created: Vec<(String, String)> = Vec::new();
        for operation in operations {
            let response = match operation.request(&self.root, &created) {
                Ok(request) => entity::answer_in(session, source, dialect, &request).await,
                Err(refusal) => Err(refusal),
            };
            let response = response.map_err(|refusal| (operation, refusal))?;
            let location = response.headers.iter().find(|(name, _)| *name == "Location");
            if let (Some(id), Some((_, location))) = (&operation.id, location) {
                created.push((id.clone(), location.clone()));
            }
            write(&mut out, SET_BOUNDARY, operation, &response);
        }
        out.extend_from_slice(format!("--{SET_BOUNDARY}--\r\n").as_bytes());
        Ok(out)
    }
}

impl Operation {
    fn parse(part: &BatchPart<'_>) -> Result<Operation, Refusal> {
        let is_http = part.field("content-type").is_some_and(|kind| {
            kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/http"))
        });
        if !is_http {
            return Err(Refusal::invalid("a part of the batch is neither application/http nor a change set"));
        }
        let (line, rest) = multipart::first_line(part.content);
        let mut words = line.split_ascii_whitespace();
        let (Some(method), Some(url), Some(version)) = (words.next(), words.next(), words.next()) else {
            return Err(Refusal::invalid("a request of the batch has no request line"));
        };
        if !version.starts_with("HTTP/") {
            return Err(Refusal::invalid("a request of the batch has no request line"));
        }
        let inner = multipart::part(rest)?;
        let id = part.field("content-id").or_else(|| inner.field("content-id")).map(str::to_owned);
        Ok(Operation {
            id,
            method: Method::parse(method),
            url: url.to_owned(),
            body: inner.content.to_vec(),
            fields: inner.fields,
        })
    }

    fn request(&self, root: &Arc<str>, created: &[(String, String)]) -> Result<entity::Request, Refusal> {
        let body = match self.body.trim_ascii() {
            [] => None,
            _ if matches!(self.method, Method::Get | Method::Delete) => None,
            text => {
                let value: Result<Json, _> = serde_json::from_slice(text);
                Some(Arc::new(value.map_err(|error| Refusal::invalid(format!("the body is not JSON: {error}")))?))
            }
        };
        let url = match self.url.strip_prefix('$').filter(|rest| !rest.starts_with("batch")) {
            Some(reference) => {
                let end = reference.find(['/', '?']).unwrap_or(reference.len());
                let (id, rest) = reference.split_at(end);
                let known = created.iter().find(|(known, _)| known == id);
                known.map(|(_, location)| format!("{location}{rest}")).unwrap_or_else(|| self.url.clone())
            }
            None => self.url.clone(),
        };
        let header = |name: &str| {
            let found = self.fields.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
            found.map(|(_, value)| value.clone())
        };
        entity::Request::new(self.method.clone(), relative(&url, root), &header, body, root)
    }
}

fn write(out: &mut Vec<u8>, boundary: &str, operation: &Operation, response: &Response) {
    let mut head = format!("--{boundary}\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n");
    if let Some(id) = operation.id.as_deref().filter(|id| id.bytes().all(|byte| byte.is_ascii_graphic())) {
        head.push_str(&format!("Content-ID: {id}\r\n"));
    }
    head.push_str(&format!("\r\nHTTP/1.1 {} {}\r\nOData-Version: 4.0\r\n", response.status, reason(response.status)));
    for (name, value) in &response.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str(&format!("Content-Length: {}\r\n\r\n", response.body.len()));
    out.extend_from_slice(head.as_bytes());
    out.extend_from_slice(&response.body);
    out.extend_from_slice(b"\r\n");
}

/// The reason phrases of the statuses that requests for entities have (RFC 9110 §15).
fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        204 => "No Content",
        400 => "Bad Request",
        404 => "Not Found",
        405 => "Method Not Allowed",
        412 => "Precondition Failed",
        501 => "Not Implemented",
        503 => "Service Unavailable",
        _ => "Internal Server Error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_below_the_root() {
        for (url, expected) in [
            ("Orders(1)?$top=1", "Orders(1)?$top=1"),
            ("/odata/S/c/Orders", "/Orders"),
            ("https://host:1/odata/S/c/Orders", "/Orders"),
            ("http://host", ""),
        ] {
            assert_eq!(relative(url, "/odata/S/c"), expected);
        }
    }

    #[test]
    fn requests_and_change_sets_are_read() {
        let body = "--b\r\nContent-Type: application/http\r\n\r\nGET Orders HTTP/1.1\r\nPrefer: x\r\n\r\n\r\n\
                    --b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n\
                    --c\r\nContent-Type: application/http\r\nContent-ID: 1\r\n\r\nPOST Orders HTTP/1.1\r\n\r\n{}\r\n--c--\r\n--b--";
        let header = |name: &str| (name == "Content-Type").then(|| "multipart/mixed; boundary=b".to_owned());
        let batch = Batch::parse(body.as_bytes(), &header, &"/odata/S/c".into()).unwrap();
        let [Item::Request(first), Item::ChangeSet(set)] = batch.items.as_slice() else { panic!("two items") };
        assert_eq!((first.url.as_str(), first.fields.len(), first.body.is_empty()), ("Orders", 1, true));
        assert_eq!((set.len(), set[0].id.as_deref(), set[0].body.as_slice()), (1, Some("1"), b"{}".as_slice()));
        for wrong in [body.replace("POST", "GET"), body.replace(" HTTP/1.1", ""), body.replace("--c--", "")] {
            assert!(Batch::parse(wrong.as_bytes(), &header, &"/x".into()).is_err());
        }
        assert_eq!(Batch::parse(b"", &|_| None, &"/x".into()).err().map(|refusal| refusal.status), Some(415));
    }
}
