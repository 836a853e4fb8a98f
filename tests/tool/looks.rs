//! What is told of locks and servers.

use std::process::Stdio;

use crate::command::{bare, finish, redlock, start};
use crate::support::nodes::Nodes;
use crate::support::sentinels::{Group, Sentinel, url};
use crate::support::{Cluster, Server, wait_until};

#[test]
fn status_and_list_show_the_state_of_a_quorum() {
    let cluster = Cluster::start(3);
    // A server that was not connected yet when the lock was taken gets the key when the lock is extended, within 40 s.
    let mut holder = start(redlock(
        &cluster,
        &["run", "--ttl", "120s", "job[1]", "--", "sh", "-c", "echo; exec sleep 1000"],
    ));
    holder.line();
    cluster.wait_until_everywhere("job[1]");
    // Left behind by somebody on a minority; without a TTL; a counter; a list; other names.
    cluster[0].must(&["SET", "job2", "x", "PX", "600000"]);
    cluster.iter().for_each(|it| drop(it.must(&["SET", "job3", "x"])));
    cluster.iter().for_each(|it| drop(it.must(&["RPUSH", "job4", "x"])));
    cluster.iter().for_each(|it| drop(it.must(&["ZADD", "job[1]:w", "1", "a", "2", "b"])));
    cluster.iter().for_each(|it| drop(it.must(&["SET", "other", "x", "PX", "600000"])));

    let status = finish(redlock(&cluster, &["--json", "status", "job[1]", "job2", "none"]));
    assert_eq!(status.status, Some(124), "{status:?}");
    assert_eq!(finish(redlock(&cluster, &["status", "job2", "none"])).status, Some(0));
    let status = status.json();
    let locked: Vec<_> =
        status.as_array().expect("a list").iter().map(|it| it["locked"].clone()).collect();
    assert_eq!(locked, [true, false, false]);
    assert!(status[0]["left_ms"].as_i64() > Some(30_000) && status[2]["left_ms"].is_null());
    let words = finish(redlock(&cluster, &["status", "job[1]", "none"])).stdout;
    assert!(words.lines().nth(1).is_some_and(|it| it.contains("yes")), "{words}");
    assert!(words.lines().nth(2).is_some_and(|it| it.contains("no")), "{words}");

    let names = |arguments: &[&str]| {
        let list = finish(redlock(&cluster, arguments)).json();
        let name = |it: &serde_json::Value| it["name"].as_str().expect("a name").to_owned();
        list.as_array().expect("a list").iter().map(name).collect::<Vec<_>>()
    };
    assert_eq!(names(&["list", "--json", "job"]), ["job[1]"]);
    assert_eq!(names(&["list", "--json", "job["]), ["job[1]"]);
    assert_eq!(names(&["list", "--json", "--all", "job"]), ["job2", "job[1]"]);
    assert_eq!(names(&["list", "--json"]), ["job[1]", "other"]);
    assert!(names(&["list", "--json", "job*"]).is_empty());
    let list = finish(redlock(&cluster, &["list", "--json", "job"])).json();
    assert_eq!((list[0]["waiting"].as_u64(), list[0]["servers"].as_u64()), (Some(2), Some(3)));
    // No token is told.
    let token = cluster[0].get("job[1]").expect("it is locked");
    for json in
        [&["list"][..], &["list", "--json"], &["top", "--once"], &["top", "--once", "--json"]]
    {
        assert!(!finish(redlock(&cluster, json)).stdout.contains(&token));
    }
}

/// All keys have a tag before their names there. People see the names that they gave.
#[test]
fn locks_on_slots_of_a_cluster_are_listed_and_ended_by_their_names() {
    let nodes = Nodes::start(3, false);
    let urls = [0, 1, 2].map(|master| nodes.url(&nodes.tag_at(master, 0))).join(",");
    let on_nodes = |arguments: &[&str]| {
        let mut command = bare(arguments);
        command.env("REDLOCK_SERVERS", &urls);
        command
    };
    let program = ["--", "sh", "-c", "echo started; exec sleep 1000"];
    let run = ["run", "--ttl", "3s", "--wait", "60s", "job"];
    let mut holder = start(on_nodes(&[&run[..], &program].concat()));
    assert_eq!(holder.line(), "started");
    for arguments in [&["list", "--json"][..], &["list", "--json", "jo"]] {
        let list = finish(on_nodes(arguments)).json();
        let first = (list[0]["name"].as_str(), list[0]["servers"].as_u64());
        assert_eq!(first, (Some("job"), Some(3)));
        assert_eq!(list.as_array().map(Vec::len), Some(1));
    }
    let doctor = finish(on_nodes(&["doctor"])).stdout;
    assert!(!doctor.contains("MOVED") && !doctor.contains("wrong"), "{doctor}");
    let ended = finish(on_nodes(&["unlock", "--force", "--yes", "job"]));
    assert_eq!(ended.stdout, "job is unlocked\n", "{ended:?}");
    assert_eq!(holder.end().status, Some(122));
}

