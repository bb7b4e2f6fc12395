//! Inbound endpoints of the protocol `file`, and proxy services with `transports="vfs"`.

use std::sync::Arc;

use penstock_compile::{Compiler, Feed, InboundEndpoint, InboundKind, ListenerKind, Parameters, ProxyListener};

use super::poll::Files;
use super::settings::{IGNORED, Settings};

/// The protocol.
pub const KIND: InboundKind =
    InboundKind { protocols: &["file"], classes: &[], ignored: IGNORED, build: build_inbound };

/// The transport of proxy services.
pub const LISTENER: ListenerKind = ListenerKind { transport: super::SCHEME, build: build_listener };

fn build_inbound(endpoint: &InboundEndpoint<'_>, parameters: &Parameters, cx: &mut Compiler<'_>) -> Option<Feed> {
    let settings = Settings::compile(parameters, &endpoint.el, false, endpoint.sequential, cx)?;
    let consumer = endpoint.consumer(cx)?;
    Some(Feed::Polled(Arc::new(Files { settings: Arc::new(settings), consumer })))
}

fn build_listener(listener: &ProxyListener<'_>, parameters: &Parameters, cx: &mut Compiler<'_>) -> Option<Feed> {
    let settings = Settings::compile(parameters, &listener.el, true, true, cx)?;
    if settings.content_type.is_none() {
        let text = "`transport.vfs.ContentType` is missing: no file is read, as in Micro Integrator";
        cx.warn(listener.el.place(), text);
        return None;
    }
    Some(Feed::Polled(Arc::new(Files { settings: Arc::new(settings), consumer: listener.consumer.clone() })))
}
