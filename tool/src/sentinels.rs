//! What the Sentinels of a master say: which server it is, with which epoch, and how many other Sentinels they know.
//!
//! The library asks one Sentinel after another, and believes the first answer. This asks all of them, also those that
//! the URL does not name, because a Sentinel that is cut off from the others names an old master.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::thread;

use redis::{Connection, RedisResult, cmd};

use crate::config::Config;
use crate::hosts::{self, Hosts, place};
use crate::survey::{self, names_sentinels};

/// The port of a Sentinel that the URL does not say.
const PORT: u16 = 26_379;

/// A master, and where its Sentinels are.
struct Watched {
    master: String,
    is_over_tls: bool,
    /// The user and the password on the Sentinels, as a URL has them.
    login: String,
    hosts: Vec<String>,
}

/// What one Sentinel says.
pub(crate) struct Said {
    pub(crate) sentinel: String,
    pub(crate) master: String,
    /// Whether the URL names it.
    pub(crate) is_listed: bool,
    pub(crate) report: Result<Report, String>,
}

/// The master as a Sentinel sees it.
pub(crate) struct Report {
    pub(crate) address: String,
    pub(crate) epoch: i64,
    /// How many other Sentinels it knows, and how many must agree that the master is down.
    pub(crate) others: usize,
    pub(crate) quorum: usize,
    pub(crate) flags: String,
    /// Its name among Sentinels, and the addresses of the others.
    id: Option<String>,
    known: BTreeSet<String>,
}

impl Watched {
    /// Takes apart `redis-sentinel://[…@]host[:port][,host…]/master[/database][?…]`, which the library has checked.
    fn of(url: &str) -> Option<Self> {
        let it = Hosts::of(url, PORT).filter(|_| names_sentinels(url))?;
        let (path, query) = it.tail.split_once('?').unwrap_or((it.tail, ""));
        let value = |name| {
            let pairs = query.split('&').filter_map(|it| it.split_once('='));
            // In a query, a plus sign is a blank.
            pairs.filter(|it| it.0 == name).map(|it| it.1.replace('+', "%20")).next()
        };
        let user = value("sentinel_username").unwrap_or_default();
        let login = value("sentinel_password").map(|it| format!("{user}:{it}@"));
        Some(Self {
            master: path.split('/').nth(1)?.to_owned(),
            is_over_tls: it.is_over_tls,
            login: login.unwrap_or_default(),
            hosts: it.places,
        })
    }

    fn ask(&self, config: &Config, sentinel: String, is_listed: bool) -> Said {
        let url = hosts::url_of(self.is_over_tls, &self.login, &sentinel);
        let connection = survey::open_without_login(config, &url);
        let report = connection.and_then(|mut it| self.read(&mut it));
        let report = report.map_err(|error| survey::words(&error));
        Said { sentinel, master: self.master.clone(), is_listed, report }
    }

    fn read(&self, connection: &mut Connection) -> RedisResult<Report> {
        type Fields = HashMap<String, String>;
        let ask = |what| cmd("SENTINEL").arg(what).arg(&self.master).to_owned();
        let about: Fields = ask("MASTER").query(connection)?;
        // A user may have the right to one of them alone.
        let others: Vec<Fields> = ask("SENTINELS").query(connection).unwrap_or_default();
        let text = |name: &str| about.get(name).cloned().unwrap_or_default();
        let number = |name: &str| text(name).parse().unwrap_or(0);
        let address = |it: &Fields| Some(place(it.get("ip")?, it.get("port")?));
        Ok(Report {
            address: address(&about).unwrap_or_default(),
            epoch: text("config-epoch").parse().unwrap_or(0),
            others: number("num-other-sentinels"),
            quorum: number("quorum"),
            flags: text("flags"),
            // Not before 6.2.
            id: cmd("SENTINEL").arg("MYID").query(connection).ok(),
            known: others.iter().filter_map(address).collect(),
        })
    }

