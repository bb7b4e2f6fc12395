//! What makes two requests the same: method, address, caller and the fields that the backend would see.

use std::sync::Arc;

use penstock_engine::Exchange;
use penstock_engine::kept::Key;
use ring::digest::{Context, Digest, SHA256};

use crate::{CallContext, GatewayConfig, Site, client_request};

/// Fields that differ from request to request and say nothing about the answer.
const LEFT_OUT: [&str; 16] = [
    "user-agent",
    "host",
    "date",
    "via",
    "connection",
    "keep-alive",
    "te",
    "content-length",
    "cache-control",
    "pragma",
    "x-request-id",
    "x-correlation-id",
    "activityid",
    "traceparent",
    "tracestate",
    "x-forwarded-for",
];

/// Whether keys do not hold a field.
pub(super) fn is_left_out(name: &[u8]) -> bool {
    LEFT_OUT.iter().any(|field| field.as_bytes().eq_ignore_ascii_case(name))
}

/// How keys of one operation are made.
pub(super) struct KeyRule {
    site: Arc<Site>,
    /// What is the same for all its requests: the API, and where its backends are. So an API that is deployed with
    /// other backends does not answer for the old ones.
    of_site: Digest,
    /// The field of the token made for backends. It is new from time to time, and the caller's is in the key.
    backend_jwt: Option<Arc<str>>,
}

impl KeyRule {
    pub(super) fn new(site: &Arc<Site>, config: &GatewayConfig) -> KeyRule {
        let api = &site.api;
        let (name, hosts) = ((&api.organization, &api.name, &api.version, &site.base_path), &api.vhosts);
        let addresses = |endpoints: &penstock_catalog::Endpoints| {
            let named = endpoints.named.iter().map(|(_, cluster)| cluster);
            let all = endpoints.production.iter().chain(&endpoints.sandbox).chain(named);
            all.flat_map(|cluster| cluster.urls.clone()).collect::<Vec<_>>()
        };
        let own = site.operation.endpoints.as_ref().map(addresses);
        let text = format!("{name:?} {hosts:?} {:?} {own:?}", addresses(&api.endpoints));
        let of_site = ring::digest::digest(&SHA256, text.as_bytes());
        let backend_jwt = config.security.backend_jwt.as_ref().map(|settings| (&*settings.header).into());
        KeyRule { site: site.clone(), of_site, backend_jwt }
    }

    pub(super) fn key(&self, exchange: &Exchange, context: &CallContext) -> Key {
        let mut digest = Context::new(&SHA256);
        // With lengths, so that no two lists of texts look the same.
        let mut add = |bytes: &[u8]| {
            digest.update(&(bytes.len() as u64).to_le_bytes());
            digest.update(bytes);
        };
        add(self.of_site.as_ref());
        let message = &exchange.message;
        add(message.method.as_str().as_bytes());
        add(client_request::target_now(exchange, &self.site).as_bytes());
        add(context.upstream.chosen().as_deref().unwrap_or_default().as_bytes());
        // Where a policy sends it, when that is for a policy to say.
        add(message.addressing.as_ref().and_then(|addressing| addressing.to.as_deref()).unwrap_or_default().as_bytes());
        {
            let caller = context.caller.borrow();
            add(&[u8::from(caller.sandbox)]);
            add(caller.token.as_bytes());
            add(caller.subject.as_bytes());
            add(caller.consumer_key.as_bytes());
        }
        let is_token =
            |name: &[u8]| self.backend_jwt.as_ref().is_some_and(|field| field.as_bytes().eq_ignore_ascii_case(name));
        let mut fields: Vec<(Vec<u8>, &[u8])> = message
            .headers
            .iter()
            .filter(|(name, _)| !is_left_out(name) && !is_token(name))
            .map(|(name, value)| (name.to_ascii_lowercase(), value))
            .collect();
        // Fields of one name keep their order, which means something.
        fields.sort_by(|left, right| left.0.cmp(&right.0));
        for (name, value) in fields {
            add(&name);
            add(value);
        }
        let mut key = [0; 32];
        key.copy_from_slice(digest.finish().as_ref());
        Key(key)
    }
}
