//! The code around a block that is no complete program. Each frame has the names that pages use without
//! explaining them: a manager of three servers, and for C a lease.

use crate::pages::Snippet;

const SERVERS: &str = "\"127.0.0.1:6379\", \"127.0.0.1:6380\", \"127.0.0.1:6381\"";

/// With `rl`, a manager, and `lease`, which holds nothing yet.
pub(super) fn c(snippet: &Snippet) -> String {
    if snippet.code.contains("int main(") {
        return snippet.outside.clone() + &snippet.code;
    }
    let (mut first, mut last) = (String::new(), String::new());
    if uses(snippet, "rl") && !declares(snippet, "RedLock *rl") {
        first.push_str("RedLock *rl = RedLock_New();\n");
        for port in [6379, 6380, 6381] {
            first.push_str(&format!("RedLock_AddServerUrl(rl, \"127.0.0.1\", {port});\n"));
        }
        last.push_str("RedLock_Free(rl);\n");
    }
    if uses(snippet, "lease") && !declares(snippet, "RedLockLease *lease") {
        first.push_str("RedLockLease *lease = RedLockLease_New();\n");
        last.insert_str(0, "RedLockLease_Free(lease);\n");
    }
    let body = body(snippet);
    format!(
        "#define _GNU_SOURCE\n#include <assert.h>\n#include <redlock.h>\n#include <stdio.h>\n#include <stdlib.h>\n\
         #include <string.h>\n#include <unistd.h>\n{}\
         int main(void) {{\n{first}{body}{last}return 0;\n}}\n",
        snippet.outside
    )
}

/// With `servers`, a manager.
pub(super) fn cpp(snippet: &Snippet) -> String {
    if snippet.code.contains("int main(") {
        return snippet.outside.clone() + &snippet.code;
    }
    let first = if uses(snippet, "servers") && !declares(snippet, "Manager servers") {
        format!("redlock::Manager servers{{{SERVERS}}};\n")
    } else {
        String::new()
    };
    let mut includes = String::new();
    for (name, header) in [
        ("assert(", "cassert"),
        ("chrono::", "chrono"),
        ("std::cout", "iostream"),
        ("std::cerr", "iostream"),
        ("_guard", "mutex"),
        ("unique_lock", "mutex"),
        ("shared_lock", "shared_mutex"),
        ("std::string", "string"),
        ("std::thread", "thread"),
        ("std::vector", "vector"),
    ] {
        if snippet.everything().contains(name) && !includes.contains(header) {
            includes.push_str(&format!("#include <{header}>\n"));
        }
    }
    let body = body(snippet);
    format!(
        "{includes}#include \"redlock.hpp\"\n{}int main() {{\n{first}{body}}}\n",
        snippet.outside
    )
}

/// In a function with a context, `ctx`, that returns an error; with `manager`.
pub(super) fn go(snippet: &Snippet) -> String {
    if snippet.code.starts_with("package ") {
        return snippet.code.clone();
    }
    const PACKAGES: [&str; 12] = [
        "context", "errors", "fmt", "io", "log", "log/slog", "net/http", "os", "strings", "sync",
        "syscall", "time",
    ];
    let lines = snippet.everything();
    let everything: String = lines.lines().filter_map(|it| it.split("//").next()).collect();
    let named = |it: &&&str| {
        let name = it.rsplit('/').next().unwrap_or(it);
        **it == "context" || uses_in(&everything, name) && everything.contains(&format!("{name}."))
    };
    let mut imports: Vec<_> = PACKAGES.iter().filter(named).map(|it| format!("{it:?}")).collect();
    let mut first = String::new();
    if uses_in(&everything, "manager") || everything.contains("redlock.") {
        imports.push("\"redlock.example/redlock\"".to_owned());
        first = format!(
            "manager, err := redlock.New({SERVERS})\nif err != nil {{\nreturn err\n}}\ndefer manager.Close()\n"
        );
    }
    let body = body(snippet);
    format!(
        "package main\nimport (\n{}\n)\n{}\nfunc main() {{\nif err := run(context.Background()); err != nil {{\npanic(err)\n}}\n}}\n\
         func run(ctx context.Context) error {{\n_ = ctx\n{first}{{\n{body}}}\nreturn nil\n}}\n",
        imports.join("\n"),
        snippet.outside
    )
}

