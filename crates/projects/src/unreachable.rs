//! Operations that no request can reach.

use std::collections::HashMap;

use penstock_catalog::{Api, ApiKind, Operation};

use super::Import;
use penstock_catalog::path::{PathPattern, has_dot_segment};

impl Import<'_> {
    /// Reports operations that never get a request: their paths cannot be sent, or an operation before them has the same
    /// method and takes the same paths.
    pub(super) fn unreachable(&mut self, api: &Api) {
        if matches!(api.kind, ApiKind::GraphQl | ApiKind::Mcp | ApiKind::WebSub) {
            return;
        }
        let mut by_shape: HashMap<_, &Operation> = HashMap::new();
        for operation in &api.operations {
            let Operation { method, path, at, .. } = &**operation;
            if path.contains('#') {
                let message = format!("`{method} {path}` can never be reached: clients do not send what follows `#`");
                self.warn(at, message);
                continue;
            }
            if has_dot_segment(path.split('?').next().unwrap_or_default()) {
                self.warn(at, format!("`{method} {path}` can never be reached: paths with `.` or `..` are refused"));
                continue;
            }
            let key = (PathPattern::parse(path).shape(), method.clone(), operation.header_matches.clone());
            let Some(first) = by_shape.get(&key) else {
                by_shape.insert(key, operation);
                continue;
            };
            let reason = if path.contains('?') || first.path.contains('?') {
                "takes the same paths, and queries take no part in routing"
            } else {
                "takes the same paths"
            };
            let (method_of_first, path_of_first, line) = (&first.method, &first.path, first.at.line);
            let message = format!(
                "`{method} {path}` can never be reached: `{method_of_first} {path_of_first}` in line {line} {reason}"
            );
            match SecurityChange::between(first, operation) {
                SecurityChange::None => self.warn(at, message),
                SecurityChange::Other => self.warn(at, format!("{message}; its security is another")),
                // Serving it would open what the definition protects.
                SecurityChange::Opened => self.error(at, format!("{message}, without credentials")),
            }
        }
    }
}

/// How the security of requests for an operation changes when another operation takes them.
enum SecurityChange {
    None,
    Other,
    Opened,
}

impl SecurityChange {
    fn between(first: &Operation, unreachable: &Operation) -> SecurityChange {
        if unreachable.secured && !first.secured {
            return SecurityChange::Opened;
        }
        let credentials =
            |operation: &Operation| (operation.secured, operation.requirements.clone(), operation.scopes.clone());
        let policies = |operation: &Operation| -> Vec<_> {
            operation.chain.iter().map(|step| (step.name.clone(), step.version)).collect()
        };
        let same = credentials(first) == credentials(unreachable) && policies(first) == policies(unreachable);
        if same { SecurityChange::None } else { SecurityChange::Other }
    }
}
