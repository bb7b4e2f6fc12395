//! What is known about an expression before it runs: namespaces, version, variables, functions, aliases.

use std::sync::Arc;

use crate::ast::Name;
use crate::collation::Collation;
use crate::functions::format_number::DecimalFormat;
use crate::names::NamePool;

/// The namespace of the standard functions.
pub const FUNCTION_NAMESPACE: &str = "http://www.w3.org/2005/xpath-functions";
/// The namespace of the schema types and their constructor functions.
pub const SCHEMA_NAMESPACE: &str = "http://www.w3.org/2001/XMLSchema";
/// The namespace the prefix `xml` always has.
pub const XML_NAMESPACE: &str = "http://www.w3.org/XML/1998/namespace";

/// Which rules apply. The whole grammar and every function is available in both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Version {
    /// XPath 1.0: every number is a double, comparisons and arguments convert silently, the first node counts.
    #[default]
    One,
    /// XPath 2.0: typed comparison and arithmetic, type errors.
    Two,
}

/// How a variable is found at run time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VariableRef {
    /// An index into the slots of the [`crate::DynamicContext`].
    Slot(u32),
    /// An index the host gives meaning to: [`crate::Host::variable_at`].
    Index(u32),
    /// By its name: [`crate::Host::variable`].
    Name,
}

/// What a function of the host returns, as far as it is known before it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ResultKind {
    /// Unknown.
    #[default]
    Any,
    /// Nodes, in document order and without duplicates.
    Nodes,
    /// One string.
    String,
    /// One number.
    Number,
    /// One boolean.
    Boolean,
}

/// A function of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FunctionRef {
    /// Handed back to [`crate::Host::call`], so that the host need not look the name up again.
    pub index: u32,
    /// What comes back.
    pub result: ResultKind,
}

/// Names that only the host knows. Everything not answered here falls back to the [`StaticContext`].
pub trait Resolver {
    /// The namespace bound to a prefix.
    fn namespace(&self, _prefix: &str) -> Option<Arc<str>> {
        None
    }

    /// Where a variable is found.
    fn variable(&self, _name: &Name) -> Option<VariableRef> {
        None
    }

    /// Whether `fn`, `xs` and `math` mean something only where they are declared, as in stylesheets.
    fn requires_declared_prefixes(&self) -> bool {
        false
    }

    /// A function that takes `arity` arguments. Called before the standard functions only for names with a prefix
    /// other than `fn`, `xs` or `math`, and after them for names without.
    fn function(&self, _name: &Name, _arity: usize) -> Option<FunctionRef> {
        None
    }
}

/// Which variables exist.
#[derive(Debug, Clone, Default)]
pub enum VariablePolicy {
    /// Only those the resolver knows.
    #[default]
    Resolver,
    /// These, written as `local` or `prefix:local`; found by name.
    Declared(Vec<String>),
    /// Any; found by name.
    Any,
}

/// A variable that stands for a path, such as `$body`.
#[derive(Debug, Clone)]
pub(crate) struct Alias {
    pub(crate) variable: String,
    pub(crate) path: String,
}

/// Built once, used for many expressions.
#[derive(Clone)]
pub struct StaticContext<'r> {
    namespaces: Vec<(Arc<str>, Arc<str>)>,
    pub(crate) default_element_namespace: Option<Arc<str>>,
    pub(crate) version: Version,
    pub(crate) undeclared_prefixes: bool,
    pub(crate) unknown_functions: bool,
    pub(crate) variables: VariablePolicy,
    pub(crate) aliases: Vec<Alias>,
    pub(crate) resolver: Option<&'r dyn Resolver>,
    pub(crate) pool: Arc<NamePool>,
    pub(crate) base_uri: Option<Arc<str>>,
    pub(crate) collation: Option<(Arc<str>, Collation)>,
    decimal_formats: Arc<Vec<(Option<Name>, Arc<DecimalFormat>)>>,
}

impl Default for StaticContext<'_> {
    fn default() -> Self {
        StaticContext {
            namespaces: Vec::new(),
            default_element_namespace: None,
            version: Version::One,
            undeclared_prefixes: false,
            unknown_functions: false,
            variables: VariablePolicy::Resolver,
            aliases: Vec::new(),
            resolver: None,
            pool: Arc::new(NamePool::new()),
            base_uri: None,
            collation: None,
            decimal_formats: Arc::new(Vec::new()),
        }
    }
}

impl<'r> StaticContext<'r> {
    /// XPath 1.0, no namespaces but the predefined ones, no variables.
    pub fn new() -> Self {
        Self::default()
    }

