//! Publishing: `POST …/webhooks_events_receiver_resource?topic=…`.

use std::sync::Arc;

use bytes::Bytes;
use penstock_catalog::{WebSub, topic_name};
use penstock_engine::{Exchange, Fault, Flow, Mediator, Resume};
use penstock_message::Form;

use super::subscribe::answer;
use super::{Hub, event, sign};
use crate::error::{GatewayError, codes};
use crate::policy::limits::{Counters, Plans, admits_event};
use crate::text::percent_decoded;

/// Takes events.
pub(super) struct Publish {
    pub hub: Arc<Hub>,
    pub counters: Arc<Counters>,
    pub plans: Arc<Plans>,
    pub api: Arc<str>,
    /// `base_path:version`, as limits call the API.
    pub api_key: Box<str>,
    pub websub: Arc<WebSub>,
}

impl Mediator for Publish {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let topic = self.topic(exchange)?;
        if exchange.message.body.is_stream() {
            return Ok(Flow::Buffer);
        }
        let body = match exchange.message.body.take() {
            Form::Bytes(bytes) => bytes,
            _ => Bytes::new(),
        };
        let headers = &exchange.message.headers;
        if let Some(secret) = &self.websub.secret {
            let sent = headers.get(&self.websub.signature_header).unwrap_or_default();
            if !sign::is_signed(self.websub.algorithm, &secret.0, &body, sent) {
                let text = "The signature of the event is missing, or not that of its publisher";
                return Err(GatewayError::described(codes::INVALID_CREDENTIALS, text).into());
            }
        }
        // It is rejected: the event would loop for ever.
        let mark = self.hub.mark(&self.api, &topic);
        let Some(fields) = event::fields(|name| headers.get(name), &mark) else { return Ok(answer(exchange, 410)) };
        let bytes = body.len() as u64;
        let admits = |who: &_| admits_event(&self.counters, &self.plans, &self.api_key, who, bytes);
        let Some(kept) = self.hub.publish((&self.api, &topic), fields, body, admits) else {
            return Ok(answer(exchange, 503));
        };
        // An acknowledged event survives a restart.
        Ok(Flow::Wait(Box::pin(async move {
            let status = if kept.await.unwrap_or(false) { 202 } else { 500 };
            Resume::new(move |exchange, ()| Ok(answer(exchange, status)))
        })))
    }
}

impl Publish {
    /// The topic an event is of.
    fn topic(&self, exchange: &Exchange) -> Result<Arc<str>, Fault> {
        let pairs = exchange.client.line.query().unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
        let named =
            { pairs }.find(|(name, _)| *name == "topic").map(|(_, value)| topic_name(&percent_decoded(value, true)));
        let Some(name) = named.filter(|name| !name.is_empty()) else {
            return Err(GatewayError::described(codes::SCHEMA_REQUEST, "The parameter topic is missing").into());
        };
        let found = self.websub.topics.iter().find(|topic| *topic.name == *name).map(|topic| topic.name.clone());
        found.ok_or_else(|| GatewayError::new(codes::NO_MATCHING_RESOURCE).because("there is no such topic").into())
    }
}
