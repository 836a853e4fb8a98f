//! No two files of `src` import each other in a circle. A reader of a file can read what it needs, and stop
//! there.

use std::collections::{BTreeMap, BTreeSet};

use crate::{code_of, sources, without_tests};

/// The path of a module, such as `["transport", "queue"]`.
type Module = Vec<String>;

#[test]
fn no_files_import_each_other_in_a_circle() {
    let files = sources();
    let modules: BTreeMap<Module, String> = files
        .iter()
        .filter(|(name, _)| name != "lib.rs" && !name.contains("tests"))
        .map(|(name, code)| (module_of(name), code_of(without_tests(code))))
        .collect();
    let imports: BTreeMap<&Module, BTreeSet<Module>> =
        modules.iter().map(|(module, code)| (module, imports_of(module, code, &modules))).collect();
    for module in modules.keys() {
        let mut reached = BTreeSet::new();
        let mut next: Vec<&Module> = imports[module].iter().collect();
        while let Some(it) = next.pop() {
            if reached.insert(it) {
                next.extend(&imports[it]);
            }
        }
        assert!(!reached.contains(module), "{} is in a circle: {reached:?}", module.join("::"));
    }
    // Proof that the check finds imports: the engine runs operations, and these do not know the engine.
    let engine = vec!["engine".to_owned()];
    assert!(imports[&engine].contains(&vec!["protocol".to_owned(), "operation".to_owned()]));
}

fn module_of(name: &str) -> Module {
    let path = name.trim_end_matches(".rs").trim_end_matches("/mod");
    path.split('/').map(str::to_owned).collect()
}

/// The modules whose items the code names through `crate::` and `super::`.
fn imports_of(module: &Module, code: &str, modules: &BTreeMap<Module, String>) -> BTreeSet<Module> {
    let mut found = BTreeSet::new();
    let uses = code.split(';').filter_map(|it| it.split_once("use ").map(|it| it.1));
    let mut paths: Vec<String> = uses.flat_map(|tree| leaves("", tree.trim())).collect();
    let is_of_path = |it: char| it.is_alphanumeric() || it == '_' || it == ':';
    let words = code.split(|it| !is_of_path(it)).filter(|it| it.contains("::"));
    paths.extend(words.map(str::to_owned));
    for path in paths {
        let mut parts = path.split("::").map(|it| it.trim().to_owned()).peekable();
        let mut whole = match parts.next().as_deref() {
            Some("crate") => Module::new(),
            Some("self") => module.clone(),
            Some("super") => module[..module.len() - 1].to_vec(),
            _ => continue,
        };
        while parts.next_if(|it| it == "super").is_some() {
            whole.pop();
        }
        whole.extend(parts);
        while !whole.is_empty() && !modules.contains_key(&whole) {
            whole.pop();
        }
        if !whole.is_empty() && whole != *module {
            found.insert(whole);
        }
    }
    found
}

/// The paths of a `use` tree such as `a::{b, c::d}`.
fn leaves(before: &str, tree: &str) -> Vec<String> {
    let Some((stem, rest)) = tree.split_once('{') else {
        let path = tree.split(" as ").next().unwrap_or_default().trim();
        return vec![format!("{before}{path}")];
    };
    let before = format!("{before}{}", stem.trim());
    let (mut parts, mut depth, mut part) = (Vec::new(), 0, String::new());
    for it in rest.chars() {
        match it {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(std::mem::take(&mut part));
                continue;
            }
            _ => {}
        }
        part.push(it);
    }
    parts.push(part);
    let parts = parts.iter().filter(|it| !it.trim().is_empty());
    parts.flat_map(|it| leaves(&before, it.trim())).collect()
}
