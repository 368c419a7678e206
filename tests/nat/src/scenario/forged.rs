//! Forged packets of a session from another address than its member's. An on-path attacker between a guest
//! and the server makes three kinds: noise behind a valid header, delayed copies, and copies that overtake
//! their originals. The last look like a member that has moved, until the path validation is answered from
//! elsewhere.

use super::rebind::gaps;
use crate::counts::{Count, Counts};
use crate::fault::{Fault, Outcome, Seen, ensure};
use crate::member::{HUB, PORT, RTT_MS, Workshop, heard_all, marks, undisturbed, updates};
use crate::net::{Machine, Public, Switch};
use std::collections::VecDeque;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The attacker.
const FORGER: Public = Public(66);
/// The address that it spoofs.
const VICTIM: Public = Public(77);
/// The port of its packets under the victim's address.
const FALSE_PORT: u16 = 4001;
/// Lag of a copy behind its original, in packets.
const LAG: usize = 10;
/// Time between two overtaking copies.
const OVERTAKE_EVERY: Duration = Duration::from_secs(1);
/// Their head start.
const HEAD_START: Duration = Duration::from_millis(10);
/// Bytes of a short header before the protected part: one, and the connection id.
const HEAD_BYTES: usize = 9;
/// Bytes of the IPv4 and UDP headers.
const HEADERS_BYTES: u64 = 28;
/// Packets to the victim at most, per overtaking copy. The library sends a whole packet as long as less than
/// three times the received bytes were sent, so a byte count means little for so few.
const ANSWERS_MAX: u64 = 3;
/// Forged packets that a phase needs for a meaningful result.
const ENOUGH: u64 = 100;
/// The same for overtaking copies, which are few.
const ENOUGH_OVERTAKING: u64 = 4;

/// Gaps attributed to the machine: a session that moves away causes one at each overtaking copy.
const HICCUPS: usize = 1;

/// The kind of forgery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Phase {
    Nothing,
    Noise,
    Copies,
    Overtaking,
}

/// The attacker on the path.
struct Forger {
    /// Its socket to the guest.
    front: UdpSocket,
    /// Its socket to the server, under its own address.
    back: UdpSocket,
    /// Its socket to the server, under the victim's address.
    false_face: UdpSocket,
    server: SocketAddr,
    phase: AtomicU8,
    is_over: AtomicBool,
}

pub(super) fn threat_05_forged_rebinds_lead_no_session_elsewhere(workshop: &Workshop) -> Seen {
    let internet = Switch::internet("forged")?;
    let hub = workshop.hub(&internet)?;
    let (way, _victim) = (internet.public(FORGER)?, internet.public(VICTIM)?);
    let (of_host, of_guest, of_other) =
        (internet.public(Public(10))?, internet.public(Public(20))?, internet.public(Public(30))?);
    let forger = Forger::on(&way)?;
    thread::scope(|scope| {
        scope.spawn(|| forger.pass_up());
        scope.spawn(|| forger.pass_down());
        let _end = End(&forger.is_over);
        let (mut host, code) = workshop.host(&hub, &of_host, "--via quic")?;
        let mut guest = workshop.guest_by(&hub, FORGER, &of_guest, &code, "--via quic")?;
        let mut other = workshop.guest(&hub, &of_other, &code, "--via quic")?;
        let mut all = [&mut host, &mut guest, &mut other];
        let since = marks(&mut all);
        let mut phase = |phase: Phase, enough: u64| -> Outcome<(Count, Count)> {
            let before = Counts::of(&internet)?;
            let way = |counts: &Counts| (counts.sent(VICTIM, HUB), counts.sent(HUB, VICTIM));
            let (sent_before, answered_before) = way(&before);
            forger.phase.store(phase as u8, Ordering::Relaxed);
            loop {
                updates(all[1], 30)?;
                let (sent, answered) = way(&Counts::of(&internet)?);
                if (sent - sent_before).packets >= enough {
                    forger.phase.store(Phase::Nothing as u8, Ordering::Relaxed);
                    return Ok((sent - sent_before, answered - answered_before));
                }
            }
        };
        let (noise, to_noise) = phase(Phase::Noise, ENOUGH)?;
        let (copies, to_copies) = phase(Phase::Copies, ENOUGH)?;
        let (overtaking, to_overtaking) = phase(Phase::Overtaking, ENOUGH_OVERTAKING)?;
        ensure(to_noise.packets == 0 && to_copies.packets == 0, || {
            format!("noise sends {} packets to the victim, copies {}", to_noise.packets, to_copies.packets)
        })?;
        let (sent, answered) = (payload(overtaking), payload(to_overtaking));
        ensure(answered > 0, || "nothing tried the way to the victim, so nothing was shown".to_owned())?;
        ensure(to_overtaking.packets <= ANSWERS_MAX * overtaking.packets, || {
            format!("the victim was sent {} packets for {}", to_overtaking.packets, overtaking.packets)
        })?;
        updates(all[1], 60)?;
        let numbers = heard_all(&mut all)?;
        undisturbed(&mut all, &since)?;
        let (gaps, resumed) = (gaps(&mut all, &since, HICCUPS), hub.count("resumed")?);
        let allowed = 3.0 * RTT_MS + gaps[2];
        ensure(gaps[1] <= allowed, || {
            format!("{:.0} ms without an update, and {allowed:.0} ms may pass", gaps[1])
        })?;
        ensure(resumed == 0, || format!("{resumed} sessions went on over another connection"))?;
        Ok(vec![
            format!(
                "{} packets of noise and {} copies under the victim's address: it was sent nothing",
                noise.packets, copies.packets
            ),
            format!(
                "{} copies that overtook, {sent} bytes: the victim was sent {} packets, {answered} bytes; {:.0} ms without an update but for {HICCUPS} time, all {numbers} numbers came",
                overtaking.packets, to_overtaking.packets, gaps[1]
            ),
        ])
    })
}

