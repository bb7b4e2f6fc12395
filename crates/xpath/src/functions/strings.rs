//! Functions on strings.

use std::borrow::Cow;
use std::fmt::Write;
use std::ops::Range;

use unicode_normalization::UnicodeNormalization;

use crate::collation::Collation;
use crate::error::{Result, XPathError};
use crate::eval::Args;
use crate::session::BYTES_PER_FUEL;
use crate::value::{Atomic, Item, Sequence, number};

/// Pays for text that was made.
pub(super) fn charge_text(args: &Args<'_, '_>, bytes: usize) -> Result<()> {
    args.ev.charge(bytes / BYTES_PER_FUEL)
}

/// Part of a string, still borrowed if the whole was.
pub(super) fn part(text: Cow<'_, str>, range: Range<usize>) -> Cow<'_, str> {
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.get(range).unwrap_or("")),
        Cow::Owned(text) => Cow::Owned(text.get(range).unwrap_or("").to_string()),
    }
}

pub(super) fn string<'a>(args: &Args<'_, 'a>) -> Result<Cow<'a, str>> {
    args.string_or_context()
}

pub(super) fn concat<'a>(args: &Args<'_, 'a>) -> Result<Cow<'a, str>> {
    let mut all = String::new();
    for code in args.codes {
        let text = args.ev.string(code, args.focus)?;
        penstock_budget::make_room_for_text(&mut all, text.len());
        all.push_str(&text);
    }
    charge_text(args, all.len())?;
    Ok(Cow::Owned(all))
}

pub(super) fn string_join<'a>(args: &Args<'_, 'a>) -> Result<Cow<'a, str>> {
    let items = args.sequence(0)?;
    let separator = if args.len() > 1 { args.string(1)? } else { Cow::Borrowed("") };
    let mut all = String::new();
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            all.push_str(&separator);
        }
        let text = args.ev.item_text(item);
        charge_text(args, text.len() + separator.len() + BYTES_PER_FUEL)?;
        penstock_budget::make_room_for_text(&mut all, text.len() + separator.len());
        all.push_str(&text);
    }
    Ok(Cow::Owned(all))
}

pub(super) fn starts_with(args: &Args<'_, '_>) -> Result<bool> {
    let collation = collation(args, 2)?;
    Ok(collation.starts_with(&args.string(0)?, &args.string(1)?))
}

pub(super) fn ends_with(args: &Args<'_, '_>) -> Result<bool> {
    let collation = collation(args, 2)?;
    Ok(collation.ends_with(&args.string(0)?, &args.string(1)?))
}

pub(super) fn contains(args: &Args<'_, '_>) -> Result<bool> {
    find(args, &args.string(0)?).map(|found| found.is_some())
}

pub(super) fn substring_before<'a>(args: &Args<'_, 'a>) -> Result<Cow<'a, str>> {
    let text = args.string(0)?;
    let end = find(args, &text)?.map_or(0, |found| found.start);
    Ok(part(text, 0..end))
}

pub(super) fn substring_after<'a>(args: &Args<'_, 'a>) -> Result<Cow<'a, str>> {
    let text = args.string(0)?;
    let end = text.len();
    let start = find(args, &text)?.map_or(end, |found| found.end);
    Ok(part(text, start..end))
}

/// Where the second argument is in the text, by the collation of the third.
fn find(args: &Args<'_, '_>, text: &str) -> Result<Option<Range<usize>>> {
    let collation = collation(args, 2)?;
    let wanted = args.string(1)?;
    if matches!(collation, Collation::Letters(_)) {
        // Each place of the text may be compared with the whole other text.
        charge_text(args, text.len().saturating_mul(wanted.len().max(1)))?;
    }
    Ok(collation.find(text, &wanted))
}

/// The collation that an argument names, or the default one.
pub(super) fn collation(args: &Args<'_, '_>, index: usize) -> Result<Collation> {
    if args.len() <= index {
        return Ok(args.ev.program.collation.as_ref().map_or(Collation::Codepoint, |(_, collation)| *collation));
    }
    let uri = args.string(index)?;
    let relative = || {
        let base = args.ev.program.base_uri.as_deref().filter(|_| !uri.contains(':'))?;
        Collation::from_uri(&super::uris::resolve(&uri, base))
    };
    Collation::from_uri(&uri)
        .or_else(relative)
        .ok_or_else(|| XPathError::new("FOCH0002", format!("unknown collation `{uri}`")))
}

pub(super) fn substring<'a>(args: &Args<'_, 'a>) -> Result<Cow<'a, str>> {
    let text = args.string(0)?;
    let start = number::round(args.number(1)?);
    // Characters from `start` up to but excluding `end`, counted from 1; comparisons with NaN are false.
    let end = if args.len() > 2 { start + number::round(args.number(2)?) } else { f64::INFINITY };
    let from = start.max(1.0);
    let is_empty = start.is_nan() || end.is_nan() || from >= end;
    if is_empty {
        return Ok(Cow::Borrowed(""));
    }
    let skipped = (from - 1.0).min(text.len() as f64) as usize;
    let wanted = (end - from).min(text.len() as f64) as usize;
    let range = if text.is_ascii() {
        skipped..skipped.saturating_add(wanted).min(text.len())
    } else {
        let mut boundaries = text.char_indices().map(|(at, _)| at);
        let first = boundaries.nth(skipped).unwrap_or(text.len());
        let last = match wanted.checked_sub(1) {
            Some(more) => boundaries.nth(more).unwrap_or(text.len()),
            None => first,
        };
        first..last
    };
    Ok(part(text, range))
}

