//! From pieces to a tree.

mod named;

use super::ast::{Expr, ExprKind, List, Node};
use super::expression::ExpressionReader;
use super::scan::Piece;
use super::{DEPTH_MAX, Place, TemplateError};

type Outcome<T> = Result<T, TemplateError>;

pub(super) fn parse(pieces: Vec<Piece>, names: &mut Vec<String>) -> Outcome<Vec<Node>> {
    let mut parser = Parser { pieces: pieces.into_iter(), returned: None, names, depth: 0, escapes: Vec::new() };
    let (body, end) = parser.block()?;
    match end {
        End::Template => Ok(body),
        End::Tag(piece) => match piece {
            Piece::Close { name, at } => Err(TemplateError::new(at, format!("</#{name}> closes nothing"))),
            Piece::CallEnd(at) => Err(TemplateError::new(at, "</@…> closes nothing")),
            Piece::Open { name, at, .. } => {
                Err(TemplateError::new(at, format!("<#{name}> stands outside of what it belongs to")))
            }
            _ => Ok(body),
        },
    }
}

/// What a block ended at.
enum End {
    Template,
    Tag(Piece),
}

struct Parser<'n> {
    pieces: std::vec::IntoIter<Piece>,
    /// A token that was read and belongs to an outer rule.
    returned: Option<Piece>,
    names: &'n mut Vec<String>,
    depth: usize,
    /// `<#escape x as …>`, innermost last.
    escapes: Vec<(String, Expr)>,
}

