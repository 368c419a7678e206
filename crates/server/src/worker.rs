//! A worker: one thread with a runtime, a port and a shard. Workers share no data of the packet path, so none
//! waits for another.

use crate::access::Access;
use crate::bind::{Bound, bind};
use crate::clock::Clock;
use crate::connection_limit::ConnectionLimits;
use crate::embed::Services;
use crate::error::{ServerFailed, StartError};
use crate::http::{Facts, Site};
use crate::inside;
use crate::match_log_queue::MatchLogQueue;
use crate::node::NodeShard;
use crate::quic::Quic;
use crate::recorder::Recorder;
use crate::shard::{self, Beside, DRAIN_TIME, Directory, Shard, Shards};
use crate::tcp;
use core::net::{IpAddr, SocketAddr};
use core::time::Duration;
use parlor_hub::Hub;
use parlor_transport::ServerTls;
use parlor_transport::impaired::Conditions;
use parlor_transport::inside::Entrance;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::runtime;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Time beyond that for goodbyes: for the shard's last cycle, the disk, and the last QUIC packets.
const SHARD_END_TIME: Duration = Duration::from_secs(6);

const SHARD: &str = "shard";
const TCP: &str = "TCP port";
const INSIDE: &str = "entrance from inside";

/// What a worker needs to open its ports.
#[derive(Clone, Debug)]
pub(crate) struct Wants {
    pub(crate) listen: IpAddr,
    /// The port; 0 chooses one that is free on TCP and UDP.
    pub(crate) port: u16,
    pub(crate) tls: ServerTls,
    pub(crate) room_log: Option<PathBuf>,
    /// The simulated bad network of its sockets, for development.
    pub(crate) conditions: Option<Conditions>,
}

/// What a worker needs to serve, known once all workers have their ports.
pub(crate) struct WorkerStart {
    pub(crate) hub: Hub,
    pub(crate) clock: Clock,
    pub(crate) access: Access,
    pub(crate) handshake_time: Duration,
    pub(crate) inputs: shard::Inputs,
    pub(crate) shards: Shards,
    pub(crate) directory: Directory,
    pub(crate) facts: Arc<Facts>,
    pub(crate) limits: ConnectionLimits,
    /// The entrance for rooms of this process.
    pub(crate) entrance: Entrance,
    pub(crate) services: Option<Arc<dyn Services>>,
    /// Queues events of kept matches.
    pub(crate) match_logs: Option<MatchLogQueue>,
}

/// A worker as the server sees it. Dropping it stops it at once.
pub(crate) struct Worker {
    pub(crate) addr: SocketAddr,
    begin: Option<oneshot::Sender<Box<WorkerStart>>>,
    stop: Option<oneshot::Sender<()>>,
    ended: watch::Receiver<Option<Result<(), ServerFailed>>>,
}

/// A worker's open ports.
struct Opened {
    bound: Bound,
    recorder: Option<Recorder>,
}

impl Worker {
    /// Starts the thread and opens its ports.
    pub(crate) async fn open(number: usize, wants: Wants) -> Result<Self, StartError> {
        let (report, reported) = oneshot::channel();
        let (begin, start) = oneshot::channel();
        let (stop, stopped) = oneshot::channel();
        let (end, ended) = watch::channel(None);
        let work = move || {
            let runtime = match runtime::Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => runtime,
                Err(error) => return drop(report.send(Err(StartError::Thread(error)))),
            };
            let ended = runtime.block_on(work(wants, report, start, stopped));
            // A wait for an unresponsive disk ends here.
            runtime.shutdown_background();
            end.send_replace(Some(ended));
        };
        let name = format!("parlor-{number}");
        std::thread::Builder::new().name(name).spawn(work).map_err(StartError::Thread)?;
        let gone = || StartError::Thread(std::io::Error::other("the thread ended at once"));
        let addr = reported.await.map_err(|_| gone())??;
        Ok(Worker { addr, begin: Some(begin), stop: Some(stop), ended })
    }

    /// Starts serving.
    pub(crate) fn begin(&mut self, start: WorkerStart) {
        // `ended` reports a thread that is gone.
        self.begin.take().map(|begin| begin.send(Box::new(start)));
    }

    /// Waits until the worker fails by itself. May be cancelled.
    pub(crate) async fn failed(&self) -> ServerFailed {
        let gone = || ServerFailed { part: "thread", detail: "it ended".to_owned() };
        let mut ended = self.ended.clone();
        let ended = ended.wait_for(Option::is_some).await.ok().and_then(|ended| ended.clone());
        ended.and_then(Result::err).unwrap_or_else(gone)
    }

    /// Notifies all its members and stops it.
    pub(crate) async fn stop(&mut self) {
        self.stop.take().map(|stop| stop.send(()));
        // An error means that the thread is gone, as intended.
        let _ = self.ended.wait_for(Option::is_some).await;
    }
}

