//! What the command tells of clusters whose slots are voters.

use std::slice;

use serde_json::Value;

use crate::command::{Outcome, bare, finish};
use crate::support::nodes::Nodes;
use crate::support::{Server, wait_until, wait_until_ok};

/// The command for these URLs.
fn told(urls: &[String], arguments: &[&str]) -> Outcome {
    told_as(None, urls, arguments)
}

/// The same for this user.
fn told_as(user: Option<&str>, urls: &[String], arguments: &[&str]) -> Outcome {
    let mut command = bare(arguments);
    command.env("REDLOCK_SERVERS", urls.join(","));
    if let Some(user) = user {
        command.envs([("REDLOCK_USER", user), ("REDLOCK_PASSWORD", "hunter2")]);
    }
    finish(command)
}

#[track_caller]
fn assert_says(outcome: &Outcome, line: &str) {
    assert!(outcome.stdout.lines().any(|it| it.contains(line)), "{line}: {}", outcome.stdout);
}

#[track_caller]
fn assert_silent(outcome: &Outcome, words: &str) {
    assert!(!outcome.stdout.contains(words), "{words}: {}", outcome.stdout);
}

/// On all nodes.
fn set(nodes: &Nodes, name: &str, value: &str) {
    nodes.servers.iter().for_each(|it| drop(it.must(&["CONFIG", "SET", name, value])));
}

/// A new cluster has no votes for some seconds.
#[track_caller]
fn await_health(urls: &[String]) -> Outcome {
    let mut outcome = told(urls, &["doctor"]);
    wait_until("all is well", || {
        outcome = told(urls, &["doctor"]);
        outcome.status == Some(0)
    });
    assert_says(&outcome, "all is well");
    outcome
}

#[test]
fn doctor_shows_who_owns_each_tag_and_how_it_is_set_up() {
    let nodes = Nodes::start(3, true);
    let tags = [0, 1, 2].map(|master| nodes.tag_at(master, 0));
    let urls = tags.each_ref().map(|it| nodes.url(it));
    let outcome = await_health(&urls);
    for head in ["TAG", "SLOT", "NAMED BY", "NODE TIMEOUT", "FULL COVERAGE"] {
        assert_says(&outcome, head);
    }
    let json = told(&urls, &["doctor", "--json"]).json();
    let known = json["tags"].as_array().expect("a list");
    for (((tag, server), it), line) in tags.iter().zip(&nodes.servers).zip(known).zip(1..) {
        let slot = server.must(&["CLUSTER", "KEYSLOT", &format!("{{{tag}}}")]).integer();
        let id = server.must(&["CLUSTER", "MYID"]).text().expect("an id");
        let expected = serde_json::json!({"tag": tag, "slot": slot, "master": server.address(), "node": id, "epoch": line,
            "named": 6, "needed": 4, "nodes": 6, "replicas": 1, "replicas_connected": 1, "node_timeout_ms": 60_000,
            "full_coverage": false});
        assert_eq!(*it, expected);
        let row =
            outcome.stdout.lines().find(|it| it.starts_with(&format!("{tag} "))).expect("a row");
        let cells: Vec<&str> = row.split("  ").map(str::trim).filter(|it| !it.is_empty()).collect();
        let (slot, epoch) = (slot.to_string(), line.to_string());
        let address = server.address();
        let expected = [
            tag,
            &*slot,
            &address,
            &id[..8],
            &epoch,
            "6 of 6 nodes, 4 needed",
            "1 of 1 connected",
            "60 s",
            "no",
        ];
        assert_eq!(cells, expected);
    }

    // What differs from what is recommended.
    let slow =
        "cluster-node-timeout is 60 s on all 6 nodes: for so long, a lost master is not replaced";
    let lossy = "min-replicas-to-write is 0 on all 6 nodes: a master that has lost its replicas grants locks that a failover loses";
    for words in [slow, lossy] {
        assert_says(&outcome, &format!("hint   cluster {}: {words}", nodes.servers[0].address()));
        let advice = json["cluster_advice"].as_array().expect("a list");
        let is_it = |it: &&Value| it["words"].as_str().is_some_and(|it| it.starts_with(words));
        assert_eq!(advice.iter().find(is_it).expect("it is said")["fault"], false);
    }
    assert_silent(&outcome, "cluster-require-full-coverage");
    set(&nodes, "cluster-node-timeout", "15000");
    set(&nodes, "min-replicas-to-write", "1");
    nodes.servers[4].must(&["CONFIG", "SET", "cluster-require-full-coverage", "yes"]);
    nodes.servers[5].must(&["CONFIG", "SET", "maxmemory", "100mb"]);
    nodes.servers[5].must(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);
    let outcome = told(&urls, &["doctor"]);
    let [.., strict, evicting] = &nodes.servers[..] else { panic!("six nodes") };
    for line in [
        "min-replicas-max-lag is 10 on all 6 nodes".to_owned(),
        format!(
            "cluster-require-full-coverage is yes on {}: if one master is lost, no tag",
            strict.address()
        ),
        format!("maxmemory-policy is allkeys-lru on {}: such a replica", evicting.address()),
    ] {
        assert_says(&outcome, &format!("hint   cluster {}: {line}", nodes.servers[0].address()));
    }
    assert_silent(&outcome, "cluster-node-timeout");
    // One tag stops with its master, whatever the others do.
    let alone = told(&urls[..1], &["doctor"]);
    assert_silent(&alone, "cluster-require-full-coverage");
    set(&nodes, "min-replicas-max-lag", "2");
    set(&nodes, "cluster-require-full-coverage", "no");
    set(&nodes, "maxmemory-policy", "noeviction");
    let outcome = told(&urls, &["doctor"]);
    assert_silent(&outcome, "  cluster ");
    assert_eq!(outcome.status, Some(0), "{outcome:?}");
}

