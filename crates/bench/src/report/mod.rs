//! What is made of the figures: text on the terminal, tables, a page.
pub mod terminal;
