//! The smallest proxy that can be built from this crate: `passthrough LISTEN http://BACKEND`.
//!
//! It measures what the transport alone costs; `tools/bench-http` runs it beside nginx.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use penstock_engine::ports::{LocalFuture, Outbound, Outgoing, Request, SendOptions, Service};
use penstock_message::{Body, Message};
use penstock_transports::http::{HttpListener, HttpSender, ListenerConfig, PerCore, SenderConfig, shutdown};

struct Forward {
    backend: Arc<str>,
    sender: HttpSender,
}

impl Service for Forward {
    fn answer<'a>(&'a self, request: Request) -> LocalFuture<'a, Message> {
        Box::pin(async move {
            let mut message = request.message;
            message.headers.retain(|name, _| !name.eq_ignore_ascii_case(b"Host"));
            let options = SendOptions::within(Duration::from_secs(30));
            let line = &request.client.line;
            let url = [&self.backend, line.target()].concat().into();
            match self.sender.send(Outgoing { url, method: line.method.clone(), message, options }).await {
                Ok(reply) => reply,
                Err(fault) => Message { status: 502, body: Body::bytes(format!("{fault}\n")), ..Message::default() },
            }
        })
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(address), Some(backend)) = (arguments.next(), arguments.next()) else {
        return Err("usage: passthrough LISTEN http://BACKEND".into());
    };
    let address: SocketAddr = address.parse()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build_local(Default::default())?;
    runtime.block_on(async move {
        let listener = HttpListener::bind(address, ListenerConfig::default())?;
        let core = PerCore::start();
        let sender = HttpSender::new(&core, SenderConfig::default());
        let (_trigger, shutdown) = shutdown();
        listener.serve(core, Rc::new(Forward { backend: backend.into(), sender }), None, shutdown).await?;
        Ok(())
    })
}