#[test]
fn doctor_says_what_is_lost() {
    let nodes = Nodes::start(3, true);
    let tag = nodes.tag_at(0, 0);
    let urls = [nodes.url(&tag)];
    let await_words = |words: &str| {
        wait_until_ok("it is said", || match told(&urls, &["doctor"]).stdout {
            page if page.contains(words) => Ok(()),
            page => Err(format!("{words}: {page}")),
        });
    };
    let [master, replica] = [&nodes.servers[0], nodes.replica_of(0)];
    nodes.be_brief();
    replica.kill();
    await_words(&format!(
        "hint   tag {tag}: 0 of 1 replicas are connected to its master: start the others"
    ));
    let silent = format!("{} (connection refused)", replica.address());
    await_words(&format!(
        "hint   cluster {}: start the nodes that do not answer: {silent}\n",
        master.address()
    ));
    master.kill();
    await_words(&format!("wrong  tag {tag}: its master {} (", master.address()));
    await_words(") has failed, as the nodes say: start it, unless a replica takes its place");
    // Three of six nodes are no majority.
    nodes.servers[1].kill();
    await_words(&format!(
        "wrong  tag {tag}: 3 of 6 nodes name the master, 4 needed: start the others"
    ));
    await_words("3 of 6 nodes, 4 needed");
}

#[test]
fn doctor_says_that_two_tags_of_one_master_have_one_vote() {
    let nodes = Nodes::start(3, false);
    let [first, twin, other] =
        [(0, 0), (0, 1), (1, 0)].map(|(master, number)| nodes.tag_at(master, number));
    let mut urls = [&first, &twin, &other].map(|it| nodes.url(it));
    let outcome = told(&urls, &["doctor"]);
    assert_eq!(outcome.status, Some(1), "{outcome:?}");
    let master = &nodes.servers[0];
    let id = master.must(&["CLUSTER", "MYID"]).text().expect("an id");
    let words = format!(
        "tags {first} and {twin} are on one master, {} ({}), so they have one vote: use tag ",
        master.address(),
        &id[..8]
    );
    let line = outcome.stdout.lines().find_map(|it| it.split_once(&words)).expect("it is said");
    assert!(line.0.starts_with("wrong  cluster"), "{line:?}");
    // The one that it suggests is on the third master.
    let suggested = line.1.split_once(' ').expect("a tag").0;
    assert!(
        line.1.ends_with(&format!(" ({}) instead of {twin}", nodes.servers[2].address())),
        "{line:?}"
    );
    urls[1] = nodes.url(suggested);
    let outcome = await_health(&urls);
    assert_silent(&outcome, "one vote");

    // With as many tags as masters, and one more, no other master is left.
    let urls = [&first, &twin, &other, &nodes.tag_at(2, 0)].map(|it| nodes.url(it));
    assert_says(
        &told(&urls, &["doctor"]),
        &format!("leave out tag {twin}, because no other master has slots"),
    );
}

