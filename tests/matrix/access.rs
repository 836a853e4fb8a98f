//! Servers that do not let us in, or not do what it takes.
