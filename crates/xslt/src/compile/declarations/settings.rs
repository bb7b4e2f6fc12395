//! Declarations that hold for the whole stylesheet: aliases and white space.

use penstock_xpath::ast::Name;

use super::super::{At, Compiler};
use super::{Alias, Kinds, Ranked};
use crate::program::SpaceRule;

impl Compiler<'_> {
    pub(super) fn namespace_alias(&mut self, ranked: Ranked) {
        let at = ranked.at;
        let document = &self.module(at).document;
        let namespace_of = |prefix: Option<&str>| {
            let prefix = prefix?.trim();
            if prefix == "#default" {
                return Some(document.lookup_namespace(at.node, "").unwrap_or_default());
            }
            document.lookup_namespace(at.node, prefix)
        };
        let from = namespace_of(self.attribute(at, "stylesheet-prefix"));
        let to = namespace_of(self.attribute(at, "result-prefix"));
        let (Some(from), Some(to)) = (from, to) else {
            self.error("XTSE0812", "a prefix of `xsl:namespace-alias` is not declared", at);
            return;
        };
        let prefix = self.attribute(at, "result-prefix").unwrap_or_default().trim();
        let prefix = if prefix == "#default" { "" } else { prefix };
        let earlier = self.aliases.get(from);
        if earlier.is_some_and(|earlier| earlier.precedence == ranked.precedence && earlier.namespace != to) {
            self.error("XTSE0810", "a namespace has two aliases in declarations of one precedence", at);
        } else if earlier.is_none_or(|earlier| earlier.precedence <= ranked.precedence) {
            let alias = Alias { prefix: prefix.into(), namespace: to.to_owned(), precedence: ranked.precedence };
            self.aliases.insert(from.to_owned(), alias);
        }
    }

    /// A lexical QName as XPath has it.
    pub(super) fn xpath_name(&mut self, text: &str, at: At) -> Option<Name> {
        self.qname(text, at)?;
        let (prefix, local) = text.trim().split_once(':').map_or((None, text.trim()), |(p, l)| (Some(p), l));
        let document = &self.module(at).document;
        let namespace = prefix.and_then(|prefix| document.lookup_namespace(at.node, prefix)).map(Into::into);
        Some(Name { prefix: prefix.map(Into::into), local: local.into(), namespace })
    }

    /// Orders the name tests of `xsl:strip-space` and `xsl:preserve-space` by precedence, priority and position.
    pub(super) fn space_rules(&mut self, kinds: &Kinds) {
        let mut rules: Vec<(u32, u32, usize, SpaceRule)> = Vec::new();
        for (order, ranked) in kinds.spaces.iter().enumerate() {
            let at = ranked.at;
            let strip = self.xsl_name(at) == Some("strip-space");
            for test in self.attribute(at, "elements").unwrap_or_default().split_ascii_whitespace() {
                let (specificity, namespace, local) = match test.split_once(':') {
                    _ if test == "*" => (0, None, None),
                    Some(("*", local)) => (1, None, Some(local)),
                    Some((prefix, local)) => {
                        let Some(namespace) = self.module(at).document.lookup_namespace(at.node, prefix) else {
                            let message = format!("the prefix of `{test}` is not declared");
                            self.error("XTSE0280", message, at);
                            continue;
                        };
                        if local == "*" { (1, Some(namespace), None) } else { (2, Some(namespace), Some(local)) }
                    }
                    None => (2, Some(self.default_element_namespace(at).unwrap_or_default()), Some(test)),
                };
                let rule = SpaceRule { namespace: namespace.map(Into::into), local: local.map(Into::into), strip };
                rules.push((ranked.precedence, specificity, order, rule));
            }
        }
        rules.sort_by_key(|(precedence, specificity, order, _)| (*precedence, *specificity, *order));
        self.program.space_rules = rules.into_iter().rev().map(|(_, _, _, rule)| rule).collect();
    }
}
