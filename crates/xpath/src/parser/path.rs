//! Paths and steps.

use super::{Parser, syntax_error, undeclared_prefix};
use crate::ast::{Axis, AxisStep, Expr, ExprKind, KindTest, Name, NodeTest, Path, PathStart, Step};
use crate::error::{Result, Span, XPathError};
use crate::lexer::Token;
use crate::value::AtomicType;

/// Names that are kind tests when a `(` follows.
const KIND_TESTS: &[&str] = &[
    "node",
    "text",
    "comment",
    "processing-instruction",
    "document-node",
    "element",
    "attribute",
    "schema-element",
    "schema-attribute",
];

const AXES: &[(&str, Axis)] = &[
    ("child", Axis::Child),
    ("descendant", Axis::Descendant),
    ("descendant-or-self", Axis::DescendantOrSelf),
    ("attribute", Axis::Attribute),
    ("self", Axis::Myself),
    ("parent", Axis::Parent),
    ("ancestor", Axis::Ancestor),
    ("ancestor-or-self", Axis::AncestorOrSelf),
    ("following-sibling", Axis::FollowingSibling),
    ("preceding-sibling", Axis::PrecedingSibling),
    ("following", Axis::Following),
    ("preceding", Axis::Preceding),
    ("namespace", Axis::Namespace),
];

/// `//` written out.
pub(super) fn any_descendant(span: Span) -> Step {
    let test = NodeTest::Kind(KindTest::Any);
    Step::Axis(AxisStep { axis: Axis::DescendantOrSelf, test, predicates: Vec::new(), span })
}