pub(super) fn string_length(args: &Args<'_, '_>) -> Result<i64> {
    let text = if args.len() == 0 { args.string_or_context()? } else { args.string(0)? };
    Ok(text.chars().count() as i64)
}

pub(super) fn normalize_space<'a>(args: &Args<'_, 'a>) -> Result<Cow<'a, str>> {
    let text = if args.len() == 0 { args.string_or_context()? } else { args.string(0)? };
    Ok(normalized(text))
}

/// Without white space at the ends, and with single spaces inside. Text that is like that already is not copied.
pub(super) fn normalized(text: Cow<'_, str>) -> Cow<'_, str> {
    let is_space = |byte: u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
    let bytes = text.as_bytes();
    let clean = !bytes.first().copied().is_some_and(is_space)
        && !bytes.last().copied().is_some_and(is_space)
        && !bytes.iter().any(|byte| matches!(byte, b'\t' | b'\r' | b'\n'))
        && !bytes.windows(2).any(|pair| pair == b"  ");
    if clean {
        return text;
    }
    let mut result = String::with_capacity(text.len());
    for word in text.split([' ', '\t', '\r', '\n']).filter(|word| !word.is_empty()) {
        if !result.is_empty() {
            result.push(' ');
        }
        result.push_str(word);
    }
    Cow::Owned(result)
}

pub(super) fn translate<'a>(args: &Args<'_, 'a>) -> Result<Cow<'a, str>> {
    let text = args.string(0)?;
    let (from, to) = (args.string(1)?, args.string(2)?);
    charge_text(args, text.len().saturating_mul(from.len().min(64)))?;
    penstock_budget::reserve(text.len() + (from.len() + to.len()) * size_of::<char>());
    let replacements: Vec<char> = to.chars().collect();
    let map: Vec<char> = from.chars().collect();
    if !text.contains(&*map) {
        return Ok(text);
    }
    let mut result = String::with_capacity(text.len());
    for c in text.chars() {
        penstock_budget::step();
        match map.iter().position(|known| *known == c) {
            None => result.push(c),
            Some(index) => result.extend(replacements.get(index)),
        }
    }
    Ok(Cow::Owned(result))
}

pub(super) fn upper_case<'a>(args: &Args<'_, 'a>) -> Result<Cow<'a, str>> {
    let text = args.string(0)?;
    charge_text(args, text.len())?;
    penstock_budget::reserve(text.len());
    Ok(Cow::Owned(text.to_uppercase()))
}

pub(super) fn lower_case<'a>(args: &Args<'_, 'a>) -> Result<Cow<'a, str>> {
    let text = args.string(0)?;
    charge_text(args, text.len())?;
    penstock_budget::reserve(text.len());
    Ok(Cow::Owned(text.to_lowercase()))
}

pub(super) fn normalize_unicode<'a>(args: &Args<'_, 'a>) -> Result<Cow<'a, str>> {
    let text = args.string(0)?;
    let form = if args.len() > 1 { args.string(1)? } else { Cow::Borrowed("NFC") };
    charge_text(args, text.len())?;
    let form = form.trim().to_ascii_uppercase();
    if form.is_empty() {
        return Ok(text);
    }
    match in_normalization_form(&text, &form) {
        Some(normalized) => Ok(Cow::Owned(normalized)),
        None => Err(XPathError::new("FOCH0003", format!("unknown normalization form `{form}`"))),
    }
}

/// A text in one of the normalization forms of Unicode: `NFC`, `NFD`, `NFKC`, `NFKD`.
pub fn in_normalization_form(text: &str, form: &str) -> Option<String> {
    Some(match form {
        "NFC" => text.nfc().collect(),
        "NFD" => text.nfd().collect(),
        "NFKC" => text.nfkc().collect(),
        "NFKD" => text.nfkd().collect(),
        _ => return None,
    })
}

pub(super) fn compare(args: &Args<'_, '_>) -> Result<Sequence> {
    let collation = collation(args, 2)?;
    let (Some(left), Some(right)) = (args.optional_string(0)?, args.optional_string(1)?) else {
        return Ok(Sequence::Empty);
    };
    Ok(Sequence::from(collation.compare(&left, &right) as i64))
}

pub(super) fn codepoint_equal(args: &Args<'_, '_>) -> Result<Sequence> {
    let (Some(left), Some(right)) = (args.optional_string(0)?, args.optional_string(1)?) else {
        return Ok(Sequence::Empty);
    };
    Ok(Sequence::from(left == right))
}

pub(super) fn codepoints_to_string<'a>(args: &Args<'_, 'a>) -> Result<Cow<'a, str>> {
    let mut text = String::new();
    for value in args.atomized(0)? {
        let codepoint = value.to_number(false);
        let valid = codepoint.fract() == 0.0 && (0.0..=f64::from(0x10_FFFF)).contains(&codepoint);
        let c = if valid { char::from_u32(codepoint as u32) } else { None };
        let xml = |c: &char| *c >= ' ' || matches!(c, '\t' | '\r' | '\n');
        let Some(c) = c.filter(xml) else {
            let mut shown = String::new();
            let _ = write!(shown, "{}", value.to_text(false));
            return Err(XPathError::new("FOCH0001", format!("`{shown}` is not the code of a character")));
        };
        text.push(c);
    }
    Ok(Cow::Owned(text))
}

pub(super) fn string_to_codepoints(args: &Args<'_, '_>) -> Result<Sequence> {
    let text = args.string(0)?;
    args.ev.charge(text.len())?;
    Ok(text.chars().map(|c| Item::Atomic(Atomic::Integer(i64::from(u32::from(c))))).collect())
}
