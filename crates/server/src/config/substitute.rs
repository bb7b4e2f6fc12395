//! Placeholders in values: `$env{NAME}`, `$sys{NAME}`, `$secret{ALIAS}`.

use penstock_engine::Secrets;

/// Replaces the placeholders of a value. Both kinds ask the environment: there are no Java system properties here, and
/// who moves a configuration sets a variable of that name.
pub(super) fn replace(
    text: &str,
    lookup: &dyn Fn(&str) -> Option<String>,
    secrets: &Secrets,
) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((start, marker)) =
        ["$env{", "$sys{", "$secret{"].iter().filter_map(|marker| Some((rest.find(marker)?, *marker))).min()
    {
        let (before, after) = rest.split_at(start);
        let after = &after[marker.len()..];
        let Some((name, behind)) = after.split_once('}') else {
            return Err(format!("`{marker}` is never closed"));
        };
        out.push_str(before);
        if marker == "$secret{" {
            let Some(value) = secrets.get(name) else {
                return Err(format!("`$secret{{{name}}}`: the table `[secrets]` has no `{name}`"));
            };
            out.push_str(value);
        } else {
            let Some(value) = lookup(name) else {
                return Err(format!("`{marker}{name}}}`: the environment variable `{name}` is not set"));
            };
            out.push_str(&value);
        }
        rest = behind;
    }
    out.push_str(rest);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_replaced() {
        let lookup = |name: &str| (name == "PORT").then(|| "99".to_owned());
        let mut secrets = Secrets::default();
        secrets.set("db", "hush");
        for (text, expected) in [
            ("plain", Ok("plain")),
            ("a$env{PORT}b$sys{PORT}", Ok("a99b99")),
            ("$env{NONE}", Err("`$env{NONE}`: the environment variable `NONE` is not set")),
            ("x$secret{db}", Ok("xhush")),
            ("$secret{none}", Err("`$secret{none}`: the table `[secrets]` has no `none`")),
            ("$env{NONE", Err("`$env{` is never closed")),
        ] {
            let expected = expected.map(str::to_owned).map_err(str::to_owned);
            assert_eq!(replace(text, &lookup, &secrets), expected, "{text}");
        }
    }
}
