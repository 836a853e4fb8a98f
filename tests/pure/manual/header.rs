//! The header in the form that the manual needs: the declarations in their order, each with its comment.

use std::fs;

use crate::root;

const SUMMARY: usize = 70;

pub(crate) struct Header {
    /// The comment at the beginning of the header.
    pub(crate) overview: Vec<Block>,
    pub(crate) items: Vec<Item>,
}

/// A declaration with a comment.
pub(crate) struct Item {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) comment: Comment,
    /// The declaration as it stands in the header, in one line.
    pub(crate) code: String,
}

pub(crate) enum Kind {
    Function,
    /// A pointer to a function of the program.
    Callback,
    /// A type with contents that only the library knows.
    Handle,
    Enumeration(Vec<Value>),
    /// A type with fields that programs use. Each field has its name, its type and its comment.
    Struct(Vec<Value>),
    /// Macros under one comment, with all their names.
    Macros(Vec<String>),
}

/// A value of an enumeration, or a field.
pub(crate) struct Value {
    pub(crate) name: String,
    pub(crate) number: String,
    pub(crate) comment: Comment,
}

#[derive(Default)]
pub(crate) struct Comment {
    pub(crate) text: Vec<Block>,
    pub(crate) parameters: Vec<(String, String)>,
    pub(crate) returns: String,
}

pub(crate) enum Block {
    Paragraph(String),
    Bullet(String),
}

impl Header {
    pub(crate) fn read() -> Self {
        let text = fs::read_to_string(root().join("include/redlock.h")).expect("redlock.h");
        let (_, begun) = text.split_once("/*\n").expect("the header begins with a comment");
        let (overview, mut rest) = begun.split_once("*/").expect("that ends");
        let mut items = Vec::new();
        while let Some((_, begun)) = rest.split_once("/**") {
            let (comment, code) = begun.split_once("*/").expect("a comment ends");
            let (item, after) = item(Comment::of(comment), code.trim_start());
            items.push(item);
            rest = after;
        }
        Self { overview: Comment::of(overview).text, items }
    }

    pub(crate) fn find(&self, name: &str) -> Option<&Item> {
        self.items.iter().find(|it| it.name == name)
    }

    /// The page that describes a name. The name may be an enumeration value or a further macro.
    pub(crate) fn page_of(&self, name: &str) -> Option<&Item> {
        self.items
            .iter()
            .find(|it| it.name == name || it.others().iter().any(|other| other == name))
    }
}

impl Item {
    pub(crate) fn is_function(&self) -> bool {
        matches!(self.kind, Kind::Function)
    }

    /// Other names that this item's page describes.
    pub(crate) fn others(&self) -> Vec<String> {
        match &self.kind {
            Kind::Enumeration(values) => values.iter().map(|it| it.name.clone()).collect(),
            Kind::Macros(names) => names[1..].to_vec(),
            _ => Vec::new(),
        }
    }

    /// Whether this is a function on this type of handle, or about these values.
    pub(crate) fn is_of(&self, kind: &str) -> bool {
        self.name.strip_prefix(kind).is_some_and(|it| it.starts_with('_'))
    }

    /// The first sentence of the comment, without the full stop. If it is too long, only the part before the
    /// first semicolon or colon.
    pub(crate) fn summary(&self) -> String {
        let Some(Block::Paragraph(text)) = self.comment.text.first() else {
            panic!("{} has no comment", self.name)
        };
        let mut text = text.split_once(". ").map_or(text.as_str(), |it| it.0);
        for end in ["; ", ": "] {
            if text.len() > SUMMARY {
                text = text.split_once(end).map_or(text, |it| it.0);
            }
        }
        text.trim_end_matches('.').to_owned()
    }
}

/// The item at the beginning of the text, and the text after it.
fn item(comment: Comment, text: &str) -> (Item, &str) {
    if text.starts_with("#define") {
        return macros(comment, text);
    }
    if text.starts_with("enum") {
        return enumeration(comment, text);
    }
    if text.starts_with("typedef struct {") {
        return structure(comment, text);
    }
    let (code, after) = text.split_once(';').expect("a declaration ends");
    let code = joined(code);
    let (name, kind) = if let Some(named) = code.strip_prefix("typedef struct ") {
        (word(named), Kind::Handle)
    } else if code.starts_with("typedef") {
        (word(code.split_once("(*").expect("a pointer to a function").1), Kind::Callback)
    } else {
        let before = code.split_once('(').expect("a function has parameters").0;
        (before.rsplit([' ', '*']).next().unwrap_or_default(), Kind::Function)
    };
    (Item { name: name.to_owned(), kind, comment, code: code.clone() }, after)
}

