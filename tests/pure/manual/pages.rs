//! A page in section 3 for each item that the header declares.

use crate::header::{Block, Header, Item, Kind};
use crate::prose::{named_in, names, prose, verbatim};
use crate::{Page, VERSION, WRITTEN};

const LINE: usize = 78;

/// The pages of an item, by file name: its own page, and the links to it.
pub(crate) fn pages(header: &Header, item: &Item) -> Vec<(String, Page)> {
    let own = format!("{}.3", item.name);
    let others = item.others().into_iter();
    let leads = others.map(|name| (format!("{name}.3"), Page::Connector(own.clone())));
    [(own.clone(), Page::Text(page(header, item)))].into_iter().chain(leads).collect()
}

pub(crate) fn title(name: &str, section: u8) -> String {
    format!(
        ".\\\" Generated from include/redlock.h. Do not edit: run `make header`.\n\
         .TH {name} {section} {WRITTEN} \"redlock {VERSION}\" \"redlock manual\"\n\
         .nh\n.ad l\n"
    )
}

pub(crate) fn library() -> &'static str {
    ".SH LIBRARY\nredlock\n.RI ( libredlock ,\\~ \\-lredlock )\n"
}

pub(crate) fn blocks(header: &Header, text: &[Block]) -> String {
    let mut made = String::new();
    for (index, block) in text.iter().enumerate() {
        match block {
            Block::Bullet(_) => made.push_str(".IP \\(bu 2\n"),
            Block::Paragraph(_) if index > 0 => made.push_str(".PP\n"),
            Block::Paragraph(_) => {}
        }
        made.push_str(&prose(header, block.words()));
    }
    made
}

/// Functions, each with a one-line summary.
pub(crate) fn list<'a>(header: &Header, items: impl Iterator<Item = &'a Item>) -> String {
    items.fold(String::new(), |made, item| {
        let summary = prose(header, &sentence(&item.summary()));
        format!("{made}.TP\n.BR {} (3)\n{summary}", item.name)
    })
}

fn page(header: &Header, item: &Item) -> String {
    let mut made = title(&item.name, 3);
    let summary = verbatim(&lower_case(&item.summary()));
    made.push_str(&format!(".SH NAME\n{} \\- {summary}", item.name));
    made.push_str(library());
    made.push_str(".SH SYNOPSIS\n.nf\n.B #include <redlock.h>\n.PP\n");
    made.push_str(&synopsis(item));
    made.push_str(".fi\n.SH DESCRIPTION\n");
    made.push_str(&blocks(header, &item.comment.text));
    made.push_str(&inner(header, item));
    if !item.comment.parameters.is_empty() {
        made.push_str(".SH PARAMETERS\n");
        for (name, words) in &item.comment.parameters {
            made.push_str(&format!(".TP\n.I {name}\n{}", prose(header, words)));
        }
    }
    if !item.comment.returns.is_empty() {
        let returns = prose(header, &sentence(&item.comment.returns));
        made.push_str(&format!(".SH RETURN VALUE\n{returns}"));
    }
    made.push_str(&see_also(header, item));
    made
}

/// The parts of a type: its values or fields, and the functions on it.
fn inner(header: &Header, item: &Item) -> String {
    let mut made = String::new();
    if let Kind::Enumeration(values) = &item.kind {
        made.push_str(".SH VALUES\n");
        for value in values {
            let number = verbatim(&value.number);
            made.push_str(&format!(".TP\n.BR {} \" (\" {} )\n", value.name, number.trim()));
            made.push_str(&blocks(header, &value.comment.text));
        }
    }
    if let Kind::Struct(fields) = &item.kind {
        made.push_str(".SH FIELDS\n");
        for field in fields {
            made.push_str(&format!(".TP\n.I {} {}\n", verbatim(&field.number).trim(), field.name));
            made.push_str(&blocks(header, &field.comment.text));
        }
    }
    let mut functions = header.items.iter().filter(|it| it.is_of(&item.name)).peekable();
    if !item.is_function() && functions.peek().is_some() {
        made.push_str(".SH FUNCTIONS\n");
        made.push_str(&list(header, functions));
    }
    made
}

fn synopsis(item: &Item) -> String {
    match &item.kind {
        Kind::Handle => format!(".B {};\n", item.code),
        Kind::Enumeration(_) => format!(".BI \"typedef int32_t \" {} ;\n", item.name),
        Kind::Struct(_) => format!(".BI \"typedef struct \" {} ;\n", item.name),
        Kind::Macros(names) => {
            names.iter().fold(String::new(), |it, name| it + ".B " + name + "\n")
        }
        Kind::Function | Kind::Callback => declaration(&item.code),
    }
}

/// The declaration in bold with slanted parameters. If it is long, each parameter has its own line.
fn declaration(code: &str) -> String {
    let (before, parameters) = code.rsplit_once('(').expect("a function has parameters");
    let parameters = parameters.trim_end_matches(')');
    if parameters == "void" {
        return format!(".B {code};\n");
    }
    let indent = " ".repeat(before.len() + 1);
    let (comma, next) = if code.len() < LINE {
        (", ".to_owned(), String::new())
    } else {
        (",\"\n.BI \"".to_owned(), indent)
    };
    let parts =
        parameters.split(", ").map(|it| it.split_at(it.rfind([' ', '*']).map_or(0, |it| it + 1)));
    let parts: Vec<_> = parts.map(|(kind, name)| format!("{kind}\" {name} \"")).collect();
    format!(".BI \"{before}({});\"\n", parts.join(&(comma + &next)))
}

/// The items that the comment names, and the types of the parameters and the result.
fn see_also(header: &Header, item: &Item) -> String {
    let mut named = names(header, &item.comment);
    named.extend(named_in(header, &item.code));
    if let Kind::Enumeration(values) | Kind::Struct(values) = &item.kind {
        named.extend(values.iter().flat_map(|it| names(header, &it.comment)));
    }
    named.sort_unstable();
    named.dedup();
    let others = named.into_iter().filter(|it| *it != item.name);
    let lines = others.map(|name| format!(".BR {name} (3),\n"));
    format!(".SH SEE ALSO\n{}.BR redlock (7)\n", lines.collect::<String>())
}

/// The summary as it continues after a dash: with a small first letter, unless it begins with an abbreviation or
/// a name.
fn lower_case(text: &str) -> String {
    let mut letters = text.chars();
    let first = text.split(' ').next().unwrap_or_default();
    if first.contains('_') || !text[1..].starts_with(|it: char| it.is_lowercase() || it == ' ') {
        return text.to_owned();
    }
    letters.next().map_or_else(String::new, |it| it.to_lowercase().chain(letters).collect())
}

/// Begins with a capital letter and ends with a full stop.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let begun: String =
        letters.next().map_or_else(String::new, |it| it.to_uppercase().chain(letters).collect());
    if begun.ends_with('.') { begun } else { begun + "." }
}
