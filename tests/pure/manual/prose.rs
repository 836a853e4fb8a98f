//! Text as roff: special characters are escaped, names are marked, lines are short.

use crate::header::{Block, Comment, Header};

const LINE: usize = 76;

/// The text with its names marked. Function names refer to their pages, values and types are bold, and parameters
/// are slanted.
pub(crate) fn prose(header: &Header, text: &str) -> String {
    let mut made = String::new();
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(|it: char| !is_of_name(it)).unwrap_or(rest.len());
        if end == 0 {
            let end = rest.find(is_of_name).unwrap_or(rest.len());
            made.push_str(&escaped(&rest[..end], text, text.len() - rest.len()));
            rest = &rest[end..];
        } else {
            made.push_str(&marked(header, &rest[..end], &rest[end..]));
            rest = &rest[end..];
        }
    }
    filled(&made)
}

/// All items with a page that the comment names.
pub(crate) fn names<'a>(header: &'a Header, comment: &Comment) -> Vec<&'a str> {
    let parts = comment.text.iter().map(Block::words);
    let parts = parts.chain(comment.parameters.iter().map(|it| it.1.as_str()));
    parts.chain([comment.returns.as_str()]).flat_map(|text| named_in(header, text)).collect()
}

pub(crate) fn named_in<'a>(header: &'a Header, text: &str) -> Vec<&'a str> {
    let words = text.split(|it| !is_of_name(it));
    words.filter_map(|name| header.find(name).map(|it| it.name.as_str())).collect()
}

/// Text that is shown as it is, such as code.
pub(crate) fn verbatim(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let line = line.replace('\\', "\\e").replace('-', "\\-");
        let line = line.replace('\'', "\\(aq").replace('`', "\\(ga");
        let line = line.replace('^', "\\(ha").replace('~', "\\(ti");
        if line.starts_with('.') { format!("\\&{line}\n") } else { format!("{line}\n") }
    });
    lines.collect()
}

fn is_of_name(it: char) -> bool {
    it.is_ascii_alphanumeric() || it == '_'
}

fn marked(header: &Header, name: &str, after: &str) -> String {
    match header.page_of(name) {
        Some(item) if item.is_function() && !after.starts_with('(') => format!("\\fB{name}\\fP(3)"),
        Some(_) => format!("\\fB{name}\\fP"),
        // Parameters, except those that are also English words.
        None if name == "rl" || name.contains('_') && !is_ours(name) => format!("\\fI{name}\\fP"),
        None => name.to_owned(),
    }
}

/// For example, the common beginning of several names.
fn is_ours(name: &str) -> bool {
    name.starts_with("RedLock") || name.starts_with("REDLOCK")
}

/// The text between names. A hyphen within a word stays a hyphen, any other becomes a minus.
fn escaped(between: &str, text: &str, at: usize) -> String {
    let mut made = String::new();
    for (index, character) in between.char_indices() {
        match character {
            '\\' => made.push_str("\\e"),
            '\'' => made.push_str("\\(aq"),
            '`' => made.push_str("\\(ga"),
            '^' => made.push_str("\\(ha"),
            '~' => made.push_str("\\(ti"),
            '-' => {
                let index = at + index;
                let before = text[..index].ends_with(char::is_alphabetic);
                let is_hyphen = before && text[index + 1..].starts_with(char::is_alphabetic);
                made.push_str(if is_hyphen { "-" } else { "\\-" });
            }
            _ => made.push(character),
        }
    }
    made
}

/// Breaks the text into lines. No line is taken for a roff request.
fn filled(text: &str) -> String {
    let mut made = String::new();
    let mut length = 0;
    for word in text.split_whitespace() {
        if length > 0 && length + 1 + word.len() > LINE {
            made.push('\n');
            length = 0;
        } else if length > 0 {
            made.push(' ');
            length += 1;
        }
        if length == 0 && word.starts_with('.') {
            made.push_str("\\&");
        }
        made.push_str(word);
        length += word.len();
    }
    made.push('\n');
    made
}
