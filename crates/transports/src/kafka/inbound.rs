//! The consumer of topics.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use krafka::consumer::{Consumer as KafkaConsumer, ConsumerRecord, OffsetAndMetadata, TopicPartition};
use penstock_compile::{Compiler, Feed, InboundEndpoint, InboundKind, Parameters};
use penstock_engine::background::{Control, RunService, ServiceError};
use penstock_engine::inject::{Consumer, InjectTarget, Outcome};
use penstock_engine::ports::{Level, LocalFuture};
use penstock_message::{Body, Headers, Message, Method, Value};

use super::client::Settings;
use crate::broker::body::is_field;
use crate::broker::lookup::Lookup;

/// The class of inbound endpoints.
pub const KIND: InboundKind = InboundKind {
    protocols: &[],
    classes: &["org.wso2.carbon.inbound.kafka.KafkaMessageConsumer"],
    ignored: &[
        "interval",
        "auto.commit.interval.ms",
        "request.timeout.ms",
        "poll.timeout",
        "class",
        "inbound.behavior",
    ],
    build,
};

/// Parameters that are read, beside `ssl.` and `sasl.`.
const NAMES: [&str; 16] = [
    "bootstrap.servers",
    "key.deserializer",
    "value.deserializer",
    "group.id",
    "topic.name",
    "contentType",
    "enable.auto.commit",
    "auto.offset.reset",
    "session.timeout.ms",
    "max.poll.records",
    "max.poll.interval.ms",
    "security.protocol",
    "failure.retry.count",
    "failure.retry.interval",
    "kafka.header.prefix",
    "sasl.mechanism",
];

/// Parameters whose meaning would be lost.
const REFUSED: [&str; 4] = ["topic.pattern", "topic.partitions", "kafka.dlq.topic", "schema.registry.url"];

/// Between two polls the service looks whether it must stop.
const POLL: Duration = Duration::from_secs(1);

/// Before a record that failed is tried again.
const RETRY_INTERVAL_MS: u64 = 1000;

struct Topics {
    consumer: Consumer,
    settings: Settings,
    retries: Arc<Retries>,
}

/// What happens to records, and when they are tried again.
struct Retries {
    content_type: String,
    header_prefix: String,
    /// Commit whatever the flow set.
    auto_commit: bool,
    /// `None`: until it succeeds.
    count_max: Option<u32>,
    interval: Duration,
}

fn build(endpoint: &InboundEndpoint<'_>, parameters: &Parameters, cx: &mut Compiler<'_>) -> Option<Feed> {
    let (consumer, el) = (endpoint.consumer(cx)?, &endpoint.el);
    for name in REFUSED.iter().filter(|name| parameters.get(name).is_some()) {
        cx.error(parameters.place(name, el), format!("the parameter `{name}` is not supported"));
    }
    if parameters.flag("batch.processing.enabled", false) {
        cx.error(parameters.place("batch.processing.enabled", el), "batches of Kafka records are not supported");
    }
    let known = |name: &str| NAMES.contains(&name) || name.starts_with("ssl.") || name.starts_with("sasl.");
    let lookup = Lookup::new(&parameters.matching(known));
    let parsed = Settings::parse(&lookup).and_then(|settings| Ok((settings, Retries::parse(&lookup)?)));
    match parsed {
        Ok((settings, retries)) => {
            Some(Feed::Service(Arc::new(Topics { consumer, settings, retries: Arc::new(retries) })))
        }
        Err(reason) => {
            let named = NAMES.iter().find(|name| reason.contains(&format!("`{name}`")));
            cx.error(named.map_or_else(|| el.place(), |name| parameters.place(name, el)), reason);
            None
        }
    }
}

impl Retries {
    fn parse(lookup: &Lookup) -> Result<Retries, String> {
        let count: i64 = lookup.number("failure.retry.count")?.unwrap_or(-1);
        let interval = lookup.number("failure.retry.interval")?.unwrap_or(RETRY_INTERVAL_MS);
        Ok(Retries {
            content_type: lookup.get("contentType").ok_or("there is no `contentType`")?.to_owned(),
            header_prefix: lookup.get("kafka.header.prefix").unwrap_or_default().to_owned(),
            auto_commit: lookup.flag("enable.auto.commit", true),
            count_max: u32::try_from(count).ok(),
            interval: Duration::from_millis(interval),
        })
    }
}

impl RunService for Topics {
    fn run(&self, control: Control) -> LocalFuture<'static, Result<(), ServiceError>> {
        let (consumer, settings, retries) = (self.consumer.clone(), self.settings.clone(), self.retries.clone());
        Box::pin(async move {
            let mut session = Session { consumer, retries, control, failures: HashMap::new() };
            session.run(&settings).await.map_err(|reason| {
                ServiceError::temporary(format!("no connection to Kafka at {}: {reason}", settings.servers))
            })
        })
    }
}

/// A partition of a topic.
type Partition = (Arc<str>, i32);