impl Parser<'_> {
    fn reader<'s>(&'s mut self, content: &str, at: Place) -> Outcome<ExpressionReader<'s>> {
        ExpressionReader::new(content, at, self.names)
    }

    fn expression(&mut self, content: &str, at: Place) -> Outcome<Expr> {
        let mut reader = self.reader(content, at)?;
        let found = reader.expression()?;
        if reader.is_done() { Ok(found) } else { reader.fail("this does not belong to the expression before") }
    }

    fn optional(&mut self, content: &str, at: Place) -> Outcome<Option<Expr>> {
        if content.trim().is_empty() { Ok(None) } else { self.expression(content, at).map(Some) }
    }

    /// Nodes up to a tag that belongs to the enclosing element.
    fn block(&mut self) -> Outcome<(Vec<Node>, End)> {
        let mut nodes = Vec::new();
        while let Some(piece) = self.returned.take().or_else(|| self.pieces.next()) {
            match piece {
                Piece::Text(text) => match nodes.last_mut() {
                    Some(Node::Text(before)) => before.push_str(&text),
                    _ => nodes.push(Node::Text(text)),
                },
                Piece::Interpolation(content, at) => {
                    let mut value =
                        self.expression(content.split_once("; ").map_or(&*content, |(value, _)| value), at)?;
                    for (name, around) in self.escapes.iter().rev() {
                        value = substituted(around, name, &value);
                    }
                    nodes.push(Node::Output(value));
                }
                Piece::Comment => {}
                Piece::Open { ref name, .. } if is_inner(name) => return Ok((nodes, End::Tag(piece))),
                Piece::Open { name, content, at } => nodes.extend(self.directive(&name, &content, at)?),
                Piece::Call { content, self_closing, at } => nodes.push(self.call(&content, self_closing, at)?),
                Piece::Close { .. } | Piece::CallEnd(_) => return Ok((nodes, End::Tag(piece))),
            }
        }
        Ok((nodes, End::Template))
    }

    /// The body of a tag, up to its end.
    fn body(&mut self, name: &str, at: Place) -> Outcome<Vec<Node>> {
        match self.nested(at)? {
            (body, End::Tag(Piece::Close { name: found, .. })) if found == name => Ok(body),
            (_, end) => Err(unclosed(name, at, &end)),
        }
    }

    fn nested(&mut self, at: Place) -> Outcome<(Vec<Node>, End)> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(TemplateError::new(at, format!("tags are nested deeper than {DEPTH_MAX}")));
        }
        let block = self.block()?;
        self.depth -= 1;
        Ok(block)
    }

    fn directive(&mut self, name: &str, content: &str, at: Place) -> Outcome<Vec<Node>> {
        Ok(vec![match name {
            "if" => self.condition(content, at)?,
            "list" => self.list(content, at)?,
            "items" => {
                let (name, value) = self.loop_names(content, at)?;
                Node::Items { name, value, body: self.body("items", at)?, at }
            }
            "sep" => return self.sep(at),
            "assign" | "global" | "local" => return self.assign(name, content, at),
            "macro" | "function" => self.definition(name, content, at)?,
            "nested" => {
                let mut values = Vec::new();
                let mut reader = self.reader(content, at)?;
                while !reader.is_done() {
                    values.push(reader.expression()?);
                    reader.eat(",");
                }
                Node::Nested(values)
            }
            "return" => Node::Return(self.optional(content, at)?),
            "switch" => self.switch(content, at)?,
            "attempt" => self.attempt(at)?,
            "break" => Node::Break,
            "continue" => Node::Continue,
            "stop" => Node::Stop(self.optional(content, at)?, at),
            "escape" => return self.escape(content, at),
            "compress" | "noescape" | "autoesc" | "noautoesc" | "outputformat" => return self.body(name, at),
            "ftl" | "setting" | "t" | "lt" | "rt" | "nt" | "flush" => return Ok(Vec::new()),
            "include" | "import" => {
                return Err(TemplateError::new(at, format!("<#{name}> has nothing to read: a template stands alone")));
            }
            _ => return Err(TemplateError::new(at, format!("there is no directive <#{name}>"))),
        }])
    }

    fn condition(&mut self, content: &str, at: Place) -> Outcome<Node> {
        let mut branches = Vec::new();
        let mut condition = Some(self.expression(content, at)?);
        loop {
            let (body, end) = self.nested(at)?;
            branches.push((condition.take(), body));
            match end {
                End::Tag(Piece::Close { name, .. }) if name == "if" => return Ok(Node::If(branches)),
                End::Tag(Piece::Open { name, content, at, .. }) if matches!(&*name, "elseif" | "elseIf") => {
                    condition = Some(self.expression(&content, at)?);
                }
                End::Tag(Piece::Open { name, .. }) if name == "else" => {}
                end => return Err(unclosed("if", at, &end)),
            }
        }
    }

    fn loop_names(&mut self, content: &str, at: Place) -> Outcome<(String, Option<String>)> {
        let mut reader = self.reader(content, at)?;
        if !reader.eat_word("as") {
            return reader.fail("`as` is missing here");
        }
        let name = reader.name()?;
        let value = if reader.eat(",") { Some(reader.name()?) } else { None };
        Ok((name, value))
    }

    fn list(&mut self, content: &str, at: Place) -> Outcome<Node> {
        let mut reader = self.reader(content, at)?;
        let of = reader.expression()?;
        let name = if reader.eat_word("as") {
            let name = reader.name()?;
            let value = if reader.eat(",") { Some(reader.name()?) } else { None };
            Some((name, value))
        } else {
            None
        };
        if !reader.is_done() {
            return reader.fail("this does not belong to <#list>");
        }
        let (body, end) = self.nested(at)?;
        match end {
            End::Tag(Piece::Close { name: found, .. }) if found == "list" => {
                Ok(Node::List(List { of, name, body, otherwise: Vec::new() }))
            }
            End::Tag(Piece::Open { name: found, .. }) if found == "else" => {
                let otherwise = self.body("list", at)?;
                Ok(Node::List(List { of, name, body, otherwise }))
            }
            end => Err(unclosed("list", at, &end)),
        }
    }

    /// `<#sep>` reaches to its end, or to the end of what it stands in.
    fn sep(&mut self, at: Place) -> Outcome<Vec<Node>> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(TemplateError::new(at, format!("tags are nested deeper than {DEPTH_MAX}")));
        }
        let (body, end) = self.block()?;
        self.depth -= 1;
        match end {
            End::Tag(Piece::Close { name, .. }) if name == "sep" => {}
            // The enclosing rule sees the end too.
            End::Tag(piece) => self.returned = Some(piece),
            End::Template => return Err(unclosed("sep", at, &End::Template)),
        }
        Ok(vec![Node::Sep(body)])
    }

    fn switch(&mut self, content: &str, at: Place) -> Outcome<Node> {
        let on = self.expression(content, at)?;
        let mut cases: Vec<(Option<Expr>, Vec<Node>)> = Vec::new();
        loop {
            let (body, end) = self.nested(at)?;
            if let Some((_, last)) = cases.last_mut() {
                *last = body;
            }
            match end {
                End::Tag(Piece::Close { name, .. }) if name == "switch" => return Ok(Node::Switch { on, cases }),
                End::Tag(Piece::Open { name, content, at, .. }) if name == "case" => {
                    cases.push((Some(self.expression(&content, at)?), Vec::new()));
                }
                End::Tag(Piece::Open { name, .. }) if name == "default" => cases.push((None, Vec::new())),
                end => return Err(unclosed("switch", at, &end)),
            }
        }
    }

    fn attempt(&mut self, at: Place) -> Outcome<Node> {
        let (body, end) = self.nested(at)?;
        match end {
            End::Tag(Piece::Open { name, .. }) if name == "recover" => {}
            end => return Err(unclosed("attempt", at, &end)),
        }
        let (recover, end) = self.nested(at)?;
        match end {
            End::Tag(Piece::Close { name, .. }) if matches!(&*name, "attempt" | "recover") => {
                Ok(Node::Attempt { body, recover })
            }
            end => Err(unclosed("attempt", at, &end)),
        }
    }

    fn escape(&mut self, content: &str, at: Place) -> Outcome<Vec<Node>> {
        let mut reader = self.reader(content, at)?;
        let name = reader.name()?;
        if !reader.eat_word("as") {
            return reader.fail("`as` is missing here");
        }
        let around = reader.expression()?;
        if self.escapes.len() >= DEPTH_MAX {
            return Err(TemplateError::new(at, "too many <#escape> inside each other"));
        }
        self.escapes.push((name, around));
        let body = self.body("escape", at);
        self.escapes.pop();
        body
    }
}

