//! Parameters of broker clients by name, from an artifact, a URL or a connection factory of the configuration.

use std::borrow::Cow;
use std::str::FromStr;
use std::sync::Arc;

use penstock_engine::ports::ConnectionFactory;
use percent_encoding::percent_decode_str;

/// Parameters in the order in which they count.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lookup {
    entries: Vec<(Arc<str>, Arc<str>)>,
}

impl Lookup {
    /// The parameters of an artifact. The last of two with one name counts.
    pub(crate) fn new(parameters: &[(Arc<str>, Arc<str>)]) -> Lookup {
        Lookup { entries: parameters.iter().rev().cloned().collect() }
    }

    /// The path and the query of an endpoint's URL: `rabbitmq:/queue?name=value&name=value`. Values may contain `?` and `=`,
    /// and are written plain or percent-encoded.
    pub(crate) fn from_url(url: &str) -> (String, Lookup) {
        let rest = url.split_once(':').map_or(url, |(_, rest)| rest);
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let mut entries: Vec<(Arc<str>, Arc<str>)> = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            entries.push((decoded(name).into(), decoded(value).into()));
        }
        (decoded(path.trim_start_matches('/')), Lookup { entries })
    }

    /// Adds the parameters of a connection factory behind those that are there.
    pub(crate) fn with_factory(
        mut self,
        transport: &str,
        name: &str,
        factories: &[ConnectionFactory],
    ) -> Result<Lookup, String> {
        let found = factories.iter().find(|factory| factory.transport == transport && factory.name == name);
        let Some(factory) = found else {
            return Err(format!("the configuration has no connection factory `{name}` of the transport `{transport}`"));
        };
        self.entries
            .extend(factory.parameters.iter().map(|(name, value)| (name.as_str().into(), value.as_str().into())));
        Ok(self)
    }

    /// A value, unless it is empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let found = self.entries.iter().find(|(known, _)| &**known == name);
        found.map(|(_, value)| value.trim()).filter(|value| !value.is_empty())
    }

    /// Whether a value is `true`.
    pub(crate) fn flag(&self, name: &str, default: bool) -> bool {
        self.get(name).map_or(default, |value| value.eq_ignore_ascii_case("true"))
    }

    /// A number.
    pub(crate) fn number<T: FromStr>(&self, name: &str) -> Result<Option<T>, String> {
        let Some(text) = self.get(name) else { return Ok(None) };
        text.parse().map(Some).map_err(|_| format!("the parameter `{name}` is not a number: `{text}`"))
    }

    /// The parameters whose names begin so, without the beginning.
    pub(crate) fn beginning_with<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> + 'a {
        self.entries.iter().filter_map(move |(name, value)| Some((name.strip_prefix(prefix)?, &**value)))
    }
}

/// Without percent escapes. A text that is not UTF-8 then stays as it is.
pub(crate) fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8().map_or_else(|_| text.to_owned(), Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_has_a_path_and_parameters() {
        let url = "jms:/Orders?a.url=tcp://h:1?x=3&empty=&b=%2Fvhost&bad=%zz&flag";
        let (path, lookup) = Lookup::from_url(url);
        assert_eq!(path, "Orders");
        assert_eq!(lookup.get("a.url"), Some("tcp://h:1?x=3"));
        assert_eq!(lookup.get("empty"), None);
        assert_eq!(lookup.get("b"), Some("/vhost"));
        assert_eq!(lookup.get("bad"), Some("%zz"));
        assert_eq!(lookup.get("flag"), None);
        assert_eq!(Lookup::from_url("rabbitmq:").0, "");
    }

    #[test]
    fn own_parameters_count_before_those_of_a_connection_factory() {
        let factory = ConnectionFactory {
            transport: "rabbitmq".into(),
            name: "f".into(),
            parameters: vec![("a".into(), "1".into()), ("b".into(), "2".into())],
        };
        let own = [("a".into(), "0".into()), ("a".into(), "3".into())];
        let lookup = Lookup::new(&own).with_factory("rabbitmq", "f", std::slice::from_ref(&factory)).unwrap();
        assert_eq!((lookup.get("a"), lookup.get("b")), (Some("3"), Some("2")));
        assert!(Lookup::default().with_factory("jms", "f", &[factory]).unwrap_err().contains("`f`"));
    }
}
