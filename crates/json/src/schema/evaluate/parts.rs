//! Arrays and objects, whose parts are evaluated in turn.

use serde_json::Value;

use super::super::{Check, NodeId, message};
use super::{Evaluated, Run};
use crate::has_duplicates;

impl Run<'_> {
    pub(super) fn array(&mut self, id: NodeId, check: &Check, items: &[Value], seen: &mut Option<Evaluated>) -> bool {
        match check {
            Check::ItemCount { min, max } => {
                let count = items.len();
                if let Some(min) = min.filter(|min| count < *min) {
                    return self.fail(id, "minItems", || {
                        format!(
                            "array is too short: must have at least {min} elements but instance has {count} elements"
                        )
                    });
                }
                let max = max.filter(|max| count > *max);
                max.is_none_or(|max| {
                    self.fail(id, "maxItems", || {
                        format!("array is too long: must have at most {max} elements but instance has {count} elements")
                    })
                })
            }
            Check::UniqueItems => {
                !has_duplicates(items)
                    || self.fail(id, "uniqueItems", || "array must not contain duplicate elements".to_owned())
            }
            Check::Items { .. } => self.items(id, check, items, seen),
            Check::Contains { .. } => self.contains(id, check, items, seen),
            Check::UnevaluatedItems(inner) => {
                let known = seen.clone().unwrap_or_default();
                let mut valid = true;
                for (index, item) in items.iter().enumerate() {
                    if !known.items.contains(&index) {
                        valid &= self.part(*inner, &|| index.to_string(), item);
                    }
                    if let Some(seen) = seen {
                        seen.items.insert(index);
                    }
                }
                valid
            }
            _ => true,
        }
    }

    fn items(&mut self, id: NodeId, check: &Check, items: &[Value], seen: &mut Option<Evaluated>) -> bool {
        let Check::Items { prefix, rest, rest_keyword } = check else { return true };
        let mut valid = true;
        for (index, item) in items.iter().enumerate() {
            let Some(inner) = prefix.get(index).copied().or(*rest) else { break };
            if let Some(seen) = seen {
                seen.items.insert(index);
            }
            let never = matches!(self.schema.nodes[inner].checks[..], [Check::Never]);
            if never && index >= prefix.len() {
                return self.fail(id, rest_keyword, || {
                    format!("array has {} elements, but only {} are allowed", items.len(), prefix.len())
                });
            }
            valid &= self.part(inner, &|| index.to_string(), item);
            if !valid && self.found.is_none() {
                return false;
            }
        }
        valid
    }

    fn contains(&mut self, id: NodeId, check: &Check, items: &[Value], seen: &mut Option<Evaluated>) -> bool {
        let Check::Contains { schema, min, max, evaluates } = check else { return true };
        let mut count = 0;
        for (index, item) in items.iter().enumerate() {
            if self.quietly(*schema, item, &mut None) {
                count += 1;
                if let Some(seen) = seen.as_mut().filter(|_| *evaluates) {
                    seen.items.insert(index);
                }
            }
        }
        let fits = count >= *min && max.is_none_or(|max| count <= max);
        fits || self.fail(id, "contains", || format!("{count} elements of the array match the schema of `contains`"))
    }

    pub(super) fn object(
        &mut self,
        id: NodeId,
        check: &Check,
        members: &serde_json::Map<String, Value>,
        value: &Value,
        seen: &mut Option<Evaluated>,
    ) -> bool {
        match check {
            Check::Required(names) => {
                let missing: Vec<&str> =
                    names.iter().map(String::as_str).filter(|name| !members.contains_key(*name)).collect();
                missing.is_empty()
                    || self.fail(id, "required", || {
                        format!("object has missing required properties ({})", message::list(missing.into_iter()))
                    })
            }
            Check::PropertyCount { min, max } => {
                let count = members.len();
                if let Some(min) = min.filter(|min| count < *min) {
                    return self.fail(id, "minProperties", || {
                        format!("object has too few properties (found {count} but schema requires at least {min})")
                    });
                }
                let max = max.filter(|max| count > *max);
                max.is_none_or(|max| {
                    self.fail(id, "maxProperties", || {
                        format!("object has too many properties (found {count} but schema requires at most {max})")
                    })
                })
            }
            Check::Properties { .. } => self.properties(id, check, members, seen),
            Check::PropertyNames(inner) => {
                let mut valid = true;
                for name in members.keys() {
                    valid &= self.part(*inner, &|| name.clone(), &Value::String(name.clone()));
                }
                valid
            }
            Check::DependentRequired(all) => self.dependencies(id, all, members),
            Check::DependentSchemas(all) => {
                let mut valid = true;
                for (_, inner) in all.iter().filter(|(name, _)| members.contains_key(name)) {
                    valid &= self.node(*inner, value, seen.as_mut());
                }
                valid
            }
            Check::UnevaluatedProperties(inner) => {
                let known = seen.clone().unwrap_or_default();
                let mut valid = true;
                for (name, value) in members {
                    if !known.properties.contains(name) {
                        valid &= self.part(*inner, &|| name.clone(), value);
                    }
                    if let Some(seen) = seen {
                        seen.properties.insert(name.clone());
                    }
                }
                valid
            }
            _ => true,
        }
    }

    fn dependencies(
        &mut self,
        id: NodeId,
        all: &[(String, Vec<String>)],
        members: &serde_json::Map<String, Value>,
    ) -> bool {
        all.iter().filter(|(name, _)| members.contains_key(name)).all(|(name, needed)| {
            let missing: Vec<&str> =
                needed.iter().map(String::as_str).filter(|name| !members.contains_key(*name)).collect();
            missing.is_empty()
                || self.fail(id, "dependencies", || {
                    format!(
                        "property \"{name}\" of object has missing property dependencies (missing: {})",
                        message::list(missing.into_iter())
                    )
                })
        })
    }

    fn properties(
        &mut self,
        id: NodeId,
        check: &Check,
        members: &serde_json::Map<String, Value>,
        seen: &mut Option<Evaluated>,
    ) -> bool {
        let Check::Properties { named, patterns, additional } = check else { return true };
        let mut valid = true;
        let mut unwanted = Vec::new();
        for (name, value) in members {
            let mut known = false;
            let own = named.iter().find(|(other, _)| other == name).map(|(_, inner)| *inner);
            let matching = patterns.iter().filter(|(regex, _)| regex.is_match(name)).map(|(_, inner)| *inner);
            for inner in own.into_iter().chain(matching) {
                known = true;
                valid &= self.part(inner, &|| name.clone(), value);
            }
            if !known && let Some(additional) = *additional {
                known = true;
                if matches!(self.schema.nodes[additional].checks[..], [Check::Never]) {
                    unwanted.push(name.as_str());
                } else {
                    valid &= self.part(additional, &|| name.clone(), value);
                }
            }
            if let Some(seen) = seen.as_mut().filter(|_| known) {
                seen.properties.insert(name.clone());
            }
            if (!valid || !unwanted.is_empty()) && self.found.is_none() {
                return false;
            }
        }
        if unwanted.is_empty() {
            return valid;
        }
        self.fail(id, "additionalProperties", || {
            let names = message::list(unwanted.into_iter());
            format!("object instance has properties which are not allowed by the schema: {names}")
        })
    }
}
