//! The vocabulary: which `xsl:*` elements there are, where they may stand, which attributes they take.

/// Where an element may stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// A child of `xsl:stylesheet` only.
    Declaration,
    /// In a sequence constructor only.
    Instruction,
    /// A declaration, and an instruction too (`xsl:variable`).
    Both,
    /// Inside a particular parent only, listed there.
    Within(&'static [&'static str]),
}

/// What the recommendations say about one element.
#[derive(Debug)]
pub(crate) struct ElementSyntax {
    pub name: &'static str,
    pub place: Place,
    pub required: &'static [&'static str],
    pub optional: &'static [&'static str],
    /// Whether text and instructions may be its content.
    pub content: bool,
}

const fn element(
    name: &'static str,
    place: Place,
    required: &'static [&'static str],
    optional: &'static [&'static str],
    content: bool,
) -> ElementSyntax {
    ElementSyntax { name, place, required, optional, content }
}

use Place::{Both, Declaration, Instruction, Within};

/// Attributes every XSLT element may have.
pub(crate) const STANDARD_ATTRIBUTES: &[&str] = &[
    "version",
    "exclude-result-prefixes",
    "extension-element-prefixes",
    "xpath-default-namespace",
    "default-collation",
    "use-when",
];

const OUTPUT_ATTRIBUTES: &[&str] = &[
    "name",
    "method",
    "byte-order-mark",
    "cdata-section-elements",
    "doctype-public",
    "doctype-system",
    "encoding",
    "escape-uri-attributes",
    "include-content-type",
    "indent",
    "media-type",
    "normalization-form",
    "omit-xml-declaration",
    "standalone",
    "undeclare-prefixes",
    "use-character-maps",
    "version",
];

const RESULT_ATTRIBUTES: &[&str] = &[
    "format",
    "href",
    "type",
    "validation",
    "method",
    "byte-order-mark",
    "cdata-section-elements",
    "doctype-public",
    "doctype-system",
    "encoding",
    "escape-uri-attributes",
    "include-content-type",
    "indent",
    "media-type",
    "normalization-form",
    "omit-xml-declaration",
    "output-version",
    "standalone",
    "undeclare-prefixes",
    "use-character-maps",
];

/// Attributes of `xsl:stylesheet` beside the standard ones.
pub(crate) const STYLESHEET_ATTRIBUTES: &[&str] = &["id", "default-validation", "input-type-annotations"];

/// Elements that must be empty (XTSE0260).
pub(crate) const EMPTY_ELEMENTS: &[&str] = &[
    "copy-of",
    "decimal-format",
    "import",
    "include",
    "namespace-alias",
    "number",
    "output",
    "output-character",
    "preserve-space",
    "strip-space",
];

const SORTABLE: &[&str] = &["for-each", "apply-templates", "for-each-group", "perform-sort"];
const PARAMETRIC: &[&str] = &["call-template", "apply-templates", "apply-imports", "next-match"];

