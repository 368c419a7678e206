//! The logs of the rooms: the durable part of each is replayed and compared with what members received.

use super::members::News;
use super::messages::serial_in;
use super::{Divergence, Model, RoomIndex, Verdict, ensure};
use crate::disk::LogFile;
use crate::peer::PeerId;
use bytes::Bytes;
use parlor_hub::room::Output;
use parlor_hub::room::log::{self, LogError};
use parlor_proto::session::Outgoing;
use parlor_proto::wire::control::ToMember;
use parlor_proto::wire::envelope::Downward;
use parlor_proto::{MemberId, channel};
use std::collections::BTreeMap;

/// Output of a replay for each member.
#[derive(Debug, Default)]
struct Said {
    names: BTreeMap<MemberId, String>,
    news: BTreeMap<MemberId, Vec<News>>,
    messages: BTreeMap<MemberId, Vec<u64>>,
}

impl Model {
    /// Replays the logs of all rooms, in the order of their opening.
    ///
    /// # Errors
    /// [`Divergence`] if a replay fails before the durable end, or differs from what members were told.
    pub fn replay(&mut self, files: &[LogFile]) -> Verdict {
        ensure(files.len() == self.rooms.len(), || {
            format!("{} rooms opened and {} logs were begun", self.rooms.len(), files.len())
        })?;
        (0..).map(RoomIndex).zip(files).try_for_each(|(index, file)| self.replay_one(index, file))
    }

    fn replay_one(&mut self, index: RoomIndex, file: &LogFile) -> Verdict {
        ensure(file.room == self.room(index).id, || format!("the log of {} is for {index}", file.room))?;
        let (entries, is_clean) = file.whole_entries();
        self.counts.torn += u64::from(!is_clean);
        let mut replay = match (log::replay(file.durable().into()), entries) {
            (Ok(replay), Some(_)) => replay,
            (Err(LogError::NotALog | LogError::Malformed { entry: 0, .. }), None) => return Ok(()),
            (other, _) => {
                let error = other.err();
                return Err(Divergence::new(format!(
                    "the log of {index} begins with {error:?}: {entries:?} whole"
                )));
            }
        };
        let whole = entries.unwrap_or_default();
        let (mut said, mut good, mut torn_at) = (Said::default(), 0, None);
        for step in replay.by_ref() {
            match step {
                Ok(step) => {
                    good += 1;
                    step.outputs.into_iter().try_for_each(|output| said.hear(output))?;
                }
                Err(LogError::Malformed { entry, .. }) => torn_at = Some(entry),
                Err(error) => return Err(Divergence::new(format!("the log of {index}: {error}"))),
            }
        }
        ensure(good == whole && torn_at == (!is_clean).then_some(whole), || {
            format!("the log of {index} has {whole} entries and ran {good}; torn at {torn_at:?}")
        })?;
        let is_all = is_clean && file.is_whole();
        let room = self.room(index);
        let members: Vec<MemberId> = replay.room().member_ids().collect();
        let is_same = room.is_lost || !is_all || members == room.member_ids();
        ensure(is_same, || format!("the log of {index} ends with {members:?} in it"))?;
        for (member, who) in (0..).map(MemberId).zip(room.seated.clone()) {
            self.was_told(member, who, &said, is_all)?;
            let logged = said.messages.get(&member).map(Vec::as_slice).unwrap_or_default();
            self.counts.messages_apart += if is_all { self.messages_apart(who, logged) } else { 0 };
        }
        self.counts.logs += 1;
        Ok(())
    }

    /// Compares the log's output for a member with what the member received, as far as both go.
    fn was_told(&self, member: MemberId, who: PeerId, said: &Said, is_all: bool) -> Verdict {
        let (news, messages) = (said.news.get(&member), said.messages.get(&member));
        let (news, messages) =
            (news.map(Vec::as_slice).unwrap_or_default(), messages.map(Vec::as_slice).unwrap_or_default());
        let (told, came) = (&self.peers[&who].told[..], self.messages_in_order(who, messages));
        let stays = self.stays(who);
        ensure(agree(told, news, is_all, stays), || {
            format!("the log tells {who} {news:?}; it heard {told:?}")
        })?;
        ensure(agree(&came, messages, is_all, stays), || {
            format!("the log has the messages {messages:?} for {who}, to whom {came:?} came")
        })
    }
}

/// Whether what came matches what was sent: a prefix of it, or all of it if nothing was lost in transit. A
/// log that lost its end has less.
fn agree<T: PartialEq>(came: &[T], said: &[T], is_all: bool, stays: bool) -> bool {
    match (is_all, stays) {
        (true, true) => came == said,
        (true, false) => said.starts_with(came),
        (false, _) => said.starts_with(came) || came.starts_with(said),
    }
}

impl Said {
    fn hear(&mut self, output: Output) -> Verdict {
        let Output::Send { to, message: Outgoing { channel, payload, .. } } = output else { return Ok(()) };
        match channel {
            channel::CONTROL => {
                if let Some(news) = self.news(payload)? {
                    to.iter().for_each(|member| self.news.entry(*member).or_default().push(news.clone()));
                }
            }
            channel::MESSAGE_ORDERED => {
                let unreadable = || Divergence::new("a log has a message that cannot be read".to_owned());
                let downward = Downward::decode(payload).map_err(|_| unreadable())?;
                let serial = serial_in(channel, downward.payload).ok_or_else(unreadable)?;
                to.iter().for_each(|member| self.messages.entry(*member).or_default().push(serial));
            }
            _ => {}
        }
        Ok(())
    }

    fn news(&mut self, payload: Bytes) -> Result<Option<News>, Divergence> {
        let control = ToMember::decode(payload).map_err(|error| Divergence::new(error.to_string()))?;
        Ok(match control {
            Some(ToMember::Joined(info)) => {
                self.names.insert(info.id, info.name.clone());
                Some(News::Joined(info.id, info.name))
            }
            Some(ToMember::Left { member, reason }) => {
                let name = self.names.get(&member).cloned().unwrap_or_default();
                Some(News::Left(member, name, reason))
            }
            _ => None,
        })
    }
}
