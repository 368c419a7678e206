//! `parlor board`: boards in a terminal.

use crate::args::board::{BoardArgs, Task};
use crate::services::wait;
use crate::typed::shown;
use parlor::online::{Account, Board, BoardEntry, BoardInfo, BoardPage, Score, Submitted};
use parlor_terminal::print::say;
use parlor_terminal::run_until::stop_flag;
use std::sync::atomic::AtomicBool;

/// Runs the command.
///
/// # Errors
/// What was wrong with the arguments, or what the server said.
pub(crate) fn run(args: &BoardArgs) -> anyhow::Result<()> {
    let (account, stop) = (args.who.account()?, stop_flag()?);
    match &args.what {
        Task::List => list(&account, &stop),
        Task::Top { board, from, count, season } => {
            let board = in_season(account.board(board), *season);
            let page = wait(board.top(*from, usize::try_from(*count)?), &stop)?;
            show(&page);
            Ok(())
        }
        Task::Around { board, count, season } => {
            let board = in_season(account.board(board), *season);
            show(&wait(board.around(usize::try_from(*count)?), &stop)?);
            Ok(())
        }
        Task::Friends { board, season } => {
            show(&wait(in_season(account.board(board), *season).friends(), &stop)?);
            Ok(())
        }
        Task::Submit { board, score, sub, receipt } => {
            let score = Score { score: *score, sub: *sub, receipt: receipt.clone(), ..Score::default() };
            say(&result(&wait(account.board(board).submit_with(score), &stop)?));
            Ok(())
        }
        Task::Seasons { board } => {
            for season in wait(account.board(board).seasons(), &stop)? {
                say(&format!("{}  {} entries", season.season, season.entries));
            }
            Ok(())
        }
        Task::Remove { board } => {
            wait(account.board(board).remove(), &stop)?;
            say("removed");
            Ok(())
        }
    }
}

fn in_season(board: Board, season: Option<u64>) -> Board {
    season.map_or(board.clone(), |season| board.season(season))
}

fn list(account: &Account, stop: &AtomicBool) -> anyhow::Result<()> {
    let (mut after, mut count) = (None, 0);
    loop {
        let part = wait(account.boards(after.as_deref()), stop)?;
        count += part.boards.len();
        part.boards.iter().for_each(|board| say(&line(board)));
        after = part.next;
        if after.is_none() {
            break;
        }
    }
    if count == 0 {
        say(
            "this game has no boards; on a server for development `parlor board submit BOARD SCORE` makes one",
        );
    }
    Ok(())
}

fn line(board: &BoardInfo) -> String {
    let BoardInfo { board, title, order, keep, writers, .. } = board;
    let text = [board, order, keep, writers, title].map(|text| shown(text)).join("  ");
    text.trim_end().to_owned()
}

fn show(page: &BoardPage) {
    page.entries.iter().for_each(|entry| say(&place(entry)));
    say(&format!("{} of {} entries", page.entries.len(), page.entries_total));
}

fn place(entry: &BoardEntry) -> String {
    let BoardEntry { rank, score, sub, name, account, .. } = entry;
    let sub = if *sub == 0 { String::new() } else { format!(" ({sub})") };
    format!("{rank:>6}  {score:>12}{sub}  {}", shown(name.as_deref().unwrap_or(account)))
}

fn result(submitted: &Submitted) -> String {
    let Submitted { score, improved, rank, entries, .. } = submitted;
    let how = if *improved { "a better score" } else { "no better score" };
    let rank = match (rank, entries) {
        (Some(rank), Some(entries)) => format!(", rank {rank} of {entries}"),
        _ => String::new(),
    };
    format!("{how}: {score}{rank}")
}
