//! Tries each broken copy, and prints a table of the results.

use std::fmt;
use std::path::Path;
use std::time::Instant;

use crate::mutant::{Killer, Mutant};
use crate::project;
use crate::workshop::Workshop;

/// The result of one copy.
enum Verdict {
    Killed,
    /// These tests did not notice the fault.
    Survived(Vec<Killer>),
    /// The copy could not be made, built or tried.
    Fault(String),
}

/// Makes and tries the mutants, and prints the result of each. Fails unless all of them are killed.
pub(crate) fn run(mutants: &[Mutant]) -> Result<(), String> {
    let began = Instant::now();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("mutants");
    let workshop = Workshop::open(project(), &folder).map_err(|it| it.to_string())?;
    try_unbroken(&workshop, mutants)?;
    let mut killed = 0;
    for mutant in mutants {
        let began = Instant::now();
        let verdict = try_one(&workshop, mutant);
        let took = began.elapsed().as_secs_f64();
        println!("{:4} {took:5.1} s  {verdict:8}  {}", mutant.id, mutant.what);
        for it in &mutant.killers {
            println!("{:24}by {}: {}", "", it.program, it.test);
        }
        match verdict {
            Verdict::Killed => killed += 1,
            Verdict::Survived(blind) => blind.iter().for_each(|it| {
                println!("{:24}not noticed by {}: {}", "", it.program, it.test);
            }),
            Verdict::Fault(fault) => println!("{fault}"),
        }
    }
    let (all, took) = (mutants.len(), began.elapsed().as_secs());
    let figures = format!("{killed} of {all} broken copies were noticed, in {took} s");
    if killed < all {
        return Err(figures);
    }
    println!("{figures}");
    Ok(())
}

/// Checks that every killer passes in the unbroken copy.
fn try_unbroken(workshop: &Workshop, mutants: &[Mutant]) -> Result<(), String> {
    let began = Instant::now();
    let mut killers: Vec<_> = mutants.iter().flat_map(|it| it.killers.clone()).collect();
    killers.sort();
    killers.dedup();
    workshop.build(&killers)?;
    for of_one in killers.chunk_by(|a, b| a.program == b.program) {
        if let Some(it) = workshop.failures(of_one)?.first() {
            let (test, log) = (format!("{}: {}", it.program, it.test), workshop.log());
            return Err(format!("it fails where nothing is broken: {test}\n{log}"));
        }
    }
    let took = began.elapsed().as_secs_f64();
    println!("{:4} {took:5.1} s  {} tests pass where nothing is broken", "", killers.len());
    Ok(())
}

/// Breaks the copy, tries it, and restores it.
fn try_one(workshop: &Workshop, mutant: &Mutant) -> Verdict {
    let whole = match workshop.contents(&mutant.files()) {
        Ok(whole) => whole,
        Err(fault) => return Verdict::Fault(fault),
    };
    let tried = mutant.apply(workshop.tree()).and_then(|()| {
        workshop.build(&mutant.killers)?;
        workshop.failures(&mutant.killers)
    });
    match (tried, workshop.mend(whole)) {
        (Err(fault), _) | (_, Err(fault)) => Verdict::Fault(fault),
        (Ok(failed), _) if failed.len() == mutant.killers.len() => Verdict::Killed,
        (Ok(failed), _) => {
            let blind = mutant.killers.iter().filter(|it| !failed.contains(it));
            Verdict::Survived(blind.cloned().collect())
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Killed => "killed",
            Self::Survived(_) => "SURVIVED",
            Self::Fault(_) => "FAULT",
        })
    }
}
