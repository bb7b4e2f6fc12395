//! Top-level elements: first everything that has a name gets a number, then bodies are compiled.

use std::collections::HashMap;

use penstock_xpath::DecimalFormat;
use penstock_xpath::ast::Name;

use crate::output::{Method, OutputProperties};
use crate::program::{Function, Global, Key, KeyUse, NONE, SpaceRule, Template};
use crate::read::syntax::{self, Place};
use crate::read::{Declaration, XSL};

use super::{At, Compiler};

/// What a namespace of the stylesheet becomes in the result.
pub(super) struct Alias {
    pub namespace: String,
    precedence: u32,
}

pub(super) struct NamedDecimalFormat {
    pub name: Option<Name>,
    pub format: DecimalFormat,
}

/// A declaration with the precedence of its level.
#[derive(Clone, Copy)]
struct Ranked {
    at: At,
    precedence: u32,
    lowest: u32,
}

/// The declarations of each kind, in declaration order.
#[derive(Default)]
struct Kinds {
    templates: Vec<Ranked>,
    globals: Vec<Ranked>,
    functions: Vec<Ranked>,
    keys: Vec<Ranked>,
    outputs: Vec<Ranked>,
    spaces: Vec<Ranked>,
    attribute_sets: HashMap<u32, Vec<Ranked>>,
    character_maps: Vec<Ranked>,
}

