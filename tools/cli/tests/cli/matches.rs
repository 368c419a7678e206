//! Terminals in a match.

use crate::support::Machine;

#[test]
fn two_terminals_send_each_other_lines_in_a_match() {
    let machine = Machine::new();
    let (_server, at) = machine.serve(&[]);
    let start = |name: &str, args: &[&str]| {
        machine.start(&[&["match", "--server", &at, "--name", name], args].concat())
    };
    let mut ada = start("ada", &["--label", "tea", "--max-players", "3"]);
    let id = ada.says("match ");
    assert_eq!(id.len(), 16);
    assert!(ada.says("waiting for somebody: ").contains(&format!("parlor match {id} --server {at}")));
    let mut bob = start("bob", &[&id.to_lowercase()]);
    assert_eq!(bob.says("match "), id);
    ada.says("bob is here");
    let mut cy = start("cy", &[&id]);
    ada.says("cy is here");
    cy.types("/who");
    assert_eq!(cy.says("here: "), "ada, bob, cy");
    ada.types("hello");
    assert_eq!((bob.says("ada: "), cy.says("ada: ")), ("hello".into(), "hello".into()));
    ada.types("/op -7 go");
    assert_eq!((bob.says("ada (op -7): "), cy.says("ada (op -7): ")), ("go".into(), "go".into()));
    bob.types("/to ada only you");
    bob.types("now all");
    assert_eq!(ada.says("bob: "), "only you");
    assert_eq!(cy.says("bob: "), "now all");
    bob.types("/to dan hello");
    assert!(bob.says("not sent: ").contains("nobody here"));
    // Whoever opened it goes, and it goes on.
    ada.types("/leave");
    assert!(ada.succeeds());
    bob.says("ada has left");
    cy.types("still here");
    assert_eq!(bob.says("cy: "), "still here");
    for mut player in [bob, cy] {
        player.types("/leave");
        assert!(player.ends_well());
    }
    // Its id leads nowhere from then on.
    let mut late = start("dan", &[&id]);
    assert!(late.complains("parlor: ").contains("no room with this code"));
    assert!(!late.ends_well());
}

#[test]
fn a_match_is_kept_only_where_there_is_a_place_for_it() {
    let machine = Machine::new();
    let (_server, at) = machine.serve(&[]);
    let mut ada = machine.start(&["match", "--server", &at, "--keep"]);
    assert!(ada.complains("parlor: ").contains("parlor serve --data"));
    assert!(!ada.ends_well());
}
