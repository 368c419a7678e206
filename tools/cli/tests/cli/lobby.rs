//! A lobby in two terminals.

use crate::support::Machine;

#[test]
fn t5_two_terminals_gather_in_a_lobby_and_talk() {
    let machine = Machine::new();
    let path = |name: &str| machine.path(name).to_str().expect("a plain path").to_owned();
    let data = path("data");
    let (_server, at) = machine.serve(&["--data", &data]);
    let lobby = |name: &str, task: &[&str]| {
        let session = path(name);
        let own = ["lobby", "--server", &at, "--app", "tanks", "--name", name, "--session", &session];
        machine.start(&[&own[..], task].concat())
    };
    let mut ada = lobby("ada", &["open", "Ada's mill", "--bucket", "coop", "--max", "3"]);
    let opened = ada.says("lobby ");
    let code = opened.rsplit(' ').next().expect("it ends with the code").trim_matches('`').to_owned();
    let found = lobby("bob", &["find", "--bucket", "coop"]);
    assert!(found.says("l").contains("1/3, 0 ready, 0 friends  coop  Ada's mill"));
    let mut bob = lobby("bob", &["join", &code]);
    ada.says("bob is here");
    bob.types("hello");
    ada.says("bob: hello");
    ada.types("/give bob");
    bob.says("the lobby is yours now");
    bob.types("/kick ada");
    ada.says("the lobby is over: Kicked");
    assert!(ada.ends_well());
    bob.types("/leave");
    bob.says("the lobby is over: Left");
    assert!(bob.ends_well());
    let nobody = lobby("cyd", &["find"]);
    assert!(nobody.says("there is no lobby").contains("parlor lobby open"));
}
