//! Turn rooms with short timers: two players who move by turns, and at times one who lets its time run out.
//! Other players use the rest of the services.

use super::record::Kind;
use super::stage::Stage;
use crate::http::{Http, Player};
use crate::member::APP;
use crate::turns::Game;
use anyhow::{Context, ensure};
use parlor_proto::Instant;
use serde_json::{Value, json};
use std::rc::Rc;
use std::time::Duration;
use tokio::time::sleep;

/// Between two moves of a desk, and between two requests of a player.
const MOVE_EVERY_MS: (u16, u16) = (250, 600);
const ASK_EVERY_MS: (u16, u16) = (250, 750);
/// How long a turn may take.
const TURN_MS: u64 = 2_000;
/// So much later than that its end may be seen.
const TURN_GRACE: Duration = Duration::from_secs(3);
/// One turn of so many runs out.
const TURNS_A_TIMEOUT: u32 = 16;
/// After so many moves the inbox is acknowledged.
const MOVES_AN_ACKNOWLEDGEMENT: u32 = 32;
/// A room is played in for so many moves, and then another one is opened.
const MOVES_A_ROOM: u32 = 400;
/// Access tokens are good for longer.
const REFRESH_EVERY: Duration = Duration::from_secs(5 * 60);
/// A connection of which nothing was heard for so long is closed by the server soon.
const IDLE_MAX: Duration = Duration::from_secs(3);
/// Pause of a player after an error.
const REST: Duration = Duration::from_secs(1);
/// One request of so many is a sign-in with a password: a server hashes it.
const ASKS_A_PASSWORD: u32 = 16;

/// A player with an account, at one address.
struct Asker {
    stage: Rc<Stage>,
    http: Http,
    player: Player,
    refreshed_at: Instant,
    asked_at: Instant,
}

impl Asker {
    async fn sign_in(stage: &Rc<Stage>, number: usize) -> anyhow::Result<Self> {
        let mut http = stage.next_http();
        let player = http.sign_in(number).await?;
        let now = stage.record.now();
        Ok(Asker { stage: Rc::clone(stage), http, player, refreshed_at: now, asked_at: now })
    }

    /// Asks and counts how long it takes.
    async fn ask(&mut self, kind: Kind, path: &str, body: Option<&Value>) -> anyhow::Result<Value> {
        let now = self.stage.record.now();
        if now.saturating_since(self.asked_at) > IDLE_MAX {
            self.http.hang_up();
        }
        let token = self.player.token.clone();
        let answer = match body {
            Some(body) => self.http.post(path, &token, body).await,
            None => self.http.get(path, &token).await,
        };
        self.asked_at = self.stage.record.now();
        let answer = answer?;
        self.stage.record.note_since(kind, now);
        Ok(answer)
    }

    /// The next tokens, for the refresh token.
    async fn refresh(&mut self) -> anyhow::Result<()> {
        let with = json!({ "app": APP, "refresh_token": self.player.refresh_token });
        let answer = self.ask(Kind::ServiceRequest, "/auth/refresh", Some(&with)).await?;
        self.player = Player::read(&answer)?;
        self.refreshed_at = self.stage.record.now();
        Ok(())
    }

    async fn refresh_if_due(&mut self) -> anyhow::Result<()> {
        if self.stage.record.now().saturating_since(self.refreshed_at) < REFRESH_EVERY {
            return Ok(());
        }
        self.refresh().await
    }
}

/// What went wrong, without what differs each time.
fn kind_of(error: &anyhow::Error) -> String {
    let text = format!("{error:#}");
    // An answer that is a refusal names its code; what stands before names what was asked for.
    let code = text.split_once("\"code\":\"").and_then(|(_, rest)| rest.split('"').next());
    let asked = text.split('{').next().unwrap_or_default();
    let kind = code.map_or_else(|| text.clone(), |code| format!("{asked}{code}"));
    // Ids and numbers are no kinds.
    let parts = kind.split('/').map(|part| {
        let is_id = part.len() > 16 && part.chars().all(|letter| letter.is_ascii_alphanumeric());
        if is_id { "ID" } else { part }
    });
    parts.collect::<Vec<_>>().join("/").replace(|letter: char| letter.is_ascii_digit(), "")
}

/// Two players at one desk, for ever.
pub(super) async fn desk(stage: Rc<Stage>, number: usize) {
    loop {
        if let Err(error) = play(&stage, number).await {
            stage.record.error(format!("a turn room: {}", kind_of(&error)));
            sleep(REST).await;
        }
    }
}

