//! Declarations that hold for the whole stylesheet: aliases, decimal formats, white space, output.

use std::collections::HashMap;

use penstock_xpath::DecimalFormat;
use penstock_xpath::ast::Name;

use super::super::{At, Compiler};
use super::{Alias, Kinds, NamedDecimalFormat, Ranked};
use crate::output::{Method, OutputProperties};
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
        let earlier = self.aliases.get(from).map(|alias| alias.precedence);
        if earlier.is_none_or(|earlier| earlier <= ranked.precedence) {
            self.aliases.insert(from.to_owned(), Alias { namespace: to.to_owned(), precedence: ranked.precedence });
        }
    }

    pub(super) fn decimal_format(&mut self, at: At) {
        let mut format = DecimalFormat::default();
        let mut set = |name: &str, target: &mut char| {
            let Some(text) = self.attribute(at, name) else { return };
            let mut chars = text.chars();
            match (chars.next(), chars.next()) {
                (Some(c), None) => *target = c,
                _ => self.error("XTSE0020", format!("`{name}` is one character"), self.attribute_place(at, name)),
            }
        };
        set("decimal-separator", &mut format.decimal_separator);
        set("grouping-separator", &mut format.grouping_separator);
        set("minus-sign", &mut format.minus_sign);
        set("percent", &mut format.percent);
        set("per-mille", &mut format.per_mille);
        set("zero-digit", &mut format.zero_digit);
        set("digit", &mut format.digit);
        set("pattern-separator", &mut format.pattern_separator);
        if let Some(text) = self.attribute(at, "infinity") {
            format.infinity = text.into();
        }
        if let Some(text) = self.attribute(at, "NaN") {
            format.nan = text.into();
        }
        let name = match self.attribute(at, "name") {
            Some(text) => match self.xpath_name(text, at) {
                Some(name) => Some(name),
                None => return,
            },
            None => None,
        };
        self.decimal_formats.push(NamedDecimalFormat { name, format });
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

    pub(super) fn outputs(&mut self, kinds: &Kinds) {
        let mut declared = kinds.outputs.clone();
        declared.sort_by_key(|ranked| ranked.precedence);
        let mut output = OutputProperties::default();
        for ranked in declared {
            let at = ranked.at;
            if self.attribute(at, "name").is_some() {
                continue;
            }
            self.output(at, &mut output);
        }
        let maps: HashMap<u32, At> = kinds
            .character_maps
            .iter()
            .filter_map(|ranked| {
                Some((self.attribute(ranked.at, "name").and_then(|n| self.qname(n, ranked.at))?, ranked.at))
            })
            .collect();
        let used = std::mem::take(&mut output.character_map_names);
        let mut open: Vec<u32> = used;
        let mut seen = Vec::new();
        while let Some(name) = open.pop() {
            let Some(at) = maps.get(&name).copied().filter(|_| !seen.contains(&name)) else { continue };
            seen.push(name);
            for more in self.attribute(at, "use-character-maps").unwrap_or_default().split_ascii_whitespace() {
                open.extend(self.qname(more, at));
            }
            for child in self.content(at) {
                let character = self.attribute(child, "character").and_then(|text| text.chars().next());
                if let (Some(character), Some(string)) = (character, self.attribute(child, "string")) {
                    output.character_map.push((character, string.into()));
                }
            }
        }
        self.program.output = output;
    }

    pub(super) fn output(&mut self, at: At, output: &mut OutputProperties) {
        if let Some(method) = self.attribute(at, "method").map(str::trim) {
            output.method = match method {
                "xml" | "xhtml" => Some(Method::Xml),
                "html" => Some(Method::Html),
                "text" => Some(Method::Text),
                other if other.contains(':') => Some(Method::Xml),
                other => {
                    let message = format!("unknown output method `{other}`; there are `xml`, `html` and `text`");
                    self.error("XTSE1570", message, self.attribute_place(at, "method"));
                    None
                }
            };
        }
        let text = |compiler: &Self, name: &str, target: &mut Option<Box<str>>| {
            if let Some(value) = compiler.attribute(at, name) {
                *target = Some(value.trim().into());
            }
        };
        text(self, "version", &mut output.version);
        text(self, "encoding", &mut output.encoding);
        text(self, "doctype-public", &mut output.doctype_public);
        text(self, "doctype-system", &mut output.doctype_system);
        text(self, "media-type", &mut output.media_type);
        let mut flag = |name: &str, target: &mut Option<bool>| {
            if self.attribute(at, name).is_some_and(|value| value.trim() != "omit") {
                *target = Some(self.flag(at, name));
            }
        };
        flag("omit-xml-declaration", &mut output.omit_xml_declaration);
        flag("standalone", &mut output.standalone);
        flag("indent", &mut output.indent);
        flag("include-content-type", &mut output.include_content_type);
        for name in self.attribute(at, "cdata-section-elements").unwrap_or_default().split_ascii_whitespace() {
            let (prefix, local) = name.split_once(':').unwrap_or(("", name));
            let namespace = self.module(at).document.lookup_namespace(at.node, prefix).unwrap_or_default();
            output.cdata_section_elements.push((namespace.into(), local.into()));
        }
        for name in self.attribute(at, "use-character-maps").unwrap_or_default().split_ascii_whitespace() {
            output.character_map_names.extend(self.qname(name, at));
        }
    }
}
