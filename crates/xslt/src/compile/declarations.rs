//! Top-level elements: first everything that has a name gets a number, then bodies are compiled.

pub(super) mod decimal_formats;
mod names;
mod outputs;
mod settings;

use std::collections::HashMap;

use penstock_xpath::collation::Collation;

use crate::program::{Function, Global, Key, KeyUse, NONE, Op, Template};
use crate::read::syntax::{self, Place};
use crate::read::{Declaration, XSL};

use super::{At, Compiler};

/// What a namespace of the stylesheet becomes in the result.
pub(super) struct Alias {
    /// The prefix that the declaration names.
    pub prefix: Box<str>,
    pub namespace: String,
    precedence: u32,
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
    decimal_formats: Vec<Ranked>,
}

impl Compiler<'_> {
    /// Compiles everything.
    pub fn declarations(&mut self) {
        self.program.modes.push(crate::program::Mode::default());
        let kinds = self.collect();
        self.decimal_formats(&kinds);
        self.check_keys(&kinds);
        self.outputs(&kinds);
        self.number_globals(&kinds);
        self.number_functions(&kinds);
        self.number_templates(&kinds);
        self.compile_attribute_sets(&kinds);
        self.compile_globals(&kinds);
        self.compile_functions(&kinds);
        self.compile_templates(&kinds);
        self.compile_keys(&kinds);
        self.space_rules(&kinds);
        self.check_calls();
        self.finish_rules();
    }

    fn collect(&mut self) -> Kinds {
        if let Some(root) = self.tree.modules.first() {
            let at = At { module: 0, node: root.root };
            self.program.version_two = self.version(at) >= 2.0;
        }
        let mut kinds = Kinds::default();
        let declarations: Vec<Declaration> = self.tree.declarations.clone();
        for declaration in declarations {
            let level = self.tree.levels[declaration.level];
            let at = At { module: declaration.module, node: declaration.node };
            let ranked = Ranked { at, precedence: level.precedence, lowest: level.lowest };
            self.collect_one(ranked, &mut kinds);
        }
        for (module, read) in self.tree.modules.iter().enumerate() {
            let at = At { module, node: read.root };
            if !read.simplified {
                self.check_stylesheet(at);
            }
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
                if let Some(number) = self.declared_name(at) {
                    kinds.attribute_sets.entry(number).or_default().push(ranked);
                }
            }
            "namespace-alias" => self.namespace_alias(ranked),
            "decimal-format" => kinds.decimal_formats.push(ranked),
            "import-schema" => {
                self.error("XTSE1650", "`xsl:import-schema` needs a schema-aware processor, which this is not", at);
            }
            _ => {}
        }
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
                        compiler.emit(Op::UseAttributeSet(set));
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

    fn compile_globals(&mut self, _kinds: &Kinds) {
        for (name, at) in self.global_places.clone() {
            let is_param = self.xsl_name(at) == Some("param");
            let required = is_param && self.flag(at, "required");
            let as_type = self.as_type(at);
            if required {
                self.check_required(at);
            }
            if self.flag(at, "tunnel") {
                self.error("XTSE0020", "a parameter of the stylesheet is not a tunnel parameter", at);
            }
            self.defining = Some(name);
            let (block, slot) = self.block(|compiler| {
                let slot = compiler.frame.new_slot();
                if required {
                    compiler.here = at;
                } else {
                    compiler.binding(at, slot);
                }
                slot
            });
            self.defining = None;
            // Globals are computed for the document node, so a subtree must have one of its own.
            let relative = self.program.expressions.last().is_some_and(penstock_xpath::XPath::uses_context);
            self.program.looks_up |= relative || !self.content(at).is_empty();
            self.program.globals.push(Global { name, block, slot, is_param, required, as_type });
        }
    }

    fn compile_functions(&mut self, _kinds: &Kinds) {
        for (name, at) in self.function_places.clone() {
            let as_type = self.as_type(at);
            let params = self.param_elements(at);
            let types = params.iter().map(|param| self.as_type(*param)).collect();
            let (block, ()) = self.block(|compiler| {
                for param in params {
                    if let Some(syntax) = syntax::element_syntax("param") {
                        compiler.check_attributes(syntax, param);
                    }
                    let slot = compiler.frame.new_slot();
                    if let Some(name) = compiler.declared_name(param) {
                        if compiler.frame.visible.iter().any(|(known, _)| *known == name) {
                            compiler.error("XTSE0580", "two parameters have the same name", param);
                        }
                        compiler.frame.visible.push((name, slot));
                    }
                    if compiler.attribute(param, "select").is_some() || !compiler.content(param).is_empty() {
                        compiler.error("XTSE0760", "parameters of functions have no default", param);
                    }
                }
                compiler.body(at);
            });
            self.program.functions.push(Function { name, params: types, block, as_type });
        }
    }

    fn compile_templates(&mut self, kinds: &Kinds) {
        for ranked in &kinds.templates {
            let at = ranked.at;
            let simplified = self.module(at).simplified;
            let as_type = if simplified { NONE } else { self.as_type(at) };
            let (block, params) = self.block(|compiler| {
                if simplified {
                    compiler.here = at;
                    compiler.literal_element(at);
                    return Vec::new();
                }
                let params = compiler.template_params(at);
                compiler.here = at;
                if as_type == NONE {
                    compiler.body(at);
                } else {
                    compiler.emit(Op::BeginTypedResult);
                    compiler.body(at);
                    compiler.here = at;
                    compiler.emit(Op::EndTypedResult { as_type });
                }
                params
            });
            let mut required_params = Vec::new();
            let elements = if simplified { Vec::new() } else { self.param_elements(at) };
            let requires_params = elements.iter().any(|param| self.flag(*param, "required"));
            for param in elements {
                if self.flag(param, "required") && !self.flag(param, "tunnel") {
                    required_params.extend(self.declared_name(param));
                }
            }
            let identity = !simplified && as_type == NONE && self.is_identity(at);
            let template = self.program.templates.len() as u32;
            self.program.templates.push(Template {
                block,
                precedence: ranked.precedence,
                lowest_import: ranked.lowest,
                requires_params,
                required_params,
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
            let unknown: Vec<u32> = passed.iter().copied().filter(|name| !declared.contains(name)).collect();
            for name in unknown {
                let name = self.program.names[name as usize].clone();
                let message = format!("the template has no parameter `{name}`");
                if version >= 2.0 { self.error("XTSE0680", message, at) } else { self.warning(message, at) }
            }
            let required = &self.program.templates[template as usize].required_params;
            let missing: Vec<u32> = required.iter().copied().filter(|name| !passed.contains(name)).collect();
            for name in missing {
                let name = self.program.names[name as usize].clone();
                self.error("XTSE0690", format!("the parameter `{name}` is required and is not passed"), at);
            }
        }
    }

    /// The names of the keys, and what they must have.
    fn check_keys(&mut self, kinds: &Kinds) {
        let mut collations = HashMap::new();
        for ranked in &kinds.keys {
            let at = ranked.at;
            self.declared_name(at);
            let uses = self.attribute(at, "use").is_some();
            if uses != self.content(at).is_empty() {
                self.error("XTSE1205", "`xsl:key` has either `use` or content", at);
            }
            if let Some(collation) = self.attribute(at, "collation")
                && Collation::from_uri(collation).is_none()
            {
                self.error("XTSE1210", format!("unknown collation `{collation}`"), at);
            }
            let collation = self.key_collation(at);
            let name = self.attribute(at, "name").and_then(|name| self.qname(name, at));
            if *collations.entry(name).or_insert(collation) != collation {
                self.error("XTSE1220", "declarations of one key have different collations", at);
            }
        }
    }

    /// What compares the values of a key.
    fn key_collation(&self, at: At) -> Collation {
        match self.attribute(at, "collation") {
            Some(uri) => Collation::from_uri(uri).unwrap_or_default(),
            None => self.default_collation(at),
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
                        compiler.emit(Op::BeginSequence);
                        compiler.body(at);
                        compiler.emit(Op::EndSequence { slot, as_type: NONE });
                        slot
                    });
                    KeyUse::Body(block, slot)
                }
            };
            let number = self.program.keys.len() as u32;
            let collation = self.key_collation(at);
            self.program.keys.push(Key { pattern, usage, collation });
            self.program.key_names.entry(name).or_default().push(number);
        }
    }
}
