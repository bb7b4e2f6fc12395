//! The functions of JMeter that are supported. Any other is refused when the plan is read.
use super::context::Context;
use super::text::{Mistake, Text};
use super::time::TimeFormat;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// A call of a function with its arguments.
#[derive(Debug, Clone)]
pub struct Call {
    function: Function,
    arguments: Vec<Text>,
    /// Variable that the result is stored in.
    target: Option<String>,
}

#[derive(Debug, Clone)]
enum Function {
    Property,
    LongProperty,
    Variable,
    Time(TimeFormat),
    Uuid,
    Random,
    RandomString,
    Counter {
        id: usize,
        shared: Option<Arc<AtomicU64>>,
    },
    ThreadNumber,
    ThreadGroupName,
    RequestName,
    PlanName,
    IterationNumber,
    MachineName,
    Sum,
    UrlEncode,
    UrlDecode,
    ChangeCase,
    EscapeHtml,
    Char,
    VariableDefined,
    PropertyDefined,
    /// `__groovy`, `__jexl3`, `__javaScript` with an expression that this program can evaluate.
    Expression,
}

/// Names with the number of arguments at least and at most, and the position of the variable that takes the result.
const FUNCTIONS: [(&str, usize, usize, Option<usize>); 28] = [
    ("P", 1, 2, None),
    ("property", 1, 3, Some(1)),
    ("V", 1, 2, None),
    ("time", 0, 2, Some(1)),
    ("UUID", 0, 0, None),
    ("Random", 2, 3, Some(2)),
    ("RandomString", 1, 3, Some(2)),
    ("counter", 1, 2, Some(1)),
    ("threadNum", 0, 0, None),
    ("threadGroupName", 0, 0, None),
    ("samplerName", 0, 1, Some(0)),
    ("TestPlanName", 0, 0, None),
    ("iterationNum", 0, 0, None),
    ("machineName", 0, 1, Some(0)),
    ("intSum", 2, ARGUMENTS_MAX, Some(usize::MAX)),
    ("longSum", 2, ARGUMENTS_MAX, Some(usize::MAX)),
    ("urlencode", 1, 1, None),
    ("urldecode", 1, 1, None),
    ("changeCase", 1, 3, Some(2)),
    ("escapeHtml", 1, 1, None),
    ("char", 1, ARGUMENTS_MAX, None),
    ("isVarDefined", 1, 1, None),
    ("isPropDefined", 1, 1, None),
    ("jexl3", 1, 2, Some(1)),
    ("jexl2", 1, 2, Some(1)),
    ("jexl", 1, 2, Some(1)),
    ("groovy", 1, 2, Some(1)),
    ("javaScript", 1, 2, Some(1)),
];

/// More arguments than any function can use.
const ARGUMENTS_MAX: usize = 64;
/// Longer random strings are a mistake in the plan.
const RANDOM_STRING_MAX: i64 = 1 << 20;

/// Numbers the calls of `__counter`, each of which counts by itself.
static COUNTERS: AtomicUsize = AtomicUsize::new(0);

impl Call {
    /// Finds the function and checks its arguments.
    pub fn compile(name: &str, arguments: Vec<Text>) -> Result<Call, Mistake> {
        let name = name.trim();
        let Some((_, least, most, target)) = FUNCTIONS.iter().find(|(known, ..)| *known == name) else {
            return Err(format!("the function `__{name}` is not supported"));
        };
        if arguments.len() < *least || arguments.len() > *most {
            return Err(format!("the function `__{name}` cannot have {} arguments", arguments.len()));
        }
        let constant = |index: usize| arguments.get(index).map(Text::constant);
        let sum = matches!(name, "intSum" | "longSum");
        let target_at = match target {
            // The last argument of a sum is a variable unless it is a number.
            Some(usize::MAX) => arguments.len().checked_sub(1).filter(|last| {
                !matches!(constant(*last), Some(Some(text)) if text.trim().parse::<i64>().is_ok())
                    && constant(*last) != Some(None)
            }),
            other => *other,
        };
        let target = match target_at.and_then(|at| arguments.get(at)) {
            Some(text) => match text.constant() {
                Some(name) => Some(name.trim().to_owned()).filter(|name| !name.is_empty()),
                None => return Err(format!("the name of the variable of `__{name}` must not be computed")),
            },
            None => None,
        };
        let mut arguments_left = arguments.clone();
        if sum && let Some(at) = target_at {
            arguments_left.truncate(at);
        }
        Ok(Call { function: function(name, &arguments)?, arguments: arguments_left, target })
    }

