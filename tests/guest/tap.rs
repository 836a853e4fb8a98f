//! A tap on the way to a server: it hands on what goes either way, and knows what each connection
//! has sent.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use crate::support::{Server, ports};

/// It ends with its owner, and so do the connections through it.
pub(crate) struct Tap {
    port: u16,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    closing: AtomicBool,
    connections: Mutex<Vec<Connection>>,
}

/// What is known of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) bytes: usize,
    pub(crate) has_ended: bool,
}

struct Connection {
    client: TcpStream,
    sent: Sent,
}

impl Tap {
    pub(crate) fn on(server: &Server) -> Self {
        let bind = |_| TcpListener::bind((Ipv4Addr::LOCALHOST, ports::free())).ok();
        let listener = (0..20).find_map(bind).expect("some port is free");
        let port = listener.local_addr().expect("it is bound").port();
        let shared = Arc::new(Shared::default());
        let address = server.address();
        let accepting = thread::spawn({
            let shared = Arc::clone(&shared);
            move || {
                for client in listener.incoming().flatten() {
                    if shared.closing.load(Ordering::SeqCst) {
                        return;
                    }
                    let _ = shared.serve(client, &address);
                }
            }
        });
        Self { port, shared, accepting: Some(accepting) }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// The connections so far, in the order of their coming.
    pub(crate) fn connections(&self) -> Vec<Sent> {
        let connections = self.shared.connections.lock().expect("not poisoned");
        connections.iter().map(|it| it.sent).collect()
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        self.shared.closing.store(true, Ordering::SeqCst);
        // Wakes the thread that accepts.
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.join();
        }
        for connection in self.shared.connections.lock().expect("not poisoned").iter() {
            let _ = connection.client.shutdown(Shutdown::Both);
        }
    }
}

impl Shared {
    fn serve(self: &Arc<Self>, client: TcpStream, server: &str) -> io::Result<()> {
        let server = TcpStream::connect(server)?;
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        let sent = Sent { bytes: 0, has_ended: false };
        let mut connections = self.connections.lock().expect("not poisoned");
        let number = connections.len();
        connections.push(Connection { client: client.try_clone()?, sent });
        let (requests, replies) = (client.try_clone()?, server.try_clone()?);
        let shared = Arc::clone(self);
        thread::spawn(move || {
            hand_on(requests, server, |count| shared.note(number, |it| it.bytes += count));
            shared.note(number, |it| it.has_ended = true);
        });
        thread::spawn(move || hand_on(replies, client, |_| {}));
        Ok(())
    }

    fn note(&self, number: usize, change: impl FnOnce(&mut Sent)) {
        change(&mut self.connections.lock().expect("not poisoned")[number].sent);
    }
}

fn hand_on(mut from: TcpStream, mut to: TcpStream, mut note: impl FnMut(usize)) {
    let mut bytes = vec![0; 64 * 1024];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        note(count);
        if to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}
