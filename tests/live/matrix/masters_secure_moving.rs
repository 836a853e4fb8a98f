//! Failovers with TLS. The Sentinels and masters require a certificate and a password from every client. The
//! tests check what a new master has to show.

use std::fs;
use std::sync::Arc;

use redlock::ffi::status::RedLockStatus::{REDLOCK_LOST, REDLOCK_OK, REDLOCK_UNREACHABLE};

use crate::support::sentinels::{Group, Sentinel, anew, info};
use crate::support::usage::{PATIENT_MS, blames};
use crate::support::{Authority, Identity, Lease, Manager, Server, wait_until, wait_until_ok};

const RESOURCE: &str = "r";

/// Long enough for a failover, and longer than three seconds.
const TTL: i64 = 5_000;

/// The longest TTL that was in use before. With a shorter one, a new master would still wait as long for its
/// vote.
const SHORT_TTL: i64 = 3_000;

/// No failover except those that a test requests: to Sentinels a busy machine looks like a server that is down.
const NEVER_MS: i64 = 3_600_000;
const SOON_MS: i64 = 500;

/// Our users on the masters and on the Sentinels.
const USER: &str = "locker";
const PASSWORD: &str = "s3same-0pen";
const WATCHER: &str = "watcher";
const WATCHWORD: &str = "0pen-s3same";

/// A master and its copy, and the Sentinel that watches them. All of them accept only TLS from clients, and
/// require client certificates.
struct House {
    authority: Arc<Authority>,
    /// The certificate that clients show. Certificates that servers show each other are also signed for client
    /// use.
    client: Identity,
    group: Group,
    sentinel: Sentinel,
}

impl House {
    fn start() -> Self {
        let authority = Arc::new(Authority::new());
        let identities = [authority.server(), authority.server()];
        let trusted = authority.file();
        Self::of(authority, identities, &trusted, &[])
    }

    /// The master and its copy show these certificates. They and the Sentinel trust the authorities in this
    /// file. The copy is started with more arguments.
    fn of(
        authority: Arc<Authority>,
        identities: [Identity; 2],
        trusted: &str,
        of_copy: &[&str],
    ) -> Self {
        let client = authority.client();
        let common = [
            ["--tls-auth-clients", "yes"],
            ["--tls-replication", "yes"],
            ["--tls-ca-cert-file", trusted],
            ["--tls-client-cert-file", &client.certificate],
            ["--tls-client-key-file", &client.key],
            ["--repl-diskless-sync-delay", "0"],
        ];
        let [master, copy] = identities;
        let start = |identity: &Identity, more: &[&str]| {
            let arguments = [common.as_flattened(), more].concat();
            Server::start_tls(&authority, identity, &arguments)
        };
        let servers = vec![start(&master, &[]), start(&copy, of_copy)];
        let group = Group::of("mymaster", servers, SHORT_TTL);
        for server in &group.servers {
            let password = format!(">{PASSWORD}");
            server.must(&["ACL", "SETUSER", USER, "on", &password, "~*", "&*", "+@all"]);
            // No other user takes a lock.
            server.must(&["ACL", "SETUSER", "default", "-set", "-eval", "-evalsha"]);
        }
        let own = authority.server();
        let lines = [
            format!("tls-cert-file {}", own.certificate),
            format!("tls-key-file {}", own.key),
            format!("tls-ca-cert-file {trusted}"),
            format!("tls-client-cert-file {}", client.certificate),
            format!("tls-client-key-file {}", client.key),
            "tls-auth-clients yes".to_owned(),
            "tls-replication yes".to_owned(),
            "requirepass nobody-elses".to_owned(),
            format!("user {WATCHER} on >{WATCHWORD} ~* &* +@all"),
            format!("sentinel down-after-milliseconds mymaster {NEVER_MS}"),
            "sentinel resolve-hostnames yes".to_owned(),
            "sentinel announce-hostnames yes".to_owned(),
        ];
        let lines = lines.each_ref().map(String::as_str);
        let sentinel = Sentinel::start_with(&[group.master_port()], 1, &lines);
        sentinel.await_company("mymaster", 1, 0);
        Self { authority, client, group, sentinel }
    }

