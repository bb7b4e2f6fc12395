//! From the syntax tree to a plan, or to the reason why there is none.

use super::Want;
use super::forms::{constant, literal, mirrored, name_test, position, selects_nodes};
use super::plan::{Mask, Next, Plan, Predicate, Question, STEPS_MAX, Scalar, Step, StepAxis, Test, Value};
use crate::ast::Step as AstStep;
use crate::ast::{Axis, AxisStep, Comparison, Expr, ExprKind, KindTest, Name, NodeTest, Path, PathStart};
use crate::error::{Span, XPathError};
use crate::expression::XPath;
use crate::static_context::FUNCTION_NAMESPACE;

pub(super) type Result<T> = std::result::Result<T, XPathError>;

/// Predicates that look into elements, inside one another. Each level may read its element once more.
const CONDITION_DEPTH_MAX: usize = 3;

pub(super) fn compile(expression: &XPath, want: Want) -> Result<Plan> {
    let ast = expression.ast();
    if !expression.is_compatible() {
        return no("only expressions with XPath 1.0 semantics are streamed", ast);
    }
    let mut compiler = Compiler::new(0);
    let scalar = compiler.scalar(ast, want)?;
    let scalar = Box::new(scalar);
    compiler.plan.scalar = match want {
        Want::Text => Scalar::ToText(scalar),
        Want::Boolean => Scalar::ToBoolean(scalar),
        Want::Number => Scalar::ToNumber(scalar),
    };
    Ok(compiler.plan)
}

pub(super) fn no<T>(reason: impl Into<String>, expr: &Expr) -> Result<T> {
    no_at(reason, &expr.span)
}

pub(super) fn no_at<T>(reason: impl Into<String>, span: &Span) -> Result<T> {
    Err(XPathError::new("streaming", reason.into()).at(*span))
}

struct Compiler {
    plan: Plan,
    /// Zero for the expression itself, more inside predicates.
    depth: usize,
}

impl Compiler {
    fn new(depth: usize) -> Compiler {
        let plan = Plan {
            scalar: Scalar::Constant(Value::Boolean(false)),
            questions: Vec::new(),
            steps: Vec::new(),
            at_root: 0,
            at_context: 0,
            deep: 0,
            child_steps: 0,
            attribute_steps: 0,
            text_steps: 0,
            counters: 0,
        };
        Compiler { plan, depth }
    }

    fn scalar(&mut self, expr: &Expr, want: Want) -> Result<Scalar> {
        match &expr.kind {
            ExprKind::Literal(atomic) => Ok(Scalar::Constant(literal(atomic, expr)?)),
            ExprKind::Or(operands) => Ok(Scalar::Or(self.booleans(operands)?)),
            ExprKind::And(operands) => Ok(Scalar::And(self.booleans(operands)?)),
            ExprKind::GeneralComparison(comparison, left, right) => self.comparison(*comparison, left, right, expr),
            ExprKind::Call(name, arguments) => self.call(name, arguments, expr),
            ExprKind::Path(_) | ExprKind::Union(_) | ExprKind::Filter(..) => self.nodes(expr, want),
            ExprKind::Variable(name) => no(format!("the value of `${}` is not in the document", name.lexical()), expr),
            ExprKind::ContextItem => no("the value of the context node as a whole needs all of it", expr),
            _ => no("this kind of expression is only evaluated over a tree", expr),
        }
    }

    fn booleans(&mut self, operands: &[Expr]) -> Result<Vec<Scalar>> {
        operands.iter().map(|operand| self.scalar(operand, Want::Boolean)).collect()
    }

    /// A path, or several: the query depends on the result type.
    fn nodes(&mut self, expr: &Expr, want: Want) -> Result<Scalar> {
        if let Some(test) = self.own_attribute(expr)? {
            return Ok(if want == Want::Boolean { Scalar::HasAttribute(test) } else { Scalar::Attribute(test) });
        }
        let question = if want == Want::Boolean { Question::Exists } else { Question::First };
        self.ask(question, expr)
    }

    fn ask(&mut self, question: Question, expr: &Expr) -> Result<Scalar> {
        self.plan.questions.push(question);
        let index = self.plan.questions.len() - 1;
        self.paths(expr, index)?;
        Ok(Scalar::Answer(index))
    }

    /// `@name` in a predicate: answered from the start tag.
    fn own_attribute(&self, expr: &Expr) -> Result<Option<Test>> {
        let ExprKind::Path(Path { start: PathStart::Context, steps }) = &expr.kind else { return Ok(None) };
        match &steps[..] {
            [AstStep::Axis(step)] if self.depth > 0 && step.axis == Axis::Attribute && step.predicates.is_empty() => {
                Ok(Some(name_test(step)?))
            }
            _ => Ok(None),
        }
    }

