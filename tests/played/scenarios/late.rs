//! Which servers a call waits for, and late answers that are read nevertheless.

use super::TTL;
use super::cluster::{Cluster, MS, Trip};
use crate::error::Status;
use crate::lease::Lease;

/// The thread is kept from running when its time ends, and the answer comes meanwhile.
#[test]
fn an_answer_that_is_there_when_the_time_is_found_to_be_up_counts() {
    let mut heard = 0;
    for nth in 1.. {
        let cluster = Cluster::new(1);
        let client = cluster.client().tries(1, 0).waits_ms(50).connected();
        cluster.script(client.way(0), [Trip::ms(1, 60)]);
        client.stall_once(nth, 20 * MS);
        let up_at = cluster.now() + 50 * MS;
        let said = client.lock("r", TTL, &mut Lease::new());
        heard += usize::from(client.stalled_at() == up_at && said == Ok(()));
        if !client.has_stalled() {
            assert_ne!(said, Ok(()), "it came too late");
            break;
        }
    }
    assert!(heard > 0);
}

/// The thread is kept from running before it sends its request. The server has its whole time all the same.
#[test]
fn the_time_before_a_request_is_sent_does_not_count_against_the_server() {
    for nth in 1.. {
        let cluster = Cluster::new(1);
        let client = cluster.client().tries(1, 0).waits_ms(50).connected();
        cluster.script(client.way(0), [Trip::ms(1, 30)]);
        client.stall_once(nth, 40 * MS);
        assert_eq!(client.lock("r", TTL, &mut Lease::new()), Ok(()), "delayed at look {nth}");
        if !client.has_stalled() {
            break;
        }
    }
}

/// By then there is a second connection, and a caller waits for something else.
#[test]
fn an_answer_that_comes_over_the_first_of_two_connections_is_read_when_it_comes() {
    let cluster = Cluster::new(3);
    let client = cluster.client().connected();
    (0..3).for_each(|it| cluster.put(it, "other", "theirs", 60_000));
    cluster.script(client.way(0), [Trip::ms(1, 3_000)]);
    client.take("r", TTL);
    // Otherwise it would poll without waiting, again and again.
    let said = client.try_lock("other", TTL, 5_000, &mut Lease::new());
    assert_eq!(said, Err(Status::Taken));
    cluster.run_ms(100);
}

/// Otherwise it would try to connect to the server, and wait for that.
#[test]
fn a_call_waits_for_no_server_that_is_gone_where_a_quorum_is_connected() {
    let cluster = Cluster::new(3);
    let client = cluster.client().connected();
    cluster.kill(2);
    for quiet_ms in [1_000, 11, 1_000] {
        cluster.run_ms(quiet_ms);
        let asked_at = cluster.now();
        let mut lease = client.take("r", TTL);
        assert_eq!(cluster.now() - asked_at, 2 * MS);
        assert_eq!(client.unlock(&mut lease), Ok(()));
    }
}
