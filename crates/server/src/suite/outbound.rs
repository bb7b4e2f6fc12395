//! Where the requests of a suite go: to its mock services, to the services of the suite itself, or out.

use std::cell::{OnceCell, RefCell};
use std::net::SocketAddr;
use std::rc::{Rc, Weak};

use penstock_engine::ports::{Client, LocalFuture, Outbound, Outgoing, Request, Service};
use penstock_engine::{Fault, Side, codes};
use penstock_message::{Form, Message, RequestLine};
use penstock_transports::http::{HttpSender, PerCore, SenderConfig};

use super::mock::{self, Mock, MockRequest};

/// Ports that artifacts of Micro Integrator call themselves on.
const OWN_PORTS: [u16; 4] = [8280, 8243, 8290, 8253];

/// The sender of a suite.
pub struct SuiteOutbound {
    mocks: Rc<Vec<Mock>>,
    /// The services of the suite; they hold this sender.
    own: RefCell<Option<Weak<dyn Service>>>,
    /// Made when something goes out, which is seldom.
    sender: OnceCell<HttpSender>,
}

impl SuiteOutbound {
    /// A sender that knows these mock services.
    pub fn new(mocks: Rc<Vec<Mock>>) -> SuiteOutbound {
        SuiteOutbound { mocks, own: RefCell::default(), sender: OnceCell::new() }
    }

    /// Whom requests to this server itself go to.
    pub fn serve_own(&self, service: &Rc<dyn Service>) {
        *self.own.borrow_mut() = Some(Rc::downgrade(service));
    }
}

/// An absolute URL of this machine, as port and target; `None` for any other.
fn local(url: &str) -> Option<(u16, bool, &str)> {
    let (scheme, rest) = url.split_once("://")?;
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, target) = rest.split_at(end);
    let secure = scheme.eq_ignore_ascii_case("https");
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) => (host, port.parse().ok()?),
        None => (authority, if secure { 443 } else { 80 }),
    };
    matches!(host, "localhost" | "127.0.0.1" | "[::1]").then_some((port, secure, target))
}

impl Outbound for SuiteOutbound {
    fn send<'a>(&'a self, outgoing: Outgoing) -> LocalFuture<'a, Result<Message, Fault>> {
        let url = outgoing.url.clone();
        if let Some((port, secure, target)) = local(&url) {
            if self.mocks.iter().any(|mock| mock.port == port) {
                let reply = self.mocked(port, target, &outgoing);
                return Box::pin(std::future::ready(reply));
            }
            let own = self.own.borrow().as_ref().and_then(Weak::upgrade);
            if let (true, Some(service)) = (OWN_PORTS.contains(&port), own) {
                let request = looped(target, secure, port, outgoing);
                return Box::pin(async move { Ok(service.answer(request).await) });
            }
        }
        self.sender.get_or_init(|| HttpSender::new(&PerCore::start(), SenderConfig::default())).send(outgoing)
    }
}

impl SuiteOutbound {
    fn mocked(&self, port: u16, target: &str, outgoing: &Outgoing) -> Result<Message, Fault> {
        let body = match outgoing.message.body.form() {
            Form::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            _ => String::new(),
        };
        let method = outgoing.method.as_str();
        let request = MockRequest { method, target, headers: &outgoing.message.headers, body: &body };
        mock::answer(&self.mocks, port, &request).ok_or_else(|| {
            let text = format!(
                "no mock service on port {port} answers `{method} {target}` with this payload and these headers"
            );
            Fault::coded(codes::CONNECTION_FAILED, Side::Backend, text)
        })
    }
}

/// A request of the suite to itself.
fn looped(target: &str, secure: bool, port: u16, outgoing: Outgoing) -> Request {
    let target = if target.starts_with('/') { target.to_owned() } else { format!("/{target}") };
    let line = RequestLine { method: outgoing.method.clone(), target: target.into(), secure };
    let mut message = outgoing.message;
    message.method = outgoing.method;
    Request { client: Rc::new(client(line, port)), message }
}

/// The client of every request of a suite.
pub fn client(line: RequestLine, port: u16) -> Client {
    let (peer, local) = (SocketAddr::from(([127, 0, 0, 1], 50_000)), ([127, 0, 0, 1], port).into());
    Client { line, address: peer.ip(), peer, local, protocol: "HTTP/1.1", certificate: None }
}
