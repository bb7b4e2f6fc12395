//! The first pass: numbers for everything that can be named.

use std::collections::HashMap;

use super::super::{At, Compiler};
use super::Kinds;

impl Compiler<'_> {
    pub(super) fn number_globals(&mut self, kinds: &Kinds) {
        let mut precedences: HashMap<u32, u32> = HashMap::new();
        for ranked in &kinds.globals {
            let Some(name) = self.declared_name(ranked.at) else { continue };
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

    pub(super) fn number_functions(&mut self, kinds: &Kinds) {
        let mut precedences: HashMap<(u32, usize), u32> = HashMap::new();
        for ranked in &kinds.functions {
            let at = ranked.at;
            let Some(text) = self.attribute(at, "name") else { continue };
            if !text.contains(':') {
                self.error("XTSE0740", format!("the name `{text}` of a function has a prefix"), at);
                continue;
            }
            let Some(name) = self.declared_name(at) else { continue };
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

    pub(super) fn number_templates(&mut self, kinds: &Kinds) {
        for (number, ranked) in kinds.templates.iter().enumerate() {
            let at = ranked.at;
            if let Some(text) = self.attribute(at, "name").filter(|_| !self.module(at).simplified)
                && let Some(name) = self.declared_name(at)
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
            // Modes exist as soon as a template names them, in any order of compilation.
            if let Some(modes) = self.attribute(at, "mode").filter(|_| !self.module(at).simplified) {
                let named = |mode: &&str| !mode.starts_with('#') && !self.is_reserved(mode, at);
                for mode in modes.split_ascii_whitespace().filter(named).collect::<Vec<_>>() {
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
}
