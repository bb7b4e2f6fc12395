//! Numbers as text: `123,456.789` for people, `?c` for programs, `?string("0.00")` by pattern.

/// As people of Micro Integrator's default locale read it: groups of three, three decimals at most.
pub(super) fn for_people(number: f64) -> String {
    by_pattern(number, "#,##0.###")
}

/// For programs: no groups, sixteen decimals at most, no exponent.
pub(super) fn for_programs(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "INF" } else { "-INF" }.to_owned();
    }
    let text = format!("{number}");
    match text.split_once('.') {
        Some((whole, fraction)) if fraction.len() > 16 => {
            let rounded = format!("{number:.16}");
            let trimmed = rounded.trim_end_matches('0').trim_end_matches('.').to_owned();
            if trimmed.is_empty() { whole.to_owned() } else { trimmed }
        }
        _ => text,
    }
}

/// By a pattern of Java's `DecimalFormat`: `0`, `#`, `,`, `.`, `%` and text around them.
pub(super) fn by_pattern(number: f64, pattern: &str) -> String {
    if !number.is_finite() {
        return for_programs(number);
    }
    let pattern = match pattern {
        "number" => "#,##0.###",
        "percent" => "#,##0%",
        "currency" => "$#,##0.00",
        "computer" | "c" => return for_programs(number),
        other => other,
    };
    // A second part is for negative numbers.
    let (positive, negative) = pattern.split_once(';').unwrap_or((pattern, ""));
    let shape = Shape::parse(if number < 0.0 && !negative.is_empty() { negative } else { positive });
    let sign = if number < 0.0 && negative.is_empty() { "-" } else { "" };
    let size = number.abs() * shape.factor;
    let rounded = half_even(size, shape.fraction_max);
    let (whole, fraction) = rounded.split_once('.').unwrap_or((&rounded, ""));
    let whole = whole.trim_start_matches('0');
    let mut digits = format!("{whole:0>width$}", width = shape.whole_min);
    if shape.group > 0 {
        digits = grouped(&digits, shape.group);
    }
    let mut fraction = fraction.trim_end_matches('0').to_owned();
    while fraction.len() < shape.fraction_min {
        fraction.push('0');
    }
    let sign = if digits.bytes().chain(fraction.bytes()).all(|digit| matches!(digit, b'0' | b',')) { "" } else { sign };
    let point = if fraction.is_empty() { "" } else { "." };
    if digits.is_empty() && fraction.is_empty() {
        digits.push('0');
    }
    format!("{sign}{}{digits}{point}{fraction}{}", shape.prefix, shape.suffix)
}

/// Rounded to so many decimals; a half goes to the even neighbour. Rust's own formatting does just that for
/// what a double exactly is.
fn half_even(number: f64, decimals: usize) -> String {
    format!("{number:.decimals$}")
}

fn grouped(digits: &str, size: usize) -> String {
    let mut out = String::with_capacity(digits.len() + digits.len() / size);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(size) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

struct Shape {
    prefix: String,
    suffix: String,
    whole_min: usize,
    fraction_min: usize,
    fraction_max: usize,
    group: usize,
    factor: f64,
}

/// More decimals say nothing about a double.
const DECIMALS_MAX: usize = 40;

impl Shape {
    fn parse(pattern: &str) -> Shape {
        let is_digit = |letter: char| matches!(letter, '0' | '#' | ',' | '.');
        let start = pattern.find(is_digit).unwrap_or(pattern.len());
        let end = pattern[start..].find(|letter| !is_digit(letter)).map_or(pattern.len(), |end| start + end);
        let (whole, fraction) = pattern[start..end].split_once('.').unwrap_or((&pattern[start..end], ""));
        let count = |text: &str, letter: char| text.matches(letter).count().min(DECIMALS_MAX);
        let factor = if pattern.contains('%') { 100.0 } else { 1.0 };
        Shape {
            prefix: pattern[..start].replace('\'', ""),
            suffix: pattern[end..].replace('\'', ""),
            whole_min: count(whole, '0'),
            fraction_min: count(fraction, '0'),
            fraction_max: (count(fraction, '0') + count(fraction, '#')).min(DECIMALS_MAX),
            group: whole.rfind(',').map_or(0, |comma| whole.len() - comma - 1),
            factor,
        }
    }
}
