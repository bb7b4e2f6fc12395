//! The normal form of WS-Policy §4.3: alternatives, each a list of assertions.

use penstock_xml::{Document, NodeId};

use super::{PolicyProblem, WSP};
use crate::tree::elements;

/// Alternatives of one policy. Nested choices multiply, so a small document could ask for very many.
const ALTERNATIVES_MAX: usize = 64;

/// The alternatives of a policy operator or of one assertion.
pub(super) fn alternatives(document: &Document, node: NodeId) -> Result<Vec<Vec<NodeId>>, PolicyProblem> {
    let problem = |message: &str| PolicyProblem { position: document.position(node), message: message.to_owned() };
    if !WSP.contains(&document.namespace(node)) {
        let optional = document.attributes(node).find(|attribute| {
            WSP.contains(&document.namespace(*attribute)) && document.local_name(*attribute) == "Optional"
        });
        if optional.is_some_and(|attribute| matches!(document.text(attribute).trim(), "true" | "1")) {
            return Err(problem("optional assertions are not supported"));
        }
        return Ok(vec![vec![node]]);
    }
    match document.local_name(node) {
        "Policy" | "All" => {
            let mut found = vec![Vec::new()];
            for child in elements(document, node) {
                let of_child = alternatives(document, child)?;
                let combined = found.iter().flat_map(|left: &Vec<NodeId>| {
                    of_child.iter().map(move |right| left.iter().chain(right).copied().collect())
                });
                let combined: Vec<Vec<NodeId>> = combined.take(ALTERNATIVES_MAX + 1).collect();
                if combined.len() > ALTERNATIVES_MAX {
                    return Err(problem("the security policy has too many alternatives"));
                }
                found = combined;
            }
            Ok(found)
        }
        "ExactlyOne" => {
            let mut found = Vec::new();
            for child in elements(document, node) {
                found.extend(alternatives(document, child)?);
                if found.len() > ALTERNATIVES_MAX {
                    return Err(problem("the security policy has too many alternatives"));
                }
            }
            Ok(found)
        }
        other => Err(problem(&format!("`wsp:{other}` is not supported in a security policy"))),
    }
}