    /// Asks the Sentinels that the URL names, and then those that they know.
    fn ask_all(&self, config: &Config) -> Vec<Said> {
        let mut said = self.ask_each(config, self.hosts.clone(), true);
        let reports = said.iter().filter_map(|it| it.report.as_ref().ok());
        let known: BTreeSet<String> = reports.clone().flat_map(|it| it.known.clone()).collect();
        let ids: BTreeSet<String> = reports.filter_map(|it| it.id.clone()).collect();
        let more = known.into_iter().filter(|it| !self.hosts.contains(it)).collect();
        // The URL may name a Sentinel by another name or address. It counts once.
        let is_known = |it: &Said| {
            let id = it.report.as_ref().ok().and_then(|it| it.id.as_ref());
            id.is_some_and(|it| ids.contains(it))
        };
        said.extend(self.ask_each(config, more, false).into_iter().filter(|it| !is_known(it)));
        said
    }

    fn ask_each(&self, config: &Config, hosts: Vec<String>, is_listed: bool) -> Vec<Said> {
        thread::scope(|scope| {
            let ask = |it| scope.spawn(move || self.ask(config, it, is_listed));
            let asked: Vec<_> = hosts.into_iter().map(ask).collect();
            asked.into_iter().flat_map(|it| it.join()).collect()
        })
    }
}

/// What the Sentinels of all masters in this list say.
pub(crate) fn ask(config: &Config, named: &[String]) -> Vec<Said> {
    named.iter().filter_map(|it| Watched::of(it)).flat_map(|it| it.ask_all(config)).collect()
}

/// What is wrong with the Sentinels of each master: its name, whether it is a fault, and what to do.
pub(crate) fn examine(said: &[Said]) -> Vec<(String, bool, String)> {
    let mut by_master: BTreeMap<&str, Vec<&Said>> = BTreeMap::new();
    said.iter().for_each(|it| by_master.entry(&it.master).or_default().push(it));
    let each = by_master.into_iter().flat_map(|(master, said)| {
        let found = [of_number(&said), of_owner(&said), of_list(&said)].into_iter().flatten();
        found.map(|(is_fault, advice)| (master.to_owned(), is_fault, advice)).collect::<Vec<_>>()
    });
    each.collect()
}

/// A majority of all Sentinels must answer to elect another master.
fn of_number(said: &[&Said]) -> Option<(bool, String)> {
    let is_forbidden = |it: &&&Said| it.report.as_ref().is_err_and(|why| why.contains("NOPERM"));
    if said.iter().any(|it| is_forbidden(&it)) {
        let words =
            "a Sentinel may not tell: grant +sentinel|master +sentinel|sentinels +sentinel|myid";
        return Some((false, words.to_owned()));
    }
    let answered = said.iter().filter_map(|it| it.report.as_ref().ok());
    let count = answered.clone().count();
    let listed = said.iter().filter(|it| it.is_listed).count();
    let all = answered.clone().map(|it| it.others + 1).max().unwrap_or(0).max(listed);
    let needed = all / 2 + 1;
    if count < needed {
        let words = format!(
            "{count} of {all} Sentinels answer, {needed} needed to elect another master: start the others"
        );
        return Some((true, words));
    }
    let quorum = answered.map(|it| it.quorum).max().unwrap_or(0);
    let words = "with one or two Sentinels, no failover follows when one of them fails: use three";
    match all {
        1 | 2 => Some((false, words.to_owned())),
        _ if quorum > count => Some((
            true,
            format!("{count} Sentinels answer, and {quorum} must agree that the master is down"),
        )),
        _ => None,
    }
}

/// All Sentinels must name one server.
fn of_owner(said: &[&Said]) -> Option<(bool, String)> {
    let named = said.iter().filter_map(|it| Some((it, it.report.as_ref().ok()?)));
    let pairs: BTreeSet<(&str, i64)> =
        named.clone().map(|(_, it)| (it.address.as_str(), it.epoch)).collect();
    if pairs.len() > 1 {
        let one = |(it, report): (&&Said, &Report)| {
            format!("{} names {} (epoch {})", it.sentinel, report.address, report.epoch)
        };
        let words = named.map(one).collect::<Vec<_>>().join(", ");
        return Some((true, format!("the Sentinels do not name the same master: {words}")));
    }
    let in_failover = |it: &Report| it.flags.contains("failover_in_progress");
    let is_moving = named.clone().any(|it| in_failover(it.1));
    let is_down = named.clone().any(|it| it.1.flags.contains("_down"));
    if is_moving {
        return Some((false, "a failover is in progress".to_owned()));
    }
    is_down.then(|| (true, "a Sentinel holds the master for down: see its log".to_owned()))
}

