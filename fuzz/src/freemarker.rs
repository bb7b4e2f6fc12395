//! FreeMarker templates: reading and rendering any text ends with a text or an error.

use penstock_freemarker::{Data, Model, Template};
use penstock_xml::{Document, ParseOptions};

/// Pieces of templates.
pub const DICTIONARY: &[&str] = &[
    "${",
    "}",
    "<#if ",
    "<#elseif x>",
    "<#else>",
    "</#if>",
    "<#list payload.items as i>",
    "<#list h as k, v>",
    "</#list>",
    "<#items as i>",
    "</#items>",
    "<#sep>",
    "<#assign a = ",
    "<#assign a>",
    "</#assign>",
    "<#macro m a b=1 c...>",
    "</#macro>",
    "<@m a=1 ; x>",
    "</@m>",
    "<@m/>",
    "<#function f x>",
    "<#return x>",
    "</#function>",
    "<#nested 1>",
    "<#switch 1>",
    "<#case 1>",
    "<#default>",
    "</#switch>",
    "<#attempt>",
    "<#recover>",
    "</#attempt>",
    "<#escape x as x?html>",
    "</#escape>",
    "<#noparse>",
    "<#-- -->",
    "<#break>",
    "?c",
    "?string('0.0#')",
    "?map(x -> x)",
    "?sort_by('a')",
    "?replace('a', 'b', 'r')",
    "?chunk(2, 0)",
    "?join(',')",
    "?index",
    "?eval_json",
    "?left_pad(9)",
    "!",
    "??",
    "[0]",
    "[1..]",
    "1..9",
    "..*",
    "{'a': 1}",
    "\"a${1}b\"",
    "r'x'",
    "payload",
    "xml.r.a.@b",
    ".now",
    " > ",
    " gt ",
    "&&",
    "&lt;",
];

/// Reads the bytes as a template; what can be read is rendered.
pub fn template(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(template) = Template::parse(text) else { return };
    let json = serde_json::json!({"items": [{"a": 1, "n": "x"}, {"a": 2.5, "n": null}], "t": "text", "h": {"k": true}});
    let Ok(document) = Document::parse("<r><a b='1'>x</a><a>2</a></r>", &ParseOptions::default()) else { return };
    let roots =
        vec![("payload", Data::of_json(&json)), ("xml", Data::node(&document, Document::ROOT)), ("h", Data::text("h"))];
    let model = Model { roots, ..Model::default() };
    let _ = template.render(&model);
}
