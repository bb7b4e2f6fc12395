//! `deployment_environments.yaml`: on which hosts an API is served.

use std::sync::Arc;

use penstock_catalog::{Api, At};

use super::document::{Item, parse};
use super::{Import, Project};

impl Import<'_> {
    /// Reads the environments a project is for.
    pub(super) fn deployments(&mut self, project: &Project, api: &mut Api) {
        const NAMES: [&str; 2] = ["deployment_environments.yaml", "deployment_environments.json"];
        let Some(file) = NAMES.iter().find_map(|name| project.file(name)) else {
            return self.default_vhost(api);
        };
        let document = match parse(&file.file, &file.bytes) {
            Ok(document) => document,
            Err((at, message)) => return self.error(&at, message),
        };
        let root = document.item();
        let Some(list) = root.get("data").filter(|data| data.is_list()) else {
            return self.default_vhost(api);
        };
        self.hosts(&list, api);
    }

    /// The hosts of a list of environments.
    pub(super) fn hosts(&mut self, list: &Item<'_>, api: &mut Api) {
        let mut everywhere = false;
        for item in list.items() {
            if let Some(host) = self.some_text_of(&item, "deploymentVhost") {
                add(api, &host);
                continue;
            }
            let name = self.some_text_of(&item, "deploymentEnvironment").unwrap_or_else(|| "Default".into());
            match self.host_of(&name) {
                Some(host) if !host.is_empty() => add(api, &host),
                Some(_) => everywhere = true,
                None => {
                    let message =
                        format!("the environment `{name}` has no host in the configuration (`gateway.vhosts`)");
                    self.warn(&item.at(), format!("{message}; the default host is used"));
                    everywhere |= self.config.default_vhost.is_empty();
                    if !self.config.default_vhost.is_empty() {
                        add(api, &self.config.default_vhost);
                    }
                }
            }
        }
        if everywhere || api.vhosts.is_empty() {
            api.vhosts.clear();
            self.default_vhost(api);
        }
    }

    /// `x-wso2-label` of a definition that stands alone.
    pub(super) fn environment(&mut self, name: &str, at: &At, api: &mut Api) {
        match self.host_of(name) {
            Some(host) if !host.is_empty() => add(api, &host),
            Some(_) => {}
            None => {
                self.warn(at, format!("the environment `{name}` has no host in the configuration (`gateway.vhosts`)"))
            }
        }
    }

    /// The host of an environment; the one that is always there has the default host.
    fn host_of(&self, name: &str) -> Option<String> {
        let known = self.config.vhosts.iter().find(|(environment, _)| environment == name);
        match known {
            Some((_, host)) => Some(host.clone()),
            None => name.eq_ignore_ascii_case("default").then(|| self.config.default_vhost.clone()),
        }
    }

    fn default_vhost(&mut self, api: &mut Api) {
        if !self.config.default_vhost.is_empty() {
            add(api, &self.config.default_vhost);
        }
    }
}

fn add(api: &mut Api, host: &str) {
    let host: Arc<str> = host.trim().to_ascii_lowercase().into();
    // A star stands for every host, as no entry does.
    if &*host != "*" && !api.vhosts.contains(&host) {
        api.vhosts.push(host);
    }
}
