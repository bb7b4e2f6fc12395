//! Templates of operation policies: filling ends, in bounds, and a value never becomes markup.

use std::sync::Arc;

use penstock_gateway::readers::{action_template, sequence_template};

/// Pieces of templates.
pub const DICTIONARY: &[&str] = &[
    "{{ .a }}",
    "{{- ",
    " -}}",
    "{{",
    "}}",
    "{% if a %}",
    "{% else %}",
    "{% endif %}",
    "{% for i in range(9) %}",
    "{% endfor %}",
    "{{ if .a }}",
    "{{ else if eq .a \"x\" }}",
    "{{ end }}",
    "and ",
    "or ",
    "not ",
    "| upper",
    "| safe",
    "{#",
    "#}",
    "{{/*",
    "*/}}",
    "{% set b = a %}",
    "\n",
    "<log/>",
];

/// The largest result either may give.
const OUTPUT_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Fills a template of each kind.
pub fn template(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let values: Vec<(Arc<str>, Arc<str>)> = vec![("a".into(), "<evil x=\"&\"/>".into()), ("b".into(), "false".into())];
    for filled in [action_template(text, &values), sequence_template(text, &values)].into_iter().flatten() {
        assert!(filled.len() <= OUTPUT_BYTES_MAX, "{} bytes", filled.len());
    }
    if let Ok(filled) = sequence_template(text, &values)
        && !text.contains("evil")
        && !["safe", "autoescape", "escape", "replace", "split", "tojson", "format", "[", "macro", "call"]
            .iter()
            .any(|way| text.contains(way))
    {
        assert!(!filled.contains("<evil"), "{filled}");
    }
}