/// Macros without a comment of their own belong to the one before.
fn macros(comment: Comment, text: &str) -> (Item, &str) {
    let (mut names, mut rest) = (Vec::new(), text);
    while let Some(named) = rest.strip_prefix("#define ") {
        names.push(word(named).to_owned());
        while let Some((line, after)) = rest.split_once('\n') {
            rest = after;
            if !line.ends_with('\\') {
                break;
            }
        }
        rest = rest.trim_start();
    }
    let name = names[0].clone();
    (Item { name, kind: Kind::Macros(names), comment, code: String::new() }, rest)
}

fn enumeration(comment: Comment, text: &str) -> (Item, &str) {
    let (body, after) = text.split_once("};").expect("an enumeration ends");
    let (head, mut rest) = body.split_once('{').expect("it has values");
    let name = word(head.trim_start_matches("enum ")).to_owned();
    let mut values = Vec::new();
    while let Some((_, begun)) = rest.split_once("/**") {
        let (comment, code) = begun.split_once("*/").expect("a comment ends");
        let (value, next) = code.split_once(',').expect("a value ends");
        let (name, number) = value.split_once('=').expect("it has a number");
        let (name, number) = (name.trim().to_owned(), number.trim().to_owned());
        values.push(Value { name, number, comment: Comment::of(comment) });
        rest = next;
    }
    (Item { name, kind: Kind::Enumeration(values), comment, code: String::new() }, after)
}

fn structure(comment: Comment, text: &str) -> (Item, &str) {
    let (mut rest, after) = text.split_once("\n} ").expect("a structure ends");
    let (name, after) = after.split_once(';').expect("with its name");
    let mut fields = Vec::new();
    while let Some((_, begun)) = rest.split_once("/**") {
        let (comment, code) = begun.split_once("*/").expect("a comment ends");
        let (field, next) = code.split_once(';').expect("a field ends");
        let (kind, name) =
            field.trim().split_at(field.trim().rfind([' ', '*']).map_or(0, |it| it + 1));
        let (name, number) = (name.to_owned(), kind.trim().to_owned());
        fields.push(Value { name, number, comment: Comment::of(comment) });
        rest = next;
    }
    let kind = Kind::Struct(fields);
    (Item { name: name.to_owned(), kind, comment, code: String::new() }, after)
}

impl Comment {
    fn of(text: &str) -> Self {
        let mut made = Self::default();
        let mut is_new = true;
        for line in text.lines().map(|it| it.trim_start().trim_start_matches('*').trim()) {
            if let Some(tag) = line.strip_prefix("@param ") {
                let (name, words) = tag.trim().split_once(' ').expect("a parameter has words");
                made.parameters.push((name.to_owned(), words.trim().to_owned()));
            } else if let Some(words) = line.strip_prefix("@return ") {
                made.returns.push_str(words);
            } else if !line.is_empty() {
                made.add(line, is_new);
            }
            is_new = line.is_empty();
        }
        made
    }

    /// Adds a line. It continues the current text, or begins a new block.
    fn add(&mut self, line: &str, is_new: bool) {
        let tags_begun = !self.returns.is_empty() || !self.parameters.is_empty();
        let bullet = line.strip_prefix("- ").filter(|_| !tags_begun);
        if let Some(words) = bullet {
            self.text.push(Block::Bullet(words.to_owned()));
            return;
        }
        let open = if !self.returns.is_empty() {
            Some(&mut self.returns)
        } else if let Some((_, words)) = self.parameters.last_mut() {
            Some(words)
        } else {
            self.text.last_mut().filter(|_| !is_new).map(Block::words_mut)
        };
        match open {
            Some(words) => {
                words.push(' ');
                words.push_str(line);
            }
            None => self.text.push(Block::Paragraph(line.to_owned())),
        }
    }
}

impl Block {
    fn words_mut(&mut self) -> &mut String {
        match self {
            Self::Paragraph(words) | Self::Bullet(words) => words,
        }
    }

    pub(crate) fn words(&self) -> &str {
        match self {
            Self::Paragraph(words) | Self::Bullet(words) => words,
        }
    }
}

/// The identifier at the beginning of the text.
fn word(text: &str) -> &str {
    text.split(|it: char| !it.is_alphanumeric() && it != '_').next().unwrap_or_default()
}

fn joined(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
