//! `word-count-guardrail`, `sentence-count-guardrail`, `content-length-guardrail`.

use serde_json::Value;

use super::{GuardrailKind, Look, OF_MODELS, made};
use crate::policy::chain::kind::{ChainPolicy, Made, Making};
use crate::policy::chain::params::Params;
use crate::policy::measure::{self, without_quotes};

/// So many words.
pub(in crate::policy::chain) const WORD_COUNT: ChainPolicy =
    ChainPolicy { name: "word-count-guardrail", make: make_words };

/// So many sentences.
pub(in crate::policy::chain) const SENTENCE_COUNT: ChainPolicy =
    ChainPolicy { name: "sentence-count-guardrail", make: make_sentences };

/// So many bytes.
pub(in crate::policy::chain) const CONTENT_LENGTH: ChainPolicy =
    ChainPolicy { name: "content-length-guardrail", make: make_bytes };

const WORDS: GuardrailKind = GuardrailKind {
    name: "word-count-guardrail",
    type_name: "WORD_COUNT_GUARDRAIL",
    reason: "Violation of applied word count constraints detected",
    paths: OF_MODELS,
};

const SENTENCES: GuardrailKind = GuardrailKind {
    name: "sentence-count-guardrail",
    type_name: "SENTENCE_COUNT_GUARDRAIL",
    reason: "Violation of applied sentence count constraints detected",
    paths: OF_MODELS,
};

const BYTES: GuardrailKind = GuardrailKind {
    name: "content-length-guardrail",
    type_name: "CONTENT_LENGTH_GUARDRAIL",
    reason: "Violation of applied content length constraints detected",
    paths: OF_MODELS,
};

/// Larger than any body.
const MOST: u64 = 1 << 40;

struct Count {
    unit: &'static str,
    of: fn(&str) -> usize,
    least: u64,
    most: u64,
}

fn make_words(making: &Making<'_>, params: &Params<'_>) -> Option<Made> {
    made(making, params, &WORDS, |flow| count(flow, "word", measure::words))
}

fn make_sentences(making: &Making<'_>, params: &Params<'_>) -> Option<Made> {
    made(making, params, &SENTENCES, |flow| count(flow, "sentence", measure::sentences))
}

fn make_bytes(making: &Making<'_>, params: &Params<'_>) -> Option<Made> {
    made(making, params, &BYTES, |flow| count(flow, "byte", str::len))
}

fn count(flow: &Params<'_>, unit: &'static str, of: fn(&str) -> usize) -> Option<Box<dyn Look>> {
    let (least, most) = (flow.whole("min", 0, MOST), flow.whole("max", 1, MOST));
    let (Some(least), Some(most)) = (least, most) else {
        if flow.flag("enabled", true) {
            flow.error("`min` and `max` are expected");
        }
        return None;
    };
    if least > most {
        flow.error("`min` must not be greater than `max`");
    }
    Some(Box::new(Count { unit, of, least, most }))
}

impl Count {
    fn size(&self, text: &str) -> u64 {
        (self.of)(without_quotes(text).trim()) as u64
    }
}

impl Look for Count {
    fn fits(&self, text: &str) -> bool {
        (self.least..=self.most).contains(&self.size(text))
    }

    fn expected(&self, invert: bool) -> Value {
        let Count { unit, least, most, .. } = self;
        let (range, to) = if invert { ("outside the range of", "to") } else { ("between", "and") };
        let what = if *unit == "byte" { "content length".to_owned() } else { format!("{unit} count") };
        format!("Violation of {what} detected. Expected {what} to be {range} {least} {to} {most} {unit}s.").into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_counted() {
        for (text, expected) in [
            ("", (0, 0, 0)),
            ("\"one two\"", (2, 1, 7)),
            (" one\n two  three ", (3, 1, 15)),
            ("A. B! C? ...", (4, 3, 12)),
        ] {
            let size = |of| Count { unit: "", of, least: 0, most: MOST }.size(text);
            assert_eq!((size(measure::words), size(measure::sentences), size(str::len)), expected, "{text}");
        }
    }
}
