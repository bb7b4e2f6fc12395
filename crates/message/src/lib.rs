//! What travels through a program: one [`Message`] with its transport headers, its properties by
//! scope, its variables and a [`Body`] that has one authoritative form at any time.
//!
//! This crate is independent of configuration, mediators and sockets. A transport fills a message
//! and hands it to the engine; reading the body in another form converts it here, once.
//!
//! Start reading at [`Message`], then [`Body`].

mod body;
mod convert;
mod decimal;
pub mod delimited;
mod envelope;
mod headers;
mod media;
mod message;
mod pace;
mod percent;
mod properties;
mod stream;
pub mod tree;
mod value;

pub use body::{Body, BodyError, Form};
pub use convert::{Conversion, Output, RawXml, SOAP_DECLARATION, Shape, write_fragment};
pub use decimal::{DIGITS_MAX, decimal, push_decimal};
pub use envelope::{Envelope, SoapVersion};
pub use headers::{FieldLine, FieldsView, HeaderBlock, Headers};
pub use media::MediaType;
pub use message::{Addressing, Message, Method, RequestLine};
pub use pace::Pace;
pub use percent::{RESERVED, percent_decoded, push_field};
pub use properties::{Properties, Scope};
pub use stream::{AbsentBody, Available, BodyStream, SizeHint};
pub use value::{Value, double_to_text};
