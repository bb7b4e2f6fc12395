//! A client's connection after the handshake: the 101 response and the frames.

use std::future::poll_fn;
use std::task::Poll;

use penstock_engine::websocket::{SWITCHING_PROTOCOLS, Switched};
use penstock_message::Headers;

use super::OnDrop;
use super::connection::Connection;
use crate::http::http1::{SharedWire, is_ours, push_fields};
use crate::http::websocket::{Carried, Tunnel, TunnelTimes};

impl Connection {
    /// Answers with 101 and carries frames until either side is through.
    pub(super) async fn switch(&self, headers: &Headers, switched: Switched) -> Carried {
        let core = &self.shared.core;
        let failed = Carried { bytes_to_client: 0, complete: false };
        let Switched { connection, gate, held } = switched;
        // One process has one transport that switches.
        let Ok(backend) = connection.downcast::<SharedWire>() else { return failed };
        core.counters.replied(SWITCHING_PROTOCOLS);
        core.counters.websockets.add(1);
        let _closed = OnDrop(|| core.counters.websockets.subtract(1));
        let mut head = core.take_scratch();
        head.extend_from_slice(b"HTTP/1.1 101 Switching Protocols\r\n");
        push_fields(&mut head, headers, |name| !is_ours(name));
        head.extend_from_slice(b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
        let sent = poll_fn(|cx| Poll::Ready(self.wire.borrow_mut().send(cx, &[&head]))).await;
        core.give_scratch(head);
        if sent.is_err() {
            return failed;
        }
        let timeouts = &self.shared.config.timeouts;
        let times = TunnelTimes { idle: timeouts.websocket_idle, linger: timeouts.linger };
        let extended = headers.contains("Sec-WebSocket-Extensions");
        let carried = Tunnel::new(core, &self.wire, *backend, extended, gate, times).carry(&self.shared.draining).await;
        drop(held);
        carried
    }
}
