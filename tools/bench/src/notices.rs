//! How long it takes until a player hears what another one says in a turn room: the server stores it, and tells the
//! players' nodes.

use super::member::APP;
use super::server::Server;
use super::turns::micros;
use anyhow::{Context, bail, ensure};
use parlor::online::{self, Event, SignIn, TurnRoom};
use std::time::{Duration, Instant};
use tokio::task::yield_now;

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// Two players of a turn room, or its first one.
struct Players(Vec<TurnRoom>);

/// Lets the first player of a room say something, again and again for this time, once the second one has heard it. Returns
/// how long each took to be heard, in microseconds. The players ask the first and the last of the servers.
///
/// # Errors
/// What kept it from being measured.
pub(super) async fn measured(servers: &[&Server], time: Duration) -> anyhow::Result<Vec<u32>> {
    let [first, last] = [servers.first(), servers.last()].map(|server| server.context("there is a server"));
    let mut players = Players::open(first?, last?).await?;
    let (began, mut took_us) = (Instant::now(), Vec::new());
    for number in 0_u64.. {
        if began.elapsed() >= time {
            break;
        }
        let said = Instant::now();
        players.0[0].say("number", &number)?;
        players
            .until("what is said is heard", |who, event| {
                who == 1 && matches!(event, Event::Message { body, .. } if *body == number)
            })
            .await?;
        took_us.push(micros(said.elapsed()));
    }
    Ok(took_us)
}

fn player(server: &Server, name: &str) -> anyhow::Result<SignIn> {
    let address = format!("127.0.0.1:{}#{}", server.addr().port(), server.fingerprint()?);
    Ok(online::sign_in(&address).name(name).config("auto_start", false).max_players(2))
}

impl Players {
    async fn open(first: &Server, last: &Server) -> anyhow::Result<Self> {
        let mut players = Players(vec![player(first, "host")?.create(APP)?]);
        let mut code = None;
        let is_open = |_, event: &Event| match event {
            Event::Connected { code: of, .. } => {
                code.clone_from(of);
                true
            }
            _ => false,
        };
        players.until("a room is open", is_open).await?;
        players.0.push(player(last, "guest")?.join(APP, &code.context("a room has a code")?)?);
        let is_in = |who, event: &Event| who == 1 && matches!(event, Event::Connected { .. });
        players.until("the second player is in", is_in).await?;
        Ok(players)
    }

    /// Polls all until one has such an event.
    async fn until(
        &mut self,
        what: &str,
        mut is_it: impl FnMut(usize, &Event) -> bool,
    ) -> anyhow::Result<()> {
        let since = Instant::now();
        loop {
            for (who, room) in self.0.iter_mut().enumerate() {
                while let Some(event) = room.poll() {
                    if let Event::Closed(error) | Event::Failed { error, .. } = &event {
                        bail!("{what}: {error}");
                    }
                    if is_it(who, &event) {
                        return Ok(());
                    }
                }
            }
            ensure!(since.elapsed() < PATIENCE, "{what}: that does not come");
            yield_now().await;
        }
    }
}
