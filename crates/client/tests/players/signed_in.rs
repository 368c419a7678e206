//! What these tests share: a server with a store, its players, answers and events.

use crate::support::Patience;
use parlor::online::{self, Account, AccountError, OnlineError, Pending};
use parlor_services::OnlineConfig;
use parlor_testing::Hall;

/// A server for development: it has accounts, and first writes make definitions.
pub(crate) fn hall() -> Hall {
    Hall::start_by(|config, folder| {
        let store = folder.join("parlor.db").to_str().expect("its name is UTF-8").to_owned();
        parlor_services::start(config, OnlineConfig::new(store))
    })
}

/// A player at a server. Nothing is asked yet.
pub(crate) fn account(address: &str, name: &str) -> Account {
    online::sign_in(address).name(name).account("tanks").expect("an address")
}

/// The next event that is wanted, of those that `poll` gives.
pub(crate) fn heard<E, T>(mut poll: impl FnMut() -> Option<E>, wanted: impl Fn(&E) -> Option<T>) -> T {
    let patience = Patience::new();
    loop {
        match poll() {
            Some(event) => {
                if let Some(found) = wanted(&event) {
                    return found;
                }
            }
            None => patience.look_again(|| "another event is waited for".into()),
        }
    }
}

/// The answer, once it is there.
pub(crate) fn asked<T>(mut pending: Pending<T>) -> Result<T, AccountError> {
    let patience = Patience::new();
    loop {
        if let Some(answer) = pending.poll() {
            return answer;
        }
        patience.look_again(|| "no answer came".into());
    }
}

/// The server's refusal.
pub(crate) fn refused<T: std::fmt::Debug>(pending: Pending<T>) -> OnlineError {
    match asked(pending) {
        Err(AccountError::Refused(error)) => error,
        other => panic!("{other:?}"),
    }
}
