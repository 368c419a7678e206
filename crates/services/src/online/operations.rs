//! The table of all operations.

mod boards;
mod friends;
mod lobbies;
mod matchmaking;
mod nodes;
mod progress;
mod rooms;
mod saves;
mod storage;

use super::role::Allowed;
use super::rooms as turn_rooms;
use super::table::Operation;
use super::{accounts, admin, inbox, live, matches, own_data, tickets};
use crate::store::Role;
use hyper::Method;

const PLAYER: Allowed = Allowed::Only(&[Role::Player]);
const SERVER: Allowed = Allowed::Only(&[Role::Server]);
const OPERATORS: Allowed = Allowed::Only(&[Role::Server, Role::Admin]);
const ADMIN: Allowed = Allowed::Only(&[Role::Admin]);
const PLAYER_AND_SERVER: Allowed = Allowed::Only(&[Role::Player, Role::Server]);
const EVERY_ROLE: Allowed = Allowed::Only(&[Role::Player, Role::Server, Role::Admin]);

/// All operations. Others do not exist.
pub(super) fn all() -> Vec<Operation> {
    let groups = [
        of_sign_ins(),
        of_accounts(),
        of_stored_data(),
        rooms::all(),
        of_matches(),
        of_operators(),
        of_live_rooms(),
        boards::all(),
        saves::all(),
        progress::all(),
        storage::all(),
        friends::all(),
        lobbies::all(),
        matchmaking::all(),
        nodes::all(),
    ];
    groups.into_iter().flatten().collect()
}

fn get(path: &'static str) -> (Method, &'static str) {
    (Method::GET, path)
}

fn post(path: &'static str) -> (Method, &'static str) {
    (Method::POST, path)
}

fn patch(path: &'static str) -> (Method, &'static str) {
    (Method::PATCH, path)
}

fn of_sign_ins() -> Vec<Operation> {
    let anybody = Allowed::Anybody;
    vec![
        Operation::new(
            "auth.guest",
            post("/auth/guest"),
            anybody,
            "Makes an account that nothing but its tokens leads to",
            accounts::guest,
        )
        .refuses(&[&["closed", "too_often"]]),
        Operation::new(
            "auth.device",
            post("/auth/device"),
            anybody,
            "Signs in by the id of a device, and makes the account the first time",
            accounts::device,
        )
        .refuses(&[&["closed", "no_such_account", "too_often"]]),
        Operation::new(
            "auth.email",
            post("/auth/email"),
            anybody,
            "Signs in by an e-mail address and a password",
            accounts::email,
        )
        .refuses(&[&["closed", "wrong_password", "too_often", "taken"]]),
        Operation::new(
            "auth.custom",
            post("/auth/custom"),
            SERVER,
            "Signs a player in whom the game's own service knows",
            accounts::custom,
        )
        .refuses(&[&["no_such_account"]]),
        Operation::new(
            "auth.refresh",
            post("/auth/refresh"),
            anybody,
            "Gives the next access token for a refresh token, which is used up",
            accounts::refresh,
        )
        .refuses(&[&["bad_refresh_token", "refresh_token_reused"]]),
        Operation::new(
            "auth.sign_out",
            post("/auth/sign-out"),
            anybody,
            "Ends a sign-in: its refresh token is good no more, and its sockets close",
            accounts::sign_out,
        )
        .refuses(&[&["bad_refresh_token"]]),
    ]
}

fn of_accounts() -> Vec<Operation> {
    vec![
        Operation::new(
            "account.sign_out_everywhere",
            post("/account/sign-out-everywhere"),
            PLAYER,
            "Ends all sign-ins of the account: no refresh token is good any more, and its sockets close",
            accounts::sign_out_everywhere,
        ),
        Operation::new(
            "account.me",
            get("/account"),
            PLAYER,
            "Says whose token this is, and how one can sign in to the account",
            accounts::me,
        )
        .refuses(&[&["no_such_account"]]),
        Operation::new(
            "account.rename",
            patch("/account"),
            PLAYER,
            "Gives the account another name for others to see",
            accounts::rename,
        )
        .refuses(&[&["not_found"]]),
        Operation::new(
            "account.link",
            post("/account/credentials"),
            PLAYER,
            "Gives the account one more way to sign in",
            accounts::link,
        )
        .refuses(&[&["taken", "too_many_credentials", "not_found", "too_often"]]),
        Operation::new(
            "account.unlink",
            post("/account/credentials/remove"),
            PLAYER,
            "Takes a way to sign in from the account",
            accounts::unlink,
        )
        .refuses(&[&["last_credential", "not_found"]]),
        Operation::new(
            "admission.ticket",
            post("/admission"),
            PLAYER,
            "Gives a ticket with which the player comes into a realtime room, or opens one, as its account",
            tickets::ticket,
        ),
        Operation::new(
            "inbox.read",
            get("/inbox"),
            PLAYER,
            "Says what happened in the player's rooms",
            inbox::read,
        )
        .lists(),
        Operation::new(
            "inbox.acknowledge",
            post("/inbox/acknowledge"),
            PLAYER,
            "Forgets the notices that the player knows",
            inbox::acknowledge,
        ),
    ]
}

