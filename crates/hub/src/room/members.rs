//! The members of a room, their presence and their player data.

use super::Room;
use super::pasts::{Past, data_memory};
use super::relay::Held;
use bytes::Bytes;
use parlor_proto::wire::control::{LeaveReason, MemberInfo, PlayerData, Presence, ToHub, ToMember};
use parlor_proto::wire::cursor::ReadError;
use parlor_proto::{CloseReason, Instant, LinkKind, MemberId, PeerMisbehaved, limits};
use std::collections::BTreeMap;
use std::time::Duration;

/// A member as operators see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberSummary {
    /// Its id.
    pub id: MemberId,
    /// Its display name.
    pub name: String,
    /// The user that its token vouched for, if any: an account if the server issued the token.
    pub user: Option<String>,
    /// Its current or last kind of link.
    pub link: LinkKind,
    /// Whether it is connected; otherwise its seat is kept for a while.
    pub connected: bool,
    /// Its round-trip time in milliseconds; `None` until measured.
    pub rtt_ms: Option<u32>,
    /// Whether it is the room's host.
    pub is_host: bool,
    /// Whether it is a spectator.
    pub spectates: bool,
}

#[derive(Debug)]
pub(super) struct Member {
    pub(super) info: MemberInfo,
    pub(super) spectates: bool,
    /// The presence last sent to the others.
    told: Presence,
}

/// The members of a room. Ids count up, and each is one member's, which may return.
#[derive(Debug, Default)]
pub(super) struct Members {
    seated: BTreeMap<MemberId, Member>,
    next: u32,
    /// The next id of a spectator, if spectators have ids of their own.
    next_spectator: Option<u32>,
    /// The memory of all player data.
    data_bytes: usize,
    /// When presence was last sent.
    told_at: Option<Instant>,
}

/// Minimum interval for sending changed round trips. Each update costs every member a packet and the hub an
/// acknowledgement: too much for a figure that players rarely read.
const ROUND_TRIPS_EVERY: Duration = Duration::from_secs(5);

/// Relayed sequenced messages pack the member id and 16 bits of the sender's key into a 32-bit key.
const SEATINGS_MAX: u32 = 1 << 16;

impl Members {
    /// The members of a room's delayed copy: its spectators get ids that no member of the room has.
    pub(super) fn of_copy() -> Self {
        Members { next_spectator: Some(SEATINGS_MAX), ..Members::default() }
    }

    /// Returns the id of the next member.
    pub(super) fn next_id(&self, spectates: bool) -> MemberId {
        MemberId(self.next_spectator.filter(|_| spectates).unwrap_or(self.next))
    }

    /// Whether unused ids are left. Spectators use up half of them at most.
    pub(super) fn can_seat(&self, spectates: bool) -> bool {
        match self.next_spectator.filter(|_| spectates) {
            Some(next) => next < SEATINGS_MAX + SEATINGS_MAX / 2,
            None => self.next < if spectates { SEATINGS_MAX / 2 } else { SEATINGS_MAX },
        }
    }

    /// Gives new members ids from this one on: those below have been given.
    pub(super) fn number_from(&mut self, next: u32) {
        self.next = next;
    }

    pub(super) fn seat(
        &mut self,
        name: String,
        user: Option<String>,
        link: LinkKind,
        spectates: bool,
    ) -> MemberId {
        let id = self.next_id(spectates);
        match &mut self.next_spectator {
            Some(next) if spectates => *next += 1,
            _ => self.next += 1,
        }
        self.reseat(id, name, user, link, Past { data: Vec::new(), spectates });
        id
    }

    /// Seats a member that had this id before.
    pub(super) fn reseat(
        &mut self,
        id: MemberId,
        name: String,
        user: Option<String>,
        link: LinkKind,
        Past { data, spectates }: Past,
    ) {
        let presence = Presence { member: id, connected: true, slow: false, rtt_ms: None };
        self.data_bytes += data_memory(&data);
        let info = MemberInfo { id, name, user, link, presence, data };
        self.seated.insert(id, Member { info, spectates, told: presence });
    }

    pub(super) fn get(&self, id: MemberId) -> Option<&Member> {
        self.seated.get(&id)
    }

