//! A way over TCP that can be cut.

use core::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

/// Forwards connections to a PostgreSQL server, unless it is cut.
pub struct Relay {
    /// Where it listens.
    pub addr: SocketAddr,
    is_cut: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Relay {
    /// Starts one to the server at a socket in the file system.
    pub async fn to_socket(path: PathBuf) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let addr = listener.local_addr().unwrap();
        let (is_cut, cut) = watch::channel(false);
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(forward(stream, path.clone(), cut.clone()));
            }
        });
        Relay { addr, is_cut, task }
    }

    /// Cuts the way: no byte passes, and neither end is told. Connections that are made meanwhile wait.
    pub fn cut(&self) {
        self.is_cut.send_replace(true);
    }

    /// Mends it. What was cut is over, new connections pass.
    pub fn mend(&self) {
        self.is_cut.send_replace(false);
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn forward(mut stream: TcpStream, path: PathBuf, mut cut: watch::Receiver<bool>) {
    let _ = cut.wait_for(|cut| !cut).await;
    let Ok(mut server) = UnixStream::connect(path).await else { return };
    let is_over = tokio::select! {
        _ = copy_bidirectional(&mut stream, &mut server) => true,
        _ = cut.wait_for(|cut| *cut) => false,
    };
    if !is_over {
        // Both ends stay open and silent until the way is mended.
        let _ = cut.wait_for(|cut| !cut).await;
    }
}
