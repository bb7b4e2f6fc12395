//! Certificates of clients, backends and interceptor services.

use std::sync::Arc;

use penstock_catalog::{Api, At, ClientCertificate};

use super::document::parse;
use super::{Import, Project, ProjectFile};

impl Import<'_> {
    /// Reads the folders of certificates.
    pub(super) fn certificates(&mut self, project: &Project, api: &mut Api) {
        api.client_certificates = self.client_certificates(project);
        api.endpoint_certificates = self.trusted(project, "Endpoint-certificates");
        api.interceptor_certificates = self.trusted(project, "Endpoint-certificates/interceptors");
    }

    /// Versions since 4.3 have a folder for each kind of key.
    fn client_certificates(&mut self, project: &Project) -> Vec<ClientCertificate> {
        const FOLDERS: [(&str, Option<bool>); 3] = [
            ("Client-certificates", None),
            ("Client-certificates/PRODUCTION", Some(false)),
            ("Client-certificates/SANDBOX", Some(true)),
        ];
        let of = |(folder, sandbox)| self.certificates_in(project, folder, sandbox);
        FOLDERS.into_iter().flat_map(of).collect()
    }

    fn certificates_in(&mut self, project: &Project, folder: &str, sandbox: Option<bool>) -> Vec<ClientCertificate> {
        let names = ["client_certificates.yaml", "client_certificates.json"];
        let listed = names.iter().find_map(|name| project.file(&format!("{folder}/{name}")));
        let Some(list) = listed else {
            let files = project.folder(folder).filter(|(name, _)| is_certificate(name));
            let plain = |(name, file): (&str, &ProjectFile)| ClientCertificate {
                alias: name.into(),
                certificate: file.bytes.as_ref().into(),
                tier: None,
                sandbox,
            };
            return files.map(plain).collect();
        };
        let document = match parse(&list.file, &list.bytes) {
            Ok(document) => document,
            Err((at, message)) => {
                self.error(&at, message);
                return Vec::new();
            }
        };
        let root = document.item();
        let mut found = Vec::new();
        for item in root.get("data").unwrap_or(root).items() {
            let Some(name) = self.some_text_of(&item, "certificate") else {
                self.error(&item.at(), "a client's certificate needs `certificate`, the name of its file");
                continue;
            };
            let Some(file) = project.file(&format!("{folder}/{name}")) else {
                self.error(&item.at(), format!("`{folder}/{name}` is not in the project"));
                continue;
            };
            let kind = self.some_text_of(&item, "keyType");
            found.push(ClientCertificate {
                alias: self.some_text_of(&item, "alias").unwrap_or(name),
                certificate: file.bytes.as_ref().into(),
                tier: self.some_text_of(&item, "tierName"),
                sandbox: kind.map(|kind| kind.eq_ignore_ascii_case("SANDBOX")).or(sandbox),
            });
        }
        found
    }

    /// The certificates directly inside a folder.
    fn trusted(&mut self, project: &Project, folder: &str) -> Vec<Arc<[u8]>> {
        let mut found = Vec::new();
        for (name, file) in project.folder(folder) {
            if !is_certificate(name) {
                continue;
            }
            // PEM, or DER, which begins with the tag of a sequence.
            if file.bytes.windows(10).any(|window| window == b"-----BEGIN") || file.bytes.starts_with(&[0x30]) {
                found.push(Arc::from(file.bytes.as_ref()));
            } else {
                let at = At { file: file.file.clone(), line: 1, column: 1 };
                self.warn(&at, "ignored: not a certificate");
            }
        }
        found
    }
}

fn is_certificate(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    [".crt", ".pem", ".cer", ".der"].iter().any(|ending| name.ends_with(ending))
}
