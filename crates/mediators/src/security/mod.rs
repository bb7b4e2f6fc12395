//! What secures the messages of a proxy service: a gate that checks and decrypts requests, a seal for responses.

mod refusal;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::SystemTime;

use penstock_compile::{Compiler, Secured};
use penstock_engine::{Exchange, Fault, Flow, Mediator, Needs, Place, Realm, Resource};
use penstock_message::{Envelope, Form, SoapVersion};
use penstock_wssecurity::{Keys, Policy, RefusalCode, Request, SecurityContext, Service};
use penstock_xml::{DoctypePolicy, Document, ParseOptions};

use crate::payload;

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
        let envelope = exchange.xml()?;
        let environment = exchange.core().environment.clone();
        let (users, address) = (&environment.users, exchange.client.address);
        let attempted = RefCell::new(None);
        // In a back-off no password is known, so the answer is that to a wrong one.
        let password = |name: &str| match users.logins.back_off(Realm::Users, name, address) {
            Some(_) => None,
            None => {
                attempted.replace(Some(name.to_owned()));
                users.password(name)
            }
        };
        let received = self.0.receive(Request {
            document: &envelope.document,
            now: SystemTime::now(),
            over_tls: exchange.client.line.secure,
            passwords: &password,
        });
        if let Some(name) = attempted.take() {
            let failed = received.as_ref().is_err_and(|refusal| refusal.code == RefusalCode::FailedAuthentication);
            users.logins.record(Realm::Users, &name, address, !failed);
        }
        let received = match received {
            Ok(received) => received,
            Err(refusal) => return Ok(refusal::respond(exchange, envelope.soap, &refusal)),
        };
        if let Some(envelope) = received.document.and_then(|document| Envelope::of(Arc::new(document))) {
            exchange.message.body.set(Form::Xml(Arc::new(envelope)));
        }
        exchange.extension = Some(Rc::new(received.context));
        Ok(Flow::Next)
    }

    fn needs(&self) -> Needs {
        Needs::Whole
    }
}

/// Secures responses. The fault of a request that the gate refused has no context and leaves as it is.
struct Seal(Arc<Service>);

impl Mediator for Seal {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let Some(context) = exchange.extension::<SecurityContext>() else { return Ok(Flow::Next) };
        if exchange.message.body.is_empty() {
            return Ok(Flow::Next);
        }
        let envelope = exchange.xml()?;
        let secured = self.0.send(&envelope.document, &context, SystemTime::now());
        let secured = secured.map_err(|refusal| Fault::new(format!("the response cannot be secured: {refusal}")))?;
        if envelope.soap == SoapVersion::None {
            payload::set_media_type(exchange, "text/xml");
        }
        if let Some(envelope) = Envelope::of(Arc::new(secured)) {
            exchange.message.body.set(Form::Xml(Arc::new(envelope)));
        }
        Ok(Flow::Next)
    }
}
