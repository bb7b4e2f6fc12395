//! `[connections.NAME]`, and `[[transport.jms.listener]]` and its like of a `deployment.toml`: connections of brokers that
//! artifacts refer to by name.

use penstock_engine::ports::ConnectionFactory;

use super::settings::Settings;
use super::value::Value;

/// Sets `NAME.parameter`. Parameters hold dots, names do not.
pub(super) fn set(settings: &mut Settings, path: &str, value: &Value) -> Result<bool, String> {
    let Some((name, parameter)) = path.split_once('.') else { return Ok(false) };
    let factory = entry(settings, name, None);
    match parameter {
        "transport" if TRANSPORTS.contains(&value.text()) => value.text().clone_into(&mut factory.transport),
        "transport" => return Err(format!("must be one of: {}", TRANSPORTS.join(", "))),
        _ => factory.parameters.push((parameter.to_owned(), value.text().to_owned())),
    }
    Ok(true)
}

/// The transports whose connections have names.
const TRANSPORTS: [&str; 4] = ["jms", "mailto", "mqtt", "rabbitmq"];

/// The tables of a `deployment.toml` that define connections, and their transports.
pub(super) fn transport_of_table(path: &str) -> Option<&'static str> {
    match path {
        "transport.jms.listener" | "transport.jms.sender" => Some("jms"),
        "transport.mail.sender" => Some("mailto"),
        "transport.mqtt.listener" | "transport.mqtt.sender" => Some("mqtt"),
        "transport.rabbitmq.listener" | "transport.rabbitmq.sender" => Some("rabbitmq"),
        _ => None,
    }
}

/// Sets a parameter of a connection of a `deployment.toml`, which has short names for some.
pub(super) fn set_of_table(settings: &mut Settings, transport: &str, name: &str, key: &str, value: &Value) {
    let key = key.strip_prefix("parameter.").unwrap_or(key);
    let known = SHORT_NAMES.iter().find(|(of, short, _)| *of == transport && *short == key);
    let parameter = known.map_or(key, |(_, _, parameter)| parameter);
    let factory = entry(settings, name, Some(transport));
    factory.parameters.push((parameter.to_owned(), value.text().to_owned()));
}

const SHORT_NAMES: [(&str, &str, &str); 34] = [
    ("jms", "initial_naming_factory", "java.naming.factory.initial"),
    ("jms", "provider_url", "java.naming.provider.url"),
    ("jms", "connection_factory_name", "transport.jms.ConnectionFactoryJNDIName"),
    ("jms", "connection_factory_type", "transport.jms.ConnectionFactoryType"),
    ("jms", "destination", "transport.jms.Destination"),
    ("jms", "username", "transport.jms.UserName"),
    ("jms", "password", "transport.jms.Password"),
    ("mailto", "hostname", "mail.smtp.host"),
    ("mailto", "port", "mail.smtp.port"),
    ("mailto", "username", "mail.smtp.user"),
    ("mailto", "password", "mail.smtp.password"),
    ("mailto", "from", "mail.smtp.from"),
    ("mailto", "enable_tls", "mail.smtp.starttls.enable"),
    ("mailto", "auth", "mail.smtp.auth"),
    ("mqtt", "hostname", "mqtt.server.host.name"),
    ("mqtt", "server_port", "mqtt.server.port"),
    ("mqtt", "client_id", "mqtt.client.id"),
    ("mqtt", "topic_name", "mqtt.topic.name"),
    ("mqtt", "subscription_username", "mqtt.subscription.username"),
    ("mqtt", "subscription_password", "mqtt.subscription.password"),
    ("rabbitmq", "hostname", "rabbitmq.server.host.name"),
    ("rabbitmq", "port", "rabbitmq.server.port"),
    ("rabbitmq", "username", "rabbitmq.server.user.name"),
    ("rabbitmq", "password", "rabbitmq.server.password"),
    ("rabbitmq", "virtual_host", "rabbitmq.server.virtual.host"),
    ("rabbitmq", "ssl_enable", "rabbitmq.connection.ssl.enabled"),
    ("rabbitmq", "keystore_file_name", "rabbitmq.connection.ssl.keystore.location"),
    ("rabbitmq", "keystore_location", "rabbitmq.connection.ssl.keystore.location"),
    ("rabbitmq", "keystore_password", "rabbitmq.connection.ssl.keystore.password"),
    ("rabbitmq", "keystore_type", "rabbitmq.connection.ssl.keystore.type"),
    ("rabbitmq", "truststore_file_name", "rabbitmq.connection.ssl.truststore.location"),
    ("rabbitmq", "truststore_location", "rabbitmq.connection.ssl.truststore.location"),
    ("rabbitmq", "truststore_password", "rabbitmq.connection.ssl.truststore.password"),
    ("rabbitmq", "truststore_type", "rabbitmq.connection.ssl.truststore.type"),
];

/// The connection of a name. A listener and a sender of one name share it, as artifacts name no direction.
fn entry<'s>(settings: &'s mut Settings, name: &str, transport: Option<&str>) -> &'s mut ConnectionFactory {
    let factories = &mut settings.connection_factories;
    let is_it =
        |factory: &ConnectionFactory| factory.name == name && transport.is_none_or(|known| known == factory.transport);
    let index = factories.iter().position(is_it).unwrap_or_else(|| {
        let transport = transport.unwrap_or_default().to_owned();
        factories.push(ConnectionFactory { transport, name: name.to_owned(), parameters: Vec::new() });
        factories.len() - 1
    });
    &mut factories[index]
}
