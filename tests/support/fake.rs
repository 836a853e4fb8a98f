//! Servers for what no real one will do.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::ports;
use super::servers::Server;

/// Something that listens on a port of its own and behaves as it was told. Each connection is
/// served on a thread of its own; all of them end with the owner.
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
    /// Runs `serve` for each connection. When it returns, the connection is closed.
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

    /// Takes every request and never answers.
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

    /// Answers with these bytes whatever comes, as often as something comes.
    pub(crate) fn answering(bytes: impl Into<Vec<u8>>) -> Self {
        let bytes = bytes.into();
        Self::start(move |guest| {
            while guest.read()?.is_some() {
                guest.write(&bytes)?;
            }
            Ok(())
        })
    }

    /// A web server: answers each request with an error page and closes.
    pub(crate) fn web() -> Self {
        Self::start(|guest| {
            guest.read()?;
            guest.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 3\r\n\r\nno\n")
        })
    }

    /// Stands in front of a real server and hands every piece of its replies to `alter`, which
    /// says what the client gets instead; none: the connection is closed.
    pub(crate) fn in_front_of(
        server: &Server,
        alter: impl Fn(&[u8]) -> Option<Vec<u8>> + Send + Sync + 'static,
    ) -> Self {
        Self::between(server, 64 * 1024, &Arc::default(), alter)
    }

    /// Stands in front of a real server, and swallows what the client sends while the gate is
    /// shut.
    pub(crate) fn gated(server: &Server, gate: &Arc<Gate>) -> Self {
        Self::between(server, 64 * 1024, gate, |replies| Some(replies.to_vec()))
    }

    /// Stands in front of a real server and hands on each byte of its replies by itself.
    pub(crate) fn dripping(server: &Server) -> Self {
        Self::between(server, 1, &Arc::default(), |byte| Some(byte.to_vec()))
    }

    fn between(
        server: &Server,
        piece: usize,
        gate: &Arc<Gate>,
        alter: impl Fn(&[u8]) -> Option<Vec<u8>> + Send + Sync + 'static,
    ) -> Self {
        let (address, gate) = (server.address(), Arc::clone(gate));
        let alter = Arc::new(alter);
        Self::start(move |guest| {
            let mut upstream = TcpStream::connect(&address)?;
            upstream.set_nodelay(true)?;
            let (back, there) = (upstream.try_clone()?, guest.clone()?);
            let replies = hand_on_replies(back, there, piece, Arc::clone(&alter));
            while let Some(request) = guest.read()? {
                if !gate.is_shut.load(Ordering::SeqCst) {
                    upstream.write_all(&request)?;
                }
            }
            upstream.shutdown(Shutdown::Both)?;
            let _ = replies.join();
            Ok(())
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

    /// All that was ever sent to it, by all connections.
    pub(crate) fn received(&self) -> Vec<u8> {
        self.shared.received.lock().expect("not poisoned").clone()
    }

    /// The tokens that clients wanted to set a key to, in their order.
    pub(crate) fn tokens_set(&self, key: &str) -> Vec<String> {
        let sent = String::from_utf8_lossy(&self.received()).into_owned();
        let set = format!("\r\nSET\r\n${}\r\n{key}\r\n$40\r\n", key.len());
        sent.split(&set).skip(1).map(|after| after.chars().take(40).collect()).collect()
    }

    /// Closes all connections; new ones are taken as before.
    pub(crate) fn hang_up(&self) {
        for guest in self.shared.guests.lock().expect("not poisoned").iter() {
            let _ = guest.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.shared.closing.store(true, Ordering::SeqCst);
        // Wakes the thread that accepts. If it cannot be reached, it has ended.
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.join();
        }
        self.hang_up();
    }
}

/// Whether requests get through.
#[derive(Default)]
pub(crate) struct Gate {
    is_shut: AtomicBool,
}

impl Gate {
    pub(crate) fn shut(&self) {
        self.is_shut.store(true, Ordering::SeqCst);
    }

    pub(crate) fn open(&self) {
        self.is_shut.store(false, Ordering::SeqCst);
    }
}

/// One connection to a fake server.
pub(crate) struct Guest {
    stream: TcpStream,
    shared: Arc<Shared>,
}

impl Guest {
    /// What comes next; none at the end of the connection.
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

    fn clone(&self) -> io::Result<Self> {
        Ok(Self { stream: self.stream.try_clone()?, shared: Arc::clone(&self.shared) })
    }
}

/// A port whose connections never come to be: the first packet is not even answered, as with a
/// machine that is off or behind a firewall.
pub(crate) struct Abyss {
    listener: TcpListener,
    _waiting: Vec<TcpStream>,
}

impl Abyss {
    pub(crate) fn new() -> Self {
        let listener = listen();
        // SAFETY: no memory is involved, and the descriptor is that of a listening socket.
        let result = unsafe { libc::listen(listener.as_raw_fd(), 0) };
        assert_eq!(result, 0, "{}", io::Error::last_os_error());
        // Nobody accepts; once the queue is full, the system drops whoever comes.
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
        // Each piece that is written goes out by itself.
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

fn hand_on_replies<A>(
    mut upstream: TcpStream,
    mut guest: Guest,
    piece: usize,
    alter: Arc<A>,
) -> JoinHandle<()>
where
    A: Fn(&[u8]) -> Option<Vec<u8>> + Send + Sync + 'static,
{
    thread::spawn(move || {
        let mut bytes = vec![0; piece];
        while let Ok(count @ 1..) = upstream.read(&mut bytes) {
            let Some(altered) = alter(&bytes[..count]) else { break };
            if guest.write(&altered).is_err() {
                break;
            }
        }
        let _ = guest.stream.shutdown(Shutdown::Both);
    })
}
