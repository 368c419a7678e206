//! Records as lines: for a person, and one JSON object each.

use super::stream::{Entry, Packet, Part};
use super::{Record, Said, Way, What, value};
use parlor_proto::{ChannelId, EntityId, MemberId, channel};
use parlor_sync::audience::Audience;
use parlor_sync::delta::EntryKind;
use parlor_sync::schema::{Component, ComponentId, Schema};
use serde_json::{Map, Value, json};

impl Record {
    /// Lines for a person: one for the record, and one for each entity that a packet speaks of.
    pub(crate) fn lines(&self) -> Vec<String> {
        let arrow = match self.way {
            Way::Up => "<-",
            Way::Down => "->",
        };
        let member = self.member.map_or_else(String::new, |member| member.to_string());
        let at = self.at.as_secs_f64();
        let mut lines = vec![format!("{at:>10.4} s {arrow} {member:<4} {}", self.what.summary())];
        if let What::Message { said: Said::State { packet, .. }, .. } = &self.what {
            lines.extend(packet.entries.iter().flat_map(|entry| entry_lines(entry, &packet.schema)));
        }
        lines
    }

    /// One JSON object.
    pub(crate) fn json(&self) -> Value {
        let mut object = Map::new();
        #[expect(clippy::cast_possible_truncation, reason = "584,000 years")]
        object.insert("at_us".into(), json!(self.at.as_micros() as u64));
        let way = match self.way {
            Way::Up => "up",
            Way::Down => "down",
        };
        object.insert("way".into(), json!(way));
        object.insert("member".into(), json!(self.member.map(|member| member.0)));
        self.what.json(&mut object);
        object.into()
    }
}

impl What {
    fn summary(&self) -> String {
        match self {
            What::Joins { name, link } => format!("joins as {name:?} over {}", link.as_str()),
            What::Leaves(reason) => format!("{reason}"),
            What::Message { channel, bytes, said } => {
                let said = said.summary();
                let gap = if said.is_empty() { "" } else { "  " };
                format!("{:<10} {bytes:>6} B{gap}{said}", channel_name(*channel))
            }
            What::Packet(packet) => packet.summary(),
            What::Fate { source, number, delivered } => {
                let of = source.map_or_else(String::new, |source| format!(" of the state of {source}"));
                format!("packet {number}{of} {}", if *delivered { "arrived" } else { "was lost" })
            }
            What::Became(what) => what.clone(),
            What::Takes(true) => "takes packets again".to_owned(),
            What::Takes(false) => "takes no packets for now".to_owned(),
            What::Refused(why) => format!("refused: member {why}"),
            What::Removed(reason) => format!("is removed: {reason}"),
            What::Ended(reason) => format!("the room ends: {reason}"),
        }
    }

    fn json(&self, object: &mut Map<String, Value>) {
        let mut put = |name: &str, value: Value| object.insert(name.to_owned(), value);
        match self {
            What::Joins { name, link } => {
                put("what", json!("joins"));
                put("name", json!(name));
                put("link", json!(link.as_str()));
            }
            What::Leaves(reason) => {
                put("what", json!("leaves"));
                put("reason", json!(reason.to_string()));
            }
            What::Message { channel, bytes, said } => {
                put("what", json!("message"));
                put("channel", json!(channel_name(*channel)));
                put("bytes", json!(bytes));
                said.json(object);
            }
            What::Packet(packet) => {
                put("what", json!("packet"));
                put("packet", packet.json());
            }
            What::Fate { source, number, delivered } => {
                put("what", json!("fate"));
                put("source", json!(source.map(|source| source.0)));
                put("packet", json!(number));
                put("delivered", json!(delivered));
            }
            What::Takes(takes) => {
                put("what", json!("writable"));
                put("takes", json!(takes));
            }
            What::Became(what) => {
                put("what", json!("became"));
                put("became", json!(what));
            }
            What::Refused(why) => {
                put("what", json!("refused"));
                put("why", json!(why));
            }
            What::Removed(reason) => {
                put("what", json!("removed"));
                put("reason", json!(reason.to_string()));
            }
            What::Ended(reason) => {
                put("what", json!("ended"));
                put("reason", json!(reason.to_string()));
            }
        }
    }
}

impl Said {
    fn summary(&self) -> String {
        match self {
            Said::State { source: None, packet } => packet_summary(packet),
            Said::State { source: Some(source), packet } => {
                format!("of {source}: {}", packet_summary(packet))
            }
            Said::Typed { kind, event_time, value } => {
                let happened =
                    event_time.map_or_else(String::new, |time| format!(" of {:.4} s", time.as_secs_f64()));
                format!("{kind:?}{happened} {}", value::shown(&json!(value)))
            }
            Said::Action(action) => format!("{:?} with {}", action.name, action.entity),
            Said::Unreadable(why) => format!("cannot be read: {why}"),
            Said::Other => String::new(),
        }
    }

    fn json(&self, object: &mut Map<String, Value>) {
        let (name, value) = match self {
            Said::State { source, packet } => {
                object.insert("source".into(), json!(source.map(|source| source.0)));
                ("state", packet_json(packet))
            }
            Said::Typed { kind, event_time, value } => {
                let mut typed = json!({ "kind": kind, "value": value });
                if let Some(time) = event_time {
                    typed["event_time_ms"] = json!(time.as_secs_f64() * 1_000.0);
                }
                ("typed", typed)
            }
            Said::Action(action) => ("action", json!({ "entity": name(action.entity), "name": action.name })),
            Said::Unreadable(why) => ("unreadable", json!(why)),
            Said::Other => return,
        };
        object.insert(name.into(), value);
    }
}

