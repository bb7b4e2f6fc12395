//! `[connections.NAME]`, and `[[transport.jms.listener]]` and its like of a `deployment.toml`: connections of brokers that
//! artifacts refer to by name. The transports register which tables and keys there are.

use penstock_compile::NamedConnections;
use penstock_engine::ports::ConnectionFactory;
use penstock_transports::TRANSPORTS;

use super::settings::Settings;
use super::value::Value;

/// The transports whose connections have names.
fn transports() -> impl Iterator<Item = (&'static str, &'static NamedConnections)> {
    TRANSPORTS.iter().filter_map(|transport| Some((transport.name, transport.connections.as_ref()?)))
}

/// Sets `NAME.parameter`. Parameters hold dots, names do not.
pub(super) fn set(settings: &mut Settings, path: &str, value: &Value) -> Result<bool, String> {
    let Some((name, parameter)) = path.split_once('.') else { return Ok(false) };
    let factory = entry(settings, name, None);
    match parameter {
        "transport" if transports().any(|(known, _)| known == value.text()) => {
            value.text().clone_into(&mut factory.transport);
        }
        "transport" => {
            let names: Vec<&str> = transports().map(|(name, _)| name).collect();
            return Err(format!("must be one of: {}", names.join(", ")));
        }
        _ => factory.parameters.push((parameter.to_owned(), value.text().to_owned())),
    }
    Ok(true)
}

/// The transport whose connections a table of a `deployment.toml` defines.
pub(super) fn transport_of_table(path: &str) -> Option<&'static str> {
    transports().find(|(_, connections)| connections.tables.contains(&path)).map(|(name, _)| name)
}

/// Sets a parameter of a connection of a `deployment.toml`, which has short names for some.
pub(super) fn set_of_table(settings: &mut Settings, transport: &str, name: &str, key: &str, value: &Value) {
    let key = key.strip_prefix("parameter.").unwrap_or(key);
    let mut keys = transports().filter(|(known, _)| *known == transport).flat_map(|(_, connections)| connections.keys);
    let parameter = keys.find(|(short, _)| *short == key).map_or(key, |(_, parameter)| parameter);
    let factory = entry(settings, name, Some(transport));
    factory.parameters.push((parameter.to_owned(), value.text().to_owned()));
}

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