async fn play(stage: &Rc<Stage>, number: usize) -> anyhow::Result<()> {
    let mut players =
        [Asker::sign_in(stage, 2 * number).await?, Asker::sign_in(stage, 2 * number + 1).await?];
    loop {
        let config = json!({ "turn_based": true, "players": { "min": 2, "max": 2 },
            "turn_timeout_ms": TURN_MS, "on_timeout": "skip" });
        let [host, guest] = &mut players;
        let opened = host.ask(Kind::ServiceRequest, "/rooms", Some(&json!({ "config": config }))).await?;
        let id = opened["room"]["id"].as_str().context("a room has an id")?.to_owned();
        let joined = guest.ask(Kind::ServiceRequest, &format!("/rooms/{id}/join"), Some(&json!({}))).await?;
        let mut game = Game::read(&joined["room"])?;
        for turn in 1..=MOVES_A_ROOM {
            sleep(stage.span(MOVE_EVERY_MS)).await;
            if turn % TURNS_A_TIMEOUT == 0 {
                game = run_out(&mut players[0], &game).await?;
            }
            game = make_a_move(&mut players, &game, turn).await?;
            if turn % MOVES_AN_ACKNOWLEDGEMENT == 0 {
                for player in &mut players {
                    acknowledge(player).await?;
                    player.refresh_if_due().await?;
                }
            }
        }
        let end = format!("/rooms/{id}/end");
        players[0].ask(Kind::ServiceRequest, &end, Some(&json!({ "winner": null }))).await?;
        for player in &mut players {
            let leave = format!("/rooms/{id}/leave");
            player.ask(Kind::ServiceRequest, &leave, Some(&json!({}))).await?;
        }
    }
}

async fn make_a_move(players: &mut [Asker; 2], game: &Game, turn: u32) -> anyhow::Result<Game> {
    let mover = players.iter_mut().find(|player| player.player.account == game.mover);
    let mover = mover.context("it is nobody's turn")?;
    let cell = json!({ "cell": turn % 9 });
    let said = json!({ "type": "put", "data": cell, "state": { "last": cell },
        "state_version": game.state_version });
    let after = mover.ask(Kind::TurnMove, &format!("/rooms/{}/moves", game.id), Some(&said)).await?;
    Game::read(&after["room"])
}

/// Waits until the turn has passed by itself.
async fn run_out(player: &mut Asker, game: &Game) -> anyhow::Result<Game> {
    let limit = player.stage.record.now() + Duration::from_millis(TURN_MS) + TURN_GRACE;
    sleep(Duration::from_millis(TURN_MS)).await;
    loop {
        let read = player.ask(Kind::ServiceRequest, &format!("/rooms/{}", game.id), None).await?;
        let after = Game::read(&read["room"])?;
        if after.mover != game.mover {
            return Ok(after);
        }
        ensure!(player.stage.record.now() < limit, "a turn whose time is over goes on");
        sleep(Duration::from_millis(50)).await;
    }
}

async fn acknowledge(player: &mut Asker) -> anyhow::Result<()> {
    let inbox = player.ask(Kind::ServiceRequest, "/inbox?limit=100", None).await?;
    let newest = inbox["newest"].as_u64().context("an inbox says its newest")?;
    let known = json!({ "up_to": newest });
    player.ask(Kind::ServiceRequest, "/inbox/acknowledge", Some(&known)).await?;
    Ok(())
}

/// A player who asks for everything but moves, for ever.
pub(super) async fn asker(stage: Rc<Stage>, number: usize) {
    loop {
        if let Err(error) = ask_around(&stage, number).await {
            stage.record.error(format!("the services: {}", kind_of(&error)));
            sleep(REST).await;
        }
    }
}

async fn ask_around(stage: &Rc<Stage>, number: usize) -> anyhow::Result<()> {
    let mut asker = Asker::sign_in(stage, number).await?;
    let address = format!("soak-{number}@example.com");
    let by_password =
        json!({ "app": APP, "email": address, "password": "correct horse battery", "create": true });
    for turn in 1_u32.. {
        sleep(stage.span(ASK_EVERY_MS)).await;
        if turn % ASKS_A_PASSWORD == 0 {
            let signed_in = asker.ask(Kind::PasswordSignIn, "/auth/email", Some(&by_password)).await?;
            sign_out(&mut asker, &Player::read(&signed_in)?).await?;
            continue;
        }
        match turn % 6 {
            0 => {
                let device = format!("bench-device-{number:08}");
                let input = json!({ "app": APP, "device": device });
                let signed_in = asker.ask(Kind::ServiceRequest, "/auth/device", Some(&input)).await?;
                sign_out(&mut asker, &Player::read(&signed_in)?).await?;
            }
            1 => asker.refresh().await?,
            path => {
                let path =
                    ["/inbox?limit=50", "/rooms?limit=20", "/matches?limit=20", "/rooms/mine?limit=20"]
                        [usize::try_from(path - 2).unwrap_or(0)];
                asker.ask(Kind::ServiceRequest, path, None).await?;
            }
        }
    }
    Ok(())
}

/// Ends another sign-in of the same player: each is a row of the store.
async fn sign_out(asker: &mut Asker, other: &Player) -> anyhow::Result<()> {
    let with = json!({ "app": APP, "refresh_token": other.refresh_token });
    asker.ask(Kind::ServiceRequest, "/auth/sign-out", Some(&with)).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_a_kind_read_alike() {
        let error = |id: &str| {
            let said = format!("{{\"error\":{{\"code\":\"stale_state\",\"sentence\":\"{id}\"}}}}");
            anyhow::anyhow!("POST /rooms/{id}/moves is answered with 409: {said}")
        };
        let [one, other] = ["r4ff0e3c1b2eced55aa77", "r0123456789abcdef0123"].map(|id| kind_of(&error(id)));
        assert_eq!(one, "POST /rooms/ID/moves is answered with : stale_state");
        assert_eq!(one, other);
    }
}
