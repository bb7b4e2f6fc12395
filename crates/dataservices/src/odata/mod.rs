//! OData 4.0 over the tables of a database (`enableOData`), at `/odata/SERVICE/CONFIG`.
//!
//! Start reading at `entity.rs`; `filter.rs` makes SQL of expressions, `catalog.rs` knows the tables, `links.rs` follows foreign
//! keys (`$expand`, `$ref`), `batch.rs` runs several requests of one body.

pub mod batch;
pub mod catalog;
mod entity;
pub mod expand;
pub mod filter;
mod links;
mod metadata;
mod multipart;
pub mod path;

use std::sync::Arc;

use penstock_compile::Compiler;
use penstock_engine::database::{DataSource, DatabaseError, DatabaseErrorKind};
use penstock_engine::ports::Level;
use penstock_engine::route::{Api, Pattern, Resource};
use penstock_engine::{Exchange, Fault, Flow, Mediator, Needs, Place, Resume, Step};
use penstock_message::{Body, Headers, Method};

/// Why a request is refused.
#[derive(Debug)]
pub struct Refusal {
    /// The status.
    pub status: u16,
    /// The reason, for the client.
    pub message: String,
}

impl Refusal {
    /// A request that is wrong.
    pub fn invalid(message: impl Into<String>) -> Refusal {
        Refusal { status: 400, message: message.into() }
    }

    /// A part of OData that Penstock does not have.
    pub fn unsupported(what: &str) -> Refusal {
        Refusal { status: 501, message: format!("{what} is not supported") }
    }

    fn status(status: u16, message: impl Into<String>) -> Refusal {
        Refusal { status, message: message.into() }
    }
}

impl From<DatabaseError> for Refusal {
    fn from(error: DatabaseError) -> Refusal {
        let status = match error.kind {
            DatabaseErrorKind::Refused => 400,
            DatabaseErrorKind::Undefined | DatabaseErrorKind::TimedOut => 500,
            DatabaseErrorKind::Unreachable | DatabaseErrorKind::Busy => 503,
        };
        Refusal { status, message: error.message }
    }
}

/// A request of a client.
enum Request {
    Single(entity::Request),
    Batch(batch::Batch),
}

impl Request {
    fn read(exchange: &mut Exchange, root: &Arc<str>) -> Result<Result<Request, Refusal>, Fault> {
        let target = exchange.message.url_postfix.clone().unwrap_or_default();
        let method = exchange.client.line.method.clone();
        let is_batch = target.split('?').next().is_some_and(|path| path.trim_matches('/') == "$batch");
        if is_batch && method == Method::Post {
            let conversion = exchange.program().clone();
            let bytes = exchange.message.decoded_bytes(&conversion.conversion)?;
            let header = |name: &str| exchange.message.headers.get(name).map(str::to_owned);
            return Ok(batch::Batch::parse(&bytes, &header, root).map(Request::Batch));
        }
        let body = match exchange.message.body.is_empty() || matches!(method, Method::Get | Method::Delete) {
            true => None,
            false => Some(exchange.json()?),
        };
        let header = |name: &str| exchange.message.headers.get(name).map(str::to_owned);
        Ok(entity::Request::new(method, &target, &header, body, root).map(Request::Single))
    }
}

/// What a client gets.
struct Response {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
}

impl Response {
    fn json(status: u16, value: &serde_json::Value) -> Response {
        let headers = vec![("Content-Type", "application/json;odata.metadata=minimal".to_owned())];
        Response { status, headers, body: value.to_string().into_bytes() }
    }

    fn text(content_type: &str, body: String) -> Response {
        Response { status: 200, headers: vec![("Content-Type", content_type.to_owned())], body: body.into_bytes() }
    }

    fn empty() -> Response {
        Response { status: 204, headers: Vec::new(), body: Vec::new() }
    }

    fn refused(refusal: &Refusal) -> Response {
        let code = refusal.status.to_string();
        Response::json(refusal.status, &serde_json::json!({"error": {"code": code, "message": refusal.message}}))
    }
}

/// Offers the tables of a database.
struct Serve {
    source: Arc<DataSource>,
    /// The path of the service, for contexts.
    root: Arc<str>,
}

/// Adds the service of a source to the routes.
pub fn offer(cx: &mut Compiler<'_>, service: &str, config: &str, source: Arc<DataSource>, at: Place) {
    let root: Arc<str> = format!("/odata/{service}/{config}").into();
    let mediator = Box::new(Serve { source, root: root.clone() });
    let sequence = cx.add_sequence(vec![Step { mediator, kind: "data", at: at.clone() }]);
    let resource = Resource {
        methods: Vec::new(),
        pattern: Pattern::Default,
        in_sequence: Some(sequence),
        out_sequence: None,
        fault_sequence: None,
        secure: None,
        content_type: None,
        user_agent: None,
        at: at.clone(),
    };
    cx.add_api(Arc::new(Api {
        name: format!("odata/{service}/{config}").into(),
        label: format!("{{odata:{service}/{config}}}").into(),
        context: root,
        resources: vec![resource],
        at,
        ..Api::default()
    }));
}

impl Mediator for Serve {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let request = match Request::read(exchange, &self.root)? {
            Ok(request) => request,
            Err(refusal) => return Ok(respond(exchange, &Response::refused(&refusal))),
        };
        let databases = exchange.core().databases()?.clone();
        let source = self.source.clone();
        Ok(Flow::Wait(Box::pin(async move {
            let outcome = match &request {
                Request::Single(request) => entity::answer(&databases, &source, request).await,
                Request::Batch(batch) => batch.answer(&databases, &source).await,
            };
            Resume::new(move |exchange: &mut Exchange, ()| {
                let response = match outcome {
                    Ok(response) => response,
                    Err(refusal) => {
                        exchange.log(Level::Warn, "OData", &refusal.message);
                        Response::refused(&refusal)
                    }
                };
                Ok(respond(exchange, &response))
            })
        })))
    }

    fn needs(&self) -> Needs {
        Needs::Whole
    }
}

fn respond(exchange: &mut Exchange, response: &Response) -> Flow {
    let message = &mut exchange.message;
    message.headers = Headers::new();
    message.headers.set("OData-Version", "4.0");
    for (name, value) in &response.headers {
        message.headers.set(name, value);
    }
    message.axis2 = Default::default();
    message.body = Body::bytes(response.body.clone());
    message.status = response.status;
    message.is_reply = true;
    Flow::Respond
}
