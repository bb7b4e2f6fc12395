//! Path templates: `/pet/{petId}`, `/shops/{x}.xyz/pets/{y}`, `/files/*`.

use std::borrow::Cow;
use std::sync::Arc;

use super::without_needless_escapes;

/// A path template below a base path: literals and parameters, perhaps a rest at its end.
#[derive(Debug, Clone, Default)]
pub struct PathPattern {
    /// The segments between slashes.
    pub segments: Vec<Segment>,
    /// Whether anything may follow (`/*`).
    pub rest: bool,
    /// Whether the template has a slash at its end.
    slash: bool,
    /// The names of the parameters in order.
    pub parameters: Vec<Arc<str>>,
}

/// What one segment of a path must be.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Segment {
    /// This text.
    Literal(Box<str>),
    /// Any text that is not empty.
    Parameter,
    /// Parameters between texts: there is one text more than there are parameters, and the outer two may be empty.
    Mixed(Box<[Box<str>]>),
}

impl PathPattern {
    /// Reads a template. A query part is dropped; a slash at the end means nothing.
    pub fn parse(template: &str) -> PathPattern {
        let mut pattern = PathPattern::default();
        let template = template.split('?').next().unwrap_or_default();
        let segments: Vec<&str> = template.split('/').skip(1).collect();
        let last = segments.len();
        for (index, segment) in segments.into_iter().enumerate() {
            if index + 1 == last && segment.is_empty() {
                pattern.slash = true;
                break;
            }
            if segment == "*" {
                if index + 1 == last {
                    pattern.rest = true;
                } else {
                    pattern.parameters.push("*".into());
                    pattern.segments.push(Segment::Parameter);
                }
                continue;
            }
            let segment = pattern.segment(segment);
            pattern.segments.push(segment);
        }
        pattern
    }

    /// Whether paths are written with a slash at their end; `None` when the template leaves that to the client.
    pub fn slash_at_end(&self) -> Option<bool> {
        (!self.rest).then_some(self.slash)
    }

    /// Whether the template has a slash at its end.
    pub fn has_slash(&self) -> bool {
        self.slash
    }

    /// What requests it takes: patterns that differ only by the names of parameters have the same shape.
    pub fn shape(&self) -> impl Eq + std::hash::Hash + use<> {
        (self.segments.clone(), self.rest, self.slash)
    }

    fn segment(&mut self, text: &str) -> Segment {
        let (mut texts, mut rest) = (Vec::<Box<str>>::new(), text);
        while let Some((before, inside)) = rest.split_once('{') {
            // A brace that is never closed is a text.
            let Some((name, behind)) = inside.split_once('}') else { break };
            texts.push(literal(before));
            self.parameters.push(name.into());
            rest = behind;
        }
        if texts.is_empty() {
            return Segment::Literal(literal(text));
        }
        texts.push(literal(rest));
        if texts.iter().all(|text| text.is_empty()) && texts.len() == 2 {
            return Segment::Parameter;
        }
        Segment::Mixed(texts.into())
    }

    /// The values of the parameters when a path (without query) fits.
    pub fn matches(&self, path: &str) -> Option<Vec<String>> {
        let mut values = Vec::new();
        let mut rest = Segments::new(path);
        for segment in &self.segments {
            let part = rest.next()?;
            let fits = match segment {
                Segment::Literal(wanted) => **wanted == *escaped(part),
                Segment::Parameter => {
                    values.push(part.to_owned());
                    !part.is_empty()
                }
                Segment::Mixed(texts) => {
                    let mut give = |value: &str| values.push(value.to_owned());
                    let has_escape = texts.iter().any(|text| text.contains('%'));
                    mixed(texts, part, &mut give) || (has_escape && mixed(texts, &escaped(part), &mut give))
                }
            };
            if !fits {
                return None;
            }
        }
        (self.rest || rest.next().is_none()).then_some(values)
    }
}

/// A text of a template as requests write it: `/my path` is requested as `/my%20path`.
fn literal(text: &str) -> Box<str> {
    escaped(&without_needless_escapes(text)).into()
}

/// A path in one spelling: what may not stand in a path is escaped, and escapes have capital letters (RFC 3986 §6.2.2.1).
pub fn escaped(path: &str) -> Cow<'_, str> {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let foreign = |byte: u8| {
        !byte.is_ascii_graphic() || matches!(byte, b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}')
    };
    if !path.bytes().any(|byte| byte == b'%' || foreign(byte)) {
        return Cow::Borrowed(path);
    }
    let mut spelled = String::with_capacity(path.len() + 8);
    let mut digits_left = 0;
    for (at, byte) in path.bytes().enumerate() {
        if byte == b'%' {
            let digits = path.as_bytes().get(at + 1..at + 3);
            digits_left = if digits.is_some_and(|two| two.iter().all(u8::is_ascii_hexdigit)) { 3 } else { 0 };
        }
        if foreign(byte) {
            spelled.push('%');
            spelled.push(char::from(DIGITS[usize::from(byte >> 4)]));
            spelled.push(char::from(DIGITS[usize::from(byte & 15)]));
        } else {
            let letter = char::from(byte);
            spelled.push(if digits_left > 0 { letter.to_ascii_uppercase() } else { letter });
        }
        digits_left = usize::saturating_sub(digits_left, 1);
    }
    Cow::Owned(spelled)
}

