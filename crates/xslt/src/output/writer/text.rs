//! Text: escaped, mapped, as references, in CDATA sections, or as it is.

use super::super::{escape, html};
use super::{CDATA, HAS_TEXT, Method, Prolog, RAW, Writer};

impl<'o> Writer<'o> {
    pub(super) fn html_character(&mut self, c: char) {
        if c.is_ascii() {
            self.out.push(c as u8);
            return;
        }
        if let Some(name) = html::entity(c) {
            self.out.push(b'&');
            self.out.extend_from_slice(name.as_bytes());
            self.out.push(b';');
        } else if c > self.last_character {
            self.reference(c);
        } else {
            self.push_char(c);
        }
    }

    pub(super) fn reference(&mut self, c: char) {
        self.out.extend_from_slice(format!("&#{};", u32::from(c)).as_bytes());
    }

    pub(super) fn push_char(&mut self, c: char) {
        let mut buffer = [0; 4];
        self.out.extend_from_slice(c.encode_utf8(&mut buffer).as_bytes());
    }

    pub(super) fn text_slowly(&mut self, text: &str) {
        match self.method {
            None if self.depth == 0 && text.trim().is_empty() => {
                self.prolog.push(Prolog::Text(text.to_owned(), false));
                return;
            }
            None => self.decide(Method::Xml),
            Some(_) => {}
        }
        if self.method == Some(Method::Text) {
            self.plain(text);
            return;
        }
        self.close_tag();
        self.wrote_anything = true;
        let flags = match self.buffers.open.last_mut() {
            Some(open) => {
                open.flags |= HAS_TEXT;
                open.flags
            }
            None => 0,
        };
        if flags & RAW != 0 {
            self.out.extend_from_slice(text.as_bytes());
        } else if flags & CDATA != 0 {
            self.cdata(text);
        } else if self.method == Some(Method::Html) {
            for c in text.chars() {
                match self.mapped(c) {
                    Some(string) => self.out.extend_from_slice(string.as_bytes()),
                    None => match c {
                        '<' => self.out.extend_from_slice(b"&lt;"),
                        '>' => self.out.extend_from_slice(b"&gt;"),
                        '&' => self.out.extend_from_slice(b"&amp;"),
                        c => self.html_character(c),
                    },
                }
            }
        } else {
            self.slow_text(text, false);
        }
    }

    pub(super) fn mapped(&self, c: char) -> Option<&'o str> {
        let properties = self.properties;
        properties.character_map.iter().find(|(from, _)| *from == c).map(|(_, to)| &**to)
    }

    /// The text method: characters as they are.
    pub(super) fn plain(&mut self, text: &str) {
        if self.properties.character_map.is_empty() {
            self.out.extend_from_slice(text.as_bytes());
            return;
        }
        for c in text.chars() {
            match self.mapped(c) {
                Some(string) => self.out.extend_from_slice(string.as_bytes()),
                None => self.push_char(c),
            }
        }
    }

    /// Text with references for what the encoding lacks, and with character maps.
    pub(super) fn slow_text(&mut self, text: &str, attribute: bool) {
        for c in text.chars() {
            if let Some(string) = self.mapped(c) {
                self.out.extend_from_slice(string.as_bytes());
            } else if c > self.last_character {
                self.reference(c);
            } else {
                let mut buffer = [0; 4];
                let encoded = c.encode_utf8(&mut buffer);
                if attribute { escape::attribute(self.out, encoded) } else { escape::text(self.out, encoded) }
            }
        }
    }

    pub(super) fn cdata(&mut self, text: &str) {
        // A section that follows another continues it.
        let mut inside = self.out.ends_with(b"]]>") && {
            self.out.truncate(self.out.len() - 3);
            true
        };
        let mut ended_brackets = 0;
        for c in text.chars() {
            if c > self.last_character {
                if std::mem::take(&mut inside) {
                    self.out.extend_from_slice(b"]]>");
                }
                self.reference(c);
                continue;
            }
            if !inside {
                self.out.extend_from_slice(b"<![CDATA[");
                inside = true;
            }
            if c == '>' && ended_brackets >= 2 {
                self.out.extend_from_slice(b"]]><![CDATA[");
            }
            ended_brackets = if c == ']' { ended_brackets + 1 } else { 0 };
            self.push_char(c);
        }
        if inside {
            self.out.extend_from_slice(b"]]>");
        }
    }

    /// Text without escaping.
    pub fn raw(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        match self.method {
            None if self.depth == 0 => {
                self.prolog.push(Prolog::Text(text.to_owned(), true));
                return;
            }
            None => self.decide(Method::Xml),
            Some(_) => {}
        }
        self.close_tag();
        self.wrote_anything = true;
        if let Some(open) = self.buffers.open.last_mut() {
            open.flags |= HAS_TEXT;
        }
        self.out.extend_from_slice(text.as_bytes());
    }
}