impl<'t> Parser<'t, '_> {
    /// `PathExpr`: a path, or a primary expression that no step follows.
    pub(super) fn path_expr(&mut self) -> Result<Expr> {
        let start = self.span();
        let mut steps = Vec::new();
        let path_start = if self.eat("//") {
            steps.push(any_descendant(start));
            self.step(&mut steps)?;
            PathStart::Root
        } else if self.eat("/") {
            if self.starts_step() {
                self.step(&mut steps)?;
            }
            PathStart::Root
        } else if self.starts_axis_step() {
            self.step(&mut steps)?;
            PathStart::Context
        } else {
            let first = self.filter_expr()?;
            if !self.is("/") && !self.is("//") {
                return Ok(first);
            }
            match first.kind {
                // `./a` is `a`, and steps after an alias or a parenthesised path continue that path.
                ExprKind::ContextItem => PathStart::Context,
                ExprKind::Path(path) => {
                    steps = path.steps;
                    path.start
                }
                _ => PathStart::Expr(Box::new(first)),
            }
        };
        if !(matches!(path_start, PathStart::Root) && steps.is_empty()) {
            self.more_steps(&mut steps)?;
        }
        self.node(ExprKind::Path(Path { start: path_start, steps }), self.span_from(start))
    }

    fn more_steps(&mut self, steps: &mut Vec<Step>) -> Result<()> {
        loop {
            let span = self.span();
            if self.eat("//") {
                steps.push(any_descendant(span));
            } else if !self.eat("/") {
                return Ok(());
            }
            self.step(steps)?;
        }
    }

    fn starts_step(&self) -> bool {
        match self.token() {
            Token::End => false,
            Token::Symbol(symbol) => matches!(symbol, "." | ".." | "@" | "*" | "$" | "("),
            _ => true,
        }
    }

    /// Whether an axis step rather than a primary expression stands here.
    pub(super) fn starts_axis_step(&self) -> bool {
        match self.token() {
            Token::Symbol(symbol) => matches!(symbol, "@" | ".." | "*" | "::"),
            Token::PrefixStar(_) | Token::StarLocal(_) => true,
            Token::Name(prefix, local) => match self.peek(1) {
                Token::Symbol("(") => prefix.is_none() && KIND_TESTS.contains(&local),
                _ => true,
            },
            _ => false,
        }
    }

    fn step(&mut self, steps: &mut Vec<Step>) -> Result<()> {
        let start = self.span();
        if self.starts_axis_step() {
            let step = self.axis_step()?;
            steps.push(Step::Axis(step));
            return Ok(());
        }
        if self.is(".") && !matches!(self.peek(1), Token::Symbol("[")) {
            self.advance();
            // A step that stays where it is.
            let test = NodeTest::Kind(KindTest::Any);
            steps.push(Step::Axis(AxisStep { axis: Axis::Myself, test, predicates: Vec::new(), span: start }));
            return Ok(());
        }
        if !self.starts_step() {
            return Err(self.unexpected("a step"));
        }
        let expr = self.filter_expr()?;
        steps.push(Step::Expr(expr));
        Ok(())
    }

    /// `axis::test[predicate]…` and its abbreviations.
    pub(super) fn axis_step(&mut self) -> Result<AxisStep> {
        let start = self.span();
        if self.eat("..") {
            let test = NodeTest::Kind(KindTest::Any);
            let predicates = self.predicates()?;
            return Ok(AxisStep { axis: Axis::Parent, test, predicates, span: self.span_from(start) });
        }
        let axis = self.axis()?;
        let test = self.node_test(axis)?;
        let predicates = self.predicates()?;
        Ok(AxisStep { axis, test, predicates, span: self.span_from(start) })
    }

    fn axis(&mut self) -> Result<Axis> {
        if self.eat("@") {
            return Ok(Axis::Attribute);
        }
        let (Token::Name(None, name), Token::Symbol("::")) = (self.token(), self.peek(1)) else {
            if self.is("::") {
                return Err(self.unexpected("the name of an axis"));
            }
            // `attribute(x)` without an axis looks on the attribute axis.
            let attribute = self.is_word("attribute") && self.peek(1) == Token::Symbol("(");
            let attribute = attribute || (self.is_word("schema-attribute") && self.peek(1) == Token::Symbol("("));
            let document = self.pattern && self.is_word("document-node") && self.peek(1) == Token::Symbol("(");
            return Ok(match (attribute, document) {
                (true, _) => Axis::Attribute,
                (_, true) => Axis::Myself,
                _ => Axis::Child,
            });
        };
        let Some((_, axis)) = AXES.iter().find(|(known, _)| *known == name) else {
            return Err(syntax_error(format!("unknown axis `{name}`"), self.span()));
        };
        self.advance();
        self.advance();
        Ok(*axis)
    }

    pub(super) fn predicates(&mut self) -> Result<Vec<Expr>> {
        let mut predicates = Vec::new();
        while self.eat("[") {
            predicates.push(self.nested(Self::expr)?);
            self.expect("]")?;
        }
        Ok(predicates)
    }

    fn node_test(&mut self, axis: Axis) -> Result<NodeTest> {
        let span = self.span();
        match self.token() {
            Token::Symbol("*") => {
                self.advance();
                Ok(NodeTest::AnyName)
            }
            Token::StarLocal(local) => {
                self.advance();
                Ok(NodeTest::Local(local.into()))
            }
            Token::PrefixStar(prefix) => {
                self.advance();
                let name = self.resolve(Some(prefix), "*", None, span)?;
                Ok(if name.namespace.is_none() { NodeTest::AnyName } else { NodeTest::Namespace(name) })
            }
            Token::Name(None, local) if self.peek(1) == Token::Symbol("(") && KIND_TESTS.contains(&local) => {
                Ok(NodeTest::Kind(self.kind_test()?))
            }
            Token::Name(prefix, local) => {
                if self.peek(1) == Token::Symbol("(") {
                    return Err(syntax_error(format!("`{local}(…)` is not a node test"), span));
                }
                self.advance();
                let name = self.test_name(prefix, local, axis, span)?;
                let undeclared = prefix.is_some() && name.namespace.is_none();
                Ok(if undeclared { NodeTest::UndeclaredPrefix(name) } else { NodeTest::Name(name) })
            }
            _ => Err(self.unexpected("a name, `*` or a node test")),
        }
    }

    fn test_name(&self, prefix: Option<&str>, local: &str, axis: Axis, span: Span) -> Result<Name> {
        let default = match axis {
            Axis::Attribute | Axis::Namespace => None,
            _ => self.context.default_element_namespace.as_ref(),
        };
        self.resolve(prefix, local, default, span)
    }

    /// `text()`, `element(name)` and the like.
    pub(super) fn kind_test(&mut self) -> Result<KindTest> {
        let span = self.span();
        let Token::Name(None, name) = self.token() else { return Err(self.unexpected("a node test")) };
        self.advance();
        self.expect("(")?;
        let test = match name {
            "node" => KindTest::Any,
            "text" => KindTest::Text,
            "comment" => KindTest::Comment,
            "processing-instruction" => KindTest::ProcessingInstruction(self.target()?),
            "document-node" if self.is_word("element") || self.is_word("schema-element") => {
                KindTest::DocumentOf(Box::new(self.kind_test()?))
            }
            "document-node" => KindTest::Document,
            "element" => {
                let name = self.kind_test_name(Axis::Child)?;
                let untyped = self.type_admits(&["untyped", "anyType"])?;
                if untyped { KindTest::Element(name) } else { KindTest::Nothing }
            }
            "attribute" => {
                let name = self.kind_test_name(Axis::Attribute)?;
                let untyped = self.type_admits(&["untypedAtomic", "anyAtomicType", "anySimpleType", "anyType"])?;
                if untyped { KindTest::Attribute(name) } else { KindTest::Nothing }
            }
            "schema-element" | "schema-attribute" => {
                return Err(XPathError::new("XPST0008", format!("no schema declares what `{name}()` names")).at(span));
            }
            _ => return Err(syntax_error(format!("`{name}()` is not a node test"), span)),
        };
        self.expect(")")?;
        Ok(test)
    }

    fn target(&mut self) -> Result<Option<std::sync::Arc<str>>> {
        let target = match self.token() {
            Token::String(text, _) => text,
            Token::Name(None, name) => name,
            _ => return Ok(None),
        };
        self.advance();
        Ok(Some(target.into()))
    }

    /// Whether the type after the name in `element(name, type)` is one that nodes have without a schema.
    fn type_admits(&mut self, untyped: &[&str]) -> Result<bool> {
        if !self.eat(",") {
            return Ok(true);
        }
        let span = self.span();
        let Token::Name(prefix, local) = self.token() else { return Err(self.unexpected("the name of a type")) };
        let schema = self.is_schema_prefix(prefix);
        self.advance();
        self.eat("?");
        let known = untyped.contains(&local) || AtomicType::from_local_name(local).is_some();
        if !schema || !(known || matches!(local, "untyped" | "untypedAtomic" | "anyType" | "anySimpleType")) {
            return Err(XPathError::new("XPST0008", format!("unknown type `{local}`")).at(span));
        }
        Ok(untyped.contains(&local))
    }

    /// The name inside `element(…)`.
    fn kind_test_name(&mut self, axis: Axis) -> Result<Option<Name>> {
        let span = self.span();
        let name = match self.token() {
            Token::Symbol("*") => None,
            Token::Name(prefix, local) => {
                let name = self.test_name(prefix, local, axis, span)?;
                if let (Some(prefix), None) = (prefix, &name.namespace) {
                    return Err(undeclared_prefix(prefix, span));
                }
                Some(name)
            }
            _ => return Ok(None),
        };
        self.advance();
        Ok(name)
    }
}