    fn comparison(&mut self, comparison: Comparison, left: &Expr, right: &Expr, expr: &Expr) -> Result<Scalar> {
        let (nodes, other, comparison) = match (selects_nodes(left), selects_nodes(right)) {
            (true, true) => return no("a comparison of nodes with nodes needs all of both", expr),
            (true, false) => (left, right, comparison),
            (false, true) => (right, left, mirrored(comparison)),
            (false, false) => {
                let left = self.scalar(left, Want::Text)?;
                let right = self.scalar(right, Want::Text)?;
                return Ok(Scalar::Compare(comparison, Box::new(left), Box::new(right)));
            }
        };
        let value = match constant(other) {
            Some(value) => value,
            None => return no("nodes are compared with a literal only", other),
        };
        if let Value::Boolean(_) = value {
            let exists = self.nodes(nodes, Want::Boolean)?;
            return Ok(Scalar::Compare(comparison, Box::new(exists), Box::new(Scalar::Constant(value))));
        }
        if let Some(test) = self.own_attribute(nodes)? {
            return Ok(Scalar::AnyAttribute(test, comparison, value));
        }
        self.ask(Question::Any(comparison, value), nodes)
    }

    fn call(&mut self, name: &Name, arguments: &[Expr], expr: &Expr) -> Result<Scalar> {
        let standard = name.namespace.as_deref().is_none_or(|namespace| namespace == FUNCTION_NAMESPACE);
        let boxed = |scalar| Box::new(scalar);
        if !standard {
            return no(format!("`{}()` is not known to the stream", name.lexical()), expr);
        }
        Ok(match (&*name.local, arguments) {
            ("true", []) => Scalar::Constant(Value::Boolean(true)),
            ("false", []) => Scalar::Constant(Value::Boolean(false)),
            ("not", [inner]) => Scalar::Not(boxed(self.scalar(inner, Want::Boolean)?)),
            ("boolean", [inner]) => Scalar::ToBoolean(boxed(self.scalar(inner, Want::Boolean)?)),
            ("exists", [inner]) if selects_nodes(inner) => self.nodes(inner, Want::Boolean)?,
            ("empty", [inner]) if selects_nodes(inner) => Scalar::Not(boxed(self.nodes(inner, Want::Boolean)?)),
            ("string", [inner]) => Scalar::ToText(boxed(self.scalar(inner, Want::Text)?)),
            ("number", [inner]) => Scalar::ToNumber(boxed(self.scalar(inner, Want::Number)?)),
            ("count", [inner]) if selects_nodes(inner) => self.ask(Question::Count, inner)?,
            ("concat", [_, _, ..]) => {
                let parts: Result<Vec<Scalar>> =
                    arguments.iter().map(|argument| self.scalar(argument, Want::Text)).collect();
                Scalar::Concat(parts?)
            }
            ("contains", [text, part]) => {
                Scalar::Contains(boxed(self.scalar(text, Want::Text)?), boxed(self.scalar(part, Want::Text)?))
            }
            ("starts-with", [text, part]) => {
                Scalar::StartsWith(boxed(self.scalar(text, Want::Text)?), boxed(self.scalar(part, Want::Text)?))
            }
            ("normalize-space", [inner]) => Scalar::NormalizeSpace(boxed(self.scalar(inner, Want::Text)?)),
            ("string-length", [inner]) => Scalar::StringLength(boxed(self.scalar(inner, Want::Text)?)),
            ("local-name", []) if self.depth > 0 => Scalar::LocalName,
            ("namespace-uri", []) if self.depth > 0 => Scalar::NamespaceUri,
            ("name", []) if self.depth > 0 => Scalar::QualifiedName,
            _ => return no(format!("`{}()` is not known to the stream", name.lexical()), expr),
        })
    }

    /// Adds the paths of an expression that selects nodes.
    fn paths(&mut self, expr: &Expr, question: usize) -> Result<()> {
        match &expr.kind {
            ExprKind::Union(operands) => operands.iter().try_for_each(|operand| self.paths(operand, question)),
            ExprKind::Path(path) => self.path(path, expr, question),
            // The first of all nodes is what a question for the first, or for any, stops at.
            ExprKind::Filter(base, predicates)
                if matches!(&predicates[..], [predicate] if constant(predicate) == Some(Value::Number(1.0)))
                    && matches!(self.plan.questions[question], Question::First | Question::Exists) =>
            {
                self.paths(base, question)
            }
            ExprKind::Filter(..) => no("a predicate on all nodes of an expression needs all of them", expr),
            _ => no("this does not select nodes by a path", expr),
        }
    }

