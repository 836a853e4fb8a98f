//! What a process does to itself while it uses the library: it forks, ends, runs out of things.
