//! `xsl:output` and `xsl:character-map`.

use std::collections::HashMap;

use super::super::{At, Compiler};
use super::{Kinds, Ranked};
use crate::output::OutputProperties;

/// Attributes that hold lists, which add up.
const LISTS: &[&str] = &["cdata-section-elements", "use-character-maps"];

/// The declarations of each output definition, by expanded name.
type Definitions = Vec<(Option<u32>, Vec<Ranked>)>;

impl Compiler<'_> {
    pub(super) fn outputs(&mut self, kinds: &Kinds) {
        self.character_maps(kinds);
        let mut definitions: Definitions = vec![(None, Vec::new())];
        for ranked in &kinds.outputs {
            let name = match self.attribute(ranked.at, "name") {
                None => None,
                Some(_) => match self.declared_name(ranked.at) {
                    None => continue,
                    name => name,
                },
            };
            match definitions.iter_mut().find(|(other, _)| *other == name) {
                Some((_, list)) => list.push(*ranked),
                None => definitions.push((name, vec![*ranked])),
            }
        }
        for (name, list) in definitions {
            let properties = self.output_definition(list);
            match name {
                None => self.program.output = properties,
                Some(name) => {
                    self.program.outputs.insert(name, properties);
                }
            }
        }
    }

    /// One definition from all its declarations. Those of equal precedence must not contradict one another.
    fn output_definition(&mut self, mut list: Vec<Ranked>) -> OutputProperties {
        list.sort_by_key(|ranked| ranked.precedence);
        let mut properties = OutputProperties::default();
        let mut chosen: Vec<(&str, &str, Ranked, bool)> = Vec::new();
        for ranked in list {
            let document = &self.module(ranked.at).document;
            for attribute in document.attributes(ranked.at.node) {
                let (name, value) = (document.local_name(attribute), document.text(attribute));
                if !document.namespace(attribute).is_empty() || name == "name" {
                    continue;
                }
                if LISTS.contains(&name) {
                    self.output_list(name, value, ranked.at, &mut properties);
                    continue;
                }
                match chosen.iter_mut().find(|(other, ..)| *other == name) {
                    Some(known) => {
                        // A contradiction does not matter when a declaration of higher precedence decides.
                        let clash = known.2.precedence == ranked.precedence && known.1.trim() != value.trim();
                        *known = (name, value, ranked, clash);
                    }
                    None => chosen.push((name, value, ranked, false)),
                }
            }
        }
        properties.version_two = self.program.version_two;
        for (name, value, ranked, clash) in chosen {
            let place = self.attribute_place(ranked.at, name);
            if clash && self.version(ranked.at) >= 2.0 {
                self.error("XTSE1560", format!("`{name}` has two values in declarations of one precedence"), place);
            }
            let lenient = self.version(ranked.at) < 2.0 && name == "method" && value.contains(':');
            if let Err((code, message)) = properties.set(if lenient { "" } else { name }, value) {
                // A value that the attribute cannot have was reported with the others.
                if code != "XTSE0020" {
                    self.error(code, message, place);
                }
            }
        }
        properties
    }

    fn output_list(&mut self, name: &str, value: &str, at: At, properties: &mut OutputProperties) {
        let place = self.attribute_place(at, name);
        for token in value.split_ascii_whitespace() {
            if name == "use-character-maps" {
                properties.character_map.extend(self.character_map(token, place));
                continue;
            }
            match self.cdata_element(token, at) {
                Some(name) => properties.cdata_section_elements.push(name),
                None => self.error("XTSE0280", format!("the prefix of `{token}` is not declared"), place),
            }
        }
    }

    /// The namespace and local name of an element in `cdata-section-elements`.
    fn cdata_element(&self, token: &str, at: At) -> Option<(Box<str>, Box<str>)> {
        let (prefix, local) = token.split_once(':').unwrap_or(("", token));
        let namespace = self.module(at).document.lookup_namespace(at.node, prefix);
        if namespace.is_none() && !prefix.is_empty() {
            return None;
        }
        Some((namespace.unwrap_or_default().into(), local.into()))
    }

    /// Reads all character maps and puts those they use in front of their own characters.
    fn character_maps(&mut self, kinds: &Kinds) {
        let mut maps: HashMap<u32, Ranked> = HashMap::new();
        for ranked in &kinds.character_maps {
            for child in self.content(ranked.at) {
                match self.xsl_name(child) {
                    Some("output-character") => {
                        if let Some(syntax) = crate::read::syntax::element_syntax("output-character") {
                            self.check_attributes(syntax, child);
                        }
                        let character = self.attribute(child, "character").unwrap_or_default();
                        if character.chars().count() != 1 {
                            self.error("XTSE0020", "`character` is one character", child);
                        }
                    }
                    _ => self.error("XTSE0010", "`xsl:character-map` contains `xsl:output-character` only", child),
                }
            }
            let Some(name) = self.declared_name(ranked.at) else { continue };
            match maps.get(&name) {
                Some(other) if other.precedence == ranked.precedence => {
                    self.error("XTSE1580", "two character maps have the same name", ranked.at);
                }
                Some(other) if other.precedence > ranked.precedence => {}
                _ => {
                    maps.insert(name, *ranked);
                }
            }
        }
        for (name, ranked) in &maps {
            let mut open = Vec::new();
            let mut characters = Vec::new();
            self.collect_map(*name, ranked.at, &maps, &mut open, &mut characters);
            self.program.character_maps.insert(*name, characters);
        }
    }

    fn collect_map(
        &mut self,
        name: u32,
        at: At,
        maps: &HashMap<u32, Ranked>,
        open: &mut Vec<u32>,
        characters: &mut Vec<(char, Box<str>)>,
    ) {
        if open.contains(&name) {
            self.error("XTSE1600", "a character map uses itself", at);
            return;
        }
        open.push(name);
        // Later mappings win and the first one found counts, so a map's own characters come first.
        for child in self.content(at).into_iter().rev() {
            let character = self.attribute(child, "character").and_then(|text| text.chars().next());
            if let (Some(character), Some(string)) = (character, self.attribute(child, "string")) {
                characters.push((character, string.into()));
            }
        }
        let used: Vec<&str> =
            self.attribute(at, "use-character-maps").unwrap_or_default().split_ascii_whitespace().collect();
        for token in used.into_iter().rev() {
            let Some(number) = self.qname(token, at) else { continue };
            match maps.get(&number) {
                Some(used) => self.collect_map(number, used.at, maps, open, characters),
                None => self.error("XTSE1590", format!("there is no character map named `{token}`"), at),
            }
        }
        open.pop();
    }

    /// The characters of a map that is used by name.
    pub(in crate::compile) fn character_map(&mut self, token: &str, at: At) -> Vec<(char, Box<str>)> {
        let element = self.element_of(at);
        let Some(number) = self.qname(token, element) else { return Vec::new() };
        match self.program.character_maps.get(&number) {
            Some(map) => map.clone(),
            None => {
                self.error("XTSE1590", format!("there is no character map named `{token}`"), at);
                Vec::new()
            }
        }
    }
}