struct Session {
    consumer: Consumer,
    retries: Arc<Retries>,
    control: Control,
    /// The record of each partition that failed, and how often.
    failures: HashMap<Partition, (i64, u32)>,
}

/// What happens after the flow of a record.
enum Verdict {
    Commit,
    Retry,
}

impl Session {
    async fn run(&mut self, settings: &Settings) -> Result<(), String> {
        let mut control = self.control.clone();
        while control.next().await {
            let kafka = settings.connect().await?;
            control.working();
            control.log(Level::Info, &format!("consuming topics of Kafka at {}", settings.servers));
            let outcome = self.consume(&kafka).await;
            // What was not committed is consumed again.
            let _ = kafka.close().await;
            outcome?;
        }
        Ok(())
    }

    /// Consumes until the service must pause or stop.
    async fn consume(&mut self, kafka: &KafkaConsumer) -> Result<(), String> {
        loop {
            let Some(polled) = self.control.until(kafka.poll(POLL)).await else { return Ok(()) };
            let records = polled.map_err(|error| error.to_string())?;
            let mut held: HashSet<Partition> = HashSet::new();
            for record in records {
                let partition: Partition = (record.topic.clone(), record.partition);
                // What follows a record that failed waits for it.
                if held.contains(&partition) {
                    continue;
                }
                if !self.control.is_wanted() {
                    return Ok(());
                }
                let offset = record.offset;
                match self.process(record).await {
                    Verdict::Commit => {
                        let next = OffsetAndMetadata::new(offset + 1);
                        let at = TopicPartition::new(&*partition.0, partition.1);
                        kafka.commit_offsets([(at, next)]).await.map_err(|error| error.to_string())?;
                    }
                    Verdict::Retry => {
                        kafka.seek(&partition.0, partition.1, offset).await.map_err(|error| error.to_string())?;
                        self.control.until(tokio::time::sleep(self.retries.interval)).await;
                        held.insert(partition);
                    }
                }
            }
        }
    }

    /// Runs the flow of a record.
    async fn process(&mut self, record: ConsumerRecord) -> Verdict {
        let partition: Partition = (record.topic.clone(), record.partition);
        let place = format!("the record {} of partition {} of `{}`", record.offset, record.partition, record.topic);
        let offset = record.offset;
        let message = self.message(&record);
        let injected = self.consumer.consume(&self.control, message).await;
        let why = match &injected.outcome {
            Outcome::Done => {
                self.failures.remove(&partition);
                return Verdict::Commit;
            }
            Outcome::RolledBack => "its flow rolled back".to_owned(),
            Outcome::Failed(fault) => format!("its flow failed: {}", fault.message),
        };
        if self.retries.auto_commit {
            self.control.log(Level::Error, &format!("{place} is committed all the same; {why}"));
            return Verdict::Commit;
        }
        let before =
            self.failures.get(&partition).filter(|(failed, _)| *failed == offset).map_or(0, |(_, count)| *count);
        if self.retries.count_max.is_none_or(|most| before < most) {
            self.failures.insert(partition, (offset, before.saturating_add(1)));
            self.control.log(Level::Warn, &format!("{place} is tried again; {why}"));
            return Verdict::Retry;
        }
        self.failures.remove(&partition);
        self.control.log(Level::Error, &format!("{place} is committed after {} attempts; {why}", before + 1));
        if let Some(on_error) = &self.consumer.source.on_error {
            let target = InjectTarget::Sequence(on_error.clone());
            let handler = Consumer { target, source: self.consumer.source.clone() };
            handler.consume(&self.control, self.message(&record)).await;
        }
        Verdict::Commit
    }

    fn message(&self, record: &ConsumerRecord) -> Message {
        let mut headers = Headers::new();
        for (name, value) in &record.headers {
            let name = format!("{}{name}", self.retries.header_prefix);
            let value = value.as_ref().map(|value| String::from_utf8_lossy(value)).unwrap_or_default();
            if is_field(&name, &value) {
                headers.append(name.as_str(), &*value);
            }
        }
        headers.set("Content-Type", &self.retries.content_type);
        let value = record.value.clone().unwrap_or_default();
        let text = |bytes: &bytes::Bytes| Value::string(String::from_utf8_lossy(bytes).into_owned());
        let mut message =
            Message { headers, body: Body::bytes(value.clone()), method: Method::Post, ..Message::default() };
        let properties = &mut message.properties;
        properties.set("topic", Value::string(&*record.topic));
        properties.set("partitionNo", Value::Integer(i64::from(record.partition)));
        properties.set("messageValue", text(&value));
        properties.set("offset", Value::Integer(record.offset));
        properties.set("timestamp", Value::Integer(record.timestamp));
        properties.set("timestampType", Value::string(format!("{:?}", record.timestamp_type)));
        if let Some(key) = &record.key {
            properties.set("key", text(key));
        }
        message
    }
}
