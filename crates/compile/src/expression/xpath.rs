//! XPath bound to an exchange.

use std::sync::Arc;

use penstock_engine::{Exchange, Fault, Needs, Place};
use penstock_message::Value;
use penstock_xml::{Document, NodeId};

use crate::{Compiler, Element};

/// An XPath expression of an artifact.
pub(super) struct XPathExpression {}

impl XPathExpression {
    pub(super) fn compile(_cx: &mut Compiler<'_>, _el: &Element<'_>, _text: &str, _at: &Place) -> Option<XPathExpression> {
        Some(XPathExpression {})
    }

    pub(super) fn needs(&self) -> Needs {
        Needs::Whole
    }

    pub(super) fn value(&self, _exchange: &mut Exchange) -> Result<Option<Value>, Fault> {
        Ok(None)
    }

    pub(super) fn text(&self, _exchange: &mut Exchange) -> Result<Option<String>, Fault> {
        Ok(None)
    }

    pub(super) fn truth(&self, _exchange: &mut Exchange) -> Result<bool, Fault> {
        Ok(false)
    }

    pub(super) fn nodes(&self, _exchange: &mut Exchange) -> Result<(Arc<Document>, Vec<NodeId>), Fault> {
        Err(Fault::new("not a path"))
    }
}
