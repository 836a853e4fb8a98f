//! Fake servers, for behaviour that no real server shows.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::ports;
use super::servers::Server;

/// A server's answer to the first commands on a connection. The server has no command of its own, is
/// healthy, and reports nothing of itself.
pub(crate) const GREETING: &[u8] = b"-ERR unknown command\r\n-ERR unknown command\r\n-ERR unknown command\r\n+PONG\r\n\
    -NOPERM no\r\n-NOPERM no\r\n-NOPERM no\r\n-NOPERM no\r\n-NOPERM no\r\n-NOPERM no\r\n-NOPERM no\r\n-NOPERM no\r\n-NOPERM no\r\n";

/// Listens on a port of its own and behaves as it was told. Each connection is served on a thread of its
/// own. All of them end with the owner.
pub(crate) struct Fake {
    port: u16,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    closing: AtomicBool,
    guests: Mutex<Vec<TcpStream>>,
    received: Mutex<Vec<u8>>,
}

impl Fake {
    /// Runs `serve` for each connection. When `serve` returns, the connection is closed.
    pub(crate) fn start(
        serve: impl Fn(&mut Guest) -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        let listener = listen();
        let port = listener.local_addr().expect("it is bound").port();
        let shared = Arc::new(Shared::default());
        let accepting = thread::spawn({
            let shared = Arc::clone(&shared);
            let serve = Arc::new(serve);
            move || accept(&listener, &shared, &serve)
        });
        Self { port, shared, accepting: Some(accepting) }
    }

    /// Accepts every request and never answers.
    pub(crate) fn silent() -> Self {
        Self::start(|guest| {
            while guest.read()?.is_some() {}
            Ok(())
        })
    }

    /// Closes each connection at once.
    pub(crate) fn closing() -> Self {
        Self::start(|_| Ok(()))
    }

    /// Answers all data with these bytes, each time that data arrives.
    pub(crate) fn answering(bytes: impl Into<Vec<u8>>) -> Self {
        let bytes = bytes.into();
        Self::start(move |guest| {
            while guest.read()?.is_some() {
                guest.write(&bytes)?;
            }
            Ok(())
        })
    }

    /// Understands commands, and gives each the answer that `answer` returns, or the usual one to the
    /// commands on a new connection. No word in a request may contain a line end.
    pub(crate) fn obeying(
        answer: impl Fn(&str, &[String]) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        Self::start(move |guest| {
            let mut unread = String::new();
            while let Some(bytes) = guest.read()? {
                unread += &String::from_utf8_lossy(&bytes);
                let mut replies = String::new();
                while let Some((words, rest)) = command(&unread) {
                    let usual = if words[0] == "PING" { "+PONG" } else { "-ERR unknown command" };
                    replies += &answer(&words[0], &words).unwrap_or_else(|| usual.to_owned());
                    replies += "\r\n";
                    unread = rest;
                }
                guest.write(replies.as_bytes())?;
            }
            Ok(())
        })
    }

    /// Reports that every lock belongs to another client, with this remaining time, however often it is
    /// asked.
    pub(crate) fn lying(left_ms: i64) -> Self {
        Self::obeying(move |command, _| match command {
            "SET" => Some("$-1".to_owned()),
            "PTTL" => Some(format!(":{left_ms}")),
            "EVAL" => Some(":0".to_owned()),
            _ => None,
        })
    }

