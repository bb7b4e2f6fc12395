//! What evaluation needs to know of the static context.

use std::sync::Arc;

use crate::ast::Name;
use crate::collation::Collation;
use crate::functions::format_number::DecimalFormat;
use crate::names::NamePool;
use crate::static_context::{StaticContext, Version};

/// Declared decimal formats; `None` is the default one.
pub(crate) type DecimalFormats = Arc<Vec<(Option<Name>, Arc<DecimalFormat>)>>;

pub(crate) struct Program {
    /// Whether XPath 1.0 rules apply.
    pub(crate) compat: bool,
    pub(crate) pool: Arc<NamePool>,
    pub(crate) base_uri: Option<Arc<str>>,
    /// The default collation and its URI; `None` compares codepoints.
    pub(crate) collation: Option<(Arc<str>, Collation)>,
    pub(crate) decimal_formats: DecimalFormats,
    /// Variables bound inside the expression.
    pub(crate) locals: u32,
}

impl Program {
    pub(crate) fn of_context(context: &StaticContext<'_>, locals: u32) -> Program {
        Program {
            compat: context.version == Version::One,
            pool: Arc::clone(&context.pool),
            base_uri: context.base_uri.clone(),
            collation: context.collation.clone(),
            decimal_formats: context.all_decimal_formats(),
            locals,
        }
    }
}