/// In a function that may fail with any error.
pub(super) fn rust(snippet: &Snippet) -> String {
    if snippet.code.contains("fn main(") {
        return snippet.outside.clone() + &snippet.code;
    }
    format!(
        "{}fn main() -> Result<(), Box<dyn std::error::Error>> {{\n{}Ok(())\n}}\n",
        snippet.outside,
        body(snippet)
    )
}

/// In an asynchronous function, with `manager`; unless it is a module, which imports what it needs.
pub(super) fn js(snippet: &Snippet) -> String {
    let body = body(snippet);
    if snippet.language == "mjs" {
        return snippet.outside.clone() + &body;
    }
    format!(
        "const redlock = require('redlock-native');\n{}(async () => {{\n\
         const {{ Manager }} = redlock;\nconst manager = new Manager([{SERVERS}]);\n{{\n{body}}}\n}})();\n",
        snippet.outside
    )
}

/// With `manager`; in an asynchronous function if it waits for something.
pub(super) fn python(snippet: &Snippet) -> String {
    let body = body(snippet);
    let first = format!("import redlock\nmanager = redlock.Manager({SERVERS})\n");
    let is_async = ["await ", "async with", "async for"].iter().any(|it| body.contains(it));
    let text = if is_async && !body.contains("asyncio.run(") {
        let lines = body.lines().map(|it| format!("    {it}\n")).collect::<String>();
        format!(
            "import asyncio\n{first}{}async def main():\n{lines}asyncio.run(main())\n",
            snippet.outside
        )
    } else {
        first + &snippet.outside + &body
    };
    // A line that must be at the beginning stays there.
    if text.contains("from __future__") { snippet.code.clone() } else { text }
}

/// With `locker` and `manager`, which are one manager.
pub(super) fn ruby(snippet: &Snippet) -> String {
    let is_required = declares(snippet, "require_relative \"redlock\"");
    let mut first = if is_required { "" } else { "require 'redlock'\n" }.to_owned();
    for name in ["locker", "manager"] {
        if uses(snippet, name) && !declares(snippet, &format!("{name} = ")) {
            first.push_str(&format!("{name} = Redlock::Manager.new({SERVERS})\n"));
        }
    }
    first + &snippet.outside + &body(snippet)
}

/// On a database with one table, in which the parameters of the block have values.
pub(super) fn sql(snippet: &Snippet) -> String {
    format!(
        r#"import sqlite3
database = sqlite3.connect(":memory:")
values = {{"id": 1, "token": 8, "balance": 50}}
database.execute("CREATE TABLE account (id INTEGER PRIMARY KEY, balance BIGINT)")
database.execute("INSERT INTO account VALUES (1, 40)")
statement = ""
for line in {:?}.splitlines():
    statement += line.split("--")[0] + "\n"
    if sqlite3.complete_statement(statement):
        changed = database.execute(statement, values).rowcount
        assert changed == 1 or "UPDATE" not in statement, statement
        statement = ""
assert not statement.strip(), statement
"#,
        body(snippet)
    )
}

/// Unchanged.
pub(super) fn sh(snippet: &Snippet) -> String {
    body(snippet)
}

fn body(snippet: &Snippet) -> String {
    [&*snippet.before, &snippet.code, &snippet.after].concat()
}

fn declares(snippet: &Snippet, text: &str) -> bool {
    body(snippet).contains(text)
}

fn uses(snippet: &Snippet, word: &str) -> bool {
    uses_in(&body(snippet), word)
}

/// Whether the text contains the word, and not only as a part of another word.
fn uses_in(text: &str, word: &str) -> bool {
    let is_part = |it: char| it.is_alphanumeric() || it == '_';
    text.match_indices(word).any(|(at, _)| {
        !text[..at].ends_with(is_part) && !text[at + word.len()..].starts_with(is_part)
    })
}
