//! What a file is, by its name and its first element.

use std::path::Path;

use crate::registry::REGISTRY;
use penstock_compile::is_root_element;

/// Whether a root element is that of an artifact. WSDL has a root of the name `definitions` too, in its own namespace.
pub(super) fn is_artifact(root: &str, bytes: &[u8]) -> bool {
    if root == "definitions" {
        let head = &bytes[..bytes.len().min(4096)];
        let head = String::from_utf8_lossy(head);
        return !head.contains("http://schemas.xmlsoap.org/wsdl/");
    }
    is_root_element(root, &REGISTRY)
}

/// Whether a text is an API definition, or the descriptor of an API.
pub(super) fn is_api(bytes: &[u8]) -> bool {
    let mut found = false;
    top_members(bytes, &mut |name, value| {
        found |= matches!(name, "openapi" | "swagger" | "asyncapi")
            || (name == "type" && matches!(value, "api" | "mcp_server"))
            || (name == "apiVersion" && is_of_platform(value));
    });
    found
}

/// Whether a text that is an API definition or descriptor was written for a gateway: it has extensions of WSO2, or is a
/// descriptor. Other definitions often document a backend.
pub(super) fn is_for_gateway(bytes: &[u8]) -> bool {
    const EXTENSION: &[u8] = b"x-wso2-";
    let mut is_descriptor = false;
    top_members(bytes, &mut |name, value| {
        is_descriptor |= (name == "type" && matches!(value, "api" | "mcp_server"))
            || (name == "apiVersion" && is_of_platform(value));
    });
    is_descriptor || bytes.windows(EXTENSION.len()).any(|part| part == EXTENSION)
}

/// Whether a resource is one of WSO2's API Platform, and not of Kubernetes or another product.
fn is_of_platform(api_version: &str) -> bool {
    ["gateway.api-platform.wso2.com/", "api-platform.wso2.com/"].iter().any(|group| api_version.starts_with(group))
}

/// Whether a text that is called `api.yaml` describes an API: by its type, or by its members as before there were types.
pub(super) fn is_api_descriptor(bytes: &[u8]) -> bool {
    let (mut typed, mut context, mut version, mut old) = (false, false, false, false);
    top_members(bytes, &mut |name, value| {
        typed |= name == "type" && matches!(value, "api" | "api_product" | "mcp_server");
        context |= name == "context";
        version |= name == "version";
        // Of API Manager 2 and 3, whose version is among the members of `id`.
        old |= name == "id" && !value.starts_with(|letter: char| letter.is_ascii_alphanumeric());
    });
    typed || (context && (version || old))
}

/// Gives every member of the outermost mapping of a YAML or JSON text, with its value when that is a word on the same
/// line. Nothing is parsed: the reader of the document reports its mistakes.
fn top_members(bytes: &[u8], give: &mut dyn FnMut(&str, &str)) {
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim_start_matches('\u{feff}');
    if text.trim_start().starts_with('{') {
        return top_members_of_json(text, give);
    }
    for line in text.lines().filter(|line| !line.starts_with([' ', '\t', '#', '-'])) {
        let Some((name, value)) = line.split_once(':') else { continue };
        let value = value.split(" #").next().unwrap_or_default();
        let bare = |text: &str| text.trim().trim_matches(['"', '\'']).to_owned();
        give(&bare(name), &bare(value));
    }
}

fn top_members_of_json(text: &str, give: &mut dyn FnMut(&str, &str)) {
    let mut depth = 0usize;
    let mut rest = text;
    while let Some(at) = rest.find(['{', '[', '}', ']', '"']) {
        let (found, behind) = rest.split_at(at + 1);
        rest = behind;
        match found.as_bytes().last() {
            Some(b'{' | b'[') => depth += 1,
            Some(b'}' | b']') => depth = depth.saturating_sub(1),
            _ => {
                let Some((name, after)) = json_text(rest) else { return };
                rest = after;
                let value = after.trim_start().strip_prefix(':');
                if let Some(value) = value.filter(|_| depth == 1) {
                    let value = value.trim_start().strip_prefix('"').and_then(json_text).map_or("", |(text, _)| text);
                    give(name, value);
                }
            }
        }
    }
}

/// What stands before the closing quote, and what follows it.
fn json_text(text: &str) -> Option<(&str, &str)> {
    let mut escaped = false;
    let end = text.find(|letter| {
        let ends = letter == '"' && !escaped;
        escaped = letter == '\\' && !escaped;
        ends
    })?;
    Some((&text[..end], &text[end + 1..]))
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

/// Files of editors and build tools.
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

/// Files that editors write beside the one being edited. They appear and disappear during editing.
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

/// Folders that hold no artifacts: `test` where Maven keeps tests, in `src`; `penstock-state`, the default folder of keys and of
/// what is deployed over REST.
pub fn is_clutter_folder(folder: &Path) -> bool {
    let Some(name) = folder.file_name().map(|name| name.to_string_lossy()) else { return false };
    let is_in_sources = || folder.parent().and_then(Path::file_name).is_some_and(|parent| parent == "src");
    name.starts_with('.')
        || matches!(&*name, "target" | "node_modules" | "META-INF" | "metadata" | "penstock-state")
        || (name == "test" && is_in_sources())
}

/// Whether a root element is that of a file of a test suite, which `penstock test` reads.
pub(super) fn is_of_tests(root: &str) -> bool {
    matches!(root, "unit-test" | "mock-service")
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn a_folder_named_test_may_hold_artifacts() {
        for (folder, expected) in [
            ("shop/src/test", true),
            ("shop/test", false),
            ("test", false),
            ("shop/target", true),
            ("shop/.git", true),
            ("shop/penstock-state", true),
            ("shop/api", false),
        ] {
            assert_eq!(is_clutter_folder(Path::new(folder)), expected, "{folder}");
        }
    }

    #[test]
    fn knows_definitions_from_resources() {
        for (text, expected) in [
            ("openapi: 3.0.1\ninfo: {}", true),
            ("---\n# c\n'swagger': '2.0'", true),
            ("type: api # x\ndata:\n", true),
            ("type: mcp_server\n", true),
            ("type: application\n", false),
            ("info:\n  openapi: 3.0.1\n", false),
            ("{\"info\": {\"openapi\": 1, \"x\": \"}\\\"\"}, \"openapi\": \"3.0.0\"}", true),
            ("{\"a\": {\"swagger\": \"2.0\"}, \"b\": \"swagger\"}", false),
            ("{\"type\" : \"api\"}", true),
            ("{\"never closed", false),
            ("<api/>", false),
        ] {
            assert_eq!(is_api(text.as_bytes()), expected, "{text}");
        }
        assert!(!is_for_gateway(b"openapi: 3.0.1\ninfo: {}"));
        assert!(is_for_gateway(b"openapi: 3.0.1\nx-wso2-basePath: /a"));
        assert!(is_for_gateway(b"type: api\ndata: {}"));
        assert!(is_api_descriptor(b"name: A\ncontext: /a\nversion: 1\n"));
        assert!(!is_api_descriptor(b"name: A\nversion: 1\n"));
    }
}
