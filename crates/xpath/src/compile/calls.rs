//! Function calls: standard functions by table, constructor functions as casts, the rest by asking the host.

use std::sync::Arc;

use super::Compiler;
use crate::ast::{Expr, ExprKind, ItemType, KindTest, Name, Occurrence};
use crate::code::{Code, HostCallCode, Op, Prepared};
use crate::error::{Result, Span, XPathError};
use crate::functions::{self, Builtin, Run, format_number};
use crate::regex::Regex;
use crate::static_context::{FUNCTION_NAMESPACE, FunctionRef, ResultKind, SCHEMA_NAMESPACE};
use crate::suggest;
use crate::value::{Atomic, AtomicType, Item, QName, Sequence};

impl Compiler<'_> {
    pub(super) fn call(&mut self, name: &Name, arguments: &[Expr], span: Span) -> Result<(Op, ResultKind)> {
        match name.namespace.as_deref() {
            Some(FUNCTION_NAMESPACE) => {
                if let Some(builtin) = functions::find(&name.local) {
                    return self.builtin(builtin, arguments, span);
                }
            }
            Some(functions::MATH_NAMESPACE) => {
                if let Some(builtin) = functions::find_math(&name.local) {
                    return self.builtin(builtin, arguments, span);
                }
            }
            Some(SCHEMA_NAMESPACE) => {
                if let Some(wanted) =
                    AtomicType::from_local_name(&name.local).filter(|wanted| wanted.is_constructible())
                {
                    let [argument] = arguments else { return Err(wrong_count(&name.lexical(), arguments.len(), span)) };
                    if let Some(name) = self.constant_qname(wanted, argument)? {
                        return Ok((Op::Constant(Sequence::from(name)), ResultKind::Any));
                    }
                    return Ok((Op::Cast(self.boxed(argument)?, wanted, true), ResultKind::Any));
                }
            }
            _ => {}
        }
        self.host_call(name, arguments, span)
    }

    fn host_call(&mut self, name: &Name, arguments: &[Expr], span: Span) -> Result<(Op, ResultKind)> {
        // A name without a prefix was taken for a standard one; to the host it is in no namespace.
        let mut asked = name.clone();
        if name.prefix.is_none() {
            asked.namespace = None;
        }
        let known = self.context.resolver.and_then(|resolver| resolver.function(&asked, arguments.len()));
        let found = match known {
            Some(found) => found,
            None if self.context.unknown_functions => FunctionRef { index: u32::MAX, result: ResultKind::Any },
            None => return Err(unknown_function(name, span)),
        };
        if !self.functions.contains(&asked) {
            self.functions.push(asked.clone());
        }
        let arguments = self.all(arguments)?;
        Ok((Op::HostCall(Box::new(HostCallCode { name: asked, index: found.index, arguments })), found.result))
    }

    fn builtin(&mut self, builtin: &'static Builtin, arguments: &[Expr], span: Span) -> Result<(Op, ResultKind)> {
        if !builtin.accepts(arguments.len()) {
            return Err(wrong_count(builtin.name, arguments.len(), span));
        }
        let mut codes = Vec::with_capacity(arguments.len());
        for (index, argument) in arguments.iter().enumerate() {
            let code = self.compile(argument)?;
            codes.push(if self.compat() { code } else { as_parameter(builtin, index, code) });
        }
        let codes: Box<[Code]> = codes.into();
        let prepared = self.prepare(builtin, &codes)?;
        let result = match &builtin.run {
            Run::Boolean(_) => ResultKind::Boolean,
            Run::Integer(_) | Run::Number(_) => ResultKind::Number,
            Run::Numeric(..) if self.compat() => ResultKind::Number,
            Run::Text(_) => ResultKind::String,
            Run::Nodes(_) => ResultKind::Nodes,
            Run::Numeric(..) | Run::Any(_) => ResultKind::Any,
        };
        Ok((Op::Call(builtin, codes, prepared), result))
    }

    /// Does once what a constant argument allows to do once. A wrong constant is reported when the call is reached.
    fn prepare(&self, builtin: &Builtin, codes: &[Code]) -> Result<Option<Box<Prepared>>> {
        let text = |index: usize| codes.get(index).and_then(constant_text);
        let prepared = match builtin.name {
            "matches" | "replace" | "tokenize" => {
                let flags_at = if builtin.name == "replace" { 3 } else { 2 };
                let flags = if codes.len() > flags_at { text(flags_at) } else { Some(String::new()) };
                match (text(1), flags) {
                    (Some(pattern), Some(flags)) => Regex::new(&pattern, &flags).ok().map(Prepared::Regex),
                    _ => None,
                }
            }
            "format-number" => {
                let name = match codes.get(2) {
                    None => None,
                    Some(code) => match constant_text(code) {
                        Some(lexical) => Some(self.format_name(&lexical)),
                        None => return Ok(None),
                    },
                };
                match (text(1), self.context.find_decimal_format(name.as_ref())) {
                    (Some(picture), Some(format)) => format_number::Picture::parse(&picture, format)
                        .ok()
                        .map(|picture| Prepared::Picture(Box::new(picture))),
                    _ => None,
                }
            }
            _ => None,
        };
        Ok(prepared.map(Box::new))
    }

    /// `xs:QName('p:a')`: prefixes are known only here, so only a literal may have one.
    pub(super) fn constant_qname(&self, wanted: AtomicType, argument: &Expr) -> Result<Option<Atomic>> {
        let (AtomicType::QName, ExprKind::Literal(literal)) = (wanted, &argument.kind) else { return Ok(None) };
        let Some((prefix, local)) = literal.as_text().and_then(|text| text.split_once(':')) else { return Ok(None) };
        let Some(namespace) = self.context.lookup_namespace(prefix) else {
            let message = format!("namespace prefix `{prefix}` is not declared");
            return Err(XPathError::new("FONS0004", message).at(argument.span));
        };
        if !crate::lexer::is_nc_name(local) {
            return Ok(None);
        }
        let name = QName { prefix: Some(prefix.into()), namespace: Some(namespace), local: local.into() };
        Ok(Some(Atomic::QName(Arc::new(name))))
    }

    fn format_name(&self, lexical: &str) -> Name {
        let (prefix, local) = match lexical.split_once(':') {
            Some((prefix, local)) => (Some(prefix), local),
            None => (None, lexical),
        };
        let namespace = prefix.and_then(|prefix| self.context.lookup_namespace(prefix));
        Name { prefix: prefix.map(Into::into), local: local.into(), namespace }
    }

    /// `a || b` is `concat(a, b)`.
    pub(super) fn concatenation(&mut self, operands: &[Expr]) -> Result<(Op, ResultKind)> {
        let codes = self.all(operands)?;
        match functions::find("concat") {
            Some(concat) => Ok((Op::Call(concat, codes, None), ResultKind::String)),
            None => Ok((Op::Sequence(codes), ResultKind::Any)),
        }
    }
}

