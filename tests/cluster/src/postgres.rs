//! A PostgreSQL server that a test may restart: no other test has it.

use parlor_testing::within;
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// Says where the server is, and restarts it for each line that comes.
const SCRIPT: &str = r#"echo "$PARLOR_POSTGRES"; while read -r _; do (eval "$PARLOR_POSTGRES_RESTART") >&2; echo restarted; done"#;

/// The server. It ends once this is dropped.
pub struct Postgres {
    /// Its address.
    pub address: String,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    script: Child,
}

impl Postgres {
    /// Starts one, where tests have PostgreSQL at all.
    pub async fn start() -> Option<Self> {
        std::env::var_os("PARLOR_POSTGRES")?;
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../xtask/scratch-postgres.sh");
        let mut command = Command::new("sh");
        command.args([script, "sh", "-c", SCRIPT]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut output = BufReader::new(output).lines();
        let address = within(output.next_line()).await.unwrap().expect("the server has an address");
        Some(Postgres { address, input, output, script: child })
    }

    /// Restarts it, as after a crash.
    pub async fn restart(&mut self) {
        self.input.write_all(b"now\n").await.unwrap();
        assert_eq!(within(self.output.next_line()).await.unwrap().as_deref(), Some("restarted"));
    }

    /// Ends it, and waits for that.
    pub async fn end(self) {
        let Postgres { input, output, mut script, .. } = self;
        drop((input, output));
        within(script.wait()).await.unwrap();
    }
}
