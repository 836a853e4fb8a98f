//! Sentinels, and the masters that they watch. What Sentinels say is theirs alone: one hears of a new master later
//! than another, and the servers do what they do meanwhile.

use std::fmt::Write;

use crate::schedules::promises::Promise;
use crate::world::World;
use crate::world::network::FIRST_PORT;
use crate::world::store::{Dataset, Refusal};

/// What a Sentinel says of one master.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct View {
    epoch: u64,
    /// The epoch of a failover that is in progress. Then a Sentinel tells the old address with the new epoch.
    moves_to: Option<u64>,
}

pub(crate) fn place_of(server: usize) -> String {
    format!("127.0.0.1:{}", FIRST_PORT as usize + server)
}

/// The name under which Sentinels know the master of this voter.
pub(crate) fn name_of(voter: usize) -> String {
    format!("m{voter}")
}

/// A reply: names and values that alternate.
fn fields(all: &[(&str, &str)]) -> String {
    let mut reply = format!("*{}\r\n", 2 * all.len());
    for word in all.iter().flat_map(|it| [it.0, it.1]) {
        let _ = write!(reply, "${}\r\n{word}\r\n", word.len());
    }
    reply
}

fn address(server: usize) -> [(&'static str, String); 2] {
    [("ip", "127.0.0.1".to_owned()), ("port", (FIRST_PORT as usize + server).to_string())]
}

impl World {
    /// Each watched voter has another server, which is its replica at first.
    pub(crate) fn begin_to_watch(&mut self) {
        let Some(watched) = self.schedule.watched else { return };
        self.reigns = vec![0; watched.masters];
        for voter in 0..watched.masters {
            self.demote(watched.owner(voter, 1), voter);
        }
        for sentinel in watched.sentinels() {
            self.servers[sentinel].views = vec![View::default(); watched.masters];
        }
    }

    pub(crate) fn is_sentinel(&self, server: usize) -> bool {
        !self.servers[server].views.is_empty()
    }

    pub(crate) fn begin_turn(&mut self, sentinel: usize, voter: usize, epoch: u64) {
        self.servers[sentinel].views[voter].moves_to = Some(epoch);
    }

    /// The Sentinel never goes back to a lower epoch.
    pub(crate) fn end_turn(&mut self, sentinel: usize, voter: usize, epoch: u64) {
        let view = &mut self.servers[sentinel].views[voter];
        view.moves_to.take_if(|it| *it == epoch);
        view.epoch = view.epoch.max(epoch);
    }

    /// A replica is promoted. A server that was never told that it is not the master any more has nothing to change.
    pub(crate) fn take_over(&mut self, (voter, epoch): (usize, u64), keeps: bool, shows: bool) {
        let Some(watched) = self.schedule.watched else { return };
        let (old, new) = (watched.owner(voter, epoch - 1), watched.owner(voter, epoch));
        self.reigns[voter] = self.reigns[voter].max(epoch);
        let number = self.events;
        let Some(memory) = &mut self.servers[new].store.memory else { return };
        if !std::mem::take(&mut memory.past.is_replica) {
            return;
        }
        memory.past.promotion = shows.then_some(number);
        let data = match keeps {
            true => self.servers[old].store.dataset(),
            false => self.servers[old].copy.clone(),
        };
        self.copy_to(new, data);
        self.servers[new].refusals.retain(|it| *it != Refusal::ReadOnly);
    }

    /// The last master learns that it is one no more, unless it is the master again.
    pub(crate) fn step_down(&mut self, voter: usize, epoch: u64) {
        let Some(watched) = self.schedule.watched else { return };
        let old = watched.owner(voter, epoch - 1);
        let is_replica = self.servers[old].refusals.contains(&Refusal::ReadOnly);
        if self.reigns[voter] == epoch && !is_replica {
            self.demote(old, watched.owner(voter, epoch));
        }
    }

    /// The server becomes a replica of this master.
    fn demote(&mut self, server: usize, master: usize) {
        let data = self.servers[master].store.dataset();
        self.copy_to(server, data);
        self.servers[server].refusals.push(Refusal::ReadOnly);
        if let Some(memory) = &mut self.servers[server].store.memory {
            (memory.past.is_replica, memory.past.was_replica) = (true, true);
        }
    }

    fn copy_to(&mut self, server: usize, data: Dataset) {
        self.servers[server].store.replace(data);
        let places = self.places_on(server);
        self.note_back(server, &places);
    }

    /// The voter to which a server belongs.
    pub(crate) fn voter_of(&self, server: usize) -> usize {
        self.schedule.watched.map_or(server, |it| it.voter_of(server))
    }

    pub(crate) fn answer_as_sentinel(
        &mut self,
        sentinel: usize,
        words: &[&[u8]],
        out: &mut Vec<u8>,
    ) {
        let reply = match words {
            [b"INFO", b"server"] => self.identity_of(sentinel),
            [b"SENTINEL", b"SENTINELS", _] => self.others_of(sentinel),
            [b"SENTINEL", b"MASTER", name] => self.master_of(sentinel, name),
            _ => {
                let words = "something was sent that the simulated Sentinels do not know";
                return self.records.violate(Promise::KnownRequests, words);
            }
        };
        self.say(|_| {
            let words: Vec<_> = words.iter().map(|it| String::from_utf8_lossy(it)).collect();
            format!("    Sentinel {sentinel}: {} → {}", words.join(" "), reply.replace("\r\n", " "))
        });
        out.extend(reply.bytes());
    }

    fn identity_of(&self, sentinel: usize) -> String {
        let run_id = self.servers[sentinel].store.memory.as_ref().map(|it| it.run_id());
        let text = format!("run_id:{}\r\n", run_id.unwrap_or_default());
        format!("${}\r\n{text}\r\n", text.len())
    }

    fn others_of(&self, sentinel: usize) -> String {
        let all = self.schedule.watched.map_or(0..0, |it| it.sentinels());
        let others: Vec<_> = all.filter(|it| *it != sentinel).map(address).collect();
        let each = others.iter().map(|it| fields(&it.each_ref().map(|(name, of)| (*name, &**of))));
        format!("*{}\r\n{}", others.len(), each.collect::<String>())
    }

    fn master_of(&self, sentinel: usize, name: &[u8]) -> String {
        let Some(watched) = self.schedule.watched else { return String::new() };
        let voter = (0..watched.masters).find(|it| name_of(*it).as_bytes() == name);
        let Some(voter) = voter else { return "-ERR No such master with that name\r\n".into() };
        let view = self.servers[sentinel].views[voter];
        let [ip, port] = address(watched.owner(voter, view.epoch));
        let flags = if view.moves_to.is_some() { "master,failover_in_progress" } else { "master" };
        let epoch = view.moves_to.unwrap_or(view.epoch).to_string();
        let others = (watched.sentinels - 1).to_string();
        fields(&[
            (ip.0, &ip.1),
            (port.0, &port.1),
            ("flags", flags),
            ("config-epoch", &epoch),
            ("num-other-sentinels", &others),
        ])
    }
}