    /// A URL with these log-ins. Each log-in is a user and a password.
    fn url(&self, [user, password]: [&str; 2], [watcher, watchword]: [&str; 2]) -> String {
        let sentinel = self.sentinel.address();
        let query = format!("sentinel_username={watcher}&sentinel_password={watchword}");
        format!("rediss-sentinel://{user}:{password}@{sentinel}/mymaster?{query}")
    }

    fn manager_of(&self, url: &str) -> Manager {
        let manager = Manager::new();
        assert_eq!(manager.set_tls_ca(Some(&self.authority.file())), REDLOCK_OK);
        manager.shows(&self.client);
        // Only a frozen server is silent here, and then no client asks it. So the timeouts can be long enough
        // for a busy machine.
        assert_eq!(manager.set_timeouts(PATIENT_MS, PATIENT_MS), REDLOCK_OK);
        assert_eq!(manager.add(url, 0), REDLOCK_OK, "{}", manager.message());
        manager
    }

    fn manager(&self) -> Manager {
        self.manager_of(&self.url([USER, PASSWORD], [WATCHER, WATCHWORD]))
    }

    fn master(&self) -> &Server {
        &self.group.servers[0]
    }

    fn copy(&self) -> &Server {
        &self.group.servers[1]
    }

    /// Makes the copy replace the master. Returns when the Sentinel has announced it.
    fn fail_over(&self, way: Way) {
        match way {
            Way::Killed => self.master().kill(),
            Way::Frozen => self.master().freeze(),
            Way::ByHand => self.sentinel.fail_over("mymaster", &self.master().address()),
        }
        if way != Way::ByHand {
            self.sentinel.be_patient_for("mymaster", SOON_MS);
        }
        wait_until_ok("another one is the master", || {
            let state = self.sentinel.state_of("mymaster");
            let is_there = state["port"] == self.copy().port().to_string();
            match is_there && !state["flags"].contains("failover_in_progress") {
                true => Ok(()),
                false => Err(format!("{state:?}")),
            }
        });
        self.sentinel.be_patient_for("mymaster", NEVER_MS);
        assert!(info(self.copy()).contains("role:master"));
    }

    /// How many connections a user has at the new master.
    fn guests(&self, user: &str) -> usize {
        connections(&anew(self.copy(), &["CLIENT", "LIST"]).text().expect("a list"), user)
    }
}

fn connections(list: &str, user: &str) -> usize {
    list.lines().filter(|line| line.contains(&format!(" user={user} "))).count()
}

/// How a master loses its role.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Killed,
    /// It is told to follow the other one.
    ByHand,
    /// It is resumed later, and believes that it is the master.
    Frozen,
}