    /// The result of the function.
    pub fn evaluate(&self, context: &mut Context) -> String {
        let result = self.result(context);
        if let Some(target) = &self.target {
            context.variables.insert(target.clone(), result.clone());
        }
        result
    }

    fn argument(&self, index: usize, context: &mut Context) -> Option<String> {
        self.arguments.get(index).map(|text| text.evaluate(context))
    }

    fn result(&self, context: &mut Context) -> String {
        let first = self.argument(0, context).unwrap_or_default();
        match &self.function {
            Function::Property => match context.properties.get(first.trim()) {
                Some(value) => value.to_owned(),
                // JMeter's own default for `__P` is 1.
                None => self.argument(1, context).unwrap_or_else(|| "1".to_owned()),
            },
            Function::LongProperty => match context.properties.get(first.trim()) {
                Some(value) => value.to_owned(),
                None => self.argument(2, context).unwrap_or(first),
            },
            Function::Variable => match context.variables.get(&first) {
                Some(value) => value.clone(),
                None => self.argument(1, context).unwrap_or(first),
            },
            Function::Time(format) => format.now(),
            Function::Uuid => uuid(context),
            Function::Random => {
                let least = first.trim().parse().unwrap_or(0);
                let greatest = self.argument(1, context).unwrap_or_default().trim().parse().unwrap_or(0);
                context.random.between(least, greatest).to_string()
            }
            Function::RandomString => {
                let length = first.trim().parse::<i64>().unwrap_or(0).clamp(0, RANDOM_STRING_MAX);
                let letters: Vec<char> = self.argument(1, context).unwrap_or_default().chars().collect();
                let any = |context: &mut Context| match letters.len() {
                    0 => char::from(b'a' + u8::try_from(context.random.below(26)).unwrap_or(0)),
                    count => letters[context.random.below(count)],
                };
                (0..length).map(|_| any(context)).collect()
            }
            Function::Counter { id, shared: None } => {
                let count = context.counts.entry(*id).or_default();
                *count += 1;
                count.to_string()
            }
            Function::Counter { shared: Some(count), .. } => (count.fetch_add(1, Ordering::Relaxed) + 1).to_string(),
            Function::ThreadNumber => context.user.to_string(),
            Function::ThreadGroupName => context.group.to_string(),
            Function::RequestName => context.request.clone(),
            Function::PlanName => context.plan.to_string(),
            Function::IterationNumber => context.iteration.to_string(),
            Function::MachineName => {
                std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned()
            }
            Function::Sum => {
                let mut sum = 0_i64;
                for index in 0..self.arguments.len() {
                    let text = self.argument(index, context).unwrap_or_default();
                    sum = sum.wrapping_add(text.trim().parse().unwrap_or(0));
                }
                sum.to_string()
            }
            Function::UrlEncode => super::urlencoded::encode(&first),
            Function::UrlDecode => super::urlencoded::decode(&first),
            Function::ChangeCase => match self.argument(1, context).as_deref().map(str::trim) {
                Some("LOWER") => first.to_lowercase(),
                Some("CAPITALIZE") => {
                    let mut letters = first.chars();
                    letters.next().map_or_else(String::new, |letter| letter.to_uppercase().chain(letters).collect())
                }
                _ => first.to_uppercase(),
            },
            Function::EscapeHtml => penstock_xml::escaped(&first),
            Function::Char => {
                (0..self.arguments.len()).filter_map(|index| character(self.argument(index, context)?.trim())).collect()
            }
            Function::VariableDefined => context.variables.contains_key(first.trim()).to_string(),
            Function::PropertyDefined => context.properties.get(first.trim()).is_some().to_string(),
            Function::Expression => match super::condition::evaluate(&first) {
                Ok(value) => value.to_string(),
                Err(why) => {
                    context.fail(format!("the expression `{first}` cannot be evaluated: {why}"));
                    String::new()
                }
            },
        }
    }