#[test]
fn doctor_says_what_it_may_not_look_at() {
    let nodes = Nodes::start(3, false);
    for server in &nodes.servers {
        server
            .must(&["ACL", "SETUSER", "locker", "on", ">hunter2", "~*", "&*", "+@all", "-config"]);
        server
            .must(&["ACL", "SETUSER", "blind", "on", ">hunter2", "~*", "&*", "+@all", "-cluster"]);
    }
    let urls = [0, 1, 2].map(|master| nodes.url(&nodes.tag_at(master, 0)));
    await_health(&urls);
    let outcome = told_as(Some("locker"), &urls, &["doctor"]);
    assert_eq!(outcome.status, Some(0), "{outcome:?}");
    let words = "CONFIG GET is refused on all 3 nodes, so cluster-node-timeout, cluster-require-full-coverage, min-replicas-to-write";
    assert_says(&outcome, words);
    assert_says(&outcome, "grant +config|get, or see the settings of the service");
    let json = told_as(Some("locker"), &urls, &["doctor", "--json"]).json();
    for it in json["tags"].as_array().expect("a list") {
        assert_eq!((&it["node_timeout_ms"], &it["full_coverage"]), (&Value::Null, &Value::Null));
        assert_eq!((&it["named"], &it["replicas_connected"]), (&3.into(), &0.into()));
    }
    let outcome = told_as(Some("blind"), &urls, &["doctor"]);
    assert_eq!(outcome.status, Some(1), "{outcome:?}");
    assert_says(&outcome, "the user may not run CLUSTER NODES on ");
    assert_says(&outcome, "grant +cluster|nodes");
}

#[test]
fn doctor_says_why_nobody_knows_the_owner() {
    let nodes = Nodes::start(1, false);
    let [gone, alone] = [Server::start(), Server::start()];
    gone.kill();
    let url = |host: &str| [format!("redis-cluster://{host}?tag=a")];
    for (host, words) in [
        (
            gone.address(),
            format!(
                "no node answers: start them, or correct the URL: {} (connection refused)",
                gone.address()
            ),
        ),
        (
            alone.address(),
            format!("cluster support is disabled on {}: name nodes of a cluster", alone.address()),
        ),
    ] {
        let outcome = told(&url(&host), &["doctor"]);
        assert_eq!(outcome.status, Some(1), "{outcome:?}");
        assert_says(&outcome, &format!("wrong  cluster {host}: {words}"));
        assert_says(&outcome, "0 of 1 nodes, 1 needed");
        assert_says(&outcome, "see below what the Sentinels, or the nodes of the cluster, say");
    }
    let node = &nodes.servers[0];
    let slot = node.must(&["CLUSTER", "KEYSLOT", "{a}"]).integer().to_string();
    node.must(&["CLUSTER", "DELSLOTS", &slot]);
    let outcome = told(&url(&node.address()), &["doctor"]);
    assert_eq!(outcome.status, Some(1), "{outcome:?}");
    assert_says(
        &outcome,
        &format!("wrong  tag a: no node owns its slot {slot}: run redis-cli --cluster fix"),
    );
}