    fn path(&mut self, path: &Path, expr: &Expr, question: usize) -> Result<()> {
        let from_root = match &path.start {
            PathStart::Root if self.depth > 0 => {
                return no("a predicate cannot look at the document from its root", expr);
            }
            PathStart::Root => true,
            PathStart::Context => false,
            PathStart::Expr(start) => return no("a path that starts at another expression is not streamed", start),
        };
        let mut gap = false;
        let mut previous = None;
        for step in &path.steps {
            let AstStep::Axis(step) = step else { return no("an expression as a step is not streamed", expr) };
            let any_node = step.test == NodeTest::Kind(KindTest::Any) && step.predicates.is_empty();
            if any_node && step.axis == Axis::DescendantOrSelf {
                gap = true;
                continue;
            }
            if any_node && step.axis == Axis::Myself {
                continue;
            }
            let index = self.step(step, gap, question)?;
            match previous {
                Some(earlier) => self.connect(earlier, index, &step.span)?,
                None if from_root => self.plan.at_root |= 1 << index,
                None => self.plan.at_context |= 1 << index,
            }
            previous = Some(index);
            gap = false;
        }
        if previous.is_none() || gap {
            return no("a path must end in an element, an attribute or `text()`", expr);
        }
        Ok(())
    }

    fn connect(&mut self, earlier: usize, later: usize, span: &Span) -> Result<()> {
        if self.plan.steps[earlier].axis != StepAxis::Child {
            return no_at("attributes and text have nothing below them", span);
        }
        self.plan.steps[earlier].next = Next::Step(later);
        Ok(())
    }

    fn step(&mut self, step: &AxisStep, gap: bool, question: usize) -> Result<usize> {
        let index = self.plan.steps.len();
        if index >= STEPS_MAX {
            return no_at("the paths have too many steps", &step.span);
        }
        let is_text = step.test == NodeTest::Kind(KindTest::Text);
        let (axis, deep) = match step.axis {
            Axis::Child if is_text => (StepAxis::Text, gap),
            Axis::Child => (StepAxis::Child, gap),
            Axis::Descendant if is_text => (StepAxis::Text, true),
            Axis::Descendant => (StepAxis::Child, true),
            Axis::Attribute => (StepAxis::Attribute, gap),
            other => return no_at(format!("the axis of this step ({other:?}) is not a forward one"), &step.span),
        };
        let bit: Mask = 1 << index;
        let test = match axis {
            StepAxis::Child => {
                self.plan.child_steps |= bit;
                name_test(step)?
            }
            StepAxis::Attribute => {
                self.plan.attribute_steps |= bit;
                name_test(step)?
            }
            StepAxis::Text => {
                self.plan.text_steps |= bit;
                Test::Any
            }
        };
        if deep {
            self.plan.deep |= bit;
        }
        if axis != StepAxis::Child && !step.predicates.is_empty() {
            return no_at("predicates on attributes and on text are not streamed", &step.span);
        }
        let predicates: Result<Vec<Predicate>> =
            step.predicates.iter().map(|predicate| self.predicate(predicate, step.axis == Axis::Descendant)).collect();
        let predicates = predicates?;
        self.plan.steps.push(Step { axis, test, predicates, next: Next::Question(question) });
        Ok(index)
    }

    fn predicate(&mut self, expr: &Expr, over_descendants: bool) -> Result<Predicate> {
        if let Some((comparison, number)) = position(expr) {
            if over_descendants {
                return no("a position among all descendants is not streamed", expr);
            }
            let counter = self.plan.counters;
            self.plan.counters += 1;
            return Ok(Predicate::Position { comparison, number, counter });
        }
        if self.depth >= CONDITION_DEPTH_MAX {
            return no("predicates are nested too deeply to be streamed", expr);
        }
        let mut inner = Compiler::new(self.depth + 1);
        let scalar = inner.scalar(expr, Want::Boolean)?;
        if matches!(scalar, Scalar::ToNumber(_) | Scalar::StringLength(_) | Scalar::Constant(Value::Number(_)))
            || matches!(scalar, Scalar::Answer(question) if matches!(inner.plan.questions[question], Question::Count))
        {
            return no("a predicate with a computed number is not streamed", expr);
        }
        inner.plan.scalar = scalar;
        Ok(Predicate::Condition(Box::new(inner.plan)))
    }
}
