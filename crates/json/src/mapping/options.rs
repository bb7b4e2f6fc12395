//! What the configuration can change about the mapping.

use regex::Regex;

/// The flags of the mapping. The default is what a server does that configures nothing.
#[derive(Debug, Clone)]
pub struct Options {
    /// XML to JSON: text that spells a number, `true`, `false` or `null` becomes one.
    pub auto_primitive: bool,
    /// XML to JSON: numbers that match stay strings all the same. [`Options::set`] anchors it at both ends.
    pub primitive_exclusion: Option<Regex>,
    /// XML to JSON: when text begins with a match, that match is replaced and the result is a string.
    pub primitive_replacement: Option<(Regex, String)>,
    /// XML to JSON: children of the same name become one list. Otherwise each is a member of its own.
    pub auto_array: bool,
    /// XML to JSON: `<?xml-multiple name?>` makes a list of the children that follow, even of none.
    pub read_array_instructions: bool,
    /// JSON to XML: write `<?xml-multiple name?>` before the elements of a list. An empty list is
    /// written so in any case, as there is nothing else to show it.
    pub write_array_instructions: bool,
    /// XML to JSON: prefixes stay part of the names, and `xsi:nil` stays an attribute.
    pub preserve_namespaces: bool,
    /// XML to JSON: what stands between prefix and name then.
    pub namespace_separator: char,
    /// XML to JSON: declarations become members (`@xmlns`, `@xmlns_p`) when namespaces are preserved.
    pub namespace_declarations: bool,
    /// JSON to XML: a colon in a name is escaped too, so that every name is an NCName.
    pub valid_names: bool,
    /// Both ways: null is an element with `nil="true"`.
    pub nil: bool,
    /// XML to JSON, with `nil`: an empty element is still null instead of the empty string.
    pub null_for_empty: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            auto_primitive: true,
            primitive_exclusion: None,
            primitive_replacement: None,
            auto_array: true,
            read_array_instructions: true,
            write_array_instructions: false,
            preserve_namespaces: false,
            namespace_separator: '_',
            namespace_declarations: false,
            valid_names: false,
            nil: false,
            null_for_empty: true,
        }
    }
}

impl Options {
    /// Sets the flag that the configuration calls `name`. `false` when no flag is called so.
    pub fn set(&mut self, name: &str, value: &str) -> Result<bool, String> {
        let value = value.trim();
        let flag = value.eq_ignore_ascii_case("true");
        match name {
            "synapse.commons.json.output.autoPrimitive" | "synapse.enable_auto_primitive" => self.auto_primitive = flag,
            "synapse.commons.json.output.disableAutoPrimitive.regex"
            | "synapse.commons.json.json.output.disableAutoPrimitive.regex"
            | "synapse.disable_auto_primitive_regex" => self.primitive_exclusion = Some(pattern(value, true)?),
            "synapse.commons.json.json.output.disableAutoPrimitive.customReplaceRegex"
            | "synapse.disable_custom_replace_regex" => {
                let sequence = self.primitive_replacement.take().map(|(_, sequence)| sequence).unwrap_or_default();
                self.primitive_replacement = Some((pattern(value, false)?, sequence));
            }
            "synapse.commons.json.json.output.disableAutoPrimitive.customReplaceSequence"
            | "synapse.disable_custom_replace_sequence" => {
                // Without a pattern there is nothing to replace; the configuration names the pattern first.
                if let Some((_, sequence)) = &mut self.primitive_replacement {
                    value.clone_into(sequence);
                }
            }
            "synapse.commons.json.output.jsonoutAutoArray" | "synapse.json_out_auto_array" => self.auto_array = flag,
            "synapse.commons.json.output.jsonoutMultiplePI" => self.read_array_instructions = flag,
            "synapse.commons.json.output.xmloutMultiplePI"
            | "synapse.json.to.xml.processing.instruction.enabled"
            | "synapse.enable_json_to_xml_processing_instruction" => self.write_array_instructions = flag,
            "synapse.commons.json.preserve.namespace" | "synapse.preserve_namespace_on_xml_to_json" => {
                self.preserve_namespaces = flag;
            }
            "synapse.commons.json.output.namespaceSepChar" => {
                self.namespace_separator = value.chars().next().ok_or("the separator is empty")?;
            }
            "synapse.commons.json.output.enableNSDeclarations" | "synapse.enable_namespace_declaration" => {
                self.namespace_declarations = flag;
            }
            "synapse.commons.json.buildValidNCNames" | "synapse.build_valid_nc_name" => self.valid_names = flag,
            "synapse.commons.enableXmlNilReadWrite" | "synapse.enable_xml_nil" => self.nil = flag,
            "synapse.commons.enableXmlNullForEmptyElement" => self.null_for_empty = flag,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

fn pattern(source: &str, whole: bool) -> Result<Regex, String> {
    let anchored = if whole { format!(r"\A(?:{source})\z") } else { source.to_owned() };
    Regex::new(&anchored).map_err(|error| format!("`{source}` is not a regular expression: {error}"))
}
