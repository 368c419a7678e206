//! A PostgreSQL server for the tests that need one.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::list::Test;

/// The variable of the environment that names the server to tests.
const VARIABLE: &str = "PARLOR_POSTGRES";

/// The server. It ends once this is dropped.
pub(super) struct Postgres {
    script: Child,
    address: String,
}

impl Postgres {
    /// Starts one from the system's packages.
    pub(super) fn start(root: &Path) -> Result<Postgres, String> {
        let mut command = Command::new("sh");
        command.current_dir(root).args(["xtask/scratch-postgres.sh", "sh", "-c"]);
        command.arg(format!("echo \"${VARIABLE}\"; read -r _")).stdin(Stdio::piped()).stdout(Stdio::piped());
        let failed = |error| format!("PostgreSQL could not be started: {error}");
        let mut script = command.spawn().map_err(failed)?;
        let mut address = String::new();
        if let Some(output) = script.stdout.take() {
            BufReader::new(output).read_line(&mut address).map_err(failed)?;
        }
        address.truncate(address.trim_end().len());
        // It has said why.
        if address.is_empty() {
            return Err("PostgreSQL could not be started".to_owned());
        }
        Ok(Postgres { script, address })
    }

    /// What a test finds in its environment if it needs the server.
    pub(super) fn env(&self, test: &Test) -> Option<(&'static str, &str)> {
        test.postgres.then_some((VARIABLE, self.address.as_str()))
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        drop(self.script.stdin.take());
        let _ = self.script.wait();
    }
}
