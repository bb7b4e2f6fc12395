//! What secures the messages of a proxy service: a gate that checks and decrypts requests, a seal for responses.

mod refusal;

use std::cell::RefCell;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::SystemTime;

use penstock_compile::{Compiler, Secured};
use penstock_engine::ports::Environment;
use penstock_engine::{Exchange, Fault, Flow, Mediator, Needs, Place, Realm, Resource, Resume, off_core};
use penstock_message::{Envelope, Form, SoapVersion};
use penstock_wssecurity::{Keys, Policy, Received, Refusal, RefusalCode, Request, SecurityContext, Service};
use penstock_xml::{DoctypePolicy, Document, ParseOptions};

use penstock_engine::payload;

/// Compiles a security policy. What cannot be enforced is reported, all at once.
pub fn compile(resource: &Arc<Resource>, at: &Place, cx: &mut Compiler<'_>) -> Option<Secured> {
    let options = ParseOptions { doctype: DoctypePolicy::Refuse, ..ParseOptions::default() };
    let place = |line: u32, column: u32| Place { file: resource.at.file.clone(), line, column };
    let document = match Document::parse(resource.bytes.clone(), &options) {
        Ok(document) => document,
        Err(error) => {
            cx.unprotected(at.clone(), format!("the security policy is not well-formed XML: {}", error.message));
            return None;
        }
    };
    let policy = match Policy::parse(&document) {
        Ok(policy) => policy,
        Err(problems) => {
            for problem in problems {
                // A local entry that is part of a larger file knows only where it begins.
                let offset = resource.at.line.saturating_sub(1);
                let position = place(problem.position.line + offset, problem.position.column);
                cx.unprotected(position, problem.message);
            }
            return None;
        }
    };
    let keys = match (policy.needs_keys(), &cx.options.message_keys) {
        (false, _) => None,
        (true, None) => {
            let message = "the security policy needs a private key: configure `security.keystore` or `tls.keystore`";
            cx.unprotected(at.clone(), message);
            return None;
        }
        (true, Some(Err(why))) => {
            let message = format!("the keystore for the security policy cannot be used: {why}");
            cx.unprotected(at.clone(), message);
            return None;
        }
        (true, Some(Ok(keys))) => match Keys::from_der(&keys.certificate, &keys.key, &keys.trusted) {
            Ok(keys) => Some(keys),
            Err(error) => {
                let message = format!("the keystore for the security policy cannot be used: {error}");
                cx.unprotected(at.clone(), message);
                return None;
            }
        },
    };
    let (needs_tls, secures_responses) = (policy.needs_tls(), policy.secures_responses());
    let service = Arc::new(Service::new(policy, keys));
    let seal = secures_responses.then(|| Box::new(Seal(service.clone())) as Box<dyn Mediator>);
    Some(Secured { gate: Box::new(Gate(service)), seal, needs_tls })
}

/// Lets requests in that fulfil the policy.
struct Gate(Arc<Service>);

impl Mediator for Gate {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let attempt = Attempt {
            service: self.0.clone(),
            envelope: exchange.xml()?,
            environment: exchange.core().environment.clone(),
            address: exchange.client.address,
            over_tls: exchange.client.line.secure,
        };
        let soap = attempt.envelope.soap;
        if !self.0.has_keys() {
            return let_in(exchange, soap, attempt.check());
        }
        // An operation with a private key takes some milliseconds, and no library pauses in it.
        let checked = off_core(exchange.program().limits.memory_bytes_max, move || attempt.check());
        Ok(Flow::Wait(Box::pin(async move {
            let checked = checked.await;
            Resume::new(move |exchange: &mut Exchange, ()| let_in(exchange, soap, checked?))
        })))
    }

    fn needs(&self) -> Needs {
        Needs::Whole
    }
}

/// A request, and what it is checked with.
struct Attempt {
    service: Arc<Service>,
    envelope: Arc<Envelope>,
    environment: Arc<Environment>,
    address: IpAddr,
    over_tls: bool,
}

impl Attempt {
    fn check(self) -> Result<Received, Refusal> {
        let users = &self.environment.users;
        let attempted = RefCell::new(None);
        // In a back-off no password is known, so the answer is that to a wrong one.
        let password = |name: &str| match users.logins.back_off(Realm::Users, name, self.address) {
            Some(_) => None,
            None => {
                attempted.replace(Some(name.to_owned()));
                users.password(name)
            }
        };
        let received = self.service.receive(Request {
            document: &self.envelope.document,
            now: SystemTime::now(),
            over_tls: self.over_tls,
            passwords: &password,
        });
        if let Some(name) = attempted.take() {
            let failed = received.as_ref().is_err_and(|refusal| refusal.code == RefusalCode::FailedAuthentication);
            users.logins.record(Realm::Users, &name, self.address, !failed);
        }
        received
    }
}

fn let_in(exchange: &mut Exchange, soap: SoapVersion, received: Result<Received, Refusal>) -> Result<Flow, Fault> {
    let received = match received {
        Ok(received) => received,
        Err(refusal) => return Ok(refusal::respond(exchange, soap, &refusal)),
    };
    if let Some(envelope) = received.document.and_then(|document| Envelope::find(Arc::new(document))) {
        exchange.message.body.set(Form::Xml(Arc::new(envelope)));
    }
    exchange.extension = Some(Rc::new(Arc::new(received.context)));
    Ok(Flow::Next)
}

/// Secures responses. The fault of a request that the gate refused has no context and leaves as it is.
struct Seal(Arc<Service>);

impl Mediator for Seal {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let Some(context) = exchange.extension::<Arc<SecurityContext>>() else { return Ok(Flow::Next) };
        if exchange.message.body.is_empty() {
            return Ok(Flow::Next);
        }
        let envelope = exchange.xml()?;
        let soap = envelope.soap;
        let (service, context) = (self.0.clone(), Arc::clone(&context));
        let secure = move || service.send(&envelope.document, &context, SystemTime::now());
        if !self.0.has_keys() {
            return replace_by_secured(exchange, soap, secure());
        }
        let secured = off_core(exchange.program().limits.memory_bytes_max, secure);
        Ok(Flow::Wait(Box::pin(async move {
            let secured = secured.await;
            Resume::new(move |exchange: &mut Exchange, ()| replace_by_secured(exchange, soap, secured?))
        })))
    }
}

fn replace_by_secured(
    exchange: &mut Exchange,
    soap: SoapVersion,
    secured: Result<Document, Refusal>,
) -> Result<Flow, Fault> {
    let secured = secured.map_err(|refusal| Fault::new(format!("the response cannot be secured: {refusal}")))?;
    if soap == SoapVersion::None {
        payload::set_media_type(exchange, "text/xml");
    }
    if let Some(envelope) = Envelope::find(Arc::new(secured)) {
        exchange.message.body.set(Form::Xml(Arc::new(envelope)));
    }
    Ok(Flow::Next)
}
