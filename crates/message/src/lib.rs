//! The message: headers, properties by scope, variables and a body with one authoritative form.
