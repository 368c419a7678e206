//! The step that tests the store at length: killed often, and on a PostgreSQL server of its own beside SQLite.

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::runner::spawn;
use crate::steps::{Invocation, Missing, Work, need, or_from_environment};

/// Where Debian keeps the programs of each version.
const VERSIONS: &str = "/usr/lib/postgresql";
/// Whom the server runs as if this program is root's: it refuses to be root itself.
const USER: &str = "postgres";
/// Kills of a writing process, on each store.
const LONG_KILLS: &str = "200";

/// Wants the server's programs.
pub(crate) fn plan(_: &Path) -> Result<Work, Missing> {
    if programs().is_none() {
        let why = "there is no PostgreSQL server to start".to_owned();
        return Err(Missing { why, hint: "apt-get install postgresql".to_owned() });
    }
    if is_root() {
        need("runuser --version", "root has nothing to run a server as somebody else", "util-linux")?;
    }
    let tests = Invocation::cargo("test -p parlor-server --all-features --test store");
    let kills = or_from_environment("PARLOR_KILLS", LONG_KILLS);
    Ok(Work::WithPostgres(tests.env("PARLOR_KILLS", &kills)))
}

/// Runs the tests beside a server that is there for them alone.
pub(crate) fn run(root: &Path, tests: Invocation) -> Result<(), String> {
    let rerun = "cargo xtask test --only store".to_owned();
    let server = match Server::start() {
        Ok(server) => server,
        Err(why) => {
            println!("store: {why}");
            return Err(rerun);
        }
    };
    spawn(root, &tests.env("PARLOR_POSTGRES", &server.address())).map_err(|_| rerun)
}

/// A server with an empty database, which is gone with this value.
struct Server {
    programs: PathBuf,
    folder: PathBuf,
    port: u16,
}

impl Server {
    fn start() -> Result<Server, String> {
        let programs = programs().ok_or("there is no PostgreSQL")?;
        // Not in the checkout, which need not be another user's to enter.
        let folder = std::env::temp_dir().join(format!("parlor-postgres-{}", std::process::id()));
        let server = Server { programs, folder, port: free_port()? };
        let data = server.data();
        obey(as_user("mkdir").arg("-p").arg(&server.folder))?;
        let init = ["-U", "parlor", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", "-D"];
        obey(server.program("initdb").args(init).arg(&data))?;
        let options = format!(
            "-p {} -c listen_addresses=127.0.0.1 -c unix_socket_directories={}",
            server.port,
            server.folder.display()
        );
        let log = server.folder.join("log");
        let mut start = server.program("pg_ctl");
        obey(start.args(["-w", "-o", &options, "-l"]).arg(&log).arg("-D").arg(&data).arg("start"))?;
        Ok(server)
    }

    fn address(&self) -> String {
        format!("postgres://parlor@127.0.0.1:{}/postgres", self.port)
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    fn program(&self, name: &str) -> Command {
        as_user(&self.programs.join(name).to_string_lossy())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let mut stop = self.program("pg_ctl");
        let stopped = obey(stop.args(["-m", "immediate", "-D"]).arg(self.data()).arg("stop"));
        let removed = obey(as_user("rm").arg("-rf").arg(&self.folder));
        for why in [stopped, removed].into_iter().filter_map(Result::err) {
            println!("store: the server is not cleared away: {why}");
        }
    }
}

fn free_port() -> Result<u16, String> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    let address = listener.and_then(|listener| listener.local_addr());
    address.map(|address| address.port()).map_err(|error| format!("no port is free: {error}"))
}

/// The folder of the newest version's programs.
fn programs() -> Option<PathBuf> {
    let versions = std::fs::read_dir(VERSIONS).ok()?.filter_map(Result::ok);
    let number = |path: &PathBuf| path.parent()?.file_name()?.to_str()?.parse::<u32>().ok();
    let folders = versions.map(|version| version.path().join("bin"));
    folders.filter(|folder| folder.join("initdb").is_file()).max_by_key(number)
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").stderr(Stdio::null()).output();
    id.is_ok_and(|id| id.stdout.trim_ascii() == b"0")
}

/// A program, run as whom the server runs as.
fn as_user(program: &str) -> Command {
    let mut command = Command::new(if is_root() { "runuser" } else { program });
    if is_root() {
        command.args(["-u", USER, "--", program]);
    }
    // That user need not be let into where this program stands.
    command.current_dir("/").stdin(Stdio::null());
    command
}

fn obey(command: &mut Command) -> Result<(), String> {
    let output = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let output = output.and_then(std::process::Child::wait_with_output);
    match output {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim())),
        Err(error) => Err(format!("{command:?}: {error}")),
    }
}
