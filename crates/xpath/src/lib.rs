//! XPath: parse, compile, evaluate over a tree, or over the reader without building one.
