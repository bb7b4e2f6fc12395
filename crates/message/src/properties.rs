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
    /// `trace` and `analytics`: kept, read by nobody here.
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

/// Named values in the order they were first set. A handful per message, so a list beats a map.
#[derive(Debug, Clone, Default)]
pub struct Properties {
    entries: Vec<(Arc<str>, Value)>,
}

impl Properties {
    /// The value of `name`.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.entries.iter().find(|(key, _)| **key == *name).map(|(_, value)| value)
    }

    /// Sets or replaces.
    pub fn set(&mut self, name: impl Into<Arc<str>>, value: Value) {
        let name = name.into();
        match self.entries.iter_mut().find(|(key, _)| *key == name) {
            Some((_, old)) => *old = value,
            None => self.entries.push((name, value)),
        }
    }

    /// Removes and returns.
    pub fn remove(&mut self, name: &str) -> Option<Value> {
        let index = self.entries.iter().position(|(key, _)| **key == *name)?;
        Some(self.entries.remove(index).1)
    }

    /// Whether the property is there and means yes.
    pub fn is_true(&self, name: &str) -> bool {
        self.get(name).is_some_and(Value::is_true)
    }

    /// All entries, first set first.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.entries.iter().map(|(key, value)| (&**key, value))
    }

    /// Removes all.
    pub fn clear(&mut self) {
        self.entries.clear();
    }
}
