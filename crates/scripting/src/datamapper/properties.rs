//! `DM_PROPERTIES`: what a mapping reads of the properties. Only what its text names is made ready.

use std::collections::BTreeSet;

use penstock_engine::Exchange;
use penstock_message::Properties;
use serde_json::{Map, Value as Json};

/// What mappings call the object.
const OBJECT: &str = "DM_PROPERTIES";

/// The scopes it has.
const SCOPES: [&str; 8] =
    ["DEFAULT", "SYNAPSE", "AXIS2", "AXIS2_CLIENT", "OPERATION", "TRANSPORT", "FUNCTION", "VARIABLE"];

/// The properties that a mapping reads.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wanted(Vec<(&'static str, Names)>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Names {
    All,
    These(BTreeSet<String>),
}

impl Wanted {
    /// The properties that a text reads, as `DM_PROPERTIES.SCOPE.NAME` or `DM_PROPERTIES['SCOPE']['NAME']`. Whatever is read in another
    /// way is made ready whole.
    pub(super) fn parse(text: &str) -> Wanted {
        let mut wanted: Vec<(&'static str, Names)> = Vec::new();
        for (at, _) in text.match_indices(OBJECT) {
            let rest = &text[at + OBJECT.len()..];
            let known = member(rest).map(|(scope, rest)| (SCOPES.iter().find(|known| **known == scope), rest));
            let (scope, rest) = match known {
                // No mapping gets anything from a scope that there is not.
                Some((None, _)) => continue,
                Some((Some(scope), rest)) => (*scope, rest),
                None => return Wanted(SCOPES.map(|scope| (scope, Names::All)).to_vec()),
            };
            let index = wanted.iter().position(|(known, _)| *known == scope).unwrap_or_else(|| {
                wanted.push((scope, Names::These(BTreeSet::new())));
                wanted.len() - 1
            });
            match (member(rest), &mut wanted[index].1) {
                (Some((name, _)), Names::These(names)) => drop(names.insert(name.to_owned())),
                (None, names) => *names = Names::All,
                (Some(_), Names::All) => {}
            }
        }
        Wanted(wanted)
    }

    /// The values a message has for it.
    pub(super) fn values(&self, exchange: &Exchange) -> Json {
        let of = |(scope, names): &(&'static str, Names)| ((*scope).to_owned(), names.values(exchange, scope));
        Json::Object(self.0.iter().map(of).collect())
    }
}

impl Names {
    fn has(&self, name: &str) -> bool {
        match self {
            Names::All => true,
            Names::These(names) => names.contains(name),
        }
    }

    fn values(&self, exchange: &Exchange, scope: &str) -> Json {
        let message = &exchange.message;
        let mut members = Map::new();
        let mut add = |properties: &Properties| {
            for (name, value) in properties.iter().filter(|(name, _)| self.has(name)) {
                members.insert(name.to_owned(), Json::String(value.to_text().into_owned()));
            }
        };
        match scope {
            "DEFAULT" | "SYNAPSE" => add(&message.properties),
            "AXIS2" => add(&message.axis2),
            "AXIS2_CLIENT" => add(&message.axis2_client),
            "OPERATION" => add(&message.operation),
            "VARIABLE" => add(&message.variables),
            "TRANSPORT" => {
                for (name, value) in message.headers.iter() {
                    let name = String::from_utf8_lossy(name);
                    if self.has(&name) {
                        members.insert(name.into_owned(), Json::String(String::from_utf8_lossy(value).into_owned()));
                    }
                }
            }
            _ => {
                let parameters = exchange.functions.last().map(|scope| scope.parameters.as_slice()).unwrap_or_default();
                for (name, value) in parameters.iter().filter(|(name, _)| self.has(name)) {
                    members.insert(name.to_string(), Json::String(value.to_text().into_owned()));
                }
            }
        }
        Json::Object(members)
    }
}

/// The name that a text begins with as `.name` or `['name']`, and what follows it.
fn member(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start();
    if let Some(rest) = text.strip_prefix('.') {
        let rest = rest.trim_start();
        let end = rest.find(|letter: char| !letter.is_alphanumeric() && !matches!(letter, '_' | '$'));
        return Some(rest.split_at(end.unwrap_or(rest.len()))).filter(|(name, _)| !name.is_empty());
    }
    let rest = text.strip_prefix('[')?.trim_start();
    let quote = rest.chars().next().filter(|quote| matches!(quote, '\'' | '"'))?;
    let (name, rest) = rest[1..].split_once(quote)?;
    // An escape says another name than it shows.
    (!name.contains('\\')).then_some((name, rest.trim_start().strip_prefix(']')?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_mapping_names_is_made_ready() {
        let all = SCOPES.map(|scope| format!("{scope}:*")).join(" ");
        for (text, expected) in [
            ("return {a: input.a}", ""),
            ("DM_PROPERTIES.DEFAULT.a + DM_PROPERTIES.DEFAULT['b.c']", "DEFAULT:a,b.c"),
            ("DM_PROPERTIES [ \"AXIS2\" ] [ 'x' ]; DM_PROPERTIES . TRANSPORT . Host", "AXIS2:x TRANSPORT:Host"),
            ("DM_PROPERTIES.DEFAULT.a; var d = DM_PROPERTIES.DEFAULT;", "DEFAULT:*"),
            ("DM_PROPERTIES.DEFAULT[name]; DM_PROPERTIES.DEFAULT.a", "DEFAULT:*"),
            ("DM_PROPERTIES.DEFAULT['\\x61']", "DEFAULT:*"),
            ("var p = DM_PROPERTIES; p.DEFAULT.a", &all),
            ("DM_PROPERTIES[scope].a", &all),
            ("DM_PROPERTIES?.DEFAULT", &all),
            ("DM_PROPERTIES.NOWHERE.a", ""),
        ] {
            let shown = Wanted::parse(text).0.into_iter().map(|(scope, names)| match names {
                Names::All => format!("{scope}:*"),
                Names::These(names) => format!("{scope}:{}", names.into_iter().collect::<Vec<_>>().join(",")),
            });
            assert_eq!(shown.collect::<Vec<_>>().join(" "), expected, "{text}");
        }
    }
}
