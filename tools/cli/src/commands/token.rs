//! `parlor token`: keys and tokens for servers that admit by token, for experiments. A game's own service
//! issues the same tokens; docs/serve.md has their claims.

use crate::args::{RoleArg, TokenArgs};
use anyhow::{Context, bail};
use parlor_server::admission::{CLAIM_BYTES_MAX, PermitFor, SigningKey, TokenRequest};
use parlor_server::realm::ENVIRONMENT;
use parlor_services::operator_token;
use parlor_services::store::Role;
use parlor_terminal::print::say;

/// Runs the command.
///
/// # Errors
/// What was wrong with the arguments or the key.
pub(crate) fn run(args: &TokenArgs) -> anyhow::Result<()> {
    if let Some(path) = &args.new_key {
        let public = SigningKey::generate()?.write_new(path)?;
        say(&format!("private key, for whoever gives out tokens: {}", path.display()));
        let public = public.display();
        say(&format!("public key, for servers: {public}"));
        say(&format!(
            "  parlor serve --admission-key {public}   lets players in by tokens that the private key signs"
        ));
        say(&format!(
            "  parlor serve --operator-key {public}    takes whoever has the private key for the operator: parlor admin"
        ));
        return Ok(());
    }
    let (Some(key), Some(app), Some(user)) = (&args.key, &args.app, &args.user) else {
        bail!("a token needs --key FILE, --app APP and --user USER");
    };
    if !(1..=CLAIM_BYTES_MAX).contains(&user.len()) || user.chars().any(char::is_control) {
        bail!(
            "--user has {} bytes; it may have 1 to {CLAIM_BYTES_MAX}, none a control character",
            user.len()
        );
    }
    if let Some(role) = args.role {
        let environment = args.environment.as_deref().unwrap_or(ENVIRONMENT);
        let role = match role {
            RoleArg::Server => Role::Server,
            RoleArg::Admin => Role::Admin,
        };
        say(&operator_token(&SigningKey::read(key)?, role, user, app, environment));
        return Ok(());
    }
    let room = args.room.as_ref().map(|code| code.parse().with_context(|| format!("--room is {code:?}")));
    let what = match (room.transpose()?, args.create) {
        (code, true) => PermitFor::Create(code),
        (Some(code), false) => PermitFor::Join(code),
        (None, false) => bail!("a token is for one room or for a new one: add --room CODE or --create"),
    };
    let environment = args.environment.as_deref().unwrap_or_default();
    say(&SigningKey::read(key)?.token(&TokenRequest { user, app, environment, what })?);
    Ok(())
}
