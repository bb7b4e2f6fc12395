//! Operators, by precedence climbing.

use super::types::AtomicName;
use super::{Parser, syntax_error};
use crate::ast::{Arithmetic, Comparison, Expr, ExprKind, NodeComparison};
use crate::error::{Result, Span};
use crate::lexer::Token;
use crate::static_context::Version;

/// Where every operator is allowed.
pub(super) const LOOSEST: u8 = level::OR;

/// Operators from loosest to tightest. The gaps are where XPath 2.0 put its own between those of 1.0.
mod level {
    pub(super) const OR: u8 = 1;
    pub(super) const AND: u8 = 2;
    pub(super) const EQUALITY: u8 = 3;
    pub(super) const RELATIONAL: u8 = 4;
    pub(super) const CONCAT: u8 = 5;
    pub(super) const RANGE: u8 = 6;
    pub(super) const ADDITIVE: u8 = 7;
    pub(super) const MULTIPLICATIVE: u8 = 8;
    pub(super) const UNION: u8 = 9;
    pub(super) const INTERSECT: u8 = 10;
    pub(super) const INSTANCE_OF: u8 = 11;
    pub(super) const TREAT: u8 = 12;
    pub(super) const CASTABLE: u8 = 13;
    pub(super) const CAST: u8 = 14;
}

/// A binary operator.
#[derive(Clone, Copy, PartialEq)]
enum Operator {
    Or,
    And,
    General(Comparison),
    Value(Comparison),
    Node(NodeComparison),
    Concat,
    Range,
    Arithmetic(Arithmetic),
    Union,
    Intersect,
    Except,
    InstanceOf,
    Treat,
    Castable,
    Cast,
}

impl Operator {
    fn level(self) -> u8 {
        match self {
            Operator::Or => level::OR,
            Operator::And => level::AND,
            Operator::General(Comparison::Equal | Comparison::NotEqual) => level::EQUALITY,
            Operator::General(_) | Operator::Value(_) | Operator::Node(_) => level::RELATIONAL,
            Operator::Concat => level::CONCAT,
            Operator::Range => level::RANGE,
            Operator::Arithmetic(Arithmetic::Add | Arithmetic::Subtract) => level::ADDITIVE,
            Operator::Arithmetic(_) => level::MULTIPLICATIVE,
            Operator::Union => level::UNION,
            Operator::Intersect | Operator::Except => level::INTERSECT,
            Operator::InstanceOf => level::INSTANCE_OF,
            Operator::Treat => level::TREAT,
            Operator::Castable => level::CASTABLE,
            Operator::Cast => level::CAST,
        }
    }
}

impl Parser<'_, '_> {
    /// Operators of `minimum` level and tighter, by precedence climbing.
    pub(super) fn operators(&mut self, minimum: u8) -> Result<Expr> {
        let start = self.span();
        let mut left = self.unary()?;
        let mut loosest = u8::MAX;
        while let Some((operator, words)) = self.operator() {
            // Once a looser operator was applied, a tighter one cannot take its result as an operand.
            if operator.level() < minimum || operator.level() > loosest {
                break;
            }
            loosest = operator.level();
            for _ in 0..words {
                self.advance();
            }
            left = self.apply(operator, left, start)?;
            self.refuse_chain(operator)?;
        }
        Ok(left)
    }

    /// `a < b < c` means something in XPath 1.0 and nothing later; `1 to 2 to 3` never does.
    fn refuse_chain(&self, done: Operator) -> Result<()> {
        let comparison = |operator| matches!(operator, Operator::General(_) | Operator::Value(_) | Operator::Node(_));
        let Some((next, _)) = self.operator() else { return Ok(()) };
        let lenient = self.context.version == Version::One
            && matches!(done, Operator::General(_))
            && matches!(next, Operator::General(_));
        if (comparison(done) && comparison(next) && !lenient) || (done == Operator::Range && next == Operator::Range) {
            return Err(syntax_error("this operator cannot be chained, use parentheses".to_string(), self.span()));
        }
        Ok(())
    }

    fn apply(&mut self, operator: Operator, left: Expr, start: Span) -> Result<Expr> {
        let tighter = operator.level() + 1;
        let kind = match operator {
            Operator::InstanceOf => ExprKind::InstanceOf(Box::new(left), self.sequence_type()?),
            Operator::Treat => ExprKind::TreatAs(Box::new(left), self.sequence_type()?),
            Operator::Cast => {
                let AtomicName { atomic, optional } = self.single_type()?;
                ExprKind::CastAs(Box::new(left), atomic, optional)
            }
            Operator::Castable => {
                let AtomicName { atomic, optional } = self.single_type()?;
                ExprKind::CastableAs(Box::new(left), atomic, optional)
            }
            // Flat lists, so that a long chain is not a high tree.
            Operator::Or => ExprKind::Or(self.operands(operator, left)?),
            Operator::And => ExprKind::And(self.operands(operator, left)?),
            Operator::Concat => ExprKind::Concat(self.operands(operator, left)?),
            Operator::Union => ExprKind::Union(self.operands(operator, left)?),
            _ => {
                let (left, right) = (Box::new(left), Box::new(self.operators(tighter)?));
                match operator {
                    Operator::General(comparison) => ExprKind::GeneralComparison(comparison, left, right),
                    Operator::Value(comparison) => ExprKind::ValueComparison(comparison, left, right),
                    Operator::Node(comparison) => ExprKind::NodeComparison(comparison, left, right),
                    Operator::Range => ExprKind::Range(left, right),
                    Operator::Arithmetic(arithmetic) => ExprKind::Arithmetic(arithmetic, left, right),
                    Operator::Intersect => ExprKind::Intersect(left, right),
                    _ => ExprKind::Except(left, right),
                }
            }
        };
        self.node(kind, self.span_from(start))
    }