/// An argument with the check of its type, unless what is known of it makes the check superfluous or the function
/// makes it itself.
fn as_parameter(builtin: &Builtin, index: usize, code: Code) -> Code {
    use AtomicType as T;
    use ResultKind as R;
    let Some(wanted) = functions::signature::parameter(builtin.name, index) else { return code };
    let optional = wanted.occurrence == Occurrence::ZeroOrOne;
    let fits = match (&wanted.item, code.result) {
        (Some(ItemType::Atomic(T::String)), R::String) => true,
        (Some(ItemType::Atomic(T::String)), R::Nodes | R::Any) => optional && index == 0,
        (Some(ItemType::Atomic(T::AnyAtomic)), R::String | R::Number | R::Boolean) => true,
        (Some(ItemType::Atomic(T::AnyAtomic)), _) => wanted.occurrence == Occurrence::ZeroOrMore,
        (Some(ItemType::Atomic(T::Numeric | T::Double)), R::Number) => true,
        (Some(ItemType::Node(KindTest::Any)), R::Nodes) => optional,
        (Some(ItemType::Any), R::String | R::Number | R::Boolean | R::Nodes) => true,
        _ => false,
    };
    if fits {
        return code;
    }
    let result = match (&wanted.item, wanted.occurrence) {
        (Some(ItemType::Atomic(T::String)), Occurrence::One) => R::String,
        (Some(ItemType::Atomic(T::Double | T::Numeric)), Occurrence::One) => R::Number,
        (Some(ItemType::Node(_)), _) => R::Nodes,
        _ => R::Any,
    };
    if code.constant().is_some() && wanted.item == Some(ItemType::Atomic(T::Integer)) && code.result == R::Number {
        // A constant of the right type needs no check, one of another type fails when the call is reached.
        if matches!(code.constant(), Some(Sequence::One(Item::Atomic(atomic))) if atomic.as_integer().is_some()) {
            return code;
        }
    }
    let span = code.span;
    Code { op: Op::Argument(Box::new((code, wanted))), span, result }
}

fn constant_text(code: &Code) -> Option<String> {
    match code.constant()? {
        Sequence::One(Item::Atomic(atomic)) => atomic.as_text().map(ToString::to_string),
        _ => None,
    }
}

fn wrong_count(name: &str, given: usize, span: Span) -> XPathError {
    let wanted = functions::find(name).map_or("one argument".to_string(), Builtin::describe_arguments);
    XPathError::new("XPST0017", format!("`{name}` takes {wanted}, {given} given")).at(span)
}

fn unknown_function(name: &Name, span: Span) -> XPathError {
    let standard = name.namespace.as_deref() == Some(FUNCTION_NAMESPACE);
    let hint = if standard { suggest::nearest(&name.local, functions::names()) } else { None };
    let hint = hint.map_or(String::new(), |name| format!(", did you mean `{name}`?"));
    XPathError::new("XPST0017", format!("unknown function `{}`{hint}", name.lexical())).at(span)
}

/// Whether a standard function looks at the context item by itself. What the host's functions do, the host knows.
pub(super) fn reads_context(name: &Name, arguments: usize) -> bool {
    name.namespace.as_deref() == Some(FUNCTION_NAMESPACE)
        && functions::find(&name.local).is_some_and(|builtin| builtin.reads_context(arguments))
}