/// The URL should name them all, because the client asks no others.
fn of_list(said: &[&Said]) -> Option<(bool, String)> {
    let others: Vec<&str> =
        said.iter().filter(|it| !it.is_listed).map(|it| it.sentinel.as_str()).collect();
    let words = || format!("more Sentinels watch it than the URL names: {}", others.join(", "));
    (!others.is_empty()).then(|| (false, words()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(sentinel: &str, owner: &str, epoch: i64, others: usize) -> Said {
        let (flags, id, known) = ("master".to_owned(), None, BTreeSet::new());
        let report = Report { address: owner.into(), epoch, others, quorum: 2, flags, id, known };
        Said { sentinel: sentinel.into(), master: "m".into(), is_listed: true, report: Ok(report) }
    }

    fn silent(sentinel: &str) -> Said {
        Said { report: Err("timed out".into()), ..said(sentinel, "", 0, 0) }
    }

    fn findings(said: &[Said]) -> Vec<(bool, String)> {
        examine(said).into_iter().map(|(_, is_fault, words)| (is_fault, words)).collect()
    }

    #[test]
    fn a_url_is_taken_apart() {
        let it = Watched::of(
            "rediss-sentinel://u:p@H1,[::1]:7/m/3?sentinel_password=a+b%21&sentinel_username=s",
        );
        let it = it.expect("it is one");
        assert_eq!((it.master.as_str(), it.is_over_tls), ("m", true));
        assert_eq!(
            (it.login.as_str(), it.hosts),
            ("s:a%20b%21@", vec!["H1:26379".into(), "[::1]:7".into()])
        );
        assert!(Watched::of("redis://h:1/m").is_none() && Watched::of("h:1").is_none());
        let it = Watched::of("redis-sentinel://[::1]/m").expect("it is one");
        assert_eq!((it.login.as_str(), it.hosts), ("", vec!["[::1]:26379".into()]));
    }

    #[test]
    fn three_sentinels_that_agree_are_well() {
        let all = [said("a", "x:1", 3, 2), said("b", "x:1", 3, 2), said("c", "x:1", 3, 2)];
        assert_eq!(findings(&all), []);
    }

    #[test]
    fn a_majority_must_answer_and_agree() {
        let found = findings(&[said("a", "x:1", 3, 2), silent("b"), silent("c")]);
        assert!(
            found[0].0 && found[0].1.starts_with("1 of 3 Sentinels answer, 2 needed"),
            "{found:?}"
        );
        let found =
            findings(&[said("a", "x:1", 3, 2), said("b", "y:1", 4, 2), said("c", "y:1", 4, 2)]);
        assert!(
            found[0].0 && found[0].1.contains("a names x:1 (epoch 3), b names y:1"),
            "{found:?}"
        );
        // The same server with another epoch: it was master before.
        let found =
            findings(&[said("a", "x:1", 3, 2), said("b", "x:1", 5, 2), said("c", "x:1", 5, 2)]);
        assert!(found[0].0, "{found:?}");
        let mut strict = [said("a", "x:1", 3, 2), said("b", "x:1", 3, 2), silent("c")];
        strict[0].report.as_mut().expect("it said").quorum = 3;
        let found = findings(&strict);
        assert!(found[0].0 && found[0].1.contains("3 must agree"), "{found:?}");
    }

    #[test]
    fn what_could_be_better_is_a_hint() {
        let forbidden = Said { report: Err("replied with the error NOPERM".into()), ..silent("a") };
        let found = findings(&[forbidden]);
        assert!(!found[0].0 && found[0].1.contains("+sentinel|master"), "{found:?}");
        let found = findings(&[said("a", "x:1", 3, 0)]);
        assert!(!found[0].0 && found[0].1.contains("use three"), "{found:?}");
        let mut all = [said("a", "x:1", 3, 2), said("b", "x:1", 3, 2), said("c", "x:1", 3, 2)];
        all[2].is_listed = false;
        let found = findings(&all);
        assert!(!found[0].0 && found[0].1.ends_with("than the URL names: c"), "{found:?}");
        all[0].report.as_mut().expect("it said").flags = "master,s_down".into();
        assert!(findings(&all)[0].0);
    }
}
