//! Where a server's processor time goes, by part of the program: samples of `perf`, sorted by their symbols.

use anyhow::{Context, bail, ensure};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Samples a second: a prime, so that no timer of the server keeps step with it.
const SAMPLES_HZ: &str = "1997";

/// A part of the program, and its share of the time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Part {
    pub name: &'static str,
    pub percent: f64,
}

const ALLOCATOR: &str = "allocator";

/// What a symbol must contain to be of a part. The first that fits counts.
const PARTS: [(&str, &[&str]); 10] = [
    (
        ALLOCATOR,
        &["malloc", "cfree", "_int_free", "realloc", "calloc", "unlink_chunk", "__rust_", "__rdl_", "RawVec"],
    ),
    ("state engine", &["parlor_sync"]),
    ("session and wire", &["parlor_proto"]),
    ("hub", &["parlor_hub"]),
    ("driver", &["parlor_transport", "parlor_server"]),
    ("QUIC", &["quinn"]),
    ("cryptography", &["ring_core", "ring::", "rustls", "aes_", "gcm_"]),
    ("WebSocket", &["tungstenite"]),
    ("runtime", &["tokio", "mio::", "futures", "hyper", "epoll_wait"]),
    ("copies", &["memmove", "memcpy", "memset", "memcmp"]),
];
/// Samples in the kernel, and those whose symbol is of no part, such as the standard library's.
const KERNEL: &str = "kernel";
const REST: &str = "rest";

/// Samples of a process, while it runs.
#[derive(Debug)]
pub(crate) struct Sampling {
    perf: Child,
    file: PathBuf,
}

impl Sampling {
    /// Samples a process from `delay` on. `perf` takes a while to start, on the generator's core: that time belongs
    /// before anything counts, because a generator that stands still writes two states at once.
    ///
    /// # Errors
    /// `perf` is not installed.
    pub(crate) fn start(pid: u32, delay: Duration) -> anyhow::Result<Self> {
        let file = std::env::temp_dir().join(format!("parlor-bench-{}.perf", std::process::id()));
        let mut command = Command::new("perf");
        command
            .args(["record", "-q", "-e", "cpu-clock", "-F", SAMPLES_HZ, "-p", &pid.to_string()])
            .args(["-D", &delay.as_millis().to_string(), "-o"])
            .arg(&file);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let perf =
            command.spawn().context("perf cannot be started: install it (`apt-get install linux-perf`)")?;
        Ok(Sampling { perf, file })
    }

    /// Ends it, and sorts the samples: the largest part first.
    ///
    /// # Errors
    /// What `perf` says, or the binary has no symbols.
    pub(crate) fn parts(mut self) -> anyhow::Result<Vec<Part>> {
        let interrupted = Command::new("kill").args(["-INT", &self.perf.id().to_string()]).status();
        ensure!(interrupted.is_ok_and(|status| status.success()), "perf cannot be ended");
        self.perf.wait().context("perf does not end")?;
        parts(&report(&self.file)?)
    }
}

impl Drop for Sampling {
    fn drop(&mut self) {
        // It has ended already, unless the measurement failed.
        let _ = self.perf.kill();
        let _ = self.perf.wait();
        let _ = std::fs::remove_file(&self.file);
    }
}

