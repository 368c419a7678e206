//! The functions that a page calls, in the groups of the crate's head.

/// Defines exported functions. Their names are exported in WebAssembly alone: natively some would take the place of the
/// C library's.
macro_rules! exports {
    ($($(#[$doc:meta])* fn $name:ident($($argument:ident: $type:ty),*) -> $number:ty $body:block)*) => {$(
        $(#[$doc])*
        #[cfg_attr(target_arch = "wasm32", unsafe(no_mangle))]
        #[allow(unsafe_code)] // the attribute: no other function of the module has the name
        pub extern "C" fn $name($($argument: $type),*) -> $number $body
    )*};
}

pub mod driver;
pub mod figures;
pub mod module;
pub mod play;
pub mod rollback;
pub mod state;
pub mod worlds;
