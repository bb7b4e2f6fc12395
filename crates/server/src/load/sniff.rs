//! What a file is, by its name and its first element.

/// The local name of the root element of an XML text; `None` when there is none to be seen.
pub fn root_element(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    let mut rest = text.trim_start_matches('\u{feff}');
    loop {
        rest = rest.trim_start();
        rest = if let Some(comment) = rest.strip_prefix("<!--") {
            comment.split_once("-->")?.1
        } else if let Some(instruction) = rest.strip_prefix("<?") {
            instruction.split_once("?>")?.1
        } else if rest.starts_with("<!") {
            after_doctype(rest)?
        } else {
            break;
        };
    }
    let tag = rest.strip_prefix('<')?;
    let end = tag.find(|next: char| next.is_whitespace() || matches!(next, '>' | '/'))?;
    let name = tag[..end].rsplit(':').next().unwrap_or_default();
    (!name.is_empty()).then(|| name.to_owned())
}

/// Behind a document type declaration, its internal subset included.
fn after_doctype(text: &str) -> Option<&str> {
    let mut inside = 0usize;
    for (index, letter) in text.char_indices() {
        match letter {
            '[' => inside += 1,
            ']' => inside = inside.saturating_sub(1),
            '>' if inside == 0 => return text.get(index + 1..),
            _ => {}
        }
    }
    None
}

/// Root elements that the compiler takes: an artifact, or a whole configuration.
const ARTIFACTS: [&str; 19] = [
    "api",
    "data",
    "datasource",
    "definitions",
    "endpoint",
    "eventSource",
    "import",
    "inboundEndpoint",
    "library",
    "localEntry",
    "messageProcessor",
    "messageStore",
    "priorityExecutor",
    "proxy",
    "registry",
    "sequence",
    "task",
    "taskManager",
    "template",
];

/// Whether a root element is that of an artifact. WSDL has a root of the name `definitions` too, in its own namespace.
pub(super) fn is_artifact(root: &str, bytes: &[u8]) -> bool {
    if root == "definitions" {
        let head = &bytes[..bytes.len().min(4096)];
        let head = String::from_utf8_lossy(head);
        return !head.contains("http://schemas.xmlsoap.org/wsdl/");
    }
    ARTIFACTS.contains(&root)
}

/// The files that attributes `src="file:…"` name.
pub(super) fn file_sources(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    let mut found = Vec::new();
    for (start, marker) in text.match_indices("src=") {
        let value = &text[start + marker.len()..];
        let Some(quote) = value.chars().next().filter(|quote| matches!(quote, '"' | '\'')) else { continue };
        let Some(value) = value[1..].split(quote).next() else { continue };
        if let Some(name) = value.strip_prefix("file:") {
            found.push(name.to_owned());
        }
    }
    found
}

/// Files that say something to editors and build tools, and nothing to us.
pub fn is_clutter(name: &str) -> bool {
    const NAMES: [&str; 16] = [
        "pom.xml",
        "artifact.xml",
        "build.gradle",
        "settings.gradle",
        "gradlew",
        "gradlew.bat",
        "mvnw",
        "mvnw.cmd",
        "makefile",
        "dockerfile",
        "license",
        "notice",
        "readme",
        "changelog",
        "thumbs.db",
        "desktop.ini",
    ];
    const ENDINGS: [&str; 8] = [".md", ".iml", ".bak", ".orig", ".tmp", ".log", ".gitkeep", ".lock"];
    let lower = name.to_ascii_lowercase();
    let stem = lower.strip_suffix(".txt").unwrap_or(&lower);
    NAMES.contains(&stem)
        || NAMES.contains(&lower.as_str())
        || ENDINGS.iter().any(|ending| lower.ends_with(ending))
        || is_editors(name)
}

/// Files that editors write beside the one being edited. They come and go while somebody types.
pub fn is_editors(name: &str) -> bool {
    // `4913` is what vim creates to see whether it may write a folder.
    name.starts_with('.')
        || name.starts_with('#')
        || name.ends_with('~')
        || name == "4913"
        || name.ends_with(".swp")
        || name.ends_with(".swx")
        || name.ends_with(".tmp")
        || name.ends_with(".part")
        || name.ends_with(".crdownload")
        || name.contains("___jb_")
}

/// Folders that hold no artifacts.
pub fn is_clutter_folder(name: &str) -> bool {
    name.starts_with('.') || matches!(name, "target" | "node_modules" | "META-INF" | "test" | "metadata")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_root_element() {
        for (text, expected) in [
            ("<api/>", Some("api")),
            ("\u{feff}<?xml version='1.0'?>\n<!-- <x> --> <syn:proxy name='a'>", Some("proxy")),
            ("<!DOCTYPE a [<!ENTITY b '>'>]><a>", Some("a")),
            ("", None),
            ("{\"a\": 1}", None),
            ("<!-- never closed", None),
            ("<>", None),
        ] {
            assert_eq!(root_element(text.as_bytes()).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn a_wsdl_is_no_artifact() {
        let wsdl = br#"<wsdl:definitions xmlns:wsdl="http://schemas.xmlsoap.org/wsdl/"/>"#;
        assert!(!is_artifact("definitions", wsdl));
        assert!(is_artifact("definitions", b"<definitions/>"));
    }

    #[test]
    fn knows_clutter_from_artifacts() {
        for name in ["pom.xml", "README.md", "LICENSE.txt", ".project", "a.xml~", ".a.xml.swp", "4913", "#a.xml#"] {
            assert!(is_clutter(name), "{name}");
        }
        for name in ["main.xml", "orders.xslt", "readme.xml", "notes.txt"] {
            assert!(!is_clutter(name), "{name}");
        }
    }
}