/// There is a single voter, so its vote alone decides. The copy loses everything that it has not received.
#[track_caller]
fn nobody_else_has_it_while_it_may_be_held(way: Way) {
    let house = House::start();
    let (holder, rival) = (house.manager(), house.manager());
    let other = rival.take("other", SHORT_TTL);
    assert_eq!(rival.unlock(&other), REDLOCK_OK, "{}", other.message());
    let held = holder.take(RESOURCE, TTL);
    house.fail_over(way);
    anew(house.copy(), &["DEL", RESOURCE]);
    if way == Way::Frozen {
        house.master().resume();
        // The old master answers, and grants this. The manager asks the Sentinel at the same time, and the grant counts
        // only if the Sentinel names that master.
        let taken = Lease::new();
        let status = rival.try_lock("other", TTL, 0, &taken);
        let is_a_copy = info(house.master()).contains("role:slave");
        assert!(is_a_copy || status != REDLOCK_OK, "the old master voted");
        rival.unlock(&taken);
    }
    let (taken, mut has_said) = (Lease::new(), false);
    wait_until_ok("the rival has its turn", || {
        let status = rival.try_lock(RESOURCE, TTL, 0, &taken);
        has_said |= taken.message().contains("lost its data");
        if status == REDLOCK_OK { Ok(()) } else { Err(taken.message()) }
    });
    assert_eq!(held.remaining_ms(), 0, "two hold it");
    assert!(has_said);
    assert_eq!(anew(house.copy(), &["EXISTS", RESOURCE]).integer(), 1);
    assert_eq!(rival.servers()[0].name, format!("mymaster ({})", house.copy().address()));
    assert!(house.guests(USER) > 0, "it has logged in there");
    assert_eq!(rival.unlock(&taken), REDLOCK_OK, "{}", taken.message());
    assert_eq!(holder.extend(&held, TTL), REDLOCK_LOST);
    wait_until("all is well", || holder.try_lock(RESOURCE, TTL, 0, &taken) == REDLOCK_OK);
    assert_eq!(holder.unlock(&taken), REDLOCK_OK, "{}", taken.message());
}

#[test]
fn m10_a_failover_over_tls_loses_the_memory_of_a_server() {
    nobody_else_has_it_while_it_may_be_held(Way::Killed);
}

#[test]
fn m10_a_manual_failover_is_followed_over_tls() {
    nobody_else_has_it_while_it_may_be_held(Way::ByHand);
}

#[test]
fn m10_an_old_master_is_left_over_tls_even_if_it_answers() {
    nobody_else_has_it_while_it_may_be_held(Way::Frozen);
}

#[test]
fn m11_sentinels_can_ask_for_a_certificate_and_a_user() {
    let house = House::start();
    let (at_master, at_sentinel) = ([USER, PASSWORD], [WATCHER, WATCHWORD]);
    let right = house.url(at_master, at_sentinel);
    let manager = house.manager_of(&right);
    let lease = manager.take(RESOURCE, SHORT_TTL);
    let guests = house.sentinel.command(&["CLIENT", "LIST"]).text().expect("a list");
    assert_eq!(connections(&guests, WATCHER), 1, "{guests}");
    assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());

    let stranger = house.manager_of(&right);
    assert_eq!(stranger.set_tls_certificate(None, None), REDLOCK_OK);
    let (sentinel, master) = (house.sentinel.address(), house.master().address());
    let at = |at_master, at_sentinel| house.manager_of(&house.url(at_master, at_sentinel));
    for (manager, server, words) in [
        (stranger, &sentinel, "server requires a client certificate"),
        (at(at_master, [WATCHER, "wrong"]), &sentinel, "WRONGPASS"),
        (at(at_master, [USER, PASSWORD]), &sentinel, "WRONGPASS"),
        (at([USER, "wrong"], at_sentinel), &master, "WRONGPASS"),
        (at([WATCHER, WATCHWORD], at_sentinel), &master, "WRONGPASS"),
    ] {
        wait_until_ok("the words say it", || {
            let status = manager.try_lock(RESOURCE, SHORT_TTL, 0, &lease);
            assert_eq!(status, REDLOCK_UNREACHABLE, "{}", lease.message());
            let said = lease.message();
            if said.contains(&format!("{server}: {words}")) { Ok(()) } else { Err(said) }
        });
        let said = lease.message();
        assert!(![PASSWORD, WATCHWORD, "wrong"].iter().any(|it| said.contains(it)), "{said}");
    }
}

