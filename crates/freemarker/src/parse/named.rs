//! Directives that name things: assignments, macros and their calls.

use super::super::ast::{AssignScope, Expr, ExprKind, Macro, Node};
use super::super::scan::Piece;
use super::{End, Outcome, Parser, Place, unclosed};

impl Parser<'_> {
    pub(super) fn assign(&mut self, tag: &str, content: &str, at: Place) -> Outcome<Vec<Node>> {
        let scope = if tag == "local" { AssignScope::Local } else { AssignScope::Template };
        let mut reader = self.reader(content, at)?;
        let mut nodes = Vec::new();
        let mut captured = None;
        while !reader.is_done() {
            let name = reader.name()?;
            let place = reader.place();
            match reader.assignment() {
                Some(step @ ('p' | 'm')) => {
                    let value = Expr::new(ExprKind::Number(1.0), place);
                    nodes.push(Node::Assign { scope, name, operator: if step == 'p' { '+' } else { '-' }, value });
                }
                Some(operator) => {
                    let value = reader.expression()?;
                    nodes.push(Node::Assign { scope, name, operator, value });
                }
                None => {
                    captured = Some(name);
                    break;
                }
            }
            reader.eat(",");
        }
        if let Some(name) = captured {
            nodes.push(Node::Capture { scope, name, body: self.body(tag, at)? });
        }
        Ok(nodes)
    }

    pub(super) fn definition(&mut self, tag: &str, content: &str, at: Place) -> Outcome<Node> {
        let mut reader = self.reader(content, at)?;
        let name = reader.name()?;
        let parenthesised = reader.eat("(");
        let (mut parameters, mut rest) = (Vec::new(), None);
        while !(reader.is_done() || parenthesised && reader.eat(")")) {
            let parameter = reader.name()?;
            if reader.eat("..") {
                reader.eat(".");
                rest = Some(parameter);
                continue;
            }
            let default = if reader.assignment() == Some('=') { Some(reader.expression()?) } else { None };
            parameters.push((parameter, default));
            reader.eat(",");
        }
        let body = self.body(tag, at)?;
        Ok(Node::Macro(Macro { name, parameters, rest, body }))
    }

    pub(super) fn call(&mut self, content: &str, self_closing: bool, at: Place) -> Outcome<Node> {
        let mut reader = self.reader(content, Place { column: at.column + 2, ..at })?;
        // The name of a macro may be a path; arguments begin after a blank, which the reader does not see.
        let mut name = Expr::new(ExprKind::Name(reader.name()?), at);
        while reader.eat(".") {
            name = Expr::new(ExprKind::Member(name, reader.name()?), at);
        }
        let mut arguments = Vec::new();
        let mut variables = Vec::new();
        while !reader.is_done() {
            if reader.eat(";") {
                while !reader.is_done() {
                    variables.push(reader.name()?);
                    reader.eat(",");
                }
                break;
            }
            let key = if reader.at_named() {
                let key = reader.name()?;
                reader.expect("=")?;
                Some(key)
            } else {
                None
            };
            arguments.push((key, reader.expression()?));
            reader.eat(",");
        }
        let body = if self_closing {
            Vec::new()
        } else {
            match self.nested(at)? {
                (body, End::Tag(Piece::CallEnd(_))) => body,
                (_, end) => return Err(unclosed("@", at, &end)),
            }
        };
        Ok(Node::Call { name, arguments, variables, body, at })
    }
}
