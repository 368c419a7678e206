//! The module itself, and opening its room.

use crate::boundary::{self, Fault, call, set_room};
use crate::options;
use crate::room::Room;
use parlor_client_core::binding::read_schema;
use parlor_sync::value::Value;

exports! {
    /// The version of this boundary.
    fn abi_version() -> i32 {
        1
    }

    /// Makes the in buffer `len` bytes long and returns its address; 0 if it cannot be.
    fn in_reserve(len: i32) -> usize {
        boundary::reserve(len)
    }

    /// The address of the out buffer.
    fn out_ptr() -> usize {
        boundary::out().0
    }

    /// The length of the out buffer.
    fn out_len() -> usize {
        boundary::out().1
    }

    /// Checks that the bytes are the encoding of a value.
    fn value_check(len: i32) -> i32 {
        call(len, |given, _| given.parts::<Value>().map(drop))
    }

    /// The hash of the schema that a description stands for.
    fn schema_hash(len: i32) -> i32 {
        call(len, |given, out| {
            let schema = read_schema(given.parts()?, "schema")?;
            out.extend(schema.hash().to_le_bytes());
            Ok(())
        })
    }

    /// Makes the room of this instance, which then wants a server.
    fn open(len: i32) -> i32 {
        call(len, |given, _| {
            let options = given.parts()?;
            set_room(|| Ok::<Room, Fault>(Room::new(options::read(options)?)))
        })
    }
}
