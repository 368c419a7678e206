//! Predicted actions: the page applies them, and the host's page decides.

use crate::support::{Net, fault, give, give_bytes, list, map, ok, taken_one, text};
use parlor_sync::value::Value;
use parlor_wasm::exports::{play, worlds};
use parlor_wasm::memory;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The component "cart" has one number, and the action "push" adds to it.
fn options() -> [(&'static str, Value); 3] {
    let at = map([
        ("name", "at".into()),
        ("kind", "float".into()),
        ("min", (-100).into()),
        ("max", 100.into()),
        ("step", 0.125.into()),
    ]);
    let cart = map([("name", "cart".into()), ("fields", list([at]))]);
    [
        ("schema", map([("components", list([cart]))])),
        ("predict", list(["cart".into()])),
        ("actions", list(["push".into()])),
    ]
}

fn cart() -> i32 {
    ok(worlds::component(give(["cart".into()])))
}

/// Where a cart is, if there is one.
fn at(entity: i32) -> Option<f64> {
    let is_there = worlds::has_entity(entity) == 1 && ok(worlds::row(entity, cart(), 0, 0.0)) == 1;
    is_there.then(|| f64::from_le_bytes(memory::read().try_into().expect("a number")))
}

fn put(entity: i32, to: f64) {
    ok(worlds::write_row(entity, cart(), give_bytes(&to.to_le_bytes()), 0.0));
}

/// What a page makes of an action.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Manner {
    /// It moves the cart, and refuses to move it beyond 50.
    Fair,
    /// It refuses, for a reason of the game.
    Refuses,
    /// It cannot read it.
    Unreadable,
    /// It does nothing.
    Leaves,
}

/// Applies the actions that wait. Returns how many, and whether this player's own was refused.
fn serve(manner: Manner) -> (u32, bool) {
    let (mut served, mut is_refused) = (0, false);
    while manner != Manner::Leaves && ok(play::action_request()) != 0 {
        let request = taken_one();
        let Some(Value::Int(by)) = request.field("value") else { panic!("{request}") };
        let Some(Value::Int(entity)) = request.field("entity") else { panic!("{request}") };
        assert_eq!(text(&request, "name"), "push");
        let entity = u32::try_from(*entity).expect("32 bits").cast_signed();
        let to = at(entity).expect("it is there") + f64::from(i32::try_from(*by).expect("it is small"));
        let ending = match manner {
            Manner::Fair if to <= 50.0 => {
                put(entity, to);
                give_bytes(&[])
            }
            Manner::Unreadable => give([Value::Null]),
            _ => give(["too_far".into()]),
        };
        is_refused |= ok(play::action_done(ending, 0.0)) == 1;
        served += 1;
    }
    (served, is_refused)
}

/// A host of this manner, a guest with a cart, and how many actions the host's page applied. The guest makes an action
/// of each number that it is to push by.
struct Carts {
    net: Net,
    host: usize,
    guest: usize,
    cart: i32,
    served: Arc<AtomicU32>,
    push: Arc<AtomicU32>,
    refused_here: Arc<AtomicU32>,
}

impl Carts {
    fn new(manner: Manner) -> Self {
        let mut net = Net::new();
        let host = net.host(options());
        let guest = net.join(host, options());
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // it is an entity's 32 bits
        let cart = net.at(host, || {
            let cart = (worlds::spawn(1) as u32).cast_signed();
            put(cart, 0.0);
            cart
        });
        let [served, push, refused_here] = [(); 3].map(|()| Arc::new(AtomicU32::new(0)));
        let count = Arc::clone(&served);
        net.each_step(host, move || {
            count.fetch_add(serve(manner).0, Ordering::Relaxed);
        });
        let (wanted, refused) = (Arc::clone(&push), Arc::clone(&refused_here));
        net.each_step(guest, move || {
            serve(Manner::Fair);
            if play::is_replay() == 1 {
                return;
            }
            let by = wanted.swap(0, Ordering::Relaxed);
            if by > 0 {
                let before = at(cart).expect("it came");
                let given = give(["push".into(), i64::from(by).into()]);
                assert_eq!(ok(play::act_predicted(cart, given, 0.0)), 1);
                let (served, is_refused) = serve(Manner::Fair);
                assert_eq!(served, 1);
                refused.fetch_add(is_refused.into(), Ordering::Relaxed);
                let moved = at(cart).expect("it is there") - before;
                assert!(
                    (moved - if is_refused { 0.0 } else { f64::from(by) }).abs() < 1e-9,
                    "it shows at once"
                );
            }
        });
        net.until("the guest has its cart", |net| net.at(guest, move || at(cart)) == Some(0.0));
        Carts { net, host, guest, cart, served, push, refused_here }
    }

    /// Lets the guest push, and both ends come to rest.
    fn push(&mut self, by: u32) {
        self.push.store(by, Ordering::Relaxed);
        self.net.pass(std::time::Duration::from_millis(500));
    }

    fn places(&self) -> [Option<f64>; 2] {
        let cart = self.cart;
        [self.host, self.guest].map(|page| self.net.at(page, move || at(cart)))
    }

    fn refusal(&self) -> Option<&Value> {
        self.net.pages[self.guest].last("actionRefused")
    }
}

#[test]
fn an_action_shows_at_its_player_in_the_step_and_once_at_the_host() {
    let mut carts = Carts::new(Manner::Fair);
    carts.push(10);
    carts.push(20);
    assert_eq!(carts.places(), [Some(30.0); 2]);
    assert_eq!(carts.served.load(Ordering::Relaxed), 2);
    assert_eq!(carts.refusal(), None);
    assert!(!carts.net.pages[carts.host].types().contains(&"action"), "none is asked for by an event");
}

#[test]
fn what_its_own_page_refuses_is_not_sent() {
    let mut carts = Carts::new(Manner::Fair);
    carts.push(60);
    assert_eq!(carts.places(), [Some(0.0); 2]);
    assert_eq!(carts.refused_here.load(Ordering::Relaxed), 1);
    assert_eq!((carts.served.load(Ordering::Relaxed), carts.refusal()), (0, None));
}

#[test]
fn what_the_host_does_not_apply_is_undone_and_its_player_hears_why() {
    for (manner, why, reason) in [
        (Manner::Refuses, "by_game", Some("too_far")),
        (Manner::Unreadable, "unreadable", None),
        (Manner::Leaves, "by_game", Some("failed")),
    ] {
        let mut carts = Carts::new(manner);
        carts.push(10);
        assert_eq!(carts.places(), [Some(0.0); 2], "{manner:?}");
        let refused = carts.refusal().unwrap_or_else(|| panic!("{manner:?}"));
        assert_eq!((text(refused, "name"), text(refused, "why")), ("push", why), "{manner:?}");
        let told = refused.field("reason").map(ToString::to_string);
        assert_eq!(told.is_some(), reason.is_some(), "{manner:?}");
        assert!(told.unwrap_or_default().contains(reason.unwrap_or_default()), "{manner:?}");
    }
}

#[test]
fn what_is_wrong_is_refused() {
    let carts = Carts::new(Manner::Fair);
    let cart = carts.cart;
    carts.net.at(carts.guest, move || {
        assert_eq!(play::act_predicted(cart, give(["jump".into(), Value::Null]), 0.0), -1);
        assert_eq!(fault(), "bounds");
        assert_eq!((ok(play::action_request()), ok(play::action_done(0, 0.0))), (0, 0), "there is none");
        assert_eq!((play::action_done(give([map([])]), 0.0), fault()), (-1, "bad_call".into()));
    });
}
