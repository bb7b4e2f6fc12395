//! Properties of one scope.

use std::sync::Arc;

use crate::Value;

/// The scopes a property can live in. `default` and `synapse` are one scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Survives `call` and `send`: the flow's own properties.
    Default,
    /// Transport headers of the current message.
    Transport,
    /// Knobs of the transport for the current message (`HTTP_SC`, `REST_URL_POSTFIX`, …).
    Axis2,
    /// As `axis2`, kept for the outgoing side.
    Axis2Client,
    /// Shared by request and response of one exchange.
    Operation,
    /// Registry resources.
    Registry,
    /// System properties of the process.
    System,
    /// Parameters of the template that is running.
    Function,
    /// Environment variables.
    Environment,
    /// Entries of `file.properties`.
    File,
    /// `trace` and `analytics`: stored, unused.
    Trace,
}

impl Scope {
    /// The scope an artifact names, in any of its spellings.
    pub fn parse(name: &str) -> Option<Scope> {
        Some(match name {
            "" | "default" | "synapse" => Scope::Default,
            "transport" => Scope::Transport,
            "axis2" => Scope::Axis2,
            "axis2-client" => Scope::Axis2Client,
            "operation" => Scope::Operation,
            "registry" => Scope::Registry,
            "system" => Scope::System,
            "func" => Scope::Function,
            "env" => Scope::Environment,
            "file" => Scope::File,
            "trace" | "analytics" => Scope::Trace,
            _ => return None,
        })
    }
}

/// Named values in the order they were first set. A handful per message, so a list beats a map; most scopes of most
/// messages have none, so the list is only there when it is needed.
#[derive(Debug, Clone, Default)]
pub struct Properties(Option<Box<Entries>>);

#[derive(Debug, Clone, Default)]
struct Entries(Vec<(Arc<str>, Value)>);

impl Properties {
    fn entries(&self) -> &[(Arc<str>, Value)] {
        self.0.as_ref().map_or(&[], |entries| &entries.0)
    }

    /// The value of `name`.
    #[inline]
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.as_ref()?.0.iter().find(|(key, _)| **key == *name).map(|(_, value)| value)
    }

    /// Sets or replaces.
    pub fn set(&mut self, name: impl Into<Arc<str>>, value: Value) {
        let name = name.into();
        let entries = &mut self.0.get_or_insert_default().0;
        match entries.iter_mut().find(|(key, _)| *key == name) {
            Some((_, old)) => *old = value,
            None => entries.push((name, value)),
        }
    }

    /// Removes and returns.
    pub fn remove(&mut self, name: &str) -> Option<Value> {
        let entries = &mut self.0.as_mut()?.0;
        let index = entries.iter().position(|(key, _)| **key == *name)?;
        Some(entries.remove(index).1)
    }

    /// Whether the property is there and means yes.
    #[inline]
    pub fn is_true(&self, name: &str) -> bool {
        self.get(name).is_some_and(Value::is_true)
    }

    /// All entries, first set first.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.entries().iter().map(|(key, value)| (&**key, value))
    }

    /// Removes all.
    pub fn clear(&mut self) {
        self.0 = None;
    }
}