fn packet_summary(packet: &Packet) -> String {
    let head = &packet.head;
    let floor = packet.number.saturating_sub(head.floor_gap.into());
    let mut text = format!("packet {}, tick {}, floor {floor}", packet.number, head.tick);
    for (is, word) in [
        (head.epoch_gap.is_some(), "complete"),
        (head.transfer, "transfer"),
        (head.last, "last"),
        (head.plain, "plain"),
    ] {
        if is {
            text.push_str(", ");
            text.push_str(word);
        }
    }
    text
}

fn packet_json(packet: &Packet) -> Value {
    let head = &packet.head;
    json!({
        "packet": packet.number,
        "tick": head.tick,
        "floor": packet.number.saturating_sub(head.floor_gap.into()),
        "complete": head.epoch_gap.is_some(),
        "transfer": head.transfer,
        "last": head.last,
        "plain": head.plain,
        "entries": packet.entries.iter().map(|entry| entry_json(entry, &packet.schema)).collect::<Vec<_>>(),
    })
}

fn entry_lines(entry: &Entry, schema: &Schema) -> Vec<String> {
    let mut text = format!(
        "{:16}{} {} {:.1} B, tick {}",
        "",
        entry.entity,
        kind_word(entry.kind),
        entry.bits / 8.0,
        entry.tick
    );
    let built_on = built_on(entry).iter().map(ToString::to_string).collect::<Vec<_>>();
    if !built_on.is_empty() {
        text.push_str(&format!(" from {}", built_on.join(", ")));
    }
    if let Some(owner) = entry.owner {
        text.push_str(&owner.map_or_else(|| ", nobody's".to_owned(), |owner| format!(", of {owner}")));
    }
    if let Some((room, audience)) = &entry.scope {
        text.push_str(&format!(", room {room}, for {}", audience_word(audience)));
    }
    if let Some(mask) = entry.has {
        let names = names(mask, schema);
        text.push_str(", has ");
        text.push_str(&if names.is_empty() { "nothing".to_owned() } else { names.join(", ") });
    }
    let mut lines = vec![text];
    lines.extend(entry.components.iter().filter_map(|part| Some(part_line(part, schema.get(part.id)?))));
    lines
}

/// The ticks of the rows that an entry builds on.
fn built_on(entry: &Entry) -> Vec<u32> {
    entry.ages.iter().map(|age| entry.tick.saturating_sub(*age)).collect()
}

fn part_line(part: &Part, component: &Component) -> String {
    let mut text = format!("{:20}{}", "", component.name());
    for (index, (field, bits)) in component.fields().iter().zip(&part.field_bits).enumerate() {
        let value = value::shown(&value::field(component, &part.lanes, &part.blobs, index));
        text.push_str(&format!("  {} {value} ({:.2} B)", field.name, bits / 8.0));
    }
    text
}

fn entry_json(entry: &Entry, schema: &Schema) -> Value {
    let mut object = json!({
        "entity": name(entry.entity),
        "kind": kind_word(entry.kind),
        "tick": entry.tick,
        "built_on": built_on(entry),
        "bytes": entry.bits / 8.0,
        "components": entry
            .components
            .iter()
            .filter_map(|part| {
                let component = schema.get(part.id)?;
                Some((component.name().to_owned(), part_json(part, component)))
            })
            .collect::<Map<String, Value>>(),
    });
    if let Some(owner) = entry.owner {
        object["owner"] = json!(owner.map(|owner| owner.0));
    }
    if let Some((room, audience)) = &entry.scope {
        object["room"] = json!(room);
        object["audience"] = match audience {
            Audience::All => json!("all"),
            Audience::Members(members) => members.iter().map(|member| json!(member.0)).collect(),
        };
    }
    if let Some(mask) = entry.has {
        object["has"] = json!(names(mask, schema));
    }
    object
}

fn part_json(part: &Part, component: &Component) -> Value {
    let fields = component.fields().iter().zip(&part.field_bits).enumerate().map(|(index, (field, bits))| {
        let value = value::field(component, &part.lanes, &part.blobs, index);
        (field.name.clone(), json!({ "value": value, "bytes": bits / 8.0 }))
    });
    fields.collect::<Map<String, Value>>().into()
}

fn names(mask: u64, schema: &Schema) -> Vec<&str> {
    ComponentId::in_mask(mask).filter_map(|id| schema.get(id).map(Component::name)).collect()
}

fn audience_word(audience: &Audience) -> String {
    match audience {
        Audience::All => "all".to_owned(),
        Audience::Members(members) => {
            members.iter().map(|member: &MemberId| member.to_string()).collect::<Vec<_>>().join("+")
        }
    }
}

const fn kind_word(kind: EntryKind) -> &'static str {
    match kind {
        EntryKind::Update => "update",
        EntryKind::Spawn => "spawn",
        EntryKind::Despawn => "despawn",
    }
}

/// An entity as `--entity` takes it.
pub(crate) fn name(entity: EntityId) -> String {
    format!("{}.{}", entity.slot, entity.generation)
}

/// The word for a channel; the number of one that is the game's.
pub(super) fn channel_name(id: ChannelId) -> String {
    match id {
        channel::CONTROL => "control".to_owned(),
        channel::STATE => "state".to_owned(),
        channel::INPUT => "input".to_owned(),
        channel::MESSAGE_ORDERED => "ordered".to_owned(),
        channel::MESSAGE_UNORDERED => "unordered".to_owned(),
        channel::MESSAGE_UNRELIABLE => "unreliable".to_owned(),
        channel::MESSAGE_SEQUENCED => "sequenced".to_owned(),
        channel::ACTIONS => "actions".to_owned(),
        channel::REPLICAS => "replicas".to_owned(),
        channel::ROLLBACK => "rollback".to_owned(),
        channel::CHECKPOINT => "checkpoint".to_owned(),
        ChannelId(number) => format!("channel {number}"),
    }
}
