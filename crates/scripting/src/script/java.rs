//! Java classes that a script names. Those without a replacement in `prelude.js` are reported when the script is compiled.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

/// What `prelude.js` has in place of Java classes.
const REPLACED: [&str; 9] = [
    "java.lang.String",
    "java.lang.System",
    "java.lang.Thread",
    "java.lang.Math",
    "java.util.UUID",
    "java.util.Date",
    "javax.xml.namespace.QName",
    "org.apache.axiom.om.OMAbstractFactory",
    "org.apache.axiom.om.util.AXIOMUtil",
];

/// Comments, strings and regular expressions are left out by the first alternative; the class of `Java.type("…")` is in a
/// string.
static NAMES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let pattern = r#"(?x)
        //[^\n]* | /\*(?s:.*?)\*/
        | Java\.type\(\s*["']([\w.$]+)["']\s*\)
        | "(?:[^"\\\n]|\\.)*" | '(?:[^'\\\n]|\\.)*'
        | \bPackages\.([a-z]\w*(?:\.\w+)*)
        | (?:^|[^\w.$])(javax?\.[a-z]\w*(?:\.\w+)+)
        | (?:^|[^\w.$])((?:org\.(?:apache|wso2|json)|com\.(?:google|fasterxml|sun))\.\w+(?:\.\w+)*)"#;
    // The pattern is constant and compiles; the test below uses it.
    Regex::new(pattern).ok()
});

/// The classes in the order of their names, each with its package.
pub(super) fn missing_classes(script: &str) -> Vec<String> {
    let Some(names) = &*NAMES else { return Vec::new() };
    let found = names.captures_iter(script).filter_map(|captures| (1..=4).find_map(|group| captures.get(group)));
    let classes: BTreeSet<String> = found.filter_map(|name| class_of(name.as_str())).collect();
    classes.into_iter().filter(|class| !REPLACED.contains(&class.as_str())).collect()
}

/// The class that `java.util.UUID.randomUUID` begins with; a package by itself is none.
fn class_of(name: &str) -> Option<String> {
    let parts: Vec<&str> = name.split('.').collect();
    let class = parts.iter().position(|part| part.starts_with(|first: char| first.is_ascii_uppercase()))?;
    Some(parts[..=class].join("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_without_a_replacement_are_found() {
        for (script, expected) in [
            (
                "var M = Java.type('java.security.MessageDigest'); java.lang.Thread.sleep(1);",
                "java.security.MessageDigest",
            ),
            (
                "new java.text.SimpleDateFormat('y'); new Packages.java.util.HashMap()",
                "java.text.SimpleDateFormat java.util.HashMap",
            ),
            ("importPackage(Packages.java.text); java.util.UUID.randomUUID()", ""),
            ("org.apache.commons.codec.binary.Base64.encode(x)", "org.apache.commons.codec.binary.Base64"),
            ("// java.io.File\n/* java.io.Reader */ 'new java.io.Writer' + x.java.io.Writer", ""),
            ("var org = mc.getPayloadJSON(); org.Name + com.address.City", ""),
        ] {
            assert_eq!(missing_classes(script).join(" "), expected, "{script}");
        }
    }
}
