//! Who wants events, and the question whether it was meant.

use std::sync::Arc;

use penstock_catalog::{Secret, SigningAlgorithm};

use crate::policy::limits::Subscriber;
use crate::text::percent_encode;

/// A subscription to a topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Subscription {
    /// The hub: host and base path of its API.
    pub api: Arc<str>,
    /// The topic, as [`penstock_catalog::topic_name`] makes it.
    pub topic: Arc<str>,
    /// Where events go.
    pub callback: Arc<str>,
    /// The address of the hub, as the subscriber knows it.
    pub hub: Arc<str>,
    /// What events are signed with.
    pub secret: Option<Secret>,
    /// How.
    pub algorithm: SigningAlgorithm,
    /// When it ends, in seconds since 1970; never when absent.
    pub ends: Option<u64>,
    /// Whose plans count.
    pub who: Subscriber,
}

/// API, topic, address and application.
pub(super) type Wish = [Arc<str>; 4];

impl Subscription {
    /// What a new one has in common with the one whose place it takes.
    pub(super) fn wish(&self) -> Wish {
        [&self.api, &self.topic, &self.callback, &self.who.application].map(Arc::clone)
    }

    pub(super) fn has_ended(&self, now: u64) -> bool {
        self.ends.is_some_and(|ends| ends <= now)
    }
}

/// The field that says where hub and topic are (WebSub §4, §7).
pub(super) fn link(hub: &str, topic: &str) -> String {
    let mut link = format!("<{hub}>; rel=\"hub\", <{hub}/");
    percent_encode(&mut link, topic);
    link.push_str(">; rel=\"self\"");
    link
}

/// A pending verification (WebSub §5.3).
pub(super) struct Question {
    pub subscription: Subscription,
    /// The topic as the subscriber wrote it: it is to know it again.
    pub topic: String,
    pub subscribes: bool,
    pub lease_seconds: Option<u64>,
    /// How many the plan allows.
    pub most: Option<u64>,
}

/// Why a subscription is not taken.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Full {
    /// The application has as many as its plan allows.
    Plan,
    /// All hubs together have as many as they may.
    All,
}

/// One for tests.
#[cfg(test)]
pub(super) fn example(topic: &str, callback: &str, application: &str) -> Subscription {
    let who = Subscriber { application: application.into(), ..Subscriber::default() };
    Subscription {
        api: "/hub".into(),
        topic: topic.into(),
        callback: callback.into(),
        hub: "http://h/hub".into(),
        secret: None,
        algorithm: SigningAlgorithm::Sha1,
        ends: None,
        who,
    }
}
