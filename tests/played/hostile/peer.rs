//! Who is at the far end of the connections.

use crate::world::Connection;

/// Decides what becomes of connections, and what is said on them.
pub(crate) trait Peer {
    /// Somebody connects to this place. Which server that is, and after how many milliseconds the
    /// connection is made; nothing if it is refused.
    fn accept(&mut self, place: &str) -> Option<(usize, u32)>;

    /// Looks at a connection that is open, and may have more to say.
    fn serve(&mut self, connection: &mut Connection, now: i64);

    /// What is locked now: on which server, with which token.
    fn locked(&self, _now: i64) -> Vec<(usize, Vec<u8>)> {
        Vec::new()
    }
}

/// Refuses everybody.
pub(crate) struct Silent;

impl Peer for Silent {
    fn accept(&mut self, _place: &str) -> Option<(usize, u32)> {
        None
    }

    fn serve(&mut self, _connection: &mut Connection, _now: i64) {}
}

/// What a well-behaved server says to the greeting, to so many commands of which the last thirteen are
/// probes and questions.
pub(crate) fn greeting(commands: usize) -> Vec<u8> {
    let mut said = b"+OK\r\n".repeat(commands.saturating_sub(13));
    said.extend(b"-ERR unknown command 'DELEX'\r\n".repeat(3));
    said.extend(b"+PONG\r\n");
    said.extend(b"-NOPERM no\r\n".repeat(9));
    said
}