    /// Calls `act` with each variable that the arguments read.
    pub fn each_variable(&self, act: &mut dyn FnMut(&str)) {
        self.arguments.iter().for_each(|text| text.each_variable(act));
    }

    /// Calls `act` with each variable that is set.
    pub fn each_set(&self, act: &mut dyn FnMut(&str)) {
        self.target.iter().for_each(|name| act(name));
        self.arguments.iter().for_each(|text| text.each_set(act));
    }
}

fn function(name: &str, arguments: &[Text]) -> Result<Function, Mistake> {
    let constant = |index: usize| match arguments.get(index) {
        None => Ok(""),
        Some(text) => {
            text.constant().ok_or_else(|| format!("argument {} of `__{name}` must not be computed", index + 1))
        }
    };
    Ok(match name {
        "P" => Function::Property,
        "property" => Function::LongProperty,
        "V" => Function::Variable,
        "time" => Function::Time(TimeFormat::parse(constant(0)?)?),
        "UUID" => Function::Uuid,
        "Random" => Function::Random,
        "RandomString" => Function::RandomString,
        "counter" => Function::Counter {
            id: COUNTERS.fetch_add(1, Ordering::Relaxed),
            shared: (!constant(0)?.trim().eq_ignore_ascii_case("true")).then(Arc::default),
        },
        "threadNum" => Function::ThreadNumber,
        "threadGroupName" => Function::ThreadGroupName,
        "samplerName" => Function::RequestName,
        "TestPlanName" => Function::PlanName,
        "iterationNum" => Function::IterationNumber,
        "machineName" => Function::MachineName,
        "intSum" | "longSum" => Function::Sum,
        "urlencode" => Function::UrlEncode,
        "urldecode" => Function::UrlDecode,
        "changeCase" => match constant(1)?.trim() {
            "" | "UPPER" | "LOWER" | "CAPITALIZE" => Function::ChangeCase,
            other => return Err(format!("the mode `{other}` of `__changeCase` is not supported")),
        },
        "escapeHtml" => Function::EscapeHtml,
        "char" => Function::Char,
        "isVarDefined" => Function::VariableDefined,
        "isPropDefined" => Function::PropertyDefined,
        _ => {
            let mut context = Context::new(Arc::default());
            // Variables have no values yet; a number stands in for them, inside of quotes as well as outside.
            let probe = arguments.first().map(|text| text.evaluate(&mut context)).unwrap_or_default();
            super::condition::evaluate(&super::condition::with_numbers(&probe))
                .map_err(|why| format!("the expression of `__{name}` is not supported: {why}"))?;
            Function::Expression
        }
    })
}

/// The character with this number, decimal or hexadecimal.
fn character(text: &str) -> Option<char> {
    let code = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => u32::from_str_radix(digits, 16).ok()?,
        None => text.parse().ok()?,
    };
    char::from_u32(code)
}

fn uuid(context: &mut Context) -> String {
    let (high, low) = (context.random.bits(), context.random.bits());
    // RFC 9562 §5.4: version 4 in the high half, the variant in the low one.
    let high = (high & !0xf000) | 0x4000;
    let low = (low & !(0b11 << 62)) | (0b10 << 62);
    let (a, b, c) = (high >> 32, (high >> 16) & 0xffff, high & 0xffff);
    format!("{a:08x}-{b:04x}-{c:04x}-{:04x}-{:012x}", low >> 48, low & 0xffff_ffff_ffff)
}
