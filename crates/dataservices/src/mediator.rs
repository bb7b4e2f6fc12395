//! The only mediator of a data service: it reads a request, runs it and responds.

use std::sync::Arc;

use penstock_engine::ports::Level;
use penstock_engine::{Exchange, Fault, Flow, Mediator, Needs, Resume, basic_credentials};
use penstock_message::{Body, Headers};

use crate::boxcar::{self, Step};
use crate::fault::DataServiceFault;
use crate::model::DataService;
use crate::parameter::Caller;
use crate::request;
use crate::response::{ResponseFormat, Writer};
use crate::run::{BoxFrame, Run, Work, run};
use crate::stream::{Beginning, Buffer, Generation};

/// What log lines name.
pub const LOGGER: &str = "DataService";

/// The role of every caller with valid credentials, as Micro Integrator calls it.
const EVERYONE: &str = "Internal/everyone";

/// Serves the requests of a data service.
pub struct Serve {
    /// The service.
    pub service: Arc<DataService>,
}

impl Mediator for Serve {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let service = self.service.clone();
        let request = request::read(&service, exchange)?;
        let format = request.format;
        let work = match request.action.and_then(|action| boxcar::step(&service, exchange, action)) {
            Ok(Step::Run(work)) => work,
            Ok(Step::Accepted(cookie)) => {
                let flow = respond(exchange, 202, None, Body::empty());
                if let Some(cookie) = cookie {
                    exchange.message.headers.set("Set-Cookie", &cookie);
                }
                return Ok(flow);
            }
            Err(fault) => return Ok(refuse(exchange, &service, &fault, format)),
        };
        let operation = work.last_operation().map(|operation| &service.operations[operation]);
        let is_boxed = matches!(work, Work::Boxed(_, BoxFrame::Response));
        let returns = operation
            .is_some_and(|operation| operation.returns_status || service.result_of(operation).is_some())
            || is_boxed;
        let is_buffered = operation.is_none_or(|operation| operation.is_buffered) || work.needs_transaction(&service);
        let databases = exchange.core().databases()?.clone();
        let run_of = Run { service: service.clone(), databases, caller: caller(exchange) };
        let buffer = Buffer::default();
        let writer = Writer::new(buffer.clone(), format, !is_buffered);
        let log = exchange.core().log.clone();
        let late_service = service.clone();
        let on_late_fault = Box::new(move |fault: &DataServiceFault| {
            log.write(&penstock_engine::ports::Record {
                level: Level::Error,
                logger: LOGGER,
                service: &late_service.name,
                correlation: "",
                text: &format!("the response ended early: {}", fault.text(&late_service)),
            });
        });
        let beginning = Generation::begin(buffer, Box::pin(run(run_of, work, writer)), on_late_fault);
        Ok(Flow::Wait(Box::pin(async move {
            let beginning = beginning.await;
            Resume::new(move |exchange: &mut Exchange, ()| {
                let body = match beginning {
                    Beginning::Failed(fault) => return Ok(refuse(exchange, &service, &fault, format)),
                    Beginning::Complete(bytes) if returns => Body::bytes(bytes),
                    Beginning::Complete(_) => return Ok(respond(exchange, 202, None, Body::empty())),
                    Beginning::Streaming(generation) => Body::stream(generation),
                };
                Ok(respond(exchange, 200, Some(format), body))
            })
        })))
    }

    fn needs(&self) -> Needs {
        Needs::Whole
    }
}

fn refuse(exchange: &mut Exchange, service: &DataService, fault: &DataServiceFault, format: ResponseFormat) -> Flow {
    exchange.log(Level::Error, LOGGER, &fault.text(service));
    respond(exchange, fault.status, Some(format), Body::bytes(fault.body(service, format)))
}

fn respond(exchange: &mut Exchange, status: u16, format: Option<ResponseFormat>, body: Body) -> Flow {
    let message = &mut exchange.message;
    message.headers = Headers::new();
    if let Some(format) = format {
        message.headers.set("Content-Type", format.content_type());
    }
    message.axis2 = Default::default();
    message.body = body;
    message.status = status;
    message.is_reply = true;
    Flow::Respond
}

/// Who sends a request: the user of basic authentication, when the password holds.
pub fn caller(exchange: &Exchange) -> Caller {
    let credentials = exchange.message.headers.get("Authorization").and_then(basic_credentials);
    let users = &exchange.core().environment.users;
    match credentials {
        Some((name, password)) if users.login(&name, &password, exchange.client.address).is_accepted() => {
            let mut roles: Vec<Arc<str>> = users.roles(&name).into_iter().map(Arc::from).collect();
            roles.push(EVERYONE.into());
            Caller { name: Some(name.into()), roles }
        }
        _ => Caller::default(),
    }
}
