//! Kafka: inbound endpoints of the class `org.wso2.carbon.inbound.kafka.KafkaMessageConsumer`. Parameters have the names of
//! Micro Integrator and of Kafka's Java client.
//!
//! An offset is committed when the flow of its record has ended.
//!
//! Start reading at `inbound.rs`.

mod client;
pub mod inbound;

use penstock_compile::TransportKind;

/// The transport.
pub const TRANSPORT: TransportKind = TransportKind { inbound: &[inbound::KIND], ..TransportKind::new("kafka") };
