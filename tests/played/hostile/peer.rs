//! The far end of the connections.

use crate::world::Connection;

/// Decides what happens to connections, and what is sent over them.
pub(crate) trait Peer {
    /// A client connects to this place. Returns the server, and after how many milliseconds the connection
    /// is established; `None` if it is refused.
    fn accept(&mut self, place: &str) -> Option<(usize, u32)>;

    /// Checks an open connection. The peer may send more over it.
    fn serve(&mut self, connection: &mut Connection, now: i64);

    /// The current locks: the server and the token of each.
    fn locked(&self, _now: i64) -> Vec<(usize, Vec<u8>)> {
        Vec::new()
    }
}

/// Refuses all connections.
pub(crate) struct Silent;

impl Peer for Silent {
    fn accept(&mut self, _place: &str) -> Option<(usize, u32)> {
        None
    }

    fn serve(&mut self, _connection: &mut Connection, _now: i64) {}
}

/// The replies of a well-behaved server to the handshake, which has this number of commands. The last
/// thirteen of these are probes and questions.
pub(crate) fn greeting(commands: usize) -> Vec<u8> {
    let mut said = b"+OK\r\n".repeat(commands.saturating_sub(13));
    said.extend(b"-ERR unknown command 'DELEX'\r\n".repeat(3));
    said.extend(b"+PONG\r\n");
    said.extend(b"-NOPERM no\r\n".repeat(9));
    said
}
