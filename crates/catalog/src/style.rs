//! The products whose error format responses have.

/// The product whose error format responses have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ErrorStyle {
    /// `error_message`, `code`, `error_description`.
    #[default]
    ChoreoConnect,
    /// `code`, `message`, `description`; XML for clients that accept it.
    ApiManager,
}