fn payload(count: Count) -> u64 {
    count.bytes - HEADERS_BYTES * count.packets
}

/// Ends the attacker, however its scenario ends.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Forger {
    fn on(machine: &Machine) -> Outcome<Forger> {
        machine.space.rules(&format!(
            "table ip forge {{
  chain postrouting {{
    type nat hook postrouting priority srcnat;
    udp sport {FALSE_PORT} snat to {}
  }}
}}
",
            VICTIM.address()
        ))?;
        let bind = |port: u16| -> Outcome<UdpSocket> {
            let bound = machine.space.within(|| UdpSocket::bind(("0.0.0.0", port)))?;
            let socket = bound.map_err(Fault::during("the forger's socket"))?;
            // So that the thread notices its end.
            socket.set_read_timeout(Some(Duration::from_millis(50))).map_err(Fault::during("its timeout"))?;
            Ok(socket)
        };
        let server = format!("{}:{PORT}", HUB.address()).parse().expect("an address and a port");
        let (phase, is_over) = (AtomicU8::new(Phase::Nothing as u8), AtomicBool::new(false));
        Ok(Forger {
            front: bind(PORT)?,
            back: bind(0)?,
            false_face: bind(FALSE_PORT)?,
            server,
            phase,
            is_over,
        })
    }

    /// Forwards from the guest to the server, and adds forgeries. Send errors count as packet loss.
    fn pass_up(&self) {
        let (mut buffer, mut passed, mut overtook) = ([0; 2048], VecDeque::new(), Instant::now());
        while !self.is_over.load(Ordering::Relaxed) {
            let Ok((length, guest)) = self.front.recv_from(&mut buffer) else { continue };
            // Replies go to the last sender.
            let _ = self.front.connect(guest);
            let packet = &buffer[..length];
            let phase = self.phase.load(Ordering::Relaxed);
            if phase == Phase::Overtaking as u8 && overtook.elapsed() >= OVERTAKE_EVERY {
                overtook = Instant::now();
                let _ = self.false_face.send_to(packet, self.server);
                thread::sleep(HEAD_START);
            }
            let _ = self.back.send_to(packet, self.server);
            if phase == Phase::Noise as u8 {
                let _ = self.false_face.send_to(&noise(packet), self.server);
            }
            passed.push_back(packet.to_vec());
            if passed.len() > LAG
                && let Some(copy) = passed.pop_front()
                && phase == Phase::Copies as u8
            {
                let _ = self.false_face.send_to(&copy, self.server);
            }
        }
    }

    /// Forwards from the server to the guest.
    fn pass_down(&self) {
        let mut buffer = [0; 2048];
        while !self.is_over.load(Ordering::Relaxed) {
            if let Ok(length) = self.back.recv(&mut buffer) {
                let _ = self.front.send(&buffer[..length]);
            }
        }
    }
}

/// The header of a packet, followed by noise.
fn noise(packet: &[u8]) -> Vec<u8> {
    let mut noise = packet.to_vec();
    noise.iter_mut().skip(HEAD_BYTES).for_each(|byte| *byte = byte.wrapping_mul(31).wrapping_add(7));
    noise
}
