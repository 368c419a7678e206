//! NATS servers that tests start, on this machine alone.

use serde_json::Value;
use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long a server has to start.
const START_TIME: Duration = Duration::from_secs(20);

/// A server. It ends when this is dropped.
pub struct NatsServer {
    /// Its program.
    pub program: String,
    /// Where it listens, `127.0.0.1:PORT`. It takes the user `ada` with the password `s3cret:` alone.
    pub place: String,
    server: Child,
    _folder: TempDir,
}

/// The programs of NATS that `xtask/scratch-nats.sh` found.
pub fn nats_programs() -> Vec<String> {
    let Ok(programs) = std::env::var("PARLOR_NATS") else {
        println!("skipped over NATS: PARLOR_NATS names no program");
        return Vec::new();
    };
    programs.split(':').filter(|program| !program.is_empty()).map(str::to_owned).collect()
}

impl NatsServer {
    /// Starts one, with more arguments. It draws its port.
    pub fn start(program: &str, args: &[&str]) -> NatsServer {
        Self::start_at(program, "-1", args)
    }

    fn start_at(program: &str, port: &str, args: &[&str]) -> NatsServer {
        let folder = tempfile::tempdir().expect("a folder");
        let server = Command::new(program)
            .args(["-a", "127.0.0.1", "-p", port, "--user", "ada", "--pass", "s3cret:", "--ports_file_dir"])
            .arg(folder.path())
            .args(args)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("a NATS server");
        let began = Instant::now();
        let port = loop {
            let files = fs::read_dir(folder.path()).expect("its folder").flatten();
            let ports = files.filter_map(|file| fs::read_to_string(file.path()).ok());
            let port = ports.filter_map(|text| port_of(&text)).next();
            match port {
                Some(port) => break port,
                None => assert!(began.elapsed() < START_TIME, "{program} does not start"),
            }
            std::thread::yield_now();
        };
        let place = format!("127.0.0.1:{port}");
        NatsServer { program: program.to_owned(), place, server, _folder: folder }
    }

    /// The address of a bus over it.
    pub fn address(&self) -> String {
        format!("nats://ada:s3cret%3A@{}", self.place)
    }

    /// Ends it, and starts another one on the same port.
    pub fn restart(mut self) -> NatsServer {
        self.stop();
        let port = self.place.rsplit_once(':').expect("a port").1.to_owned();
        Self::start_at(&self.program, &port, &[])
    }

    fn stop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

fn port_of(ports: &str) -> Option<String> {
    let ports: Value = serde_json::from_str(ports).ok()?;
    Some(ports["nats"][0].as_str()?.rsplit_once(':')?.1.to_owned())
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        self.stop();
    }
}
