//! The exchange as what Synapse expressions (`${…}`) ask for values.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use penstock_engine::Exchange;
use penstock_engine::ports::Level;
use penstock_message::{BodyError, Envelope, Form, SoapVersion, Value};
use penstock_xml::NodeId;
use penstock_xpath::{DynamicContext, ItemRef, NoHost, Session, StaticContext, XPath, XPathError};

use super::synapse::{EvaluationError, NamedScope, Scope, Vault};

/// An exchange while an expression reads it.
pub(super) struct ExchangeScope<'a> {
    pub exchange: &'a mut Exchange,
    /// For `xpath(…)`.
    pub paths: &'a Paths,
}

/// What `xpath(…)` needs of the element an expression stands on. Paths that are literals are compiled with it; one that
/// is no XPath fails where it is evaluated, as one that was computed does.
pub(super) struct Paths {
    namespaces: Vec<(String, String)>,
    compiled: Vec<(Box<str>, XPath)>,
}

impl Paths {
    /// For expressions under these prefixes that have these literal paths.
    pub fn new<'p>(namespaces: Vec<(String, String)>, literals: impl IntoIterator<Item = &'p str>) -> Paths {
        let mut paths = Paths { namespaces, compiled: Vec::new() };
        for literal in literals {
            if paths.known(literal).is_none()
                && let Ok(compiled) = paths.compile(literal)
            {
                paths.compiled.push((literal.into(), compiled));
            }
        }
        paths
    }

    fn known(&self, text: &str) -> Option<&XPath> {
        self.compiled.iter().find(|(known, _)| **known == *text).map(|(_, compiled)| compiled)
    }

    fn compile(&self, text: &str) -> Result<XPath, XPathError> {
        let mut context = StaticContext::new().allow_undeclared_prefixes(true);
        for (prefix, namespace) in &self.namespaces {
            context = context.namespace(prefix.as_str(), namespace.as_str());
        }
        for (variable, path) in super::xpath::ALIASES {
            context = context.alias(variable, path);
        }
        XPath::compile(text, &context)
    }
}

impl ExchangeScope<'_> {
    fn envelope(&mut self) -> Result<Arc<Envelope>, EvaluationError> {
        let program = self.exchange.program().clone();
        self.exchange.message.xml(&program.conversion).map_err(|error| self.unread(error))
    }

    /// An expression over a body that is malformed has no value, and the message is not accepted.
    fn unread(&mut self, error: BodyError) -> EvaluationError {
        let failed = EvaluationError::new(error.to_string());
        if !matches!(error, BodyError::Unsupported { .. }) {
            self.exchange.unreadable = Some(Box::new(self.exchange.blamed(error.into())));
        }
        failed
    }
}