    /// Chooses the rules.
    #[must_use]
    pub fn version(mut self, version: Version) -> Self {
        self.version = version;
        self
    }

    /// Binds a prefix; a later binding replaces an earlier one.
    #[must_use]
    pub fn namespace(mut self, prefix: impl Into<Arc<str>>, uri: impl Into<Arc<str>>) -> Self {
        let prefix = prefix.into();
        self.namespaces.retain(|(known, _)| *known != prefix);
        self.namespaces.push((prefix, uri.into()));
        self
    }

    /// The namespace of element names without a prefix (`xpath-default-namespace`); none by default.
    #[must_use]
    pub fn default_element_namespace(mut self, uri: Option<impl Into<Arc<str>>>) -> Self {
        self.default_element_namespace = uri.map(Into::into).filter(|uri: &Arc<str>| !uri.is_empty());
        self
    }

    /// Accepts prefixes that are not declared: a name test then compares the local name alone.
    #[must_use]
    pub fn allow_undeclared_prefixes(mut self, allow: bool) -> Self {
        self.undeclared_prefixes = allow;
        self
    }

    /// Accepts unknown functions; calling one reaches [`crate::Host::call`] with the index `u32::MAX`.
    #[must_use]
    pub fn allow_unknown_functions(mut self, allow: bool) -> Self {
        self.unknown_functions = allow;
        self
    }

    /// Says which variables exist.
    #[must_use]
    pub fn variables(mut self, policy: VariablePolicy) -> Self {
        self.variables = policy;
        self
    }

    /// Lets a variable (`body`, `p:name`) stand for a path, which is compiled as if it were written in its place.
    #[must_use]
    pub fn alias(mut self, variable: impl Into<String>, path: impl Into<String>) -> Self {
        self.aliases.push(Alias { variable: variable.into(), path: path.into() });
        self
    }

    /// Sets who knows the names that only the host knows.
    #[must_use]
    pub fn resolver(mut self, resolver: &'r dyn Resolver) -> Self {
        self.resolver = Some(resolver);
        self
    }

    /// Shares the table of names with other expressions, which makes one [`crate::Session`] serve them all.
    #[must_use]
    pub fn name_pool(mut self, pool: Arc<NamePool>) -> Self {
        self.pool = pool;
        self
    }

    /// What `static-base-uri()` returns.
    #[must_use]
    pub fn base_uri(mut self, uri: impl Into<Arc<str>>) -> Self {
        self.base_uri = Some(uri.into());
        self
    }

    /// Sets the default collation; a URI that names none leaves it as it is.
    #[must_use]
    pub fn default_collation(mut self, uri: &str) -> Self {
        if let Some(collation) = Collation::from_uri(uri) {
            self.collation = (collation != Collation::Codepoint).then(|| (uri.trim().into(), collation));
        }
        self
    }

    /// Declares a decimal format, or the default one (`None`).
    #[must_use]
    pub fn decimal_format(mut self, name: Option<Name>, format: DecimalFormat) -> Self {
        Arc::make_mut(&mut self.decimal_formats).push((name, Arc::new(format)));
        self
    }

    /// The decimal format of this name; `None` when it was not declared.
    pub(crate) fn find_decimal_format(&self, name: Option<&Name>) -> Option<Arc<DecimalFormat>> {
        let same = |known: &Option<Name>| match (known, name) {
            (None, None) => true,
            (Some(known), Some(name)) => known.local == name.local && known.namespace == name.namespace,
            _ => false,
        };
        match self.decimal_formats.iter().rev().find(|(known, _)| same(known)) {
            Some((_, format)) => Some(Arc::clone(format)),
            None => name.is_none().then(Arc::default),
        }
    }

    /// The names of all declared decimal formats, so that calls with computed names can be answered.
    pub(crate) fn all_decimal_formats(&self) -> Arc<Vec<(Option<Name>, Arc<DecimalFormat>)>> {
        Arc::clone(&self.decimal_formats)
    }

    /// Whether the well-known prefixes need a declaration.
    pub(crate) fn requires_declared_prefixes(&self) -> bool {
        self.resolver.is_some_and(Resolver::requires_declared_prefixes)
    }

    /// The namespace bound to a prefix.
    pub fn lookup_namespace(&self, prefix: &str) -> Option<Arc<str>> {
        if let Some(uri) = self.resolver.and_then(|resolver| resolver.namespace(prefix)) {
            return Some(uri);
        }
        if let Some((_, uri)) = self.namespaces.iter().find(|(known, _)| **known == *prefix) {
            return Some(Arc::clone(uri));
        }
        (prefix == "xml").then(|| XML_NAMESPACE.into())
    }
}