    /// A web server: answers each request with an error page and closes.
    pub(crate) fn web() -> Self {
        Self::start(|guest| {
            guest.read()?;
            guest.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 3\r\n\r\nno\n")
        })
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// As in "127.0.0.1:6379".
    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// How many connections there have been.
    pub(crate) fn connections(&self) -> usize {
        self.shared.guests.lock().expect("not poisoned").len()
    }

    /// All data that was ever sent to it, over all connections.
    pub(crate) fn received(&self) -> Vec<u8> {
        self.shared.received.lock().expect("not poisoned").clone()
    }

    /// Closes all connections; new ones are accepted as before.
    pub(crate) fn hang_up(&self) {
        for guest in self.shared.guests.lock().expect("not poisoned").iter() {
            let _ = guest.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.shared.closing.store(true, Ordering::SeqCst);
        // Wakes the thread that accepts. If the thread cannot be reached, it has ended.
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.join();
        }
        self.hang_up();
    }
}

/// One connection to a fake server.
pub(crate) struct Guest {
    stream: TcpStream,
    shared: Arc<Shared>,
}

impl Guest {
    /// The next data; `None` at the end of the connection.
    pub(crate) fn read(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut bytes = vec![0; 64 * 1024];
        let count = self.stream.read(&mut bytes)?;
        bytes.truncate(count);
        self.shared.received.lock().expect("not poisoned").extend_from_slice(&bytes);
        Ok((count > 0).then_some(bytes))
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// The connection itself. Data that is read from it directly is not recorded.
    pub(crate) fn stream(&self) -> &TcpStream {
        &self.stream
    }
}

/// A port on which connections are never established: not even the first packet is answered, as with a
/// machine that is off or behind a firewall.
pub(crate) struct Abyss {
    listener: TcpListener,
    _waiting: Vec<TcpStream>,
}

impl Abyss {
    pub(crate) fn new() -> Self {
        Self::of(listen())
    }

    /// On the port of a server, at another address of this machine.
    pub(crate) fn beside(server: &Server, address: Ipv4Addr) -> Self {
        Self::of(TcpListener::bind((address, server.port())).expect("the port is free there"))
    }

    fn of(listener: TcpListener) -> Self {
        // SAFETY: no memory is involved, and the descriptor is that of a listening socket.
        let result = unsafe { libc::listen(listener.as_raw_fd(), 0) };
        assert_eq!(result, 0, "{}", io::Error::last_os_error());
        // Nobody accepts connections. Once the queue is full, the system drops new ones.
        let address = listener.local_addr().expect("it is bound");
        let connect = || TcpStream::connect_timeout(&address, Duration::from_millis(200)).ok();
        let waiting: Vec<_> = std::iter::from_fn(connect).take(64).collect();
        assert!(waiting.len() < 64, "the queue of the listener never fills");
        Self { listener, _waiting: waiting }
    }

    pub(crate) fn address(&self) -> String {
        self.listener.local_addr().expect("it is bound").to_string()
    }
}

/// The first command, if it is complete, and the rest.
fn command(bytes: &str) -> Option<(Vec<String>, String)> {
    let mut lines = bytes.split("\r\n");
    let count: usize = lines.next()?.strip_prefix('*')?.parse().ok()?;
    let word = |_| lines.nth(1).map(str::to_owned);
    let words = (0..count).map(word).collect::<Option<_>>()?;
    let rest: Vec<_> = lines.collect();
    (!rest.is_empty()).then(|| (words, rest.join("\r\n")))
}

fn listen() -> TcpListener {
    let bound = (0..20).find_map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, ports::free())).ok());
    bound.expect("some port is free")
}

fn accept<S>(listener: &TcpListener, shared: &Arc<Shared>, serve: &Arc<S>)
where
    S: Fn(&mut Guest) -> io::Result<()> + Send + Sync + 'static,
{
    for stream in listener.incoming().flatten() {
        if shared.closing.load(Ordering::SeqCst) {
            return;
        }
        // Each piece that is written is sent separately.
        let Ok(kept) = stream.set_nodelay(true).and_then(|()| stream.try_clone()) else { continue };
        shared.guests.lock().expect("not poisoned").push(kept);
        let mut guest = Guest { stream, shared: Arc::clone(shared) };
        let serve = Arc::clone(serve);
        thread::spawn(move || {
            let _ = serve(&mut guest);
            let _ = guest.stream.shutdown(Shutdown::Both);
        });
    }
}
