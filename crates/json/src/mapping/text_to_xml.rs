//! JSON text to XML without the values in between, which take several times the memory of either.
//!
//! Members are written as they are read. That is the same as [`super::to_xml`] unless an object has attributes, which XML
//! has before everything else, or a name twice, of which the last counts; then the caller goes by way of the value.

use std::borrow::Cow;
use std::collections::HashSet;

use penstock_xml::TreeBuilder;

use super::to_xml::{self, UNNAMED};
use super::{MappingError, Options, names};
use crate::text::{Parser, TOO_MANY_VALUES, Token};

/// Names that are compared one by one; more are kept in a table.
const LINEAR_MAX: usize = 16;

/// Why the text was not written.
#[derive(Debug, PartialEq, Eq)]
pub enum Unwritten {
    /// It has to be read into a value first. Mistakes in the text are found there, with their places.
    NeedsValue,
    /// It has too many values.
    TooManyValues,
    /// As [`super::to_xml`] would say.
    Mapping(MappingError),
}

impl From<&'static str> for Unwritten {
    fn from(why: &'static str) -> Unwritten {
        if why == TOO_MANY_VALUES { Unwritten::TooManyValues } else { Unwritten::NeedsValue }
    }
}

/// Adds the element that the value of a text becomes. After an error the builder holds a part of it.
pub fn text_to_xml(
    text: &str,
    values_max: usize,
    builder: &mut TreeBuilder,
    options: &Options,
) -> Result<(), Unwritten> {
    let mut writer = Writer { parser: Parser::new(text, values_max), builder, options };
    let name = match writer.parser.peek() {
        Some(b'{') => "jsonObject",
        Some(b'[') => "jsonArray",
        _ => "jsonValue",
    };
    writer.builder.start_element("", name, "");
    match writer.parser.token()? {
        Token::Array => writer.elements(UNNAMED)?,
        token => writer.content(token)?,
    }
    writer.builder.end_element();
    Ok(writer.parser.end()?)
}

struct Writer<'t, 'b> {
    parser: Parser<'t>,
    builder: &'b mut TreeBuilder,
    options: &'b Options,
}

impl Writer<'_, '_> {
    /// What stands inside the open element of a value.
    fn content(&mut self, token: Token) -> Result<(), Unwritten> {
        match token {
            Token::Null if self.options.nil => self.builder.attribute("", "nil", "", "true"),
            Token::Null => {}
            Token::Bool(truth) => self.builder.text(if truth { "true" } else { "false" }),
            Token::Number(number) => self.builder.text(&number.to_string()),
            Token::String(text) => self.builder.text(&to_xml::characters(&text)),
            Token::Object => self.members()?,
            Token::Array => {
                self.builder.start_element("", "jsonArray", "");
                self.elements(UNNAMED)?;
                self.builder.end_element();
            }
        }
        Ok(())
    }

    fn members(&mut self) -> Result<(), Unwritten> {
        let mut seen = SeenNames::default();
        while let Some(name) = self.parser.member()? {
            if name.starts_with('@') {
                return Err(Unwritten::NeedsValue);
            }
            let token = self.parser.token()?;
            match token {
                Token::Array => self.elements(&name)?,
                Token::Object => self.element(&name, token)?,
                scalar if name == "$" => self.content(scalar)?,
                scalar => self.element(&name, scalar)?,
            }
            if !seen.add(name) {
                return Err(Unwritten::NeedsValue);
            }
        }
        Ok(())
    }

    fn element(&mut self, name: &str, token: Token) -> Result<(), Unwritten> {
        self.builder.start_element("", &names::to_element(name, self.options.valid_names), "");
        self.content(token)?;
        self.builder.end_element();
        Ok(())
    }

    /// A list: the element of its member once per value.
    fn elements(&mut self, member: &str) -> Result<(), Unwritten> {
        let name: Cow<'_, str> = names::to_element(member, self.options.valid_names);
        let is_empty = self.parser.peek() == Some(b']');
        if self.options.write_array_instructions || (is_empty && member != UNNAMED) {
            to_xml::array_instruction(self.builder, member, &name);
        }
        while let Some(token) = self.parser.element()? {
            self.builder.start_element("", &name, "");
            self.content(token)?;
            self.builder.end_element();
        }
        Ok(())
    }
}

/// The names of the members of an object.
#[derive(Default)]
struct SeenNames {
    few: Vec<String>,
    many: HashSet<String>,
}

impl SeenNames {
    /// Whether the name is new.
    fn add(&mut self, name: String) -> bool {
        if self.few.len() < LINEAR_MAX && self.many.is_empty() {
            let is_new = !self.few.contains(&name);
            self.few.push(name);
            return is_new;
        }
        if self.many.is_empty() {
            self.many = self.few.drain(..).collect();
        }
        self.many.insert(name)
    }
}

#[cfg(test)]
mod tests {
    use penstock_xml::{Document, WriteOptions, to_vec};

    use super::*;

    fn written(build: impl FnOnce(&mut TreeBuilder)) -> String {
        let mut builder = TreeBuilder::new();
        build(&mut builder);
        let document = builder.finish();
        String::from_utf8(to_vec(&document, Document::ROOT, &WriteOptions::default())).unwrap()
    }

    #[test]
    fn writes_what_the_value_becomes() {
        let arrays = Options { write_array_instructions: true, ..Options::default() };
        let nil = Options { nil: true, ..Options::default() };
        for text in [
            "{}",
            "[]",
            "1",
            "\"a\\u0001<\"",
            "null",
            "{\"a\":[1,2.50,\"x\",null,true,[],{},[[1]]],\"b\":{},\"c\":[],\"$\":\"t\",\"d e\":{\"$\":null}}",
            "[{\"a\":1},[2],{\"b\":[]}]",
            "{\"1\":1E5,\"xml\":\"é\",\"a:b\":[{}]}",
        ] {
            for options in [&Options::default(), &arrays, &nil] {
                let value = crate::text::parse(text).unwrap();
                let expected = written(|builder| to_xml::to_xml(&value, builder, options).unwrap());
                let actual = written(|builder| text_to_xml(text, usize::MAX, builder, options).unwrap());
                assert_eq!(actual, expected, "{text}");
            }
        }
    }

    #[test]
    fn what_needs_the_value_is_left_to_it() {
        let many: Vec<String> = (0..40).map(|number| format!("\"n{}\":1", number % 39)).collect();
        let many = format!("{{{}}}", many.join(","));
        let mut builder = TreeBuilder::new();
        let outcome = text_to_xml("[1,[2]]", 3, &mut builder, &Options::default());
        assert_eq!(outcome, Err(Unwritten::TooManyValues));
        for text in [
            "{\"a\":1,\"@b\":2}",
            "{\"\\u0040b\":2}",
            "{\"a\":1,\"b\":2,\"a\":3}",
            &many,
            "",
            "[1",
            "[1,]",
            "{\"a\"}",
            "{\"a\":1,}",
            "{\"a\":1]",
            "[1}",
            "1 2",
            "[1 2]",
        ] {
            let mut builder = TreeBuilder::new();
            let outcome = text_to_xml(text, usize::MAX, &mut builder, &Options::default());
            assert_eq!(outcome, Err(Unwritten::NeedsValue), "{text}");
        }
    }
}
