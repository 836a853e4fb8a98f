//! The declarations of the header, read from its text.

use std::fs;
use std::path::Path;

/// A function of the header.
pub(crate) struct Function {
    pub(crate) name: String,
    /// The names of its pointer parameters, in their order.
    pub(crate) pointers: Vec<String>,
    /// The names of its string parameters.
    pub(crate) strings: Vec<String>,
}

pub(crate) fn header() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("include/redlock.h");
    fs::read_to_string(path).expect("the header can be read")
}

/// All functions that the header declares.
pub(crate) fn functions() -> Vec<Function> {
    let code = without_comments(&header());
    let functions: Vec<_> = code.split(';').filter_map(function).collect();
    assert!(functions.len() > 20, "the header is not what this reads");
    functions
}

/// `… name(parameters)`, unless it is something else that ends with a semicolon.
fn function(statement: &str) -> Option<Function> {
    let (before, after) = statement.split_once('(')?;
    let parameters = after.split_once(')')?.0;
    let name = last_word(before)?;
    if before.contains("typedef") || !name.starts_with("RedLock") {
        return None;
    }
    let is_pointer =
        |it: &&str| it.contains('*') || it.contains("RedLockLogger") || it.contains("Callback");
    let pointers = parameters.split(',').filter(is_pointer);
    let strings = pointers.clone().filter(|it| it.contains("char"));
    let names =
        |it: &mut dyn Iterator<Item = &str>| it.filter_map(last_word).map(str::to_owned).collect();
    Some(Function {
        name: name.to_owned(),
        pointers: names(&mut pointers.clone()),
        strings: names(&mut strings.clone()),
    })
}

fn last_word(text: &str) -> Option<&str> {
    text.split(|it: char| !(it.is_alphanumeric() || it == '_')).rfind(|it| !it.is_empty())
}

fn without_comments(text: &str) -> String {
    let mut rest = text;
    let mut code = String::new();
    while let Some((before, after)) = rest.split_once("/*") {
        code.push_str(before);
        rest = after.split_once("*/").expect("a comment ends").1;
    }
    code.push_str(rest);
    code
}
