//! Ways over TCP that can be cut.

use core::net::{Ipv4Addr, SocketAddr};
use std::io;
use std::path::PathBuf;
use tokio::io::{AsyncRead, AsyncWrite, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

/// A connection of any kind.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Where a relay leads.
#[derive(Clone)]
enum Target {
    Socket(PathBuf),
    Port(SocketAddr),
}

impl Target {
    async fn connect(&self) -> io::Result<Box<dyn Stream>> {
        Ok(match self {
            Target::Socket(path) => Box::new(UnixStream::connect(path).await?),
            Target::Port(addr) => Box::new(TcpStream::connect(addr).await?),
        })
    }
}

/// Forwards connections to one place, unless it is cut.
pub struct Relay {
    /// Where it listens.
    pub addr: SocketAddr,
    is_cut: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Relay {
    /// Starts one to the server at a socket in the file system.
    pub async fn to_socket(path: PathBuf) -> Self {
        Relay::to(Target::Socket(path)).await
    }

    /// Starts one to the server at a port of TCP.
    pub async fn to_port(addr: SocketAddr) -> Self {
        Relay::to(Target::Port(addr)).await
    }

    async fn to(target: Target) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let addr = listener.local_addr().unwrap();
        let (is_cut, cut) = watch::channel(false);
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(forward(stream, target.clone(), cut.clone()));
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

async fn forward(mut stream: TcpStream, target: Target, mut cut: watch::Receiver<bool>) {
    let _ = cut.wait_for(|cut| !cut).await;
    let Ok(mut server) = target.connect().await else { return };
    let is_over = tokio::select! {
        _ = copy_bidirectional(&mut stream, &mut server) => true,
        _ = cut.wait_for(|cut| *cut) => false,
    };
    if !is_over {
        // Both ends stay open and silent until the way is mended.
        let _ = cut.wait_for(|cut| !cut).await;
    }
}
