//! Processor time from Linux's scheduler.

use anyhow::Context;
use std::fs;
use std::time::Duration;

/// What the scheduler notes of the living threads of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CpuTime {
    /// How long they were on a core.
    pub ran: Duration,
    /// How long they were ready and something else was on the core.
    pub waited: Duration,
}

impl CpuTime {
    /// Adds another process's or thread's time.
    pub(crate) fn add(&mut self, other: CpuTime) {
        self.ran += other.ran;
        self.waited += other.waited;
    }

    /// What came since.
    pub(crate) fn since(self, before: CpuTime) -> CpuTime {
        CpuTime {
            ran: self.ran.saturating_sub(before.ran),
            waited: self.waited.saturating_sub(before.waited),
        }
    }
}

/// The processor time of a process.
///
/// # Errors
/// The process is gone, or the kernel keeps no such account.
pub(crate) fn cpu_time(pid: u32) -> anyhow::Result<CpuTime> {
    cpu_time_of(pid, |_| true)
}

/// The processor time of those threads of a process whose names are wanted.
///
/// # Errors
/// The process is gone, or the kernel keeps no such account.
pub(crate) fn cpu_time_of(pid: u32, is_wanted: impl Fn(&str) -> bool) -> anyhow::Result<CpuTime> {
    let tasks = format!("/proc/{pid}/task");
    let mut total = CpuTime::default();
    for task in fs::read_dir(&tasks).with_context(|| format!("process {pid} is gone"))? {
        let task = task?.path();
        let name = fs::read_to_string(task.join("comm")).unwrap_or_default();
        if !is_wanted(name.trim_end()) {
            continue;
        }
        let path = task.join("schedstat");
        // A thread may end between the listing and the reading.
        let Ok(text) = fs::read_to_string(&path) else { continue };
        let [ran, waited] =
            schedstat(&text).with_context(|| format!("{} is not as expected", path.display()))?;
        total.add(CpuTime { ran, waited });
    }
    Ok(total)
}

/// The first two numbers of `schedstat` are the time on a core and the time waiting for one, in ns.
fn schedstat(text: &str) -> Option<[Duration; 2]> {
    let mut numbers = text.split_whitespace().map(|word| word.parse().ok().map(Duration::from_nanos));
    Some([numbers.next()??, numbers.next()??])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_scheduler_writes_is_understood() {
        assert_eq!(schedstat("138710 92521 2\n"), Some([138_710, 92_521].map(Duration::from_nanos)));
        assert_eq!(schedstat("138710"), None);
    }

    #[test]
    fn work_costs_time() {
        let own = std::process::id();
        let before = cpu_time(own).expect("Linux keeps the account");
        // Until the account moves: it is kept by the scheduler, at the latest with its next tick.
        while cpu_time(own).expect("Linux keeps the account").since(before).ran.is_zero() {}
        assert!(cpu_time(u32::MAX).is_err());
        let nobody = cpu_time_of(own, |name| name == "nobody has it");
        assert_eq!(nobody.expect("Linux keeps the account"), CpuTime::default());
    }
}
