//! Keys of registry resources, and what stands beside a resource about it.

use std::path::Path;

use penstock_compile::Severity;

use super::Loader;
use super::descriptor;

/// What is known of a resource besides its bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct About {
    /// The media type, when it is given.
    pub(super) media_type: Option<String>,
    /// Registry properties.
    pub(super) properties: Vec<(String, String)>,
}

/// The key of a path of the registry: `/_system/governance/a/b` is `gov:a/b`.
pub(super) fn key_of(path: &str) -> Option<String> {
    let path = path.trim().trim_start_matches('/');
    let roots = [
        ("_system/governance", "gov"),
        ("_system/config", "conf"),
        ("_system/local", "local"),
        ("governance", "gov"),
        ("config", "conf"),
        ("local", "local"),
        ("gov", "gov"),
        ("conf", "conf"),
    ];
    roots.iter().find_map(|(root, scheme)| {
        let rest = path.strip_prefix(root)?;
        (rest.is_empty() || rest.starts_with('/')).then(|| format!("{scheme}:{}", rest.trim_matches('/')))
    })
}

/// The key of a file inside a collection.
pub(super) fn join(collection: &str, name: &str) -> String {
    let name = name.trim_matches('/');
    if collection.ends_with(':') || collection.is_empty() {
        format!("{collection}{name}")
    } else {
        format!("{collection}/{name}")
    }
}

/// Whether a folder is the root of a registry: named so, with at least one of its parts.
pub(super) fn is_root(folder: &Path) -> bool {
    folder.file_name().is_some_and(|name| name == "registry")
        && ["governance", "config", "gov", "conf", "local"].iter().any(|part| folder.join(part).is_dir())
}

/// Folders inside folders inside folders: deeper is a loop of links.
const DEPTH_MAX: usize = 32;

impl Loader {
    /// Loads the parts of a registry.
    pub(super) fn registry_root(&mut self, folder: &Path) {
        for part in ["governance", "gov", "config", "conf", "local"] {
            let inside = folder.join(part);
            if inside.is_dir()
                && let Some(key) = key_of(part)
            {
                self.collection(&inside, &key, 0);
            }
        }
    }

    /// Loads every file of a folder as a resource under the key of the folder.
    pub(super) fn collection(&mut self, folder: &Path, key: &str, depth: usize) {
        if depth > DEPTH_MAX {
            self.error(&folder.display().to_string(), format!("folders are nested deeper than {DEPTH_MAX}"));
            return;
        }
        for path in self.sorted(folder) {
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
            if path.is_dir() {
                if !name.starts_with('.') {
                    self.collection(&path, &join(key, name), depth + 1);
                }
            } else if !super::sniff::is_editors(name) && name != "artifact.xml" {
                if name.ends_with(".properties") && path.with_extension("").exists() {
                    continue;
                }
                self.resource_file(&path, join(key, name), None);
            }
        }
    }

    /// Loads one file as a resource.
    pub(super) fn resource_file(&mut self, path: &Path, key: String, about: Option<About>) {
        if !self.first_time(path) {
            return;
        }
        let Some(bytes) = self.read(path, super::FILE_BYTES_MAX) else { return };
        let about = about.unwrap_or_else(|| beside(path));
        self.resource(&path.display().to_string(), bytes, key, about);
    }

    /// The resources an `artifact.xml` of a project names.
    pub(super) fn described_resources(&mut self, folder: &Path) {
        let path = folder.join("artifact.xml");
        if !path.is_file() {
            return;
        }
        let Some(bytes) = self.read(&path, super::FILE_BYTES_MAX) else { return };
        let items = match descriptor::project_resources(&path.display().to_string(), bytes) {
            Ok(items) => items,
            Err((at, message)) => {
                let message = format!("the resources it lists are not loaded: {message}");
                return self.note(Severity::Warning, at, message);
            }
        };
        for item in items {
            let Some(collection) = key_of(&item.path) else { continue };
            // The file stands in the folder, or below it where its path in the registry says.
            let candidates =
                [folder.join(&item.file), folder.join(item.path.trim_start_matches("/_system/")).join(&item.file)];
            let Some(file) = candidates.into_iter().find(|file| file.is_file()) else { continue };
            let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            self.resource_file(&file, join(&collection, &name), Some(item.about));
        }
    }
}

/// What the files beside a resource say: `.meta/NAME.meta` its media type, `NAME.properties` its properties.
fn beside(path: &Path) -> About {
    let mut about = About::default();
    let (Some(folder), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) else {
        return about;
    };
    let properties = |file: &Path| {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        crate::config::properties::parse(&text)
    };
    for (key, value) in properties(&folder.join(".meta").join(format!("{name}.meta"))) {
        if key.eq_ignore_ascii_case("mediaType") && !value.is_empty() {
            about.media_type = Some(value);
        }
    }
    about.properties = properties(&folder.join(format!("{name}.properties")));
    about
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_the_registry_becomes_a_key() {
        for (path, expected) in [
            ("/_system/governance/xslt", Some("gov:xslt")),
            ("/_system/config/", Some("conf:")),
            ("/_system/config", Some("conf:")),
            ("governance/a/b", Some("gov:a/b")),
            ("/_system/configuration", None),
            ("elsewhere", None),
        ] {
            assert_eq!(key_of(path).as_deref(), expected, "{path}");
        }
    }

    #[test]
    fn a_file_joins_its_collection() {
        assert_eq!(join("conf:", "a.xslt"), "conf:a.xslt");
        assert_eq!(join("gov:x", "a.xslt"), "gov:x/a.xslt");
    }
}