fn of_stored_data() -> Vec<Operation> {
    vec![
        Operation::new(
            "account.delete",
            post("/account/delete"),
            PLAYER,
            "Deletes the account: it leaves its rooms, and nobody can sign in to it any more",
            own_data::delete,
        )
        .refuses(&[&["not_found"]]),
        Operation::new(
            "account.export",
            get("/account/export"),
            PLAYER,
            "Gives all that is stored about the account, part by part",
            own_data::export,
        )
        .lists()
        .refuses(&[&["not_found"]]),
    ]
}

fn of_matches() -> Vec<Operation> {
    vec![
        Operation::new(
            "match.list",
            get("/matches"),
            EVERY_ROLE,
            "Lists the matches of the game that can be found: never those with a secret",
            matches::list,
        )
        .lists(),
        Operation::new(
            "match.kept",
            get("/matches/kept"),
            EVERY_ROLE,
            "Lists matches that are kept, the newest first: for players those that they were in",
            matches::kept,
        )
        .lists(),
        Operation::new(
            "match.log",
            get("/matches/{match}/log"),
            EVERY_ROLE,
            "Reads what happened in a match that is kept: for players, if they were in it",
            matches::log,
        )
        .lists()
        .refuses(&[&["no_such_match"]]),
        Operation::new(
            "match.forget",
            post("/matches/{match}/forget"),
            OPERATORS,
            "Forgets a match that is kept",
            matches::forget,
        )
        .refuses(&[&["no_such_match"]]),
    ]
}

fn of_operators() -> Vec<Operation> {
    vec![
        Operation::new(
            "admin.rooms",
            get("/admin/rooms"),
            OPERATORS,
            "Lists all rooms of the game's environment",
            turn_rooms::all,
        )
        .lists(),
        Operation::new(
            "admin.ban",
            post("/admin/bans"),
            ADMIN,
            "Keeps an account out and ends its sign-ins",
            admin::ban,
        )
        .refuses(&[&["not_found"]]),
        Operation::new(
            "admin.lift_ban",
            post("/admin/bans/lift"),
            ADMIN,
            "Lets a banned account in again",
            admin::lift_ban,
        )
        .refuses(&[&["not_found"]]),
        Operation::new(
            "admin.set_role",
            post("/admin/roles"),
            ADMIN,
            "Lets an account do more, or less, from its next access token on; those that it has are over",
            admin::set_role,
        )
        .refuses(&[&["not_found"]]),
        Operation::new(
            "admin.status",
            get("/admin/status"),
            OPERATORS,
            "Says what the store and the webhooks do",
            admin::status,
        ),
        Operation::new(
            "admin.backup",
            post("/admin/backup"),
            ADMIN,
            "Copies the store as it is into the server's folder for backups",
            admin::backup,
        )
        .refuses(&[&["no_backups", "no_backup"]]),
        Operation::new(
            "admin.delete_account",
            post("/admin/accounts/delete"),
            ADMIN,
            "Deletes an account: it leaves its rooms, and nobody can sign in to it any more",
            own_data::delete_any,
        )
        .refuses(&[&["not_found"]]),
        Operation::new(
            "admin.export_account",
            get("/admin/accounts/export"),
            ADMIN,
            "Gives all that is stored about an account, part by part",
            own_data::export_any,
        )
        .lists()
        .refuses(&[&["not_found"]]),
        Operation::new("admin.bans", get("/admin/bans"), ADMIN, "Lists the bans", admin::bans).lists(),
    ]
}

fn of_live_rooms() -> Vec<Operation> {
    vec![
        Operation::new(
            "admin.live_rooms",
            get("/admin/live"),
            OPERATORS,
            "Lists the rooms in memory of the game's environment",
            live::list,
        )
        .lists(),
        Operation::new(
            "admin.live_room",
            get("/admin/live/{code}"),
            OPERATORS,
            "Says who is in a room in memory",
            live::read,
        )
        .lists()
        .refuses(&[&["no_such_room"]]),
        Operation::new(
            "admin.end_live_room",
            post("/admin/live/{code}/end"),
            ADMIN,
            "Ends a room in memory; its members are told why",
            live::end,
        )
        .refuses(&[&["no_such_room"]]),
        Operation::new(
            "admin.remove_member",
            post("/admin/live/{code}/members/{member}/remove"),
            ADMIN,
            "Removes a member of a room in memory; all its members are told why",
            live::remove,
        )
        .refuses(&[&["no_such_room", "no_such_member"]]),
    ]
}

#[cfg(test)]
mod tests {
    #[test]
    fn threat_44_answers_that_are_pages_are_charged_as_pages() {
        let pages = [
            "inbox.read",
            "account.export",
            "turn.list",
            "turn.messages",
            "turn.mine",
            "match.list",
            "match.kept",
            "match.log",
            "admin.rooms",
            "admin.export_account",
            "admin.bans",
            "admin.live_rooms",
            "admin.nodes",
            "board.list",
            "board.top",
            "board.around",
            "board.of",
            "board.friends",
            "admin.definitions",
            "statistic.list",
            "achievement.list",
            "storage.read",
            "storage.list",
            "friend.list",
            "lobby.find",
            "lobby.mine",
            "admin.lobbies",
            "matchmaking.queues",
        ];
        let all = super::all();
        for name in pages {
            let operation = all.iter().find(|operation| operation.name == name).unwrap();
            assert!(operation.answer_bytes_max > crate::store::PAGE_BYTES_MAX, "{name}");
        }
    }

    #[test]
    fn all_operations_have_figures_of_their_own() {
        assert!(super::all().len() <= parlor_server::embed::OPERATIONS_MAX);
    }
}
