//! Template rules: which of them win, and the tables that find them by kind and name of node.

use penstock_xpath::ast::Name;
use penstock_xpath::pattern::Key;

use crate::program::{Mode, Op, Rule, Select};

use super::{At, Compiler};

/// A rule before the modes are complete.
pub(super) struct PendingRule {
    rule: Rule,
    key: Key,
    /// Modes it is in; empty for all.
    modes: Vec<u32>,
}

impl Compiler<'_> {
    /// The rules of a template with a `match` attribute.
    pub fn template_rules(&mut self, at: At, template: u32) {
        let priority = self.attribute(at, "priority");
        let modes = self.attribute(at, "mode");
        let Some(pattern) = self.attribute(at, "match") else {
            if self.attribute(at, "name").is_none() {
                self.error("XTSE0500", "`xsl:template` needs `match` or `name`", at);
            } else if (priority.is_some() || modes.is_some()) && self.version(at) >= 2.0 {
                self.error("XTSE0500", "`priority` and `mode` mean something with `match` only", at);
            }
            return;
        };
        let priority = match priority.map(|text| (text, text.trim().parse::<f64>())) {
            None => None,
            Some((_, Ok(number))) => Some(number),
            Some((text, Err(_))) => {
                let message = format!("`priority` is a number, not `{text}`");
                self.error("XTSE0530", message, self.attribute_place(at, "priority"));
                None
            }
        };
        let numbers = self.template_modes(modes.unwrap_or("#default"), self.attribute_place(at, "mode"));
        self.add_rules(pattern, self.attribute_place(at, "match"), template, priority, &numbers);
    }

    /// The modes of a template; empty for all.
    fn template_modes(&mut self, list: &str, at: At) -> Vec<u32> {
        let tokens: Vec<&str> = list.split_ascii_whitespace().collect();
        let repeated = tokens.iter().enumerate().any(|(index, token)| tokens[..index].contains(token));
        let unknown = tokens.iter().any(|token| token.starts_with('#') && !matches!(*token, "#default" | "#all"));
        let crowded = tokens.len() > 1 && tokens.contains(&"#all");
        if tokens.is_empty() || repeated || unknown || crowded {
            let message = "`mode` is a list of different modes, or `#all`, and names at least one";
            self.error("XTSE0550", message, at);
            return Vec::new();
        }
        let mut numbers = Vec::new();
        for token in tokens {
            match token {
                "#default" => numbers.push(0),
                "#all" => {}
                name if self.is_reserved(name, at) => {
                    self.error("XTSE0080", format!("`{name}` is in a reserved namespace"), at);
                }
                name => numbers.extend(self.mode(name, at)),
            }
        }
        numbers
    }

    pub fn add_rules(&mut self, pattern: &str, at: At, template: u32, priority: Option<f64>, modes: &[u32]) {
        let Some(number) = self.pattern(pattern, at) else { return };
        let precedence = self.program.templates[template as usize].precedence;
        let compiled = &self.program.patterns[number as usize];
        for (branch, alternative) in compiled.alternatives().iter().enumerate() {
            let rule = Rule {
                template,
                pattern: number,
                branch: branch as u32,
                precedence,
                priority: priority.unwrap_or_else(|| alternative.default_priority()),
                certain: alternative.is_key_only(),
            };
            self.pending_rules.push(PendingRule { rule, key: alternative.key().clone(), modes: modes.to_vec() });
        }
    }

    /// Puts the rules into the modes, winners first, and builds the tables.
    pub fn finish_rules(&mut self) {
        let mut pending = std::mem::take(&mut self.pending_rules);
        // The sort is stable: of equal rules the one written last wins.
        pending.reverse();
        pending.sort_by(|a, b| {
            b.rule.precedence.cmp(&a.rule.precedence).then(b.rule.priority.total_cmp(&a.rule.priority))
        });
        for mode in 0..self.program.modes.len() as u32 {
            let mut rules = Vec::new();
            let mut keys = Vec::new();
            for pending in pending.iter().filter(|pending| pending.modes.is_empty() || pending.modes.contains(&mode)) {
                rules.push(pending.rule);
                keys.push(pending.key.clone());
            }
            let built = self.mode_tables(rules, &keys);
            self.program.modes[mode as usize] = built;
        }
        self.program.stop = self.emit(Op::Return);
    }

    fn mode_tables(&mut self, rules: Vec<Rule>, keys: &[Key]) -> Mode {
        let mut mode = Mode { rules, ..Mode::default() };
        let mut list = |wanted: &dyn Fn(&Key) -> bool| {
            let chosen = keys.iter().enumerate().filter(|(_, key)| wanted(key) || **key == Key::Anything);
            mode.lists.push(chosen.map(|(rule, _)| rule as u32).collect());
            mode.lists.len() as u32 - 1
        };
        let any_element = |key: &Key| matches!(key, Key::AnyElement | Key::AnyChild);
        let any_attribute = |key: &Key| matches!(key, Key::AnyAttribute);
        mode.elements = list(&any_element);
        mode.attributes = list(&any_attribute);
        mode.text = list(&|key| matches!(key, Key::Text | Key::AnyChild));
        mode.comments = list(&|key| matches!(key, Key::Comment | Key::AnyChild));
        mode.instructions = list(&|key| matches!(key, Key::ProcessingInstruction | Key::AnyChild));
        mode.documents = list(&|key| matches!(key, Key::Document));
        mode.namespaces = list(&|_| false);
        let mut names: Vec<(bool, Name)> = Vec::new();
        for key in keys {
            let (element, name) = match key {
                Key::Element(name) => (true, name),
                Key::Attribute(name) => (false, name),
                _ => continue,
            };
            let same = |other: &Name| other.local == name.local && other.namespace == name.namespace;
            if !names.iter().any(|(kind, other)| *kind == element && same(other)) {
                names.push((element, name.clone()));
            }
        }
        for (element, name) in names {
            let same = |other: &Name| other.local == name.local && other.namespace == name.namespace;
            let number = if element {
                list(&|key| any_element(key) || matches!(key, Key::Element(other) if same(other)))
            } else {
                list(&|key| any_attribute(key) || matches!(key, Key::Attribute(other) if same(other)))
            };
            let symbol = self.symbol(name.namespace.as_deref().unwrap_or_default(), &name.local);
            if element {
                mode.element_names.push((symbol, number))
            } else {
                mode.attribute_names.push((symbol, number))
            }
        }
        mode
    }

    /// Whether a template does nothing but copy its node and go on with attributes and children in the same mode.
    pub fn is_identity(&self, at: At) -> bool {
        let mode = self.attribute(at, "mode").map(str::trim);
        let only = |parent: At| match &self.content(parent)[..] {
            [only] => Some(*only),
            _ => None,
        };
        let Some(copy) = only(at).filter(|copy| self.xsl_name(*copy) == Some("copy")) else { return false };
        let document = &self.module(copy).document;
        if document.attributes(copy.node).next().is_some() {
            return false;
        }
        let Some(apply) = only(copy).filter(|apply| self.xsl_name(*apply) == Some("apply-templates")) else {
            return false;
        };
        if !self.content(apply).is_empty() {
            return false;
        }
        let applied = self.attribute(apply, "mode").map(str::trim);
        let same_mode = applied == Some("#current")
            || match (mode, applied) {
                (None | Some("#default"), None | Some("#default")) => true,
                (Some(mode), Some(applied)) => mode == applied && !mode.contains(' ') && mode != "#all",
                _ => false,
            };
        let select = self.attribute(apply, "select").unwrap_or_default();
        same_mode && matches!(super::expression::common_select(select), Some(Select::AttributesAndChildren))
    }
}