impl Scope for ExchangeScope<'_> {
    fn payload(&mut self) -> Result<Arc<serde_json::Value>, EvaluationError> {
        let program = self.exchange.program().clone();
        self.exchange.message.json(&program.conversion).map_err(|error| self.unread(error))
    }

    fn whole_payload(&mut self) -> Result<Value, EvaluationError> {
        let media = self.exchange.message.media_type();
        let is_xml = matches!(self.exchange.message.body.form(), Form::Xml(_)) || media.is_xml();
        if !is_xml {
            return self.payload().map(Value::Json);
        }
        let envelope = self.envelope()?;
        let nodes = match envelope.soap {
            SoapVersion::None => envelope.payload().into_iter().collect(),
            _ => {
                envelope.document.children(envelope.body).filter(|child| envelope.document.is_element(*child)).collect()
            }
        };
        Ok(Value::Xml(envelope.document.clone(), nodes))
    }

    fn named(&mut self, source: NamedScope, name: &str) -> Option<Value> {
        use penstock_message::Scope as Property;
        match source {
            NamedScope::Variable => self.exchange.message.variables.get(name).cloned(),
            NamedScope::Header => self.exchange.property(Property::Transport, name),
            NamedScope::Property => self.exchange.property(Property::Default, name),
            NamedScope::Axis2Property => self.exchange.property(Property::Axis2, name),
            NamedScope::QueryParameter => self.exchange.query_parameter(name).map(Value::string),
            NamedScope::PathParameter => self.exchange.property(Property::Default, &format!("uri.var.{name}")),
            NamedScope::FunctionParameter => self.exchange.property(Property::Function, name),
            NamedScope::Config => {
                let environment = &self.exchange.core().environment;
                let value = environment.variables.get(name).or_else(|| environment.file.get(name));
                value.map(|value| Value::string(value.as_str()))
            }
        }
    }

    fn xpath(&mut self, expression: &str, variable: Option<&str>) -> Result<Value, EvaluationError> {
        let document = match variable {
            None => self.envelope()?.document.clone(),
            Some(name) => match self.exchange.message.variables.get(name) {
                Some(Value::Xml(document, _)) => document.clone(),
                Some(other) => {
                    let text = other.to_text().into_owned();
                    let parsed =
                        penstock_xml::Document::parse(text.into_bytes(), &penstock_xml::ParseOptions::default());
                    Arc::new(
                        parsed
                            .map_err(|error| EvaluationError::new(format!("variable `{name}` is not XML: {error}")))?,
                    )
                }
                None => return Err(EvaluationError::new(format!("there is no variable `{name}`"))),
            },
        };
        let failed = |error: XPathError| EvaluationError::new(error.message());
        let made;
        let compiled = match self.paths.known(expression) {
            Some(compiled) => compiled,
            None => {
                made = self.paths.compile(expression).map_err(failed)?;
                &made
            }
        };
        let (session, root) = Session::with_document(document.clone());
        let context = DynamicContext::new(&session, &NoHost).with_node(root);
        let found = compiled.evaluate(&context).map_err(failed)?;
        let nodes: Option<Vec<NodeId>> = found
            .iter()
            .map(|item| match item {
                ItemRef::Node(node) => Some(node.id),
                ItemRef::Atomic(_) => None,
            })
            .collect();
        if let Some(nodes) = nodes.filter(|nodes| !nodes.is_empty()) {
            return Ok(Value::Xml(document, nodes));
        }
        let text: String = found
            .iter()
            .map(|item| match item {
                ItemRef::Node(node) => super::xpath::node_text(session.document_of(node), node.id),
                ItemRef::Atomic(atomic) => atomic.to_text(true).into_owned(),
            })
            .collect();
        Ok(Value::string(text))
    }

    fn registry(&mut self, path: &str, property: Option<&str>) -> Option<String> {
        let resource = self.exchange.registry_resource(path)?;
        match property {
            None => Some(resource.text().into_owned()),
            Some(name) => {
                let found = resource.properties.iter().find(|(key, _)| **key == *name);
                found.map(|(_, value)| value.to_string())
            }
        }
    }

    fn secret(&mut self, vault: Vault, path: &[String]) -> Result<String, EvaluationError> {
        let alias = match (vault, path) {
            (Vault::Wso2, [alias]) => alias,
            _ => return Err(EvaluationError::new(super::NO_HASHICORP)),
        };
        let secret = self.exchange.core().environment.secrets.get(alias).map(ToString::to_string);
        secret.ok_or_else(|| EvaluationError::new(format!("the table `[secrets]` has no `{alias}`")))
    }

    fn now_ms(&mut self) -> i64 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
    }

    fn failed(&mut self, expression: &str, error: &EvaluationError) {
        self.exchange.log(Level::Warn, "SynapseExpression", &format!("`${{{expression}}}` has no value: {error}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expression::synapse::SynapseExpression;

    #[test]
    fn literal_paths_are_compiled_with_the_expression() {
        for (text, expected) in [
            ("xpath('//a')", &["//a"][..]),
            ("xpath('//s:a', 'v') + vars.list[xpath('//b')]", &["//s:a", "//b"]),
            ("exists(xpath('//a')) ? toUpper(xpath('//a')) : [xpath('$body/b')]", &["//a", "$body/b"]),
            ("xpath('//a[') == 1 and xpath('//b') == 2", &["//b"]),
            ("xpath(vars.path)", &[]),
        ] {
            let expression = SynapseExpression::parse(text).unwrap();
            let paths = Paths::new(vec![("s".into(), "urn:s".into())], expression.literal_paths());
            let compiled: Vec<&str> = paths.compiled.iter().map(|(path, _)| &**path).collect();
            assert_eq!(compiled, expected, "{text}");
        }
    }
}
