//! The senders of a core: HTTP, files, and the transports whose connections all cores share.

use std::rc::Rc;
#[cfg(any(feature = "jms", feature = "mail", feature = "mqtt", feature = "rabbitmq"))]
use std::sync::Arc;

use penstock_engine::ports::{ConnectionFactory, Outbound, Senders};

use crate::file::FileSender;
#[cfg(feature = "jms")]
use crate::jms::{self, Jms, JmsSender};
#[cfg(feature = "mail")]
use crate::mail::{Mail, MailSender};
#[cfg(feature = "mqtt")]
use crate::mqtt::{self, Mqtt, MqttSender};
#[cfg(feature = "rabbitmq")]
use crate::rabbitmq::{self, RabbitMq, RabbitMqSender};

/// The connections that all cores share. One for the whole process.
pub struct SharedClients {
    #[cfg(feature = "jms")]
    jms: Arc<Jms>,
    #[cfg(feature = "mail")]
    mail: Arc<Mail>,
    #[cfg(feature = "mqtt")]
    mqtt: Arc<Mqtt>,
    #[cfg(feature = "rabbitmq")]
    rabbitmq: Arc<RabbitMq>,
}

impl SharedClients {
    /// Nothing is connected before it is used. `factories`: the connection factories of the configuration.
    pub fn new(factories: &[ConnectionFactory]) -> SharedClients {
        // A lean build has no transport that uses them.
        let _ = factories;
        SharedClients {
            #[cfg(feature = "jms")]
            jms: Arc::new(Jms::new(factories.to_vec())),
            #[cfg(feature = "mail")]
            mail: Arc::new(Mail::new(factories)),
            #[cfg(feature = "mqtt")]
            mqtt: Arc::new(Mqtt::new(factories.to_vec())),
            #[cfg(feature = "rabbitmq")]
            rabbitmq: Arc::new(RabbitMq::new(factories.to_vec())),
        }
    }

    /// The senders of a core, found by the scheme of the URL.
    pub fn senders(&self, http: Rc<dyn Outbound>) -> Rc<dyn Outbound> {
        let senders = Senders::new(http).with("vfs", Rc::new(FileSender));
        #[cfg(feature = "jms")]
        let senders = senders.with(jms::SCHEME, JmsSender::new(self.jms.clone()));
        #[cfg(feature = "mail")]
        let senders = self
            .mail
            .schemes()
            .fold(senders, |senders, scheme| senders.with(scheme, MailSender::new(self.mail.clone())));
        #[cfg(feature = "mqtt")]
        let senders = senders.with(mqtt::SCHEME, MqttSender::new(self.mqtt.clone()));
        #[cfg(feature = "rabbitmq")]
        let senders = senders.with(rabbitmq::SCHEME, RabbitMqSender::new(self.rabbitmq.clone()));
        Rc::new(senders)
    }
}