    pub(super) fn remove(&mut self, id: MemberId) -> Option<Member> {
        let member = self.seated.remove(&id)?;
        self.data_bytes -= data_memory(&member.info.data);
        Some(member)
    }

    /// Returns the memory that the player data of all members takes, in bytes.
    pub(super) fn data_bytes(&self) -> usize {
        self.data_bytes
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = MemberId> + '_ {
        self.seated.keys().copied()
    }

    pub(super) fn len(&self) -> usize {
        self.seated.len()
    }

    /// Returns how many of them are spectators.
    pub(super) fn spectators(&self) -> usize {
        self.seated.values().filter(|member| member.spectates).count()
    }

    pub(super) fn spectates(&self, id: MemberId) -> bool {
        self.seated.get(&id).is_some_and(|member| member.spectates)
    }

    pub(super) fn measured(&mut self, presence: Presence) {
        if let Some(member) = self.seated.get_mut(&presence.member) {
            member.info.presence = presence;
        }
    }

    pub(super) fn relink(&mut self, id: MemberId, link: LinkKind) {
        if let Some(member) = self.seated.get_mut(&id) {
            member.info.link = link;
        }
    }

    /// Returns presence that changed enough to send, and marks it as sent.
    fn take_news(&mut self, now: Instant) -> Vec<Presence> {
        let may_wait = self.seated.values().all(|member| !is_urgent(member.told, member.info.presence));
        if may_wait && self.told_at.is_some_and(|at| now < at + ROUND_TRIPS_EVERY) {
            return Vec::new();
        }
        let news = self.seated.values_mut().filter(|member| is_news(member.told, member.info.presence));
        let news: Vec<Presence> = news
            .map(|member| {
                member.told = member.info.presence;
                member.told
            })
            .collect();
        if !news.is_empty() {
            self.told_at = Some(now);
        }
        news
    }
}

/// Whether a change is sent at once: any change but that of a known round-trip time.
fn is_urgent(told: Presence, now: Presence) -> bool {
    told.connected != now.connected || told.slow != now.slow || told.rtt_ms.is_some() != now.rtt_ms.is_some()
}

/// Whether a change is worth sending. A round trip must differ by 5 ms and by a fifth, to ignore jitter.
fn is_news(told: Presence, now: Presence) -> bool {
    is_urgent(told, now)
        || match (told.rtt_ms, now.rtt_ms) {
            (Some(told), Some(now)) => told.abs_diff(now) >= 5.max(told / 5),
            _ => false,
        }
}

/// Sets or removes an entry. Returns whether anything changed.
fn change_data(held: &mut Vec<(String, Bytes)>, data: &PlayerData) -> Result<bool, PeerMisbehaved> {
    let at = held.iter().position(|(key, _)| *key == data.key);
    // A copy, so that a small value does not keep the whole packet that it came in.
    let value = data.value.as_ref().map(|value| Bytes::copy_from_slice(value));
    match (at, value) {
        (Some(at), Some(value)) => held[at].1 = value,
        (Some(at), None) => {
            held.remove(at);
        }
        (None, Some(_)) if held.len() >= limits::PLAYER_DATA_KEYS_MAX => {
            return Err(out_of_range("data count"));
        }
        (None, Some(value)) => held.push((data.key.clone(), value)),
        (None, None) => return Ok(false),
    }
    Ok(true)
}

fn out_of_range(field: &'static str) -> PeerMisbehaved {
    PeerMisbehaved::Malformed { what: "player data", error: ReadError::OutOfRange { field } }
}

impl Room {
    /// Returns its members for operators, in order of joining.
    pub fn member_summaries(&self) -> Vec<MemberSummary> {
        let authority = self.authority.member();
        let members = self.members.seated.values();
        let summary = |Member { info, spectates, .. }: &Member| MemberSummary {
            id: info.id,
            name: info.name.clone(),
            user: info.user.clone(),
            link: info.link,
            connected: info.presence.connected,
            rtt_ms: info.presence.rtt_ms,
            is_host: authority == Some(info.id),
            spectates: *spectates,
        };
        members.map(summary).collect()
    }

    /// Returns how many members are disconnected.
    pub fn away_count(&self) -> usize {
        self.members.seated.values().filter(|member| !member.info.presence.connected).count()
    }