#[test]
fn status_shows_the_number_of_taken_permits() {
    let cluster = Cluster::start(3);
    let status = |arguments: &[&str]| {
        let all = [&["status", "--permits", "2", "s"][..], arguments].concat();
        finish(redlock(&cluster, &all))
    };
    let mut holders = Vec::new();
    for (taken, code) in [(0, 0), (1, 0), (2, 124)] {
        wait_until("as many are told", || {
            status(&[])
                .stdout
                .lines()
                .nth(1)
                .is_some_and(|it| it.contains(&format!("{taken} of 2")))
        });
        let told = status(&["--json"]);
        assert_eq!(told.status, Some(code), "{told:?}");
        let seen = &told.json()[0];
        assert_eq!(
            (seen["taken"].as_u64(), seen["locked"].as_bool()),
            (Some(taken), Some(taken == 2))
        );
        assert_eq!(seen["left_ms"].is_null(), taken == 0);
        let arguments = ["run", "--permits", "2", "-n", "s", "--", "sh", "-c", "echo; read x"];
        let mut command = redlock(&cluster, &arguments);
        command.stdin(Stdio::piped());
        if taken < 2 {
            let mut holder = start(command);
            holder.line();
            holders.push(holder);
        }
    }
}

/// A server shows its keys in many parts.
#[test]
fn list_shows_all_locks_of_a_large_server() {
    const LOCKS: usize = 3_000;
    let cluster = Cluster::start(3);
    let script = "for i=1,ARGV[1] do redis.call('SET','job:'..i,'x','PX',600000) end";
    for server in cluster.iter() {
        server.must(&["EVAL", script, "0", &LOCKS.to_string()]);
    }
    let list = finish(redlock(&cluster, &["list", "--json", "job:"])).json();
    assert_eq!(list.as_array().map(Vec::len), Some(LOCKS));
}

#[test]
fn top_sees_locks_change_hands() {
    let cluster = Cluster::start(3);
    let script = r#"while "$0" run --no-fencing r -- sleep 0.05; do :; done"#;
    let mut command = std::process::Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_redlock")]);
    command.env("REDLOCK_SERVERS", cluster.urls().join(","));
    let _holders = start(command);
    wait_until("a lock changes hands", || {
        let top = finish(redlock(&cluster, &["top", "--once", "--json"])).json();
        top["handovers_per_second"].as_f64() > Some(0.0)
    });
    let words = finish(redlock(&cluster, &["top", "--once"])).stdout;
    assert!(words.contains("hand-overs/s"), "{words}");
}

#[test]
fn without_a_terminal_top_prints_page_after_page() {
    let cluster = Cluster::start(1);
    let mut running = start(redlock(&cluster, &["top", "--json", "--interval", "200ms"]));
    for _ in 0..3 {
        let page: serde_json::Value = serde_json::from_str(&running.line()).expect("JSON");
        assert!(page["locks"].is_array());
    }
}

#[test]
fn doctor_finds_faults_and_suggests_remedies() {
    let healthy = Cluster::start(3);
    let outcome = finish(redlock(&healthy, &["doctor"]));
    assert_eq!(outcome.status, Some(0), "{outcome:?}");
    assert!(outcome.stdout.contains("all is well"), "{outcome:?}");
    let told = finish(redlock(&healthy, &["doctor", "--json"])).json();
    assert_eq!((told["well"].as_bool(), told["quorum"].as_u64()), (Some(true), Some(2)));
    for server in told["servers"].as_array().expect("a list") {
        assert_eq!((&server["role"], &server["votes"]), (&"primary".into(), &true.into()));
        assert!(server["round_trip_us"].as_u64().is_some(), "{server}");
        assert!(server["clock_offset_us"].as_i64().is_some(), "{server}");
    }

    healthy[0].must(&["DEL", "redlock:fence"]);
    healthy[0].must(&["SET", "redlock:fence", "another's"]);
    healthy[1].must(&["DEL", "redlock:fence"]);
    let outcome = finish(redlock(&healthy, &["doctor"]));
    assert_eq!(outcome.status, Some(1), "{outcome:?}");
    for words in ["key redlock:fence holds something else: delete the key", "not restored yet"] {
        assert!(outcome.stdout.contains(words), "{words}: {}", outcome.stdout);
    }

    let full = Server::start_with(&["--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"]);
    let down = Server::start();
    let cluster: Cluster =
        [Server::start(), Server::start(), Server::start(), full, down].into_iter().collect();
    cluster[4].kill();
    let replica = format!("127.0.0.1 {}", cluster[0].port());
    let words: Vec<_> = ["REPLICAOF"].into_iter().chain(replica.split(' ')).collect();
    cluster[2].must(&words);
    let outcome = finish(redlock(&cluster, &["doctor"]));
    assert_eq!(outcome.status, Some(1), "{outcome:?}");
    for words in ["noeviction", "use its primary", "start the server", "nothing can be locked"] {
        assert!(outcome.stdout.contains(words), "{words}: {}", outcome.stdout);
    }
    let told = finish(redlock(&cluster, &["doctor", "--json"])).json();
    assert_eq!(told["well"], false);

    let outcome = finish(redlock(&cluster, &["doctor", "--servers", "redlock.invalid:6379"]));
    assert!(outcome.stdout.contains("correct the host name"), "{outcome:?}");
}

