//! The in and the out buffer, results and faults: what every call across the boundary has in common.

use crate::room::Room;
use bytes::Bytes;
use parlor_client_core::binding::{NONE, as_member};
use parlor_proto::wire::envelope::Recipient;
use parlor_proto::{EntityId, MemberId};
use parlor_sync::value::{Value, ValueError};
use std::cell::RefCell;

pub(crate) use parlor_client_core::binding::Fault;

/// Bytes that may go in at once. The largest thing to go in is the columns of a world.
pub(crate) const IN_BYTES_MAX: usize = 16 * 1024 * 1024;

thread_local! {
    static IN: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static OUT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static ROOM: RefCell<Option<Box<Room>>> = const { RefCell::new(None) };
}

/// A result as a number.
pub(crate) trait Answer {
    type Number;
    const FAULT: Self::Number;
    fn number(self) -> Self::Number;
}

macro_rules! answers {
    ($($type:ty => $number:ty, |$it:ident| $value:expr;)*) => {$(
        impl Answer for $type {
            type Number = $number;
            const FAULT: $number = -1 as $number;

            fn number(self) -> $number {
                let $it = self;
                $value
            }
        }
    )*};
}

answers! {
    () => i32, |_it| 0;
    bool => i32, |it| it.into();
    i32 => i32, |it| it;
    usize => i32, |it| i32::try_from(it).unwrap_or(i32::MAX);
    Option<MemberId> => i32, |it| it.map_or(NONE, |member| member.0.cast_signed());
    f64 => f64, |it| it;
}

/// What came in: values one behind the other, or bytes.
pub(crate) struct Given(Bytes);

impl Given {
    /// All bytes.
    pub(crate) fn bytes(&mut self) -> Bytes {
        std::mem::take(&mut self.0)
    }

    /// The values of a call, which must be all that came in.
    pub(crate) fn parts<P: Parts>(&mut self) -> Result<P, Fault> {
        let parts = P::take(&mut self.0)?;
        if !self.0.is_empty() {
            return Err(Fault::bad_call("more was passed than this call takes"));
        }
        Ok(parts)
    }
}

/// Several values that a call takes.
pub(crate) trait Parts: Sized {
    fn take(from: &mut Bytes) -> Result<Self, Fault>;
}

/// One value that a call takes.
pub(crate) trait Part: Sized {
    /// What it must be, for a person.
    const WANTED: &'static str;
    fn of(value: Value) -> Option<Self>;
}

impl<P: Part> Parts for P {
    fn take(from: &mut Bytes) -> Result<Self, Fault> {
        let value = Value::decode_next(from)?;
        let found = value.kind();
        P::of(value).ok_or_else(|| Fault::new("bad_value", &format!("expected {}, found {found}", P::WANTED)))
    }
}

/// The last value, which may be left out.
pub(crate) struct Last(pub(crate) Option<Value>);

impl Parts for Last {
    fn take(from: &mut Bytes) -> Result<Self, Fault> {
        if from.is_empty() { Ok(Last(None)) } else { Ok(Last(Some(Value::decode_next(from)?))) }
    }
}

impl<A: Parts, B: Parts> Parts for (A, B) {
    fn take(from: &mut Bytes) -> Result<Self, Fault> {
        Ok((A::take(from)?, B::take(from)?))
    }
}

impl<A: Parts, B: Parts, C: Parts> Parts for (A, B, C) {
    fn take(from: &mut Bytes) -> Result<Self, Fault> {
        Ok((A::take(from)?, B::take(from)?, C::take(from)?))
    }
}

impl Part for Value {
    const WANTED: &'static str = "a value";
    fn of(value: Value) -> Option<Self> {
        Some(value)
    }
}

impl Part for String {
    const WANTED: &'static str = "text";
    fn of(value: Value) -> Option<Self> {
        if let Value::Text(text) = value { Some(text) } else { None }
    }
}

impl Part for Bytes {
    const WANTED: &'static str = "bytes";
    fn of(value: Value) -> Option<Self> {
        if let Value::Bytes(bytes) = value { Some(bytes) } else { None }
    }
}

impl Part for Vec<MemberId> {
    const WANTED: &'static str = "a list of members";
    fn of(value: Value) -> Option<Self> {
        let Value::List(members) = value else { return None };
        members.iter().map(as_member).collect()
    }
}

impl Part for Recipient {
    const WANTED: &'static str =
        "\"host\", \"others\", \"all\", \"primary\", a member, a list of members, or a map with `except`";
    fn of(value: Value) -> Option<Self> {
        Some(match value {
            Value::Text(text) => match text.as_str() {
                "host" => Recipient::Authority,
                "others" => Recipient::Others,
                "all" => Recipient::Everyone,
                "primary" => Recipient::Primary,
                _ => return None,
            },
            Value::List(_) => Recipient::Members(Part::of(value)?),
            Value::Map(mut map) if map.len() == 1 => Recipient::Except(Part::of(map.remove("except")?)?),
            member => Recipient::Member(as_member(&member)?),
        })
    }
}

/// The member that an argument names.
pub(crate) fn member(number: i32) -> Result<MemberId, Fault> {
    some_member(number)?.ok_or_else(|| Fault::bad_call("a member is expected, and none was passed"))
}

/// The member that an argument names, or none.
pub(crate) fn some_member(number: i32) -> Result<Option<MemberId>, Fault> {
    match u32::try_from(number) {
        Ok(member) => Ok(Some(MemberId(member))),
        Err(_) if number == NONE => Ok(None),
        Err(_) => Err(Fault::bad_call("a member is a number of at least 0, and -2 is none")),
    }
}

