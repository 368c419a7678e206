//! A policy that admits all, under the names that their tokens say.

use parlor_hub::Origin;
use parlor_hub::admission_policy::{AdmissionPolicy, AdmitAll, Admitted, Guess, Outcome};
use parlor_proto::Instant;
use parlor_proto::wire::handshake::{Auth, Hello, Refusal};
use std::time::Duration;

/// A token names its user.
#[derive(Debug)]
pub(crate) struct Named(pub(crate) AdmitAll);

impl AdmissionPolicy for Named {
    fn begin_guess(&mut self, origin: Origin, has_token: bool, now: Instant) -> Result<Guess, Duration> {
        self.0.begin_guess(origin, has_token, now)
    }

    fn charge_user(&mut self, _: &mut Guess, _: &Hello, _: &str, _: Instant) -> Result<(), Duration> {
        Ok(())
    }

    fn settle_guess(&mut self, guess: Guess, outcome: Outcome, now: Instant) {
        self.0.settle_guess(guess, outcome, now);
    }

    fn code_letters_extra(&self, _: Instant) -> usize {
        0
    }

    fn admit(&mut self, hello: &Hello, _: Instant) -> Result<Admitted, Refusal> {
        let user = match &hello.auth {
            Auth::Token(token) => Some(core::str::from_utf8(token).expect("it is text").to_owned()),
            Auth::Anonymous => None,
        };
        Ok(Admitted { user, token: None })
    }
}
