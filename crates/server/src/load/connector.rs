//! Connectors: a zip with `connector.xml`, and folders of sequence templates that are its operations.
//!
//! Those that are templates only run as they are. Native connectors need no archive, and theirs is not read. The
//! compiler reports a connector with Java code once, with the operations of it that artifacts call.

use std::path::Path;

use bytes::Bytes;
use penstock_compile::{Input, InputKind};

use super::archive::Archive;
use super::descriptor::{self, Broken};
use super::{ARCHIVE_BYTES_MAX, Connector, Loader};

/// Why an archive is left out.
pub(super) const NO_CONNECTOR: &str = "no connector: the archive has no `connector.xml`";

impl Loader {
    /// Loads what was left out as an archive that is nothing else, where it is a connector.
    pub(super) fn connectors(&mut self) {
        let archives = self.left_out.remove(NO_CONNECTOR).unwrap_or_default();
        for path in archives {
            if !self.connector_file(&path) {
                self.leave_out(&path, NO_CONNECTOR);
            }
        }
    }

    /// Loads a connector; whether the file is one.
    fn connector_file(&mut self, path: &Path) -> bool {
        let Some(bytes) = self.read(path, ARCHIVE_BYTES_MAX) else { return true };
        self.connector(path.display().to_string(), bytes)
    }

    /// Loads a connector from an archive; whether it is one.
    pub(super) fn connector(&mut self, name: String, bytes: Bytes) -> bool {
        let Ok(mut archive) = Archive::open(name, bytes) else { return false };
        if !archive.names().iter().any(|entry| entry == "connector.xml") {
            return false;
        }
        if let Err((at, message)) = self.operations(&mut archive) {
            self.note(penstock_compile::Severity::Error, at, message);
        }
        true
    }

    fn operations(&mut self, archive: &mut Archive) -> Result<(), Broken> {
        let (file, bytes) = archive.read("connector.xml")?;
        let connector = descriptor::connector(&file, bytes)?;
        self.loaded.connectors.push(Connector {
            name: connector.name.clone(),
            package: connector.package.clone(),
            description: connector.description.clone(),
        });
        if crate::registry::REGISTRY.connector(&connector.name).is_some() {
            return Ok(());
        }
        let names = archive.names();
        let java = names.iter().find(|entry| entry.ends_with(".jar") || entry.ends_with(".class"));
        let mut needs_java = false;
        for folder in &connector.folders {
            let entry = format!("{folder}/component.xml");
            if !names.contains(&entry) {
                continue;
            }
            let (file, bytes) = archive.read(&entry)?;
            for operation in descriptor::operations(&file, bytes)? {
                let entry = format!("{folder}/{operation}");
                if !names.contains(&entry) {
                    self.error(&file, format!("`{entry}` is not in the archive"));
                    continue;
                }
                let (file, bytes) = archive.read(&entry)?;
                if java.is_some() && calls_java(&bytes) {
                    needs_java = true;
                } else {
                    let kind = InputKind::Operation { connector: connector.name.clone() };
                    self.input(&file, bytes, kind);
                }
            }
        }
        if let Some(library) = java.filter(|_| needs_java) {
            self.unusable(&file, connector.name, format!("`{file}` has Java code (`{library}`)"));
        }
        Ok(())
    }

    fn unusable(&mut self, file: &str, connector: String, reason: String) {
        let kind = InputKind::UnusableConnector { connector, reason };
        self.loaded.inputs.push(Input { file: file.into(), bytes: Bytes::new(), kind });
    }

    /// Connectors that the `pom.xml` of a project names: Maven would fetch their archives, nothing is fetched here.
    pub(super) fn named_connectors(&mut self, project: &Path) {
        let path = project.join("pom.xml");
        if !path.is_file() {
            return;
        }
        let Some(bytes) = self.read(&path, super::FILE_BYTES_MAX) else { return };
        let file = path.display().to_string();
        // A file that only Maven reads is not worth a diagnostic.
        for artifact in descriptor::maven_archives(&file, bytes).unwrap_or_default() {
            let reason = format!(
                "`{file}` names its archive `{artifact}`, which is not in the project; put the zip into \
                 `src/main/wso2mi/resources/connectors`"
            );
            self.unusable(&file, connector_of(&artifact).to_owned(), reason);
        }
    }
}

/// The connector that a Maven artifact holds.
fn connector_of(artifact: &str) -> &str {
    ["mi-connector-", "esb-connector-", "mi-module-"]
        .iter()
        .find_map(|prefix| artifact.strip_prefix(prefix))
        .unwrap_or(artifact)
}

/// Whether a template has a class mediator.
fn calls_java(template: &[u8]) -> bool {
    let text = String::from_utf8_lossy(template);
    let mut rest = &*text;
    while let Some(at) = rest.find("class") {
        let (before, after) = rest.split_at(at);
        let opens = before.ends_with('<')
            || before
                .rsplit('<')
                .next()
                .is_some_and(|prefix| prefix.ends_with(':') && !prefix.contains(char::is_whitespace));
        if opens && after["class".len()..].starts_with(char::is_whitespace) {
            return true;
        }
        rest = &after["class".len()..];
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_mediator_is_seen() {
        for (text, expected) in [
            ("<template><sequence><class name='a.B'/></sequence></template>", true),
            ("<s:class name='a.B'/>", true),
            ("<log class='x'/><classes/>", false),
            ("", false),
        ] {
            assert_eq!(calls_java(text.as_bytes()), expected, "{text}");
        }
    }
}
