//! Options from a map, with the names of the TypeScript API.

use parlor_client_core::binding::{Fault, Record, read_code, read_options, unknown_word};
use parlor_client_core::{Options, Wish};
use parlor_sync::value::Value;

use crate::ticket;

/// Silence of a host in a browser before another takes over: a page can be held up for longer than a process.
const HOST_SILENCE_MS: u32 = 750;

/// Reads the options with which a room is opened or joined.
pub(crate) fn read(value: Value) -> Result<Options, Fault> {
    let mut record = Record::new(value, "")?;
    let app = record.text("app")?;
    let app = record.need("app", app)?;
    let mut options = Options::host(&app);
    options.intent = intent(&mut record)?;
    read_options(&mut record, &mut options, HOST_SILENCE_MS)?;
    record.end()?;
    options.check().map_err(|message| Fault::new("bad_options", &message))?;
    Ok(options)
}

/// What the page wants, with the defaults of that.
fn intent(record: &mut Record) -> Result<Wish, Fault> {
    let intent = record.text("intent")?;
    let intent = record.need("intent", intent)?;
    Ok(match intent.as_str() {
        "host" => Wish::host(),
        "match" => Wish::create_match(),
        "join" => {
            let code = read_code(record)?;
            Wish::Join { code: record.need("code", code)? }
        }
        "resume" => {
            let text = record.text("ticket")?;
            let (session, token) = ticket::read(&record.need("ticket", text)?)
                .ok_or_else(|| record.fault("ticket", "this is no ticket of a room"))?;
            Wish::Resume { session, token }
        }
        word => {
            let known = "\"host\", \"join\", \"match\", \"resume\"";
            return Err(unknown_word("intent", word, known));
        }
    })
}