/// The entity that an argument names: its 32 bits.
pub(crate) const fn entity(bits: i32) -> EntityId {
    EntityId::from_bits(bits.cast_unsigned())
}

/// A whole number that passes as a float.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // it is checked to be in range
pub(crate) fn whole(number: f64, max: u64) -> Result<u64, Fault> {
    if number >= 0.0 && number <= max as f64 && number.fract() == 0.0 {
        return Ok(number as u64);
    }
    Err(Fault::bad_call(&format!("{number} is no whole number from 0 to {max}")))
}

/// Makes room for `len` bytes that are to go in, and returns where. 0 if there cannot be so many.
pub(crate) fn reserve(len: i32) -> usize {
    let Some(len) = usize::try_from(len).ok().filter(|len| *len <= IN_BYTES_MAX) else { return 0 };
    IN.with_borrow_mut(|given| {
        given.clear();
        given.resize(len, 0);
        given.as_mut_ptr().addr()
    })
}

/// Where the out buffer is, and how long it is.
pub(crate) fn out() -> (usize, usize) {
    OUT.with_borrow(|out| (out.as_ptr().addr(), out.len()))
}

/// What a call does with what came in and what goes out.
type Act<'a> = dyn FnMut(&mut Given, &mut Vec<u8>) -> Result<(), Fault> + 'a;

/// Does a call that takes `len` bytes of the in buffer. Not generic, so that the many calls share its code.
fn perform(len: i32, act: &mut Act<'_>) {
    let mut given = IN.take();
    let mut out = OUT.take();
    out.clear();
    let done = match usize::try_from(len).ok().filter(|len| *len <= given.len()) {
        Some(len) => {
            given.truncate(len);
            act(&mut Given(given.into()), &mut out)
        }
        None => Err(Fault::bad_call("less was passed than this call was told: reserve, write, then call")),
    };
    if let Err(fault) = done {
        out.clear();
        // A fault has text alone, which can always be encoded.
        let _: Result<(), ValueError> = fault.value().encode_wrapped(&mut out);
    }
    OUT.set(out);
}

/// A call that takes `len` bytes of the in buffer, and no room.
pub(crate) fn call<A: Answer>(
    len: i32,
    act: impl FnOnce(&mut Given, &mut Vec<u8>) -> Result<A, Fault>,
) -> A::Number {
    let (mut act, mut answer) = (Some(act), A::FAULT);
    perform(len, &mut |given, out| {
        let act = act.take().expect("a call is done once");
        answer = act(given, out)?.number();
        Ok(())
    });
    answer
}

/// A call on the room of this instance, without bytes that go in.
pub(crate) fn ask<A: Answer>(act: impl FnOnce(&mut Room, &mut Vec<u8>) -> Result<A, Fault>) -> A::Number {
    tell(0, |room, _, out| act(room, out))
}

/// What a call does with the room. It is a trait, because the table of a `dyn FnMut` has two functions for
/// each of the many calls.
trait ActOnRoom {
    fn act(&mut self, room: &mut Room, given: &mut Given, out: &mut Vec<u8>) -> Result<(), Fault>;
}

/// A call and its answer.
struct Call<F, A: Answer> {
    act: Option<F>,
    answer: A::Number,
}

impl<A, F> ActOnRoom for Call<F, A>
where
    A: Answer,
    F: FnOnce(&mut Room, &mut Given, &mut Vec<u8>) -> Result<A, Fault>,
{
    fn act(&mut self, room: &mut Room, given: &mut Given, out: &mut Vec<u8>) -> Result<(), Fault> {
        let act = self.act.take().expect("a call is done once");
        self.answer = act(room, given, out)?.number();
        Ok(())
    }
}

/// As [`perform`], on the room of this instance.
fn perform_on_room(len: i32, call: &mut dyn ActOnRoom) {
    perform(len, &mut |given, out| {
        ROOM.with_borrow_mut(|room| match room {
            Some(room) => call.act(room, given, out),
            None => Err(Fault::new("not_open", "this instance has no room: call `open` first")),
        })
    });
}

/// A call on the room of this instance that takes `len` bytes of the in buffer.
pub(crate) fn tell<A: Answer>(
    len: i32,
    act: impl FnOnce(&mut Room, &mut Given, &mut Vec<u8>) -> Result<A, Fault>,
) -> A::Number {
    let mut call = Call { act: Some(act), answer: A::FAULT };
    perform_on_room(len, &mut call);
    call.answer
}

/// Puts the room into this instance.
pub(crate) fn set_room(make: impl FnOnce() -> Result<Room, Fault>) -> Result<(), Fault> {
    ROOM.with_borrow_mut(|held| {
        if held.is_some() {
            return Err(Fault::new("already_open", "this instance has a room: make an instance for each"));
        }
        *held = Some(Box::new(make()?));
        Ok(())
    })
}

/// For tests: what a page does with the memory of its instance.
#[cfg(not(target_arch = "wasm32"))]
pub mod memory {
    use super::{IN, OUT};

    /// Writes the in buffer of this thread's instance, which was reserved.
    ///
    /// # Panics
    /// If it was not reserved with this length.
    pub fn write(bytes: &[u8]) {
        IN.with_borrow_mut(|given| given.copy_from_slice(bytes));
    }

    /// Copies the out buffer of this thread's instance.
    pub fn read() -> Vec<u8> {
        OUT.with_borrow(Clone::clone)
    }
}
