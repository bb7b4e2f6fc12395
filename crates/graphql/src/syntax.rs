//! What schemas and queries have in common: the cursor over tokens with its limits, values, references to types and
//! directives.

use super::lexer::{Lexer, Token};
use super::{DEPTH_MAX, Malformed};

/// A name and where it stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Name<'t> {
    pub text: &'t str,
    pub offset: usize,
}

/// A value as it is written. Texts and fractions are not looked into.
#[derive(Debug)]
pub(super) enum Value<'t> {
    Variable(Name<'t>),
    Int(&'t str),
    Float,
    Text,
    Flag(bool),
    Null,
    Enum(Name<'t>),
    List(Vec<Value<'t>>),
    Object(Vec<Argument<'t>>),
}

/// A value with a name: an argument, or a field of an object.
#[derive(Debug)]
pub(super) struct Argument<'t> {
    pub name: Name<'t>,
    pub value: Value<'t>,
}

#[derive(Debug)]
pub(super) struct Directive<'t> {
    pub name: Name<'t>,
    pub arguments: Vec<Argument<'t>>,
}

/// A reference to a type: `[Book!]!`.
#[derive(Debug)]
pub(super) enum TypeName<'t> {
    Named(Name<'t>),
    List(Box<TypeName<'t>>),
    NonNull(Box<TypeName<'t>>),
}

impl<'t> TypeName<'t> {
    /// The name inside.
    pub(super) fn named(&self) -> Name<'t> {
        match self {
            TypeName::Named(name) => *name,
            TypeName::List(inner) | TypeName::NonNull(inner) => inner.named(),
        }
    }
}

/// Reads tokens and knows the one that comes.
pub(super) struct Parser<'t> {
    lexer: Lexer<'t>,
    token: Token<'t>,
    offset: usize,
    tokens_left: usize,
    tokens_max: usize,
    depth: usize,
}

impl<'t> Parser<'t> {
    pub(super) fn new(text: &'t str, bytes_max: usize, tokens_max: usize) -> Result<Parser<'t>, Malformed> {
        if text.len() > bytes_max {
            return Err(Malformed::new(0, format!("longer than {bytes_max} bytes")));
        }
        let mut lexer = Lexer::new(text);
        let (token, offset) = lexer.next()?;
        Ok(Parser { lexer, token, offset, tokens_left: tokens_max, tokens_max, depth: 0 })
    }

    /// The token that comes.
    pub(super) fn peek(&self) -> Token<'t> {
        self.token
    }

    pub(super) fn advance(&mut self) -> Result<(), Malformed> {
        let Some(left) = self.tokens_left.checked_sub(1) else {
            return Err(Malformed::new(self.offset, format!("more than {} tokens", self.tokens_max)));
        };
        self.tokens_left = left;
        (self.token, self.offset) = self.lexer.next()?;
        Ok(())
    }

    pub(super) fn unexpected<T>(&self, wanted: &str) -> Result<T, Malformed> {
        Err(Malformed::new(self.offset, format!("{wanted} is expected, not {}", self.token.shown())))
    }

    /// Takes a mark when it comes.
    pub(super) fn takes(&mut self, mark: u8) -> Result<bool, Malformed> {
        let comes = self.token == Token::Mark(mark);
        if comes {
            self.advance()?;
        }
        Ok(comes)
    }

    pub(super) fn expect(&mut self, mark: u8) -> Result<(), Malformed> {
        if self.takes(mark)? { Ok(()) } else { self.unexpected(&format!("`{}`", char::from(mark))) }
    }

    pub(super) fn name(&mut self) -> Result<Name<'t>, Malformed> {
        let Token::Name(text) = self.token else { return self.unexpected("a name") };
        let name = Name { text, offset: self.offset };
        self.advance()?;
        Ok(name)
    }

    /// Whether a word comes.
    pub(super) fn is_at(&self, word: &str) -> bool {
        self.token == Token::Name(word)
    }

    /// Takes a word when it comes.
    pub(super) fn takes_word(&mut self, word: &str) -> Result<bool, Malformed> {
        let comes = self.is_at(word);
        if comes {
            self.advance()?;
        }
        Ok(comes)
    }

    /// Reads something that may hold others of its kind.
    pub(super) fn nested<T>(
        &mut self,
        read: impl FnOnce(&mut Parser<'t>) -> Result<T, Malformed>,
    ) -> Result<T, Malformed> {
        if self.depth == DEPTH_MAX {
            return Err(Malformed::too_deep(self.offset));
        }
        self.depth += 1;
        let read = read(self);
        self.depth -= 1;
        read
    }

    /// One or more between two marks, none when the first does not come.
    pub(super) fn between<T>(
        &mut self,
        [open, close]: [u8; 2],
        mut read: impl FnMut(&mut Parser<'t>) -> Result<T, Malformed>,
    ) -> Result<Vec<T>, Malformed> {
        let mut found = Vec::new();
        if self.takes(open)? {
            loop {
                found.push(read(self)?);
                if self.takes(close)? {
                    break;
                }
            }
        }
        Ok(found)
    }

    /// `(name: value, …)`, or nothing.
    pub(super) fn arguments(&mut self) -> Result<Vec<Argument<'t>>, Malformed> {
        self.between(*b"()", Parser::argument)
    }

    fn argument(&mut self) -> Result<Argument<'t>, Malformed> {
        let name = self.name()?;
        self.expect(b':')?;
        Ok(Argument { name, value: self.value()? })
    }

    pub(super) fn value(&mut self) -> Result<Value<'t>, Malformed> {
        let value = match self.token {
            Token::Mark(b'$') => {
                self.advance()?;
                return Ok(Value::Variable(self.name()?));
            }
            Token::Mark(b'[') => {
                self.advance()?;
                return self.nested(|parser| parser.rest_of(b']', Parser::value).map(Value::List));
            }
            Token::Mark(b'{') => {
                self.advance()?;
                return self.nested(|parser| parser.rest_of(b'}', Parser::argument).map(Value::Object));
            }
            Token::Int(digits) => Value::Int(digits),
            Token::Float => Value::Float,
            Token::Text => Value::Text,
            Token::Name("true") => Value::Flag(true),
            Token::Name("false") => Value::Flag(false),
            Token::Name("null") => Value::Null,
            Token::Name(text) => Value::Enum(Name { text, offset: self.offset }),
            _ => return self.unexpected("a value"),
        };
        self.advance()?;
        Ok(value)
    }

    /// Any number up to a mark.
    fn rest_of<T>(
        &mut self,
        close: u8,
        mut read: impl FnMut(&mut Parser<'t>) -> Result<T, Malformed>,
    ) -> Result<Vec<T>, Malformed> {
        let mut found = Vec::new();
        while !self.takes(close)? {
            found.push(read(self)?);
        }
        Ok(found)
    }

    pub(super) fn directives(&mut self) -> Result<Vec<Directive<'t>>, Malformed> {
        let mut found = Vec::new();
        while self.takes(b'@')? {
            found.push(Directive { name: self.name()?, arguments: self.arguments()? });
        }
        Ok(found)
    }

    pub(super) fn type_name(&mut self) -> Result<TypeName<'t>, Malformed> {
        let inner = if self.takes(b'[')? {
            let inner = self.nested(Parser::type_name)?;
            self.expect(b']')?;
            TypeName::List(Box::new(inner))
        } else {
            TypeName::Named(self.name()?)
        };
        Ok(if self.takes(b'!')? { TypeName::NonNull(Box::new(inner)) } else { inner })
    }
}