/// The old master's certificate is only for its address, and the new master's only for its name.
#[test]
fn m12_a_new_master_shows_a_certificate_for_its_own_name() {
    let authority = Arc::new(Authority::new());
    let names = ["127.0.0.1", "localhost"];
    let identities = names.map(|name| authority.server_named(&[name]));
    let trusted = authority.file();
    let announced = ["--replica-announce-ip", "localhost"];
    let house = House::of(authority, identities, &trusted, &announced);
    let manager = house.manager();
    let lease = manager.take(RESOURCE, SHORT_TTL);
    assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
    house.fail_over(Way::ByHand);
    let name = format!("localhost:{}", house.copy().port());
    assert_eq!(house.sentinel.master_of("mymaster"), name);
    wait_until_ok("the new one has the vote", || {
        match manager.try_lock(RESOURCE, SHORT_TTL, 0, &lease) {
            REDLOCK_OK => Ok(()),
            _ => Err(lease.message()),
        }
    });
    assert_eq!(anew(house.copy(), &["EXISTS", RESOURCE]).integer(), 1);
    assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
}

/// There are two other voters. The Sentinel and the old master trust the new one as they trust any server.
#[test]
fn m13_an_untrusted_new_master_is_named_and_gets_no_secret() {
    type Case = (fn(&Authority, &Authority) -> Identity, &'static str);
    let cases: [Case; 2] = [
        (|_, impostor| impostor.server(), "certificate has an invalid signature"),
        (|it, _| it.server_named(&["redis.example"]), "certificate is for another host name"),
    ];
    for (identity, words) in cases {
        let authority = Arc::new(Authority::new());
        let impostor = authority.impostor();
        let shown = identity(&authority, &impostor);
        let trusted = authority.write("both.pem", authority.pem() + &impostor.pem());
        let identities = [authority.server(), shown.clone()];
        let house = House::of(Arc::clone(&authority), identities, &trusted, &[]);
        let others = [(); 2].map(|()| {
            let server = Server::start_tls(&authority, &authority.server(), &[]);
            server.be_in_use(SHORT_TTL);
            server
        });
        let manager = house.manager();
        for server in &others {
            assert_eq!(manager.add(&server.url(), 0), REDLOCK_OK, "{}", manager.message());
        }
        manager.connect_to_all();
        house.fail_over(Way::ByHand);
        wait_until_ok("the old one is left", || {
            // A majority of other servers is enough.
            let lease = manager.take(RESOURCE, SHORT_TTL);
            assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
            let known = &manager.servers()[0];
            let is_named =
                known.words.contains(words) && known.name.contains(&house.copy().address());
            if is_named { Ok(()) } else { Err(format!("{known:?}")) }
        });
        // It has no vote either when its vote is needed.
        others[0].kill();
        let lease = Lease::new();
        wait_until_ok("the words say it", || {
            let status = manager.try_lock(RESOURCE, SHORT_TTL, 0, &lease);
            assert_eq!(status, REDLOCK_UNREACHABLE, "{}", lease.message());
            blames(&lease.message(), &[house.copy().address()], &[words])
        });
        assert!(!lease.message().contains(PASSWORD));
        assert!(!manager.servers()[0].votes);
        let heard = anew(house.copy(), &["INFO", "commandstats"]).text().expect("words");
        assert!(!heard.contains("cmdstat_auth") && !heard.contains("cmdstat_hello"), "{heard}");
        assert_eq!(house.guests(USER), 0);
        // The certificate is corrected.
        let good = authority.server();
        fs::copy(&good.certificate, &shown.certificate).expect("it is ours");
        fs::copy(&good.key, &shown.key).expect("it is ours");
        let reply = anew(house.copy(), &["CONFIG", "SET", "tls-cert-file", &shown.certificate]);
        assert!(reply.is_ok(), "{reply:?}");
        wait_until_ok("it has the vote", || {
            match manager.try_lock(RESOURCE, SHORT_TTL, 0, &lease) {
                REDLOCK_OK => Ok(()),
                _ => Err(lease.message()),
            }
        });
        assert!(manager.servers()[0].votes);
        assert_eq!(manager.unlock(&lease), REDLOCK_OK, "{}", lease.message());
    }
}
