//! Converting a value to the type an `as` attribute demands.

use penstock_xpath::Sequence;

use super::Run;

/// The value as the type says, or code and message of the error.
pub(super) fn convert(
    run: &Run<'_>,
    value: Sequence,
    as_type: u32,
    code: &'static str,
    what: &str,
) -> Result<Sequence, (String, String)> {
    let wanted = &run.program.types[as_type as usize];
    wanted
        .convert(&value, run.session, false)
        .map_err(|error| (code.to_owned(), format!("{what} does not have the declared type: {}", error.message())))
}