    /// Returns how many members are connected over a kind of link.
    pub fn linked_count(&self, link: LinkKind) -> usize {
        let infos = self.members.seated.values().map(|member| &member.info);
        infos.filter(|info| info.presence.connected && info.link == link).count()
    }

    pub(super) fn flush_presence(&mut self, now: Instant) {
        let news = self.members.take_news(now);
        if news.is_empty() {
            return;
        }
        let members: Vec<MemberId> = self.members.ids().collect();
        for member in members {
            let view = self.view(member);
            let seen: Vec<Presence> =
                news.iter().copied().filter(|presence| view.sees_member(presence.member)).collect();
            if !seen.is_empty() {
                self.control(vec![member], &ToMember::Presence(seen));
            }
        }
    }

    pub(super) fn control_from(
        &mut self,
        from: MemberId,
        payload: Bytes,
        now: Instant,
    ) -> Result<(), PeerMisbehaved> {
        let decoded = ToHub::decode(payload);
        let message =
            decoded.map_err(|error| PeerMisbehaved::Malformed { what: "a control message", error })?;
        match message {
            Some(ToHub::SetData(data)) => self.data_from(from, data, now),
            Some(ToHub::Kick { member, reason }) => self.kick(from, member, reason),
            Some(ToHub::RefuseAction { member, refused }) => {
                if !self.is_word_of_authority(from, "the refusal of an action")? {
                    return Ok(());
                }
                let answer = ToMember::ActionRefused(refused);
                self.reliable_from(from, Held::Answer { member, answer }, now)
            }
            Some(ToHub::DecideActions { member, decisions }) => {
                if !self.is_word_of_authority(from, "a decision about actions")? {
                    return Ok(());
                }
                let answer = ToMember::ActionsDecided(decisions);
                self.reliable_from(from, Held::Answer { member, answer }, now)
            }
            Some(ToHub::Follow { epoch }) => self.follow(from, epoch),
            Some(ToHub::Candidates(candidates)) => {
                self.candidates_from(from, candidates, now);
                Ok(())
            }
            Some(ToHub::PathUp { id }) => {
                self.path_up(from, id);
                Ok(())
            }
            Some(ToHub::Terms(terms)) => self.terms_from(from, terms),
            Some(ToHub::Spectators { most }) => self.spectators_from(from, most),
            Some(ToHub::HandOver(asked)) => self.hand_over_from(from, asked, now),
            Some(ToHub::PathDown { id, was_up }) => {
                self.path_down(from, id, was_up);
                Ok(())
            }
            // A request of a newer protocol that this hub does not know.
            None => Ok(()),
        }
    }

    fn data_from(&mut self, from: MemberId, data: PlayerData, now: Instant) -> Result<(), PeerMisbehaved> {
        if data.member != from && !self.is_word_of_authority(from, "another's player data")? {
            return Ok(());
        }
        self.check_player(from, "player data")?;
        data.check().map_err(|_| out_of_range("data key or value"))?;
        self.reliable_from(from, Held::Data(data), now)
    }

    /// Sets player data and sends it to the members that may see it. Exceeding the data limits is a
    /// violation: senders know the limits and what they set.
    pub(super) fn set_data(&mut self, data: PlayerData) -> Result<(), PeerMisbehaved> {
        let bytes_max = limits::player_data_bytes_max(self.members_max());
        let Some(member) = self.members.seated.get_mut(&data.member).filter(|member| !member.spectates)
        else {
            self.counters.unreachable += 1;
            return Ok(());
        };
        let added = data.value.as_ref().map_or(0, |value| data.key.len() + value.len());
        if member.info.data_bytes_without(&data.key) + added > bytes_max {
            return Err(out_of_range("data bytes"));
        }
        let held = &mut member.info.data;
        self.members.data_bytes -= data_memory(held);
        let changed = change_data(held, &data);
        self.members.data_bytes += data_memory(held);
        if !changed? {
            return Ok(());
        }
        let told = self.told_of(&data);
        self.control(told, &ToMember::Data(data));
        Ok(())
    }

    /// Returns the receivers of a change of player data.
    pub(super) fn told_of(&self, data: &PlayerData) -> Vec<MemberId> {
        let mut told = self.seers_of(data.member);
        told.push(data.member);
        told
    }

