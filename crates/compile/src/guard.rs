//! A panic while an artifact is compiled is a defect of Penstock. It costs that artifact; the others are served.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs a step of a compilation. A panic becomes the message of a diagnostic; the panic hook has written its place.
///
/// # Errors
/// The message, when the step panicked.
pub fn guarded<T>(step: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(step)).map_err(|panic| {
        let reason = match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
            (Some(text), _) => text,
            (_, Some(text)) => text.as_str(),
            (None, None) => "a panic without a message",
        };
        format!("a defect in Penstock prevents the compilation: {reason}; please report it")
    })
}
