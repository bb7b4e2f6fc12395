//! What the HTML output method knows of HTML 4.

/// Elements without content: no end tag.
pub(super) fn is_empty_element(name: &str) -> bool {
    const EMPTY: &[&str] = &[
        "area", "base", "basefont", "br", "col", "embed", "frame", "hr", "img", "input", "isindex", "link", "meta",
        "param", "source", "track", "wbr",
    ];
    EMPTY.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// Elements whose text is not markup, so that nothing in it is escaped.
pub(super) fn is_raw_text(name: &str) -> bool {
    name.eq_ignore_ascii_case("script") || name.eq_ignore_ascii_case("style")
}

/// Elements in which white space matters, or that flow with text: no line breaks are added around them.
pub(super) fn is_inline(name: &str) -> bool {
    const INLINE: &[&str] = &[
        "a", "abbr", "acronym", "b", "basefont", "bdo", "big", "br", "button", "cite", "code", "dfn", "em", "font",
        "i", "img", "input", "kbd", "label", "map", "q", "s", "samp", "select", "small", "span", "strike", "strong",
        "sub", "sup", "textarea", "tt", "u", "var",
    ];
    INLINE.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// Elements whose content is taken as it is.
pub(super) fn keeps_space(name: &str) -> bool {
    const KEEPS: &[&str] = &["pre", "textarea", "script", "style"];
    KEEPS.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// Attributes that are written by name alone when their value is their name.
pub(super) fn is_boolean(name: &str) -> bool {
    const BOOLEAN: &[&str] = &[
        "checked", "compact", "declare", "defer", "disabled", "ismap", "multiple", "nohref", "noresize", "noshade",
        "nowrap", "readonly", "selected",
    ];
    BOOLEAN.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// Attributes whose value is a URI: characters beyond ASCII are percent-encoded.
pub(super) fn is_uri(name: &str) -> bool {
    const URI: &[&str] = &[
        "action",
        "background",
        "cite",
        "classid",
        "codebase",
        "data",
        "href",
        "longdesc",
        "profile",
        "src",
        "usemap",
    ];
    URI.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// The names of the characters from U+00A0 to U+00FF.
const LATIN: &str = "nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn sup2 \
    sup3 acute micro para middot cedil sup1 ordm raquo frac14 frac12 frac34 iquest Agrave Aacute Acirc Atilde Auml \
    Aring AElig Ccedil Egrave Eacute Ecirc Euml Igrave Iacute Icirc Iuml ETH Ntilde Ograve Oacute Ocirc Otilde Ouml \
    times Oslash Ugrave Uacute Ucirc Uuml Yacute THORN szlig agrave aacute acirc atilde auml aring aelig ccedil \
    egrave eacute ecirc euml igrave iacute icirc iuml eth ntilde ograve oacute ocirc otilde ouml divide oslash \
    ugrave uacute ucirc uuml yacute thorn yuml";

/// The entity that stands for a character.
pub(super) fn entity(character: char) -> Option<&'static str> {
    let code = u32::from(character);
    if (0xa0..=0xff).contains(&code) {
        return LATIN.split_ascii_whitespace().nth((code - 0xa0) as usize);
    }
    Some(match character {
        'Œ' => "OElig",
        'œ' => "oelig",
        'Š' => "Scaron",
        'š' => "scaron",
        'Ÿ' => "Yuml",
        'ƒ' => "fnof",
        '–' => "ndash",
        '—' => "mdash",
        '‘' => "lsquo",
        '’' => "rsquo",
        '‚' => "sbquo",
        '“' => "ldquo",
        '”' => "rdquo",
        '„' => "bdquo",
        '†' => "dagger",
        '‡' => "Dagger",
        '•' => "bull",
        '…' => "hellip",
        '‰' => "permil",
        '€' => "euro",
        '™' => "trade",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entities_are_where_they_belong() {
        assert_eq!(entity('\u{a0}'), Some("nbsp"));
        assert_eq!(entity('ó'), Some("oacute"));
        assert_eq!(entity('ÿ'), Some("yuml"));
        assert_eq!(entity('x'), None);
    }
}