static ELEMENTS: &[ElementSyntax] = &[
    element("analyze-string", Instruction, &["select", "regex"], &["flags"], false),
    element("apply-imports", Instruction, &[], &[], false),
    element("apply-templates", Instruction, &[], &["select", "mode"], false),
    element("attribute", Instruction, &["name"], &["namespace", "select", "separator", "type", "validation"], true),
    element("attribute-set", Declaration, &["name"], &["use-attribute-sets"], false),
    element("call-template", Instruction, &["name"], &[], false),
    element("character-map", Declaration, &["name"], &["use-character-maps"], false),
    element("choose", Instruction, &[], &[], false),
    element("comment", Instruction, &[], &["select"], true),
    element(
        "copy",
        Instruction,
        &[],
        &["use-attribute-sets", "copy-namespaces", "inherit-namespaces", "type", "validation"],
        true,
    ),
    element("copy-of", Instruction, &["select"], &["copy-namespaces", "type", "validation"], false),
    element(
        "decimal-format",
        Declaration,
        &[],
        &[
            "name",
            "decimal-separator",
            "grouping-separator",
            "infinity",
            "minus-sign",
            "NaN",
            "percent",
            "per-mille",
            "zero-digit",
            "digit",
            "pattern-separator",
        ],
        false,
    ),
    element("document", Instruction, &[], &["validation", "type"], true),
    element(
        "element",
        Instruction,
        &["name"],
        &["namespace", "use-attribute-sets", "inherit-namespaces", "type", "validation"],
        true,
    ),
    element("fallback", Instruction, &[], &[], true),
    element("for-each", Instruction, &["select"], &[], true),
    element(
        "for-each-group",
        Instruction,
        &["select"],
        &["group-by", "group-adjacent", "group-starting-with", "group-ending-with", "collation"],
        true,
    ),
    element("function", Declaration, &["name"], &["as", "override"], true),
    element("if", Instruction, &["test"], &[], true),
    element("import", Declaration, &["href"], &[], false),
    element("import-schema", Declaration, &[], &["namespace", "schema-location"], false),
    element("include", Declaration, &["href"], &[], false),
    element("key", Declaration, &["name", "match"], &["use", "collation"], true),
    element("matching-substring", Within(&["analyze-string"]), &[], &[], true),
    element("message", Instruction, &[], &["select", "terminate"], true),
    element("namespace", Instruction, &["name"], &["select"], true),
    element("namespace-alias", Declaration, &["stylesheet-prefix", "result-prefix"], &[], false),
    element("next-match", Instruction, &[], &[], false),
    element("non-matching-substring", Within(&["analyze-string"]), &[], &[], true),
    element(
        "number",
        Instruction,
        &[],
        &[
            "value",
            "select",
            "level",
            "count",
            "from",
            "format",
            "lang",
            "letter-value",
            "ordinal",
            "grouping-separator",
            "grouping-size",
        ],
        false,
    ),
    element("otherwise", Within(&["choose"]), &[], &[], true),
    element("output", Declaration, &[], OUTPUT_ATTRIBUTES, false),
    element("output-character", Within(&["character-map"]), &["character", "string"], &[], false),
    element("param", Both, &["name"], &["select", "as", "required", "tunnel"], true),
    element("perform-sort", Instruction, &[], &["select"], true),
    element("preserve-space", Declaration, &["elements"], &[], false),
    element("processing-instruction", Instruction, &["name"], &["select"], true),
    element("result-document", Instruction, &[], RESULT_ATTRIBUTES, true),
    element("sequence", Instruction, &["select"], &[], false),
    element(
        "sort",
        Within(SORTABLE),
        &[],
        &["select", "lang", "order", "collation", "stable", "case-order", "data-type"],
        true,
    ),
    element("strip-space", Declaration, &["elements"], &[], false),
    element("template", Declaration, &[], &["match", "name", "priority", "mode", "as"], true),
    element("text", Instruction, &[], &["disable-output-escaping"], true),
    element("value-of", Instruction, &[], &["select", "separator", "disable-output-escaping"], true),
    element("variable", Both, &["name"], &["select", "as"], true),
    element("when", Within(&["choose"]), &["test"], &[], true),
    element("with-param", Within(PARAMETRIC), &["name"], &["select", "as", "tunnel"], true),
];

/// The syntax of `xsl:NAME`, when XSLT 1.0 or 2.0 has it.
pub(crate) fn element_syntax(name: &str) -> Option<&'static ElementSyntax> {
    ELEMENTS.iter().find(|element| element.name == name)
}

/// Whether this engine has `xsl:NAME` (for `element-available()`, which since 3.0 knows declarations too).
pub(crate) fn is_instruction(name: &str) -> bool {
    element_syntax(name).is_some()
}

/// The known name closest to a misspelt one.
pub(crate) fn suggestion<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (wrong.chars().count() / 3).max(1);
    known
        .into_iter()
        .map(|name| (strsim::osa_distance(wrong, name), name))
        .filter(|(distance, _)| *distance <= limit)
        .min()
        .map(|(_, name)| name)
}

/// All element names, for suggestions.
pub(crate) fn element_names() -> impl Iterator<Item = &'static str> {
    ELEMENTS.iter().map(|element| element.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_consistent() {
        assert!(ELEMENTS.windows(2).all(|pair| pair[0].name < pair[1].name));
        for element in ELEMENTS {
            assert!(element.required.iter().all(|name| !element.optional.contains(name)), "{}", element.name);
        }
    }

    #[test]
    fn misspelt_names_get_a_suggestion() {
        assert_eq!(suggestion("valeu-of", element_names()), Some("value-of"));
        assert_eq!(suggestion("templat", element_names()), Some("template"));
        assert_eq!(suggestion("frobnicate", element_names()), None);
    }
}
