//! A way to a server that can be cut.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// Passes TCP on to a server as long as it is not cut.
pub(crate) struct Proxy {
    pub(crate) port: u16,
    lines: Arc<Mutex<Lines>>,
}

#[derive(Default)]
struct Lines {
    is_cut: bool,
    open: Vec<TcpStream>,
}

impl Proxy {
    /// To a server's port.
    pub(crate) fn new(to: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let port = listener.local_addr().expect("it is bound").port();
        let lines = Arc::new(Mutex::new(Lines::default()));
        let shared = Arc::clone(&lines);
        std::thread::spawn(move || {
            for here in listener.incoming().flatten() {
                let mut lines = shared.lock().expect("nobody panics with it");
                let Ok(there) = TcpStream::connect(to) else { continue };
                if lines.is_cut {
                    continue;
                }
                for (from, into) in [(&here, &there), (&there, &here)] {
                    let clone = |line: &TcpStream| line.try_clone().expect("it is open");
                    let (mut from, mut into) = (clone(from), clone(into));
                    std::thread::spawn(move || std::io::copy(&mut from, &mut into));
                }
                lines.open.extend([here, there]);
            }
        });
        Proxy { port, lines }
    }

    /// Breaks all that there is, and lets nobody in any more; or lets them in again.
    pub(crate) fn cut(&self, is_cut: bool) {
        let mut lines = self.lines.lock().expect("nobody panics with it");
        lines.is_cut = is_cut;
        lines.open.drain(..).for_each(|line| drop(line.shutdown(std::net::Shutdown::Both)));
    }
}
