//! One folder per transport: listener, sender and the XML kinds that configure them.