    /// The remaining operands of a chain of one operator.
    fn operands(&mut self, operator: Operator, first: Expr) -> Result<Vec<Expr>> {
        let mut operands = vec![first];
        loop {
            operands.push(self.operators(operator.level() + 1)?);
            match self.operator() {
                Some((next, _)) if next == operator => self.advance(),
                _ => return Ok(operands),
            }
        }
    }

    /// The operator at this point and how many tokens it takes.
    fn operator(&self) -> Option<(Operator, usize)> {
        use Comparison as C;
        use Operator as O;
        let operator = match self.token() {
            Token::Symbol("=") => O::General(C::Equal),
            Token::Symbol("!=") => O::General(C::NotEqual),
            Token::Symbol("<") => O::General(C::Less),
            Token::Symbol("<=") => O::General(C::LessOrEqual),
            Token::Symbol(">") => O::General(C::Greater),
            Token::Symbol(">=") => O::General(C::GreaterOrEqual),
            Token::Symbol("<<") => O::Node(NodeComparison::Before),
            Token::Symbol(">>") => O::Node(NodeComparison::After),
            Token::Symbol("||") => O::Concat,
            Token::Symbol("+") => O::Arithmetic(Arithmetic::Add),
            Token::Symbol("-") => O::Arithmetic(Arithmetic::Subtract),
            Token::Symbol("*") => O::Arithmetic(Arithmetic::Multiply),
            Token::Symbol("|") => O::Union,
            Token::Name(None, word) => return self.word_operator(word),
            _ => return None,
        };
        Some((operator, 1))
    }

    fn word_operator(&self, word: &str) -> Option<(Operator, usize)> {
        use Comparison as C;
        use Operator as O;
        let second = |expected| self.peek(1) == Token::Name(None, expected);
        let operator = match word {
            "or" => O::Or,
            "and" => O::And,
            "eq" => O::Value(C::Equal),
            "ne" => O::Value(C::NotEqual),
            "lt" => O::Value(C::Less),
            "le" => O::Value(C::LessOrEqual),
            "gt" => O::Value(C::Greater),
            "ge" => O::Value(C::GreaterOrEqual),
            "is" => O::Node(NodeComparison::Is),
            "to" => O::Range,
            "div" => O::Arithmetic(Arithmetic::Divide),
            "idiv" => O::Arithmetic(Arithmetic::IntegerDivide),
            "mod" => O::Arithmetic(Arithmetic::Modulo),
            "union" => O::Union,
            "intersect" => O::Intersect,
            "except" => O::Except,
            "instance" if second("of") => return Some((O::InstanceOf, 2)),
            "treat" if second("as") => return Some((O::Treat, 2)),
            "castable" if second("as") => return Some((O::Castable, 2)),
            "cast" if second("as") => return Some((O::Cast, 2)),
            _ => return None,
        };
        Some((operator, 1))
    }

    fn unary(&mut self) -> Result<Expr> {
        let start = self.span();
        let mut signs = 0;
        let mut negative = false;
        while let Token::Symbol(sign @ ("-" | "+")) = self.token() {
            negative ^= sign == "-";
            signs += 1;
            self.advance();
        }
        if signs == 0 {
            return self.simple_map();
        }
        // In XPath 1.0 union binds tighter than the sign.
        let operand = if self.context.version == Version::One {
            let operand_start = self.span();
            let first = self.simple_map()?;
            if self.is("|") {
                self.advance();
                let operands = self.operands(Operator::Union, first)?;
                self.node(ExprKind::Union(operands), self.span_from(operand_start))?
            } else {
                first
            }
        } else {
            self.simple_map()?
        };
        self.node(ExprKind::Sign(negative, Box::new(operand)), self.span_from(start))
    }

    /// `a ! b ! c`
    fn simple_map(&mut self) -> Result<Expr> {
        let start = self.span();
        let mut left = self.path_expr()?;
        while self.eat("!") {
            let right = self.path_expr()?;
            left = self.node(ExprKind::Map(Box::new(left), Box::new(right)), self.span_from(start))?;
        }
        Ok(left)
    }
}