#[test]
fn tags_on_different_masters_are_suggested() {
    let nodes = Nodes::start(3, false);
    let seeds = nodes.servers.iter().map(Server::address).collect::<Vec<_>>().join(",");
    let any = [format!("redis-cluster://{seeds}")];
    let suggest = |count: &str| told(&any, &["doctor", "--suggest-tags", count]);
    let outcome = suggest("3");
    assert_eq!((outcome.status, &*outcome.stderr), (Some(0), ""), "{outcome:?}");
    let rows: Vec<Vec<&str>> =
        outcome.stdout.lines().skip(1).take(3).map(|it| it.split_whitespace().collect()).collect();
    let mut masters = Vec::new();
    for row in &rows {
        let owner = nodes.owner_of(row[0], &nodes.servers[0]).expect("it has one");
        let id = owner.must(&["CLUSTER", "MYID"]).text().expect("an id");
        assert_eq!(row[2..], [&*owner.address(), &id[..8]], "{row:?}");
        masters.push(owner.address());
    }
    masters.sort();
    masters.dedup();
    assert_eq!(masters.len(), 3, "{rows:?}");
    // The first letters of the alphabet that do, in their order: a has 15495, b has 3300, c has 7365.
    assert_eq!(rows.iter().map(|it| it[0]).collect::<Vec<_>>(), ["a", "b", "c"]);
    // The last line is the list of servers.
    let list = outcome.stdout.lines().last().expect("a line").to_owned();
    let expected = ["a", "b", "c"].map(|it| format!("redis-cluster://{seeds}?tag={it}"));
    assert_eq!(list, expected.join(","));
    await_health(slice::from_ref(&list));
    let status = finish(bare(&["--servers", &list, "status", "r"]));
    assert_eq!(status.status, Some(0), "{status:?}");
    let json = told(&any, &["doctor", "--suggest-tags", "2", "--json"]).json();
    assert_eq!(json["servers"], serde_json::json!(expected[..2]));
    assert_eq!((&json["tags"][1]["tag"], &json["tags"][1]["slot"]), (&"b".into(), &3300.into()));

    // Where b is on the master of a, so are d and e. The next one on the first master is f.
    nodes.move_slot("b", &nodes.servers[0], &nodes.servers[2]);
    let json = told(&any, &["doctor", "--suggest-tags", "3", "--json"]).json();
    let tags = json["tags"].as_array().expect("a list").iter().map(|it| it["tag"].as_str());
    assert_eq!(tags.collect::<Vec<_>>(), ["a", "c", "f"].map(Some));

    let outcome = suggest("4");
    assert_eq!((outcome.status, &*outcome.stdout), (Some(125), ""), "{outcome:?}");
    assert!(
        outcome.stderr.contains("4 tags need as many masters with slots, and the cluster has 3"),
        "{outcome:?}"
    );
    for count in ["0", "x"] {
        assert_eq!(suggest(count).status, Some(125));
    }
}

#[test]
fn tags_are_suggested_without_the_password() {
    let nodes = Nodes::start(3, false);
    for server in &nodes.servers {
        server.must(&["ACL", "SETUSER", "locker", "on", ">hunter2", "~*", "&*", "+@all"]);
        server.must(&["ACL", "SETUSER", "default", "off"]);
    }
    let url = nodes.url("x").replace("://", "://locker:hunter2@");
    for arguments in
        [&["doctor", "--suggest-tags", "3"][..], &["doctor", "--suggest-tags", "3", "--json"]]
    {
        let outcome = told(slice::from_ref(&url), arguments);
        assert_eq!(outcome.status, Some(0), "{outcome:?}");
        assert!(
            !format!("{outcome:?}").contains("hunter2") && !outcome.stdout.contains("locker"),
            "{outcome:?}"
        );
        assert!(outcome.stdout.contains("?tag=c"), "{outcome:?}");
    }
    let outcome = told(&[url], &["doctor", "--suggest-tags", "3"]);
    assert!(outcome.stderr.contains("the list has no user and no password"), "{outcome:?}");
    // Nobody may ask without it.
    let outcome = told(&[nodes.url("x")], &["doctor", "--suggest-tags", "3"]);
    assert_eq!(outcome.status, Some(123), "{outcome:?}");
    assert!(outcome.stderr.contains("no cluster node answers"), "{outcome:?}");
}

#[test]
fn tags_are_suggested_of_one_cluster_that_answers() {
    let plain = Server::start();
    let suggest = |servers: &str| told(&[servers.to_owned()], &["doctor", "--suggest-tags", "3"]);
    let outcome = suggest(&plain.address());
    assert_eq!(outcome.status, Some(125), "{outcome:?}");
    assert!(outcome.stderr.contains("--suggest-tags needs the URL of a cluster"), "{outcome:?}");
    let outcome = suggest(&format!("redis-cluster://{}", plain.address()));
    assert_eq!(outcome.status, Some(123), "{outcome:?}");
    assert!(outcome.stderr.contains("cluster support is disabled"), "{outcome:?}");
    let clusters = [0, 1].map(|_| Nodes::start(1, false));
    let urls = clusters.each_ref().map(|it| it.url("x"));
    let outcome = suggest(&urls.join(","));
    assert_eq!(outcome.status, Some(125), "{outcome:?}");
    assert!(outcome.stderr.contains("the servers are of 2 clusters"), "{outcome:?}");
    // Too few nodes answer.
    let nodes = Nodes::start(3, false);
    nodes.servers[1..].iter().for_each(Server::kill);
    let outcome = suggest(&nodes.url("x"));
    assert_eq!(outcome.status, Some(123), "{outcome:?}");
    assert!(
        outcome.stderr.contains("1 of 3 nodes name the master, 2 needed: see redlock doctor"),
        "{outcome:?}"
    );
}