    fn kick(&mut self, from: MemberId, member: MemberId, reason: String) -> Result<(), PeerMisbehaved> {
        if !self.is_word_of_authority(from, "a kick")? {
            return Ok(());
        }
        if member == from {
            let error = ReadError::OutOfRange { field: "member" };
            return Err(PeerMisbehaved::Malformed { what: "a kick of oneself", error });
        }
        if self.members.get(member).is_none() {
            self.kick_absent(member);
            return Ok(());
        }
        self.leave(member, LeaveReason::Kicked { reason: reason.clone() });
        self.outputs.push_back(super::Output::Remove { member, reason: CloseReason::Kicked { reason } });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn presence(connected: bool, rtt_ms: Option<u32>) -> Presence {
        Presence { member: MemberId(3), connected, slow: false, rtt_ms }
    }

    #[test]
    fn ids_count_up_and_are_never_given_again() {
        let mut members = Members::default();
        for id in 0..100 {
            assert_eq!(members.next_id(false), MemberId(id));
            assert_eq!(members.seat("ada".into(), None, LinkKind::Quic, false), MemberId(id));
            assert!(members.remove(MemberId(id)).is_some() && members.get(MemberId(id)).is_none());
        }
        members.next = SEATINGS_MAX / 2;
        assert!(
            members.can_seat(false) && !members.can_seat(true),
            "spectators leave players the other half"
        );
        members.next = SEATINGS_MAX;
        assert!(!members.can_seat(false));
        let mut copy = Members::of_copy();
        assert_eq!(copy.seat("wil".into(), None, LinkKind::Quic, true), MemberId(SEATINGS_MAX));
        assert_eq!(copy.seat("ada".into(), None, LinkKind::Quic, false), MemberId(0), "as in the room");
        copy.next_spectator = Some(SEATINGS_MAX / 2 * 3);
        assert!(!copy.can_seat(true) && copy.can_seat(false));
    }

    #[test]
    fn a_round_trip_is_told_when_it_has_changed_much() {
        let told = |told, now| is_news(presence(true, told), presence(true, now));
        assert!(told(None, Some(40)) && told(Some(40), None));
        assert!(!told(None, None));
        assert!(told(Some(10), Some(15)) && !told(Some(10), Some(14)), "5 ms, below 25");
        assert!(told(Some(100), Some(80)) && !told(Some(100), Some(81)), "a fifth, beyond");
        assert!(is_news(presence(true, Some(10)), presence(false, Some(10))));
        let slow = Presence { slow: true, ..presence(true, Some(10)) };
        assert!(is_news(presence(true, Some(10)), slow) && is_news(slow, presence(true, Some(10))));
    }

    #[test]
    fn news_is_told_once_and_round_trips_wait() {
        let at = |ms: u64| Instant::from_millis(10_000 + ms);
        let mut members = Members::default();
        for id in 0..4 {
            assert_eq!(members.seat(String::new(), None, LinkKind::Quic, false), MemberId(id));
        }
        assert_eq!(members.take_news(at(0)), []);
        members.measured(presence(true, Some(40)));
        // Of a member that left.
        members.measured(Presence { member: MemberId(9), ..presence(true, Some(40)) });
        assert_eq!(members.take_news(at(0)), [presence(true, Some(40))], "it was not known before");
        members.measured(presence(true, Some(42)));
        assert_eq!(members.take_news(at(60_000)), [], "it wavers");
        let of_other = |rtt_ms| Presence { member: MemberId(2), ..presence(true, Some(rtt_ms)) };
        members.measured(of_other(50));
        assert_eq!(members.take_news(at(60_000)), [of_other(50)]);
        members.measured(of_other(90));
        assert_eq!(members.take_news(at(64_999)), [], "a round trip waits");
        assert_eq!(members.take_news(at(65_000)), [of_other(90)]);
        assert_eq!(members.take_news(at(90_000)), [], "it was told");
        // What is urgent takes along what would wait.
        members.measured(of_other(20));
        assert_eq!(members.take_news(at(90_000)), [of_other(20)]);
        members.measured(of_other(60));
        let slow = Presence { slow: true, ..presence(true, Some(40)) };
        members.measured(slow);
        assert_eq!(members.take_news(at(90_001)), [of_other(60), slow]);
    }
}
