//! `xsl:result-document`, and `exsl:document` of EXSLT.

use super::super::{At, Compiler};
use crate::program::{Op, ResultDocument};
use crate::read::XSL;

impl Compiler<'_> {
    pub(in crate::compile) fn result_document(&mut self, at: At) {
        let document = &self.module(at).document;
        let mut result = ResultDocument {
            href: self.optional_avt(at, "href"),
            format: self.optional_avt(at, "format"),
            properties: Vec::new(),
            character_map: Vec::new(),
            scope: (at.module, at.node),
        };
        let exslt = document.namespace(at.node) != XSL;
        for attribute in document.attributes(at.node) {
            let (name, text) = (document.local_name(attribute), document.text(attribute));
            let place = At { node: attribute, ..at };
            match name {
                _ if !document.namespace(attribute).is_empty() => {}
                // The version of the output, as EXSLT names it.
                "version" if exslt => {
                    let value = self.avt(text, place);
                    result.properties.push((name.into(), value));
                }
                "href"
                | "format"
                | "type"
                | "validation"
                | "use-when"
                | "version"
                | "xpath-default-namespace"
                | "default-collation"
                | "exclude-result-prefixes"
                | "extension-element-prefixes" => {}
                "use-character-maps" => {
                    for token in text.split_ascii_whitespace() {
                        result.character_map.extend(self.character_map(token, place));
                    }
                }
                name => {
                    let value = self.avt(text, place);
                    let name = if name == "output-version" { "version" } else { name };
                    result.properties.push((name.into(), value));
                }
            }
        }
        let number = self.program.results.len() as u32;
        self.program.results.push(result);
        self.emit(Op::BeginResultDocument);
        self.isolated_body(at);
        self.emit(Op::EndResultDocument(number));
    }
}