fn report(file: &Path) -> anyhow::Result<String> {
    let mut command = Command::new("perf");
    command.args(["report", "--stdio", "--no-children", "-g", "none", "--sort", "symbol"]);
    command.args(["--percent-limit", "0", "-i"]).arg(file).stdin(Stdio::null());
    let output = command.output().context("perf cannot be started")?;
    ensure!(
        output.status.success(),
        "perf report failed: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    String::from_utf8(output.stdout).context("perf report prints something other than text")
}

/// Sorts the lines of a report.
fn parts(report: &str) -> anyhow::Result<Vec<Part>> {
    let mut found: BTreeMap<&'static str, f64> = BTreeMap::new();
    for line in report.lines().filter(|line| !line.starts_with('#')) {
        let Some((percent, symbol)) = line.trim().split_once("% ") else { continue };
        let percent: f64 =
            percent.trim().parse().with_context(|| format!("perf report has the line {line:?}"))?;
        *found.entry(part_of(symbol.trim())).or_default() += percent;
    }
    if found.is_empty() {
        bail!("perf took no samples: may this user sample others (/proc/sys/kernel/perf_event_paranoid)?");
    }
    if !found.contains_key("state engine") {
        bail!(
            "the server has no symbols: build with `--profile profiling`, and run target/profiling/parlor-bench"
        );
    }
    let mut parts: Vec<Part> = found.into_iter().map(|(name, percent)| Part { name, percent }).collect();
    parts.sort_by(|a, b| b.percent.total_cmp(&a.percent));
    Ok(parts)
}

/// The part of a symbol, with its mark for kernel or user space before it.
pub(crate) fn part_of(symbol: &str) -> &'static str {
    if symbol.starts_with("[k]") {
        return KERNEL;
    }
    if symbol == "free" {
        return ALLOCATOR;
    }
    let fits = |marks: &[&str]| marks.iter().any(|mark| symbol.contains(mark));
    PARTS.iter().find(|(_, marks)| fits(marks)).map_or(REST, |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = "# Overhead  Symbol\n#\n    \
        31.00%  [k] udp_recvmsg                                        \n    \
        20.50%  [.] parlor_sync::delta::numbers::numbers               \n     \
        2.00%  [.] <parlor_transport::quic::congestion::GameController as quinn_proto::congestion::Controller>::on_ack\n    \
        12.00%  [.] quinn_proto::connection::Connection::poll_transmit \n     \
        4.00%  [.] <rustls::crypto::ring::quic::PacketKey as rustls::quic::PacketKey>::encrypt_in_place\n     \
        3.00%  [.] _int_malloc                                         \n     \
        1.00%  [k] kfree                                               \n     \
        0.50%  [.] parlor_sync::world::publisher::Publisher::next_packet\n     \
        0.25%  [.] alloc::collections::binary_heap::BinaryHeap<T,A>::pop\n";

    #[test]
    fn each_symbol_is_of_one_part_and_the_largest_part_is_first() {
        let found = parts(REPORT).expect("the report has samples");
        let found: Vec<(&str, f64)> = found.iter().map(|part| (part.name, part.percent)).collect();
        let wanted = [
            ("kernel", 32.0),
            ("state engine", 21.0),
            ("QUIC", 12.0),
            ("cryptography", 4.0),
            ("allocator", 3.0),
            ("driver", 2.0),
            ("rest", 0.25),
        ];
        assert_eq!(found, wanted);
    }

    #[test]
    fn symbols_of_a_server_are_of_their_parts() {
        let symbols = [
            ("[k] do_epoll_wait", "kernel"),
            ("[.] epoll_wait", "runtime"),
            ("[.] mio::poll::Poll::poll", "runtime"),
            ("[.] <hyper::common::io::rewind::Rewind<T> as hyper::rt::io::Read>::poll_read", "runtime"),
            ("[.] futures_core::task::__internal::atomic_waker::AtomicWaker::wake", "runtime"),
            ("[.] tungstenite::protocol::WebSocketContext::buffer_frame", "WebSocket"),
            ("[.] ring::aead::aes_gcm::seal", "cryptography"),
            ("[.] ring_core_0_17_14__gcm_ghash_vpclmulqdq_avx2_1", "cryptography"),
            ("[.] quinn_proto::connection::Connection::poll_transmit", "QUIC"),
            ("[.] parlor_server::shard::Driver::take", "driver"),
            ("[.] parlor_hub::hub::cycle::<impl parlor_hub::hub::Hub>::handle_timeout", "hub"),
            ("[.] parlor_proto::session::acks::InFlight::acked", "session and wire"),
            ("[.] cfree@GLIBC_2.2.5", "allocator"),
            ("[.] alloc::raw_vec::RawVecInner<A>::finish_grow", "allocator"),
            ("[.] __rustc::__rdl_dealloc", "allocator"),
            ("[.] __memmove_avx512_unaligned_erms", "copies"),
            ("[.] alloc::collections::vec_deque::VecDeque<T,A>::binary_search_by", "rest"),
        ];
        for (symbol, part) in symbols {
            assert_eq!(part_of(symbol), part, "{symbol}");
        }
    }

    #[test]
    fn a_report_without_samples_or_symbols_is_an_error_that_says_what_to_do() {
        let said = |report: &str| parts(report).expect_err("it sorts nothing").to_string();
        assert!(said("# no samples\n").contains("perf_event_paranoid"));
        assert!(said("   50.00%  [.] 0x000000000106955c\n").contains("--profile profiling"));
    }
}
