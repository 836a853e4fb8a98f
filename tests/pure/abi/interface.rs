//! The interface as lines, as the C compiler reads it from the header. Each line is one thing that programs
//! depend on. Parameter names and comments are not part of it.

use crate::compiler;
use crate::library;

/// Macros that every new version changes.
const NUMBERS: [&str; 3] =
    ["REDLOCK_VERSION_MAJOR", "REDLOCK_VERSION_MINOR", "REDLOCK_VERSION_PATCH"];
/// The include guard of the header.
const GUARD: &str = "REDLOCK_H";

/// The interface of the header as it is now.
pub(crate) fn now() -> Vec<String> {
    let mut lines = vec![format!("library {}", library::SONAME)];
    lines.extend(macros(&compiler::reads_header(&["-E", "-dM"])));
    lines.extend(of_declarations(&own_lines(&compiler::reads_header(&["-E"]))));
    lines
}

/// The declarations of the header's functions, as the compiler reads them.
pub(crate) fn prototypes(preprocessed: &str) -> Vec<String> {
    let is_function = |it: &String| !it.starts_with("typedef ") && of_function(it).is_some();
    statements(&own_lines(preprocessed)).into_iter().filter(is_function).collect()
}

fn macros(defined: &str) -> Vec<String> {
    let defined = defined.lines().filter_map(|it| it.strip_prefix("#define "));
    let ours = defined.filter(|it| it.starts_with("REDLOCK_"));
    let (mut lines, guard) = (Vec::new(), format!("{GUARD} "));
    for line in ours.filter(|it| *it != guard && *it != GUARD) {
        let name = line.split([' ', '(']).next().unwrap_or_default();
        let is_number = NUMBERS.contains(&name);
        lines.push(format!("macro {}", if is_number { name } else { line }));
    }
    lines.sort();
    lines
}

/// The text of the header itself, without the headers that it includes.
fn own_lines(preprocessed: &str) -> String {
    let (mut is_own, mut text) = (false, String::new());
    for line in preprocessed.lines() {
        if line.starts_with("# ") {
            is_own = line.contains("/redlock.h\"");
        } else if is_own {
            text += line;
            text.push(' ');
        }
    }
    text
}

/// One or more lines for each declaration.
pub(crate) fn of_declarations(text: &str) -> Vec<String> {
    let lines: Vec<_> = statements(text).iter().flat_map(|it| of_statement(it)).collect();
    assert!(
        lines.iter().any(|it| it.starts_with("function ")),
        "the header is not what this reads"
    );
    lines
}

/// The statements: each ends with a semicolon that is outside of braces.
fn statements(text: &str) -> Vec<String> {
    let (mut all, mut one, mut depth) = (Vec::new(), String::new(), 0);
    for letter in text.chars() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if letter == ';' && depth == 0 {
            all.push(spaced(&one));
            one.clear();
        } else {
            one.push(letter);
        }
    }
    assert_eq!(one.trim(), "", "the header ends within a declaration");
    all
}

fn of_statement(statement: &str) -> Vec<String> {
    let knows = of_enumeration(statement)
        .or_else(|| of_callback(statement))
        .or_else(|| of_type(statement))
        .or_else(|| of_function(statement));
    knows.unwrap_or_else(|| panic!("the record has no words for this declaration: {statement}"))
}

/// `enum Name { A = 0, B = 1, }`
fn of_enumeration(statement: &str) -> Option<Vec<String>> {
    let (head, body) = statement.strip_prefix("enum ")?.split_once('{')?;
    let body = body.strip_suffix('}')?;
    let constants = body.split(',').map(str::trim).filter(|it| !it.is_empty());
    let line = |it: &str| {
        assert!(it.contains(" = "), "{it} has no value of its own: it would change unseen");
        format!("constant {} {it}", head.trim())
    };
    Some(constants.map(line).collect())
}

/// `typedef void (*Name)(int32_t level, void *data)`
fn of_callback(statement: &str) -> Option<Vec<String>> {
    let (result, rest) = statement.strip_prefix("typedef ")?.split_once("(*")?;
    let (name, parameters) = rest.split_once(')')?;
    let parameters = parameters.trim().strip_prefix('(')?.strip_suffix(')')?;
    Some(vec![format!("callback {name}: {} ({})", result.trim(), types(parameters))])
}

/// `typedef struct Name Name`, `typedef int32_t Name`
fn of_type(statement: &str) -> Option<Vec<String>> {
    let (meaning, name) = statement.strip_prefix("typedef ")?.rsplit_once(' ')?;
    let line = match meaning == format!("struct {name}") {
        true => format!("type {name}: a struct that only the library knows"),
        false => format!("type {name}: {meaning}"),
    };
    Some(vec![line])
}

/// `Type *Name(parameters)`
fn of_function(statement: &str) -> Option<Vec<String>> {
    let (head, parameters) = statement.strip_suffix(')')?.split_once('(')?;
    let split = head.rfind([' ', '*'])? + 1;
    let (result, name) = (head[..split].trim(), &head[split..]);
    let is_plain = !parameters.contains('(') && !name.is_empty() && !result.is_empty();
    is_plain.then(|| vec![format!("function {name}: {result} ({})", types(parameters))])
}

/// The types of parameters, without their names.
fn types(parameters: &str) -> String {
    let of_one = |it: &str| {
        let it = it.trim();
        let name = it.rfind([' ', '*']).map_or(0, |it| it + 1);
        // A single word is a type without a parameter name.
        if name == 0 || it.ends_with('*') { it.to_owned() } else { it[..name].trim().to_owned() }
    };
    parameters.split(',').map(of_one).collect::<Vec<_>>().join(", ")
}

/// Puts one space wherever there is white space, and writes `bool` for `_Bool`.
fn spaced(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace("_Bool", "bool")
}

#[test]
fn declarations_become_lines() {
    let lines = of_declarations(
        "enum E { A = 0, B = -1, }; typedef int32_t E; typedef struct S S;
         typedef bool (*Call)(const char *server, char *room, size_t size, void *data);
         const char *Name(E status); void Free(S *s); S *New(void); E Set(S *s, int a,
         Call it, double);",
    );
    assert_eq!(
        lines,
        [
            "constant E A = 0",
            "constant E B = -1",
            "type E: int32_t",
            "type S: a struct that only the library knows",
            "callback Call: bool (const char *, char *, size_t, void *)",
            "function Name: const char * (E)",
            "function Free: void (S *)",
            "function New: S * (void)",
            "function Set: E (S *, int, Call, double)",
        ]
    );
}
