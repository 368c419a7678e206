//! Members in all combinations of NATs, through the server alone.

use crate::counts::Counts;
use crate::fault::{Seen, ensure};
use crate::member::{HUB, Workshop, heard_all, undisturbed, updates};
use crate::net::{Nat, Public, Switch};

pub(super) fn run(workshop: &Workshop) -> Seen {
    let internet = Switch::internet("relay")?;
    let hub = workshop.hub(&internet)?;
    let homes = [
        internet.home("a", Nat::Cone, Public(10))?,
        internet.home("b", Nat::Cone, Public(20))?,
        internet.home("c", Nat::Symmetric, Public(30))?,
    ];
    let (of_host, of_cone, of_symmetric) =
        (homes[0].machine(10)?, homes[1].machine(10)?, homes[2].machine(10)?);
    let (beside_host, public) = (homes[0].machine(11)?, internet.public(Public(40))?);
    let (mut host, code) = workshop.host(&hub, &of_host, "")?;
    let mut guests = [
        workshop.guest(&hub, &of_cone, &code, "--via quic")?,
        workshop.guest(&hub, &of_symmetric, &code, "--via quic")?,
        workshop.guest(&hub, &beside_host, &code, "--via quic")?,
        workshop.guest(&hub, &public, &code, "--via websocket")?,
    ];
    let relayed_before = hub.count("messages_relayed")?;
    for guest in &mut guests {
        updates(guest, 60)?;
    }
    let [a, b, c, d] = &mut guests;
    let mut all = [&mut host, a, b, c, d];
    let numbers = heard_all(&mut all)?;
    undisturbed(&mut all, &[0; 5])?;
    let links: Vec<String> = all.iter_mut().filter_map(|member| link(member.log().status()?)).collect();
    ensure(links == ["quic", "quic", "quic", "quic", "websocket"], || format!("the links are {links:?}"))?;
    let relayed = hub.count("messages_relayed")? - relayed_before;
    ensure(relayed > 0, || "the server relayed nothing".to_owned())?;
    let counts = Counts::of(&internet)?;
    let beside = counts.beside(HUB);
    ensure(beside.is_empty(), || format!("some speak with each other beside the server: {beside:?}"))?;
    Ok(vec![format!(
        "five members behind four addresses heard all {numbers} numbers of each other; no packet went beside the server"
    )])
}

fn link(status: &serde_json::Value) -> Option<String> {
    status["link"].as_str().map(str::to_owned)
}
