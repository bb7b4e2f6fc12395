//! Going over the expressions directly inside one, to look at them or to change them.

use super::{Expr, ExprKind, PathStart, Step};

macro_rules! children {
    ($kind:expr, $visit:expr, $($reference:tt)+) => {{
        use ExprKind as K;
        match $kind {
            K::Literal(_) | K::Variable(_) | K::ContextItem => {}
            K::Sequence(many) | K::Call(_, many) | K::Or(many) | K::And(many) | K::Concat(many) | K::Union(many) => {
                for child in many {
                    $visit(child);
                }
            }
            K::Path(path) => {
                if let PathStart::Expr(start) = $($reference)+ path.start {
                    $visit(start);
                }
                for step in $($reference)+ path.steps {
                    match step {
                        Step::Axis(axis) => {
                            for predicate in $($reference)+ axis.predicates {
                                $visit(predicate);
                            }
                        }
                        Step::Expr(child) => $visit(child),
                    }
                }
            }
            K::Filter(base, predicates) => {
                $visit(base);
                for predicate in predicates {
                    $visit(predicate);
                }
            }
            K::GeneralComparison(_, a, b)
            | K::ValueComparison(_, a, b)
            | K::NodeComparison(_, a, b)
            | K::Range(a, b)
            | K::Arithmetic(_, a, b)
            | K::Intersect(a, b)
            | K::Except(a, b)
            | K::Map(a, b)
            | K::For(_, a, b)
            | K::Let(_, a, b)
            | K::Quantified(_, _, a, b) => {
                $visit(a);
                $visit(b);
            }
            K::If(a, b, c) => {
                $visit(a);
                $visit(b);
                $visit(c);
            }
            K::Sign(_, a)
            | K::InstanceOf(a, _)
            | K::TreatAs(a, _)
            | K::CastAs(a, _, _)
            | K::CastableAs(a, _, _) => $visit(a),
        }
    }};
}

pub(super) fn for_each_child<'e>(kind: &'e ExprKind, visit: &mut dyn FnMut(&'e Expr)) {
    children!(kind, visit, &);
}

pub(super) fn for_each_child_mut(kind: &mut ExprKind, visit: &mut dyn FnMut(&mut Expr)) {
    children!(kind, visit, &mut);
}
