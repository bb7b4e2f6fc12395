//! XSLT: a stylesheet compiled to a program that writes a result tree or bytes.