/// Whether a segment fits texts with parameters between them; gives their values in order. As in API Manager and Choreo Connect's
/// expression `([^/]+)`, earlier parameters take as much as they can.
pub fn mixed(texts: &[Box<str>], part: &str, give: &mut dyn FnMut(&str)) -> bool {
    let ([first, inner @ .., last], true) = (texts, texts.len() >= 2) else { return false };
    let Some(middle) = part.strip_prefix(&**first).and_then(|rest| rest.strip_suffix(&**last)) else { return false };
    // From the right each text takes its last place that leaves something for the parameter behind it: then those
    // before it have the most room, and where this does not fit nothing does.
    let mut end = middle.len();
    let mut ends = Vec::new();
    for text in inner.iter().rev() {
        let Some(last_letter) = middle[..end].chars().next_back() else { return false };
        let Some(at) = middle[..end - last_letter.len_utf8()].rfind(&**text) else { return false };
        ends.push((at + text.len(), end));
        end = at;
    }
    if end == 0 {
        return false;
    }
    give(&middle[..end]);
    for (start, end) in ends.into_iter().rev() {
        give(&middle[start..end]);
    }
    true
}

/// The segments of a path, without the empty one behind a slash at its end.
#[derive(Clone)]
pub struct Segments<'p> {
    rest: Option<&'p str>,
}

impl<'p> Segments<'p> {
    /// The segments of a path.
    pub fn new(path: &'p str) -> Segments<'p> {
        Segments { rest: path.strip_prefix('/').filter(|rest| !rest.is_empty()) }
    }
}

impl<'p> Iterator for Segments<'p> {
    type Item = &'p str;

    fn next(&mut self) -> Option<&'p str> {
        let rest = self.rest?;
        match memchr(rest) {
            Some(slash) => {
                let behind = &rest[slash + 1..];
                self.rest = (!behind.is_empty()).then_some(behind);
                Some(&rest[..slash])
            }
            None => {
                self.rest = None;
                Some(rest)
            }
        }
    }
}

fn memchr(text: &str) -> Option<usize> {
    text.bytes().position(|byte| byte == b'/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_fit_paths() {
        for (template, path, expected) in [
            ("/", "", Some(vec![])),
            ("/", "/", Some(vec![])),
            ("/", "/a", None),
            ("/pet/{id}", "/pet/7", Some(vec!["7"])),
            ("/pet/{id}", "/pet/7/", Some(vec!["7"])),
            ("/pet/{id}/", "/pet/7", Some(vec!["7"])),
            ("/pet/{id}", "/pet/", None),
            ("/pet/{id}", "/pet//", None),
            ("/pet/{id}", "/pet/7/8", None),
            ("/pet?x={y}", "/pet", Some(vec![])),
            ("/*", "", Some(vec![])),
            ("/*", "/a/b", Some(vec![])),
            ("/files/*", "/files", Some(vec![])),
            ("/files/*", "/files/a//b/", Some(vec![])),
            ("/files/*", "/filesystem", None),
            ("/shops/{x}.xyz/pets/{y}/orders", "/shops/a.b.xyz/pets/p/orders", Some(vec!["a.b", "p"])),
            ("/shops/{x}.xyz", "/shops/.xyz", None),
            ("/{a}-{b}", "/1-2-3", Some(vec!["1-2", "3"])),
            ("/{a}-{b}", "/1-", None),
            ("/{a}-{b}", "/--", None),
            ("/{a}-{b}", "/---", Some(vec!["-", "-"])),
            ("/{a}{b}", "/äö", Some(vec!["ä", "ö"])),
            ("/{a}{b}", "/ä", None),
            ("/v{n}", "/v1", Some(vec!["1"])),
            ("/a{b", "/a{b", Some(vec![])),
            ("/pet.json", "/pet.json", Some(vec![])),
            ("/my path", "/my%20path", Some(vec![])),
            ("/straße", "/stra%c3%9Fe", Some(vec![])),
            ("/straße", "/straße", Some(vec![])),
            ("/straße", "/strasse", None),
            ("/%7Eann/{x}", "/~ann/%c3%a4", Some(vec!["%c3%a4"])),
            ("/a{b", "/a%7bb", Some(vec![])),
            ("/100%", "/100%", Some(vec![])),
        ] {
            let got = PathPattern::parse(template).matches(path);
            let got = got.as_ref().map(|values| values.iter().map(String::as_str).collect::<Vec<_>>());
            assert_eq!(got, expected, "{template} {path}");
        }
    }
}
