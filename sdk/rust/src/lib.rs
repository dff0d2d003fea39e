//! Functions that run inside Ostro, next to the data.
//!
//! ```ignore
//! #![no_std]
//! use ostro::{Call, Result};
//!
//! ostro::lean!();
//!
//! ostro::function! {
//!     /// Answers with a greeting and counts it.
//!     fn hello(call: &Call) -> Result<()> {
//!         let name = call.arg(0)?;
//!         let seen = call.get(name)?.and_then(ostro::parse_i64).unwrap_or(0) + 1;
//!         call.set(name, &ostro::decimal(seen))?;
//!         call.resp(b"hello, ");
//!         call.resp(name);
//!         Ok(())
//!     }
//! }
//! ```
//!
//! What holds:
//!
//! - Everything that a [`Call`] gives out lives as long as the call, and values
//!   stay as they were when they were read. The borrow checker sees to it.
//! - Writes are applied when the function has returned `Ok`, all at one moment.
//!   An `Err`, a panic, or the end of the function's budget applies none.
//! - A static may hold a cache and never the truth: calls of one function run in
//!   several instances, and each may be thrown away.
//!
//! The crate needs neither `std` nor `alloc`. A function may use `std` all the
//! same; its module is larger then. Without it, write [`lean!`] once, for the
//! panic handler.
#![no_std]
#![warn(missing_docs)]

mod abi;
mod area;
mod buffer;
mod call;
mod error;
mod line;
mod memory;
mod number;
mod order;
mod scan;
mod table;

pub use buffer::Buffer;
pub use call::{Call, Level};
pub use error::{Error, Result};
pub use line::Line;
pub use number::{decimal, decimal_u64, parse_i64, parse_u64, Decimal, Reader};
pub use order::compare;
pub use scan::{Entry, Scan};
pub use table::{Scratch, Table};

/// Defines functions that can be invoked by their names.
#[macro_export]
macro_rules! function {
    ($($(#[$attribute:meta])* fn $name:ident($call:ident: $kind:ty) -> $result:ty $body:block)+) => {$(
        $(#[$attribute])*
        fn $name($call: $kind) -> $result $body

        const _: () = {
            #[export_name = concat!("ostro_fn_", stringify!($name))]
            extern "C" fn export() -> i32 {
                $crate::run($name)
            }
        };
    )+};
}

/// The panic handler of a module without `std`: the call fails with the place.
#[macro_export]
macro_rules! lean {
    () => {
        const _: () = {
            #[panic_handler]
            fn panic(info: &core::panic::PanicInfo) -> ! {
                $crate::panicked(info)
            }
        };
    };
}

/// Runs one call; what `function!` exports.
#[doc(hidden)]
pub fn run(function: fn(&Call) -> Result<()>) -> i32 {
    // The only call of this instance: memory of the one before is free again.
    let call = unsafe { Call::begin() };
    match function(&call) {
        Ok(()) => 0,
        Err(e) => call.fail(e.code(), e.message().as_bytes()),
    }
}

/// The code of a call that ended by a panic.
const PANICKED: i32 = 243;

#[doc(hidden)]
pub fn panicked(info: &core::panic::PanicInfo) -> ! {
    let mut line = Line::<128>::new();
    line.push_what_fits(b"panic");
    if let Some(place) = info.location() {
        line.push_what_fits(b" at ");
        line.push_what_fits(place.file().as_bytes());
        line.push_what_fits(b":");
        line.push_what_fits(&decimal(place.line().into()));
    }
    unsafe { abi::fail(PANICKED, line.as_ptr(), line.len()) }
}
