//! Queries of the operating system: cores, open files, memory. Linux only.

use anyhow::{Context, bail, ensure};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};
use serde::{Serialize, Serializer};
use std::fs;
use std::time::Duration;

/// Where the server and the generator run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Cores {
    /// The server's.
    #[serde(serialize_with = "as_numbers")]
    server_cores: CpuSet,
    /// The number of the generator's core.
    pub(crate) generator_core: usize,
    /// All that this process may use.
    #[serde(skip)]
    allowed: CpuSet,
}

impl Cores {
    /// The first core that this process may use for the server and the last for the generator, so that neither takes the other's time.
    /// Puts the calling thread on the last.
    ///
    /// # Errors
    /// What the operating system says.
    pub(crate) fn take() -> anyhow::Result<Self> {
        let allowed = sched_getaffinity(None).context("the cores of this process cannot be asked for")?;
        let (Some(first), Some(last)) = (numbers(&allowed).next(), numbers(&allowed).last()) else {
            bail!("the operating system names no core that this process may use");
        };
        let cores = Cores { server_cores: only(first), generator_core: last, allowed };
        pin(&only(last))?;
        Ok(cores)
    }

    /// The same, with a server that has all cores, the generator's among them.
    pub(crate) fn whole_for_server(self) -> Self {
        Cores { server_cores: self.allowed, ..self }
    }

    /// The same, with a server that has so many cores: the first ones. If it has all, the generator's is among them.
    ///
    /// # Errors
    /// This process may not use so many.
    pub(crate) fn with_server_cores(self, count: u16) -> anyhow::Result<Self> {
        let allowed = numbers(&self.allowed).count();
        ensure!(usize::from(count) <= allowed, "--cores {count}: this process may use {allowed}");
        let mut server_cores = CpuSet::new();
        numbers(&self.allowed).take(count.into()).for_each(|core| server_cores.set(core));
        Ok(Cores { server_cores, ..self })
    }

    /// Runs `start` on the server's cores. A process that it starts stays there, because affinity is inherited.
    ///
    /// # Errors
    /// What the operating system says, or `start`.
    pub(crate) fn on_server_cores<T>(self, start: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<T> {
        pin(&self.server_cores)?;
        let started = start();
        pin(&only(self.generator_core))?;
        started
    }

    /// What must be said of the cores, for people.
    pub(crate) fn note(self) -> String {
        if numbers(&self.allowed).count() == 1 {
            return "there is one core for both server and generator: the figures mean little".to_owned();
        }
        let server: Vec<String> = numbers(&self.server_cores).map(|core| core.to_string()).collect();
        let cores = if server.len() == 1 { "core" } else { "cores" };
        let is_shared = self.server_cores.is_set(self.generator_core);
        let shared = if is_shared { ", which they share: the server has less than its cores" } else { "" };
        format!("server on {cores} {}, generator on core {}{shared}", server.join(", "), self.generator_core)
    }
}

fn numbers(cores: &CpuSet) -> impl Iterator<Item = usize> {
    (0..CpuSet::MAX_CPU).filter(|core| cores.is_set(*core))
}

fn as_numbers<S: Serializer>(cores: &CpuSet, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(numbers(cores))
}

fn only(core: usize) -> CpuSet {
    let mut set = CpuSet::new();
    set.set(core);
    set
}

fn pin(cores: &CpuSet) -> anyhow::Result<()> {
    sched_setaffinity(None, cores).context("this thread cannot be put on the cores that are meant for it")
}

/// The processor time of this thread so far.
pub(crate) fn thread_cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
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

/// Sockets and files of both ends beside one for each session.
const OTHER_FILES: u64 = 256;

/// [Lets](allow_open_files) this process have so many sessions.
///
/// # Errors
/// As of [`allow_open_files`].
pub(crate) fn allow_sessions(count: u32) -> anyhow::Result<()> {
    allow_open_files(u64::from(count) + OTHER_FILES)
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

/// Reads the memory of a process, and the kernel's memory that has no process.
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
        let sockstat = "sockets: used 15\nTCP: inuse 1 orphan 0 tw 0 alloc 1 mem 270\nUDP: inuse 0 mem 238\n\
                        UDPLITE: inuse 9\nFRAG: inuse 0 memory 7\n";
        assert_eq!(socket_pages(sockstat), 508);
    }

    #[test]
    fn a_server_has_its_core_or_all() {
        let before = sched_getaffinity(None).expect("Linux says it");
        let cores = Cores::take().expect("there is a core");
        for cores in [cores, cores.whole_for_server()] {
            let inside = cores.on_server_cores(|| Ok(sched_getaffinity(None)?)).expect("cores of its own");
            assert_eq!(inside, cores.server_cores);
        }
        assert_eq!(cores.whole_for_server().server_cores, before);
        assert_eq!(numbers(&cores.server_cores).count(), 1);
    }

    #[test]
    fn a_server_has_as_many_cores_as_are_asked_for() {
        let set = |cores: &[usize]| {
            let mut set = CpuSet::new();
            cores.iter().for_each(|core| set.set(*core));
            set
        };
        let cores = Cores { server_cores: set(&[1]), generator_core: 5, allowed: set(&[1, 3, 5]) };
        let [two, three] = [2, 3].map(|count| cores.with_server_cores(count).expect("there are so many"));
        assert_eq!(two.server_cores, set(&[1, 3]));
        assert_eq!(two.note(), "server on cores 1, 3, generator on core 5");
        assert!(three.note().starts_with("server on cores 1, 3, 5, generator on core 5, which they share"));
        let error = cores.with_server_cores(4).expect_err("there are three").to_string();
        assert!(error.contains("--cores 4") && error.contains("may use 3"), "{error}");
    }

    #[test]
    fn a_thread_counts_its_own_work() {
        let before = thread_cpu_time();
        while thread_cpu_time() == before {}
        let worked = thread_cpu_time();
        let other = std::thread::spawn(|| thread_cpu_time() < Duration::from_secs(1));
        assert!(worked > before && other.join().expect("it only looks"));
    }

    #[test]
    fn memory_is_seen() {
        let memory = memory(std::process::id()).expect("Linux keeps the account");
        assert!(memory.resident_bytes > 0 && memory.slab_bytes > 0, "{memory:?}");
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
