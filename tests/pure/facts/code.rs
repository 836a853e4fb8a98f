//! Numbers that a page says, and the line of code that makes each of them so. Whoever changes one is told of the other.

use crate::read;

/// A text that stands on a page, and the file and the text of the code that it is about.
type Fact = (&'static str, &'static str, &'static str);

/// docs/ttl.md: how long a call waits by default.
const WAITS: [Fact; 10] = [
    ("`RedLock_Lock`: 3 tries", "src/settings.rs", "retry_count: AtomicI64::new(3)"),
    ("about 200 ms apart", "src/settings.rs", "retry_delay_ms: AtomicI64::new(200)"),
    (
        "`lock`: as `RedLock_Lock`",
        "include/redlock.hpp",
        "return RedLock_Lock(rl, text, ttl.count()",
    ),
    ("`try_lock`: 1 try", "include/redlock.hpp", "wait = std::chrono::milliseconds::zero()"),
    ("`Lock`: until its context ends", "c-examples/go/lock.go", "how{waits: true}"),
    ("`lock`, `using`: 5 s", "c-examples/node/index.js", "const WAIT_MS = 5000;"),
    ("`lock`, `alock`: 5 s", "c-examples/python/redlock.py", "\n_WAIT = 5\n"),
    ("`lock`: 5 s", "c-examples/ruby/redlock.rb", "def lock(resource, ttl:, wait: 5,"),
    ("`Options::new`: 1 try", "src/face/options.rs", "Wait::For(Duration::ZERO)"),
    ("`redlock run`: 30 s", "tool/src/cli.rs", "default_value = \"30s\""),
];

/// Everything that the command reports as JSON is on its page.
#[test]
fn the_page_of_the_command_has_every_event_and_field() {
    let page = read("docs/command.md");
    let (_, page) = page.split_once("## JSON").expect("a section");
    let mut count = 0;
    for file in ["run/mod.rs", "run/waiting.rs", "servers.rs", "failure.rs"] {
        let code = read(&format!("tool/src/{file}"));
        for object in code.split("json!({").skip(1).filter_map(|it| it.split("})").next()) {
            let keys = object.split('"').skip(1).step_by(2);
            for key in keys {key}"))) {
                assert!(page.contains(&format!("`{key}`")), "{file}: {key}");
                count += 1;
            }
        }
    }
    let failure = read("tool/src/failure.rs");
    let (_, names) = failure.split_once("fn name(self)").expect("the names of failures");
    for name in names.split("\n    }\n").next().unwrap_or_default().split('"').skip(1).step_by(2) {
        assert!(page.contains(&format!("`{name}`")), "{name}");
        count += 1;
    }
    assert!(count > 30, "the sources are not what this reads");
}

#[test]
fn what_pages_say_of_numbers_is_what_the_code_does() {
    let mut wrong = Vec::new();
    for (page, facts) in [("docs/ttl.md", &WAITS[..])] {
        let text = read(page);
        for (words, file, code) in facts {
            if !text.contains(words) {
                wrong.push(format!("{page} does not say: {words}"));
            }
            if !read(file).contains(code) {
                wrong.push(format!("{page} says {words:?}, but {file} has no {code:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