/// Tags that belong to the one around them.
fn is_inner(name: &str) -> bool {
    matches!(name, "else" | "elseif" | "elseIf" | "case" | "default" | "recover")
}

fn unclosed(name: &str, at: Place, end: &End) -> TemplateError {
    let tag = if name == "@" { "<@…>".to_owned() } else { format!("<#{name}>") };
    let found = match end {
        End::Tag(Piece::Close { name, .. }) => format!(": </#{name}> comes first"),
        End::Tag(Piece::Open { name, .. }) => format!(": <#{name}> comes first"),
        _ => String::new(),
    };
    TemplateError::new(at, format!("{tag} is never closed{found}"))
}

/// An escape with the value in the place of its variable. Escapes are a built-in or two around a name.
fn substituted(around: &Expr, name: &str, value: &Expr) -> Expr {
    let kind = match &*around.kind {
        ExprKind::Name(other) if other == name => return value.clone(),
        ExprKind::BuiltIn(of, built_in, arguments) => {
            ExprKind::BuiltIn(substituted(of, name, value), built_in.clone(), arguments.clone())
        }
        ExprKind::Paren(inner) => ExprKind::Paren(substituted(inner, name, value)),
        ExprKind::Default(of, default) => ExprKind::Default(substituted(of, name, value), default.clone()),
        ExprKind::Binary(operator, left, right) => {
            ExprKind::Binary(*operator, substituted(left, name, value), substituted(right, name, value))
        }
        ExprKind::Call(of, arguments) => {
            ExprKind::Call(of.clone(), arguments.iter().map(|one| substituted(one, name, value)).collect())
        }
        _ => return around.clone(),
    };
    Expr::new(kind, around.at)
}