/// The thread's work.
async fn work(
    wants: Wants,
    report: oneshot::Sender<Result<SocketAddr, StartError>>,
    start: oneshot::Receiver<Box<WorkerStart>>,
    stopped: oneshot::Receiver<()>,
) -> Result<(), ServerFailed> {
    let Opened { bound: Bound { tcp, quic: engine, addr }, recorder } = match open(&wants) {
        Ok(opened) => opened,
        Err(error) => {
            let _ = report.send(Err(error));
            return Ok(());
        }
    };
    if report.send(Ok(addr)).is_err() {
        return Ok(());
    }
    // If another worker failed to start, none begins.
    let Ok(start) = start.await else { return Ok(()) };
    let WorkerStart { hub, clock, access, handshake_time, inputs, shards, directory, facts, .. } = *start;
    let WorkerStart { limits, entrance, services, match_logs, .. } = *start;
    let shard = shards.own().clone();
    let (numbers, known) = (shard.numbers(), Arc::clone(&facts));
    let quic = Quic::new(engine, limits.quic, access.clone(), numbers, handshake_time, known);
    let node = services.as_ref().and_then(|services| services.node());
    let node = node.map(|node| NodeShard::new(node, shards.own_number()));
    let beside = Beside { recorder, match_logs, node };
    let running = shard::run(hub, clock, inputs, Some(quic), directory, beside);
    let site = Site::new(
        shards,
        facts,
        access.clone(),
        services,
        handshake_time,
        [limits.staying, limits.tcp.places.clone()],
    );
    let mut tasks = JoinSet::new();
    tasks.spawn(named(SHARD, running));
    tasks.spawn(named(INSIDE, inside::accept(entrance, access.clone(), shard.clone())));
    tasks.spawn(named(TCP, tcp::accept(tcp, limits.tcp, access, wants.tls, wants.conditions, site)));
    tokio::select! {
        ended = tasks.join_next() => Err(match ended {
            Some(Err(error)) => ServerFailed { part: "task", detail: error.to_string() },
            Some(Ok(part)) => ServerFailed { part, detail: "it ended".to_owned() },
            None => ServerFailed { part: "last task", detail: "it ended before".to_owned() },
        }),
        stop = stopped => {
            if stop.is_ok() {
                say_goodbye(&shard, &mut tasks).await;
            }
            Ok(())
        }
    }
}

fn open(wants: &Wants) -> Result<Opened, StartError> {
    let bound = bind(wants.listen, wants.port, &wants.tls, wants.conditions.as_ref())?;
    let recorder = wants.room_log.as_deref().map(|folder| {
        Recorder::start(folder).map_err(|error| StartError::RoomLog { folder: folder.to_owned(), error })
    });
    Ok(Opened { bound, recorder: recorder.transpose()? })
}

/// Lets the shard notify all members; meanwhile HTTP reports the shutdown.
async fn say_goodbye(shard: &Shard, tasks: &mut JoinSet<&'static str>) {
    // A failed shard sends nothing more.
    if shard.shut_down().await.is_ok() {
        let end = timeout(DRAIN_TIME + SHARD_END_TIME, async {
            while let Some(ended) = tasks.join_next().await {
                if !matches!(ended, Ok(TCP | INSIDE)) {
                    break;
                }
            }
        });
        if end.await.is_err() {
            tracing::error!("the shard does not end; please report this");
        }
    }
    tasks.shutdown().await;
}

async fn named(name: &'static str, task: impl Future<Output = ()>) -> &'static str {
    task.await;
    name
}
