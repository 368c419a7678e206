//! What a bench asks of the operating system: cores, processor time, files that may be open, memory. Linux only.

use anyhow::{Context, bail};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde::Serialize;
use std::fs;
use std::time::Duration;

/// Where the server and the generator run, so that neither takes the other's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Cores {
    /// The number of the server's core.
    pub server_core: usize,
    /// The number of the generator's core.
    pub generator_core: usize,
}

impl Cores {
    /// The first and the last core that this process may use, and puts the calling thread on the last.
    ///
    /// # Errors
    /// What the operating system says.
    pub(crate) fn take() -> anyhow::Result<Self> {
        let allowed = sched_getaffinity(None).context("the cores of this process cannot be asked for")?;
        let cores: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core)).collect();
        let (Some(first), Some(last)) = (cores.first(), cores.last()) else {
            bail!("the operating system names no core that this process may use");
        };
        let cores = Cores { server_core: *first, generator_core: *last };
        pin(cores.generator_core)?;
        Ok(cores)
    }

    /// Whether both have to share one core, so that their figures mean little.
    pub(crate) fn are_one(self) -> bool {
        self.server_core == self.generator_core
    }

    /// Runs `start` on the server's core. A process that it starts stays there, because affinity is inherited.
    ///
    /// # Errors
    /// What the operating system says, or `start`.
    pub(crate) fn on_server_core<T>(self, start: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<T> {
        pin(self.server_core)?;
        let started = start();
        pin(self.generator_core)?;
        started
    }
}

fn pin(core: usize) -> anyhow::Result<()> {
    let mut set = CpuSet::new();
    set.set(core);
    sched_setaffinity(None, &set).with_context(|| format!("this thread cannot be put on core {core}"))
}

/// What the scheduler notes of the living threads of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CpuTime {
    /// How long they were on a core.
    pub ran: Duration,
    /// How long they were ready and something else was on the core.
    pub waited: Duration,
}

/// The processor time of a process.
///
/// # Errors
/// The process is gone, or the kernel keeps no such account.
pub(crate) fn cpu_time(pid: u32) -> anyhow::Result<CpuTime> {
    let tasks = format!("/proc/{pid}/task");
    let mut total = CpuTime::default();
    for task in fs::read_dir(&tasks).with_context(|| format!("process {pid} is gone"))? {
        let path = task?.path().join("schedstat");
        // A thread may end between the listing and the reading.
        let Ok(text) = fs::read_to_string(&path) else { continue };
        let [ran, waited] =
            schedstat(&text).with_context(|| format!("{} is not as expected", path.display()))?;
        total.ran += ran;
        total.waited += waited;
    }
    Ok(total)
}

/// The first two numbers of `schedstat` are the time on a core and the time waiting for one, in ns.
fn schedstat(text: &str) -> Option<[Duration; 2]> {
    let mut numbers = text.split_whitespace().map(|word| word.parse().ok().map(Duration::from_nanos));
    Some([numbers.next()??, numbers.next()??])
}

/// Lets this process, and those that it starts from then on, have so many files and sockets open.
///
/// # Errors
/// It may not; says how to let it.
pub(crate) fn allow_open_files(count: u64) -> anyhow::Result<()> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= count) {
        return Ok(());
    }
    if limit.maximum.is_some_and(|maximum| maximum < count) {
        let maximum = limit.maximum.unwrap_or(u64::MAX);
        bail!(
            "{count} sockets are needed and {maximum} allowed: raise the hard limit (ulimit -Hn), or take fewer"
        );
    }
    setrlimit(Resource::Nofile, Rlimit { current: Some(count), maximum: limit.maximum })
        .with_context(|| format!("the limit of open files cannot be raised to {count}"))
}

/// Memory at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Memory {
    /// What the process has resident, in bytes.
    pub resident_bytes: u64,
    /// What the kernel holds in slabs, on the whole machine, in bytes.
    pub slab_bytes: u64,
    /// What the buffers of all sockets of the machine take, in bytes.
    pub sockets_bytes: u64,
}

/// Reads the memory of a process, and what of the kernel's is not told apart by process.
///
/// # Errors
/// The process is gone, or the kernel keeps no such account.
pub(crate) fn memory(pid: u32) -> anyhow::Result<Memory> {
    let read = |path: &str| fs::read_to_string(path).with_context(|| format!("{path} cannot be read"));
    let rollup = format!("/proc/{pid}/smaps_rollup");
    let (smaps, meminfo, sockstat) = (read(&rollup)?, read("/proc/meminfo")?, read("/proc/net/sockstat")?);
    let kib = |text: &str, name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        let number = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
        number.with_context(|| format!("the kernel does not say {name}"))
    };
    let page_bytes = rustix::param::page_size() as u64;
    Ok(Memory {
        resident_bytes: kib(&smaps, "Rss")? * 1024,
        slab_bytes: kib(&meminfo, "Slab")? * 1024,
        sockets_bytes: socket_pages(&sockstat) * page_bytes,
    })
}

/// The pages of the buffers of TCP and UDP sockets, in `/proc/net/sockstat`.
fn socket_pages(sockstat: &str) -> u64 {
    let of = |protocol: &str| {
        let line = sockstat.lines().find_map(|line| line.strip_prefix(protocol))?;
        line.split_whitespace().skip_while(|word| *word != "mem").nth(1)?.parse::<u64>().ok()
    };
    [of("TCP:"), of("UDP:")].into_iter().flatten().sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_writes_is_understood() {
        assert_eq!(schedstat("138710 92521 2\n"), Some([138_710, 92_521].map(Duration::from_nanos)));
        assert_eq!(schedstat("138710"), None);
        let sockstat = "sockets: used 15\nTCP: inuse 1 orphan 0 tw 0 alloc 1 mem 270\nUDP: inuse 0 mem 238\n\
                        UDPLITE: inuse 9\nFRAG: inuse 0 memory 7\n";
        assert_eq!(socket_pages(sockstat), 508);
    }

    #[test]
    fn work_costs_time_and_memory_is_seen() {
        let own = std::process::id();
        let before = cpu_time(own).expect("Linux keeps the account");
        // Until the account moves: it is kept by the scheduler, at the latest with its next tick.
        while cpu_time(own).expect("Linux keeps the account").ran <= before.ran {}
        let memory = memory(own).expect("Linux keeps the account");
        assert!(memory.resident_bytes > 0 && memory.slab_bytes > 0, "{memory:?}");
        assert!(cpu_time(u32::MAX).is_err());
    }

    #[test]
    fn a_limit_that_is_high_enough_stays() {
        let before = getrlimit(Resource::Nofile);
        allow_open_files(3).expect("three are always allowed");
        assert_eq!(getrlimit(Resource::Nofile), before);
        if let Some(maximum) = before.maximum {
            let error = allow_open_files(maximum + 1).expect_err("it is beyond the hard limit");
            assert!(error.to_string().contains("ulimit -Hn"), "{error}");
        }
    }
}
