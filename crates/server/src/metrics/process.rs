//! Metrics of this process from the operating system.

use std::fs;

/// Ticks in a second as `/proc` counts them. Linux guarantees this value to programs, whatever its own clock
/// does.
const TICKS_PER_SECOND: f64 = 100.0;

/// The operating system's data about this process. Unknown data is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Process {
    /// Resident memory, in bytes.
    pub(super) resident_bytes: Option<u64>,
    /// Processor time, in seconds.
    pub(super) cpu_s: Option<f64>,
    /// Open files and sockets.
    pub(super) open_files: Option<u64>,
    /// The limit of open files.
    pub(super) open_files_max: Option<u64>,
}

impl Process {
    /// Reads the current data. Without `/proc` nothing is known.
    pub(super) fn look() -> Self {
        let read = |file: &str| fs::read_to_string(format!("/proc/self/{file}")).ok();
        Process {
            resident_bytes: read("status").and_then(|text| resident(&text)),
            cpu_s: read("stat").and_then(|text| cpu(&text)),
            // One of them is the folder that is being read.
            open_files: fs::read_dir("/proc/self/fd")
                .ok()
                .map(|files| files.count().saturating_sub(1) as u64),
            open_files_max: open_files_max(),
        }
    }
}

/// The limit of open files of this process, if the system reports it.
pub(crate) fn open_files_max() -> Option<u64> {
    fs::read_to_string("/proc/self/limits").ok().and_then(|text| files_max(&text))
}

fn resident(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    kib.checked_mul(1024)
}

/// The program's name is in brackets and may contain anything; the fields follow it.
fn cpu(stat: &str) -> Option<f64> {
    let mut fields = stat.rsplit_once(") ")?.1.split(' ').skip(11);
    let mut ticks = || fields.next()?.parse::<u64>().ok();
    let (user, system) = (ticks()?, ticks()?);
    Some((user + system) as f64 / TICKS_PER_SECOND)
}

fn files_max(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_linux_says_is_read() {
        assert_eq!(resident("Name:\tparlor\nVmRSS:\t   12 kB\n"), Some(12 * 1024));
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194560 100 0 0 0 150 50 0 0 20 0 3 0 99";
        assert_eq!(cpu(stat), Some(2.0));
        assert_eq!(files_max("Max open files            1024                 4096  files\n"), Some(1024));
        for nonsense in ["", "x", ") ", "VmRSS: 1", "Max open files unlimited"] {
            assert_eq!((resident(nonsense), cpu(nonsense), files_max(nonsense)), (None, None, None));
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_has_memory_and_files() {
        let file = fs::File::open("/proc/self/stat").unwrap();
        let process = Process::look();
        assert!(process.resident_bytes.unwrap() > 1 << 20);
        assert!(process.open_files.unwrap() >= 1 && process.cpu_s.is_some());
        assert!(process.open_files_max.unwrap() >= process.open_files.unwrap());
        drop(file);
    }
}
