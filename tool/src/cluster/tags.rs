//! Tags whose slots are on different masters.

use std::collections::BTreeSet;
use std::process::ExitCode;

use redlock::protocol::command::cluster_nodes::{ClusterNode, ClusterNodes};
use redlock::protocol::servers::cluster_slot::slot_of;
use serde_json::json;

use super::{Cluster, Voter};
use crate::cli::Common;
use crate::failure::Failure;
use crate::output;
use crate::servers::Servers;
use crate::table::Table;

/// Up to so many letters, each of the 16,384 slots has a tag.
const LETTERS_MAX: u32 = 4;

/// `redlock doctor --suggest-tags`: prints tags on different masters, and the list of servers with them.
pub(crate) fn suggest(common: &Common, count: usize) -> Result<ExitCode, Failure> {
    let servers = Servers::find(common)?;
    let named = servers.named();
    // This checks the URLs.
    servers.builder(common)?.build()?;
    let clusters = Cluster::ask_all(&servers.config, &named);
    let cluster = match &clusters[..] {
        [one] => one,
        [] => {
            let words = "--suggest-tags needs the URL of a cluster: redis-cluster://HOST:PORT";
            return Err(Failure::usage(words));
        }
        many => {
            let words = format!("the servers are of {} clusters: give the URL of one", many.len());
            return Err(Failure::usage(words));
        }
    };
    let voters = cluster.on_different_masters(count)?;
    let urls: Vec<String> = voters.iter().map(|it| cluster.url(&it.tag)).collect();
    if common.json {
        let tags: Vec<_> = voters.iter().map(Voter::as_json).collect();
        output::print_line(json!({"tags": tags, "servers": urls}))?;
    } else {
        let mut table = Table::new(["TAG", "SLOT", "MASTER", "NODE"]);
        voters.iter().for_each(|it| table.row(it.place_cells()));
        output::print(format!("{table}\n{}\n", output::harmless(&urls.join(","))))?;
        if !cluster.login.is_empty() {
            output::tell_words(
                "the list has no user and no password: add them, or set REDLOCK_USER and REDLOCK_PASSWORD",
            );
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The first tag on each master, and its slot: one letter, then two, and so on.
pub(super) fn first_tags<'a>(
    map: &'a ClusterNodes<'a>,
) -> impl Iterator<Item = (String, u16, &'a ClusterNode<'a>)> {
    let mut seen = BTreeSet::new();
    let located = all_tags().filter_map(|tag| {
        let slot = slot_of(&tag);
        Some((tag, slot, map.owner_of(slot)?))
    });
    let new = located.filter(move |(_, _, owner)| seen.insert(owner.id.as_str()));
    // Then there is none left to look for.
    new.take(map.owners().count())
}

fn all_tags() -> impl Iterator<Item = String> {
    let of = |letters: u32| (0..26_u32.pow(letters)).map(move |it| tag(it, letters));
    (1..=LETTERS_MAX).flat_map(of)
}

/// The tag of so many letters that has this place in the alphabet.
fn tag(number: u32, letters: u32) -> String {
    let letter = |place| char::from(b'a' + (number / 26_u32.pow(place) % 26) as u8);
    (0..letters).rev().map(letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_in_the_order_of_the_alphabet() {
        let tags = [(0, 1), (25, 1), (0, 2), (27, 2), (26 * 26 - 1, 2), (0, 4)];
        assert_eq!(
            tags.map(|(number, letters)| tag(number, letters)),
            ["a", "z", "aa", "bb", "zz", "aaaa"]
        );
    }

    /// A master may have one slot alone.
    #[test]
    fn each_slot_has_a_tag() {
        assert_eq!(all_tags().map(|it| slot_of(&it)).collect::<BTreeSet<_>>().len(), 16_384);
    }
}