#[test]
fn doctor_reports_servers_that_are_not_guarded_and_cluster_nodes() {
    let cluster = Cluster::start(3);
    let rights = ["+@all", "-info"];
    for server in cluster.iter() {
        server.must(&[&["ACL", "SETUSER", "u", "on", ">p", "~*", "&*"][..], &rights].concat());
    }
    let mut command = redlock(&cluster, &["doctor", "--json"]);
    command.envs([("REDLOCK_USER", "u"), ("REDLOCK_PASSWORD", "p")]);
    let outcome = finish(command);
    assert_eq!(outcome.status, Some(1), "{outcome:?}");
    let server = &outcome.json()["servers"][0];
    assert_eq!(server["votes"], true);
    assert!(server["words"].as_str().is_some_and(|it| it.starts_with("not guarded")), "{server}");
    assert_eq!(server["advice"][0]["fault"], true, "{server}");

    let node: Cluster = [Server::start_with(&["--cluster-enabled", "yes"])].into_iter().collect();
    node[0].must(&["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]);
    wait_until("the cluster is up", || {
        node[0].must(&["CLUSTER", "INFO"]).text().is_some_and(|it| it.contains("state:ok"))
    });
    let outcome = finish(redlock(&node, &["doctor"]));
    assert_eq!(outcome.status, Some(1), "{outcome:?}");
    for words in ["wrong", "cluster node", "MOVED", "CROSSSLOT"] {
        assert!(outcome.stdout.contains(words), "{words}: {}", outcome.stdout);
    }
}

#[test]
fn bench_measures_and_leaves_nothing_behind() {
    let cluster = Cluster::start(3);
    let outcome = finish(redlock(&cluster, &["bench", "--duration", "200ms", "--threads", "2"]));
    assert_eq!(outcome.status, Some(0), "{outcome:?}");
    assert!(outcome.stdout.contains('█') && outcome.stdout.contains("p99"), "{}", outcome.stdout);
    let told = finish(redlock(&cluster, &["--json", "bench", "--duration", "200ms"])).json();
    let count = told["lock"]["count"].as_u64().expect("a count");
    let buckets = told["lock"]["buckets"].as_array().expect("a list").iter();
    assert!(count > 0);
    assert_eq!(buckets.map(|it| it["count"].as_u64().unwrap_or(0)).sum::<u64>(), count);
    wait_until("nothing is left", || cluster.iter().all(|it| it.locks() == 0));
}

/// Also those that the URL does not name.
#[test]
fn doctor_shows_what_each_sentinel_says() {
    let group = Group::start("mymaster", 2, 1_000);
    let sentinels: Vec<_> = (0..3).map(|_| Sentinel::start(&[group.master_port()], 2)).collect();
    sentinels.iter().for_each(|it| it.await_company("mymaster", 1, 2));
    let url = url(&[sentinels[0].address(), sentinels[1].address()], "mymaster");
    let doctor = |more: &[&str]| {
        let mut command = bare(&[&["doctor"][..], more].concat());
        command.env("REDLOCK_SERVERS", &url);
        finish(command)
    };
    let outcome = doctor(&[]);
    let hint = format!("more Sentinels watch it than the URL names: {}", sentinels[2].address());
    for words in [&hint, "EPOCH", "all is well"] {
        assert!(outcome.stdout.contains(words), "{words}: {}", outcome.stdout);
    }
    let told = doctor(&["--json"]).json();
    let told = told["sentinels"].as_array().expect("a list");
    assert_eq!(told.len(), 3, "{told:?}");
    for it in told {
        assert_eq!(it["address"], group.servers[0].address(), "{it}");
        assert_eq!((&it["epoch"], &it["others"]), (&0.into(), &2.into()), "{it}");
    }
    sentinels[1].kill();
    sentinels[2].freeze();
    let outcome = doctor(&[]);
    assert_eq!(outcome.status, Some(1), "{outcome:?}");
    for words in ["1 of 3 Sentinels answer, 2 needed", "connection refused", "timed out"] {
        assert!(outcome.stdout.contains(words), "{words}: {}", outcome.stdout);
    }
}