impl Compiler<'_> {
    /// Compiles everything.
    pub fn declarations(&mut self) {
        self.program.modes.push(crate::program::Mode::default());
        let kinds = self.collect();
        self.number_globals(&kinds);
        self.number_functions(&kinds);
        self.number_templates(&kinds);
        self.compile_attribute_sets(&kinds);
        self.compile_globals(&kinds);
        self.compile_functions(&kinds);
        self.compile_templates(&kinds);
        self.compile_keys(&kinds);
        self.space_rules(&kinds);
        self.outputs(&kinds);
        self.check_calls();
        self.finish_rules();
    }

    fn collect(&mut self) -> Kinds {
        let mut kinds = Kinds::default();
        let declarations: Vec<Declaration> = self.tree.declarations.clone();
        for declaration in declarations {
            let level = self.tree.levels[declaration.level];
            let at = At { module: declaration.module, node: declaration.node };
            let ranked = Ranked { at, precedence: level.precedence, lowest: level.lowest };
            self.collect_one(ranked, &mut kinds);
        }
        if let Some(root) = self.tree.modules.first() {
            let at = At { module: 0, node: root.root };
            self.program.version_two = self.version(at) >= 2.0;
        }
        kinds
    }

    fn collect_one(&mut self, ranked: Ranked, kinds: &mut Kinds) {
        let at = ranked.at;
        if self.module(at).simplified {
            kinds.templates.push(ranked);
            return;
        }
        let document = &self.module(at).document;
        if document.namespace(at.node) != XSL {
            if document.namespace(at.node).is_empty() {
                let message = "elements at the top level of a stylesheet are in a namespace";
                if self.forwards_compatible(at) {
                    self.warning(message, at)
                } else {
                    self.error("XTSE0130", message, at)
                }
            }
            return;
        }
        let name = document.local_name(at.node);
        let known = syntax::element_syntax(name).filter(|e| matches!(e.place, Place::Declaration | Place::Both));
        let Some(element) = known else {
            if !self.forwards_compatible(at) {
                let mut message = format!("`xsl:{name}` is not a top-level element");
                if let Some(known) = syntax::suggestion(name, syntax::element_names()).filter(|known| *known != name) {
                    message.push_str(&format!(", did you mean `xsl:{known}`?"));
                }
                self.error("XTSE0010", message, at);
            }
            return;
        };
        self.check_attributes(element, at);
        match name {
            "template" => kinds.templates.push(ranked),
            "variable" | "param" => kinds.globals.push(ranked),
            "function" => kinds.functions.push(ranked),
            "key" => kinds.keys.push(ranked),
            "output" => kinds.outputs.push(ranked),
            "strip-space" | "preserve-space" => kinds.spaces.push(ranked),
            "character-map" => kinds.character_maps.push(ranked),
            "attribute-set" => {
                if let Some(number) = self.attribute(at, "name").and_then(|name| self.qname(name, at)) {
                    kinds.attribute_sets.entry(number).or_default().push(ranked);
                }
            }
            "namespace-alias" => self.namespace_alias(ranked),
            "decimal-format" => self.decimal_format(at),
            "import-schema" => {
                self.error("XTSE1650", "`xsl:import-schema` needs a schema-aware processor, which this is not", at);
            }
            _ => {}
        }
    }

    fn namespace_alias(&mut self, ranked: Ranked) {
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

    fn decimal_format(&mut self, at: At) {
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
    fn xpath_name(&mut self, text: &str, at: At) -> Option<Name> {
        self.qname(text, at)?;
        let (prefix, local) = text.trim().split_once(':').map_or((None, text.trim()), |(p, l)| (Some(p), l));
        let document = &self.module(at).document;
        let namespace = prefix.and_then(|prefix| document.lookup_namespace(at.node, prefix)).map(Into::into);
        Some(Name { prefix: prefix.map(Into::into), local: local.into(), namespace })
    }

    fn number_globals(&mut self, kinds: &Kinds) {
        let mut precedences: HashMap<u32, u32> = HashMap::new();
        for ranked in &kinds.globals {
            let Some(name) = self.attribute(ranked.at, "name").and_then(|name| self.qname(name, ranked.at)) else {
                continue;
            };
            match precedences.get(&name) {
                Some(other) if *other > ranked.precedence => continue,
                Some(other) if *other == ranked.precedence => {
                    let message = "a global variable or parameter of this name is declared already";
                    self.error("XTSE0630", message, ranked.at);
                    continue;
                }
                _ => {}
            }
            precedences.insert(name, ranked.precedence);
            let number = self.global_numbers.len() as u32;
            let number = *self.global_numbers.entry(name).or_insert(number);
            if self.global_places.len() <= number as usize {
                self.global_places.push((name, ranked.at));
            }
            self.global_places[number as usize] = (name, ranked.at);
        }
    }

    fn number_functions(&mut self, kinds: &Kinds) {
        let mut precedences: HashMap<(u32, usize), u32> = HashMap::new();
        for ranked in &kinds.functions {
            let at = ranked.at;
            let Some(text) = self.attribute(at, "name") else { continue };
            if !text.contains(':') {
                self.error("XTSE0740", format!("the name `{text}` of a function has a prefix"), at);
                continue;
            }
            let Some(name) = self.qname(text, at) else { continue };
            let arity = self.param_elements(at).len();
            match precedences.get(&(name, arity)) {
                Some(other) if *other > ranked.precedence => continue,
                Some(other) if *other == ranked.precedence => {
                    self.error("XTSE0770", format!("the function `{text}` is declared twice"), at);
                    continue;
                }
                _ => {}
            }
            precedences.insert((name, arity), ranked.precedence);
            let number = self.function_places.len() as u32;
            match self.function_numbers.get(&(name, arity)) {
                Some(number) => self.function_places[*number as usize] = (name, at),
                None => {
                    self.function_numbers.insert((name, arity), number);
                    self.function_places.push((name, at));
                }
            }
        }
    }

    fn number_templates(&mut self, kinds: &Kinds) {
        for (number, ranked) in kinds.templates.iter().enumerate() {
            let at = ranked.at;
            if let Some(text) = self.attribute(at, "name").filter(|_| !self.module(at).simplified)
                && let Some(name) = self.qname(text, at)
            {
                let earlier = self.program.template_names.get(&name).copied();
                match earlier.map(|earlier| kinds.templates[earlier as usize].precedence) {
                    Some(precedence) if precedence > ranked.precedence => {}
                    Some(precedence) if precedence == ranked.precedence => {
                        self.error("XTSE0660", format!("two templates are named `{text}`"), at);
                    }
                    _ => {
                        self.program.template_names.insert(name, number as u32);
                    }
                }
            }
            // Modes exist as soon as a template names them, whatever is compiled first.
            if let Some(modes) = self.attribute(at, "mode").filter(|_| !self.module(at).simplified) {
                for mode in modes.split_ascii_whitespace().filter(|mode| !mode.starts_with('#')) {
                    self.mode(mode, self.attribute_place(at, "mode"));
                }
            }
        }
        for (_, ranked) in kinds.attribute_sets.iter().flat_map(|(n, list)| list.iter().map(move |r| (n, r))) {
            if let Some(number) = self.attribute(ranked.at, "name").and_then(|name| self.qname(name, ranked.at)) {
                let next = self.attribute_set_numbers.len() as u32;
                self.attribute_set_numbers.entry(number).or_insert(next);
            }
        }
    }

    /// The index of a mode.
    pub fn mode(&mut self, name: &str, at: At) -> Option<u32> {
        let element = self.element_of(at);
        let name = self.qname(name, element)?;
        if let Some(mode) = self.program.mode_names.get(&name) {
            return Some(*mode);
        }
        self.program.modes.push(crate::program::Mode::default());
        let mode = self.program.modes.len() as u32 - 1;
        self.program.mode_names.insert(name, mode);
        Some(mode)
    }

    fn compile_attribute_sets(&mut self, kinds: &Kinds) {
        self.program.attribute_sets = vec![Vec::new(); self.attribute_set_numbers.len()];
        let mut uses: Vec<Vec<u32>> = vec![Vec::new(); self.attribute_set_numbers.len()];
        for (name, declared) in &kinds.attribute_sets {
            let Some(number) = self.attribute_set_numbers.get(name).copied() else { continue };
            let mut declared = declared.clone();
            declared.sort_by_key(|ranked| ranked.precedence);
            for ranked in declared {
                let at = ranked.at;
                let used = self.attribute(at, "use-attribute-sets").unwrap_or_default();
                let used = self.attribute_set_list(used, at);
                uses[number as usize].extend(&used);
                let (block, ()) = self.block(|compiler| {
                    compiler.here = at;
                    for set in used {
                        compiler.emit(crate::program::Op::UseAttributeSet(set));
                    }
                    compiler.attribute_set_body(at);
                });
                self.program.attribute_sets[number as usize].push(block);
            }
        }
        for start in 0..uses.len() {
            let mut reached = vec![false; uses.len()];
            let mut open = uses[start].clone();
            while let Some(set) = open.pop() {
                if !std::mem::replace(&mut reached[set as usize], true) {
                    open.extend(&uses[set as usize]);
                }
            }
            if reached[start] {
                let at = kinds
                    .attribute_sets
                    .iter()
                    .find(|(name, _)| self.attribute_set_numbers.get(name) == Some(&(start as u32)));
                if let Some(ranked) = at.and_then(|(_, list)| list.first()) {
                    self.error("XTSE0720", "an attribute set uses itself", ranked.at);
                }
            }
        }
    }

    fn attribute_set_body(&mut self, at: At) {
        for child in self.content(at) {
            if self.xsl_name(child) != Some("attribute") {
                self.error("XTSE0010", "`xsl:attribute-set` contains `xsl:attribute` only", child);
            }
        }
        self.body(at);
    }

    /// The sets a `use-attribute-sets` attribute names.
    pub fn attribute_set_list(&mut self, names: &str, at: At) -> Vec<u32> {
        let mut sets = Vec::new();
        for text in names.split_ascii_whitespace() {
            let Some(name) = self.qname(text, at) else { continue };
            match self.attribute_set_numbers.get(&name) {
                Some(number) => sets.push(*number),
                None => self.error("XTSE0710", format!("there is no attribute set named `{text}`"), at),
            }
        }
        sets
    }

    fn compile_globals(&mut self, _kinds: &Kinds) {
        for (name, at) in self.global_places.clone() {
            let is_param = self.xsl_name(at) == Some("param");
            let required = is_param && self.flag(at, "required");
            let as_type = self.as_type(at);
            let (block, slot) = self.block(|compiler| {
                let slot = compiler.frame.new_slot();
                compiler.binding(at, slot);
                slot
            });
            self.program.globals.push(Global { name, block, slot, is_param, required, as_type });
        }
    }

    fn compile_functions(&mut self, _kinds: &Kinds) {
        for (name, at) in self.function_places.clone() {
            let as_type = self.as_type(at);
            let params = self.param_elements(at);
            let arity = params.len();
            let (block, ()) = self.block(|compiler| {
                for param in params {
                    if let Some(syntax) = syntax::element_syntax("param") {
                        compiler.check_attributes(syntax, param);
                    }
                    let slot = compiler.frame.new_slot();
                    let name = compiler.attribute(param, "name").and_then(|name| compiler.qname(name, param));
                    if let Some(name) = name {
                        compiler.frame.visible.push((name, slot));
                    }
                    if compiler.attribute(param, "select").is_some() || !compiler.content(param).is_empty() {
                        compiler.error("XTSE0760", "parameters of functions have no default", param);
                    }
                }
                compiler.body(at);
            });
            self.program.functions.push(Function { name, arity, block, as_type });
        }
    }

    fn compile_templates(&mut self, kinds: &Kinds) {
        for ranked in &kinds.templates {
            let at = ranked.at;
            let simplified = self.module(at).simplified;
            if !simplified {
                // The type is checked to be one; results of templates are not converted.
                self.as_type(at);
            }
            let (block, params) = self.block(|compiler| {
                if simplified {
                    compiler.here = at;
                    compiler.literal_element(at);
                    return Vec::new();
                }
                let params = compiler.template_params(at);
                compiler.here = at;
                compiler.body(at);
                params
            });
            let identity = !simplified && self.is_identity(at);
            let template = self.program.templates.len() as u32;
            self.program.templates.push(Template {
                block,
                precedence: ranked.precedence,
                lowest_import: ranked.lowest,
                params,
                identity,
            });
            if simplified {
                self.add_rules("/", at, template, None, &[0]);
            } else {
                self.template_rules(at, template);
            }
        }
    }

    /// Calls that pass parameters the template does not have (XTSE0680) are only known once all are compiled.
    fn check_calls(&mut self) {
        for (at, template, passed) in std::mem::take(&mut self.calls_to_check) {
            let version = self.version(at);
            let declared = &self.program.templates[template as usize].params;
            let unknown: Vec<u32> = passed.into_iter().filter(|name| !declared.contains(name)).collect();
            for name in unknown {
                let name = self.program.names[name as usize].clone();
                let message = format!("the template has no parameter `{name}`");
                if version >= 2.0 { self.error("XTSE0680", message, at) } else { self.warning(message, at) }
            }
        }
    }

    fn compile_keys(&mut self, kinds: &Kinds) {
        for ranked in &kinds.keys {
            let at = ranked.at;
            let Some(name) = self.attribute(at, "name").and_then(|name| self.qname(name, at)) else { continue };
            let Some(text) = self.attribute(at, "match") else { continue };
            self.here = at;
            let Some(pattern) = self.pattern(text, self.attribute_place(at, "match")) else { continue };
            let usage = match self.optional_expression(at, "use") {
                Some(expr) => KeyUse::Expr(expr),
                None => {
                    let (block, slot) = self.block(|compiler| {
                        let slot = compiler.frame.new_slot();
                        compiler.here = at;
                        compiler.emit(crate::program::Op::BeginSequence);
                        compiler.body(at);
                        compiler.emit(crate::program::Op::EndSequence { slot, as_type: NONE });
                        slot
                    });
                    KeyUse::Body(block, slot)
                }
            };
            let number = self.program.keys.len() as u32;
            self.program.keys.push(Key { pattern, usage });
            self.program.key_names.entry(name).or_default().push(number);
        }
    }

    /// Orders the name tests of `xsl:strip-space` and `xsl:preserve-space` by precedence, priority and position.
    fn space_rules(&mut self, kinds: &Kinds) {
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

    fn outputs(&mut self, kinds: &Kinds) {
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

    fn output(&mut self, at: At, output: &mut OutputProperties) {
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
