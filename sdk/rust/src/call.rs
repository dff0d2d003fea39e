use core::ops::Deref;

use crate::number::u32_at;
use crate::{abi, area, decimal, memory, parse_i64, Error, Result, Table};

/// One invocation: what it was given, the store, the response.
///
/// It derefs to the tenant's default [`Table`], so `call.get(key)` reads from it.
pub struct Call {
    default: Table,
    block: &'static [u8], // Of args; reachable only by a reference to the call.
}

/// How important a line of the log is.
#[derive(Clone, Copy)]
pub enum Level {
    /// For the author.
    Debug = 0,
    /// For the curious.
    Info = 1,
    /// Something is odd.
    Warning = 2,
    /// Something is wrong.
    Error = 3,
}

impl Deref for Call {
    type Target = Table;

    fn deref(&self) -> &Table {
        &self.default
    }
}

impl Call {
    /// Begins a call.
    ///
    /// # Safety
    /// The call before must be over: its memory is used again.
    #[doc(hidden)]
    pub unsafe fn begin() -> Call {
        memory::reset();
        if let Some(block) = area::args() {
            return Call { default: Table::new(0), block };
        }
        let (buf, cap) = memory::free();
        let len = abi::args(buf, cap);
        let block = memory::keep(len);
        if len > cap {
            abi::args(block.as_ptr() as *mut u8, len);
        }
        Call { default: Table::new(0), block }
    }

    /// How many keys the invocation has.
    pub fn keys(&self) -> usize {
        u32_at(self.block, 0)
    }

    /// How many arguments the invocation has.
    pub fn args(&self) -> usize {
        u32_at(self.block, 4)
    }

    /// The i-th key.
    pub fn key(&self, i: usize) -> Result<&[u8]> {
        if i >= self.keys() {
            return Err(Error::Argument("a key is missing"));
        }
        Ok(self.nth(i))
    }

    /// The i-th argument.
    pub fn arg(&self, i: usize) -> Result<&[u8]> {
        if i >= self.args() {
            return Err(Error::Argument("an argument is missing"));
        }
        Ok(self.nth(self.keys() + i))
    }

    /// The i-th argument, a decimal number.
    pub fn arg_i64(&self, i: usize) -> Result<i64> {
        parse_i64(self.arg(i)?).ok_or(Error::Argument("an argument should be a number"))
    }

    /// The i-th argument, a decimal number without a sign.
    pub fn arg_u64(&self, i: usize) -> Result<u64> {
        crate::parse_u64(self.arg(i)?).ok_or(Error::Argument("an argument should be a number from 0 on"))
    }

    fn nth(&self, n: usize) -> &[u8] {
        let mut at = 8 + 4 * (self.keys() + self.args());
        for i in 0..n {
            at += u32_at(self.block, 8 + 4 * i);
        }
        &self.block[at..at + u32_at(self.block, 8 + 4 * n)]
    }

    /// Another table of the tenant.
    pub fn table(&self, id: u32) -> &Table {
        unsafe {
            let at = memory::take(core::mem::size_of::<Table>()) as *mut Table;
            at.write(Table::new(id));
            &*at
        }
    }

    /// Zeroed memory that lives as long as the call.
    #[allow(clippy::mut_from_ref)] // Each is given out once.
    pub fn bytes(&self, len: usize) -> &mut [u8] {
        memory::slice(len, 0)
    }

    /// Memory that lives as long as the call, for n values of any plain type.
    #[allow(clippy::mut_from_ref)]
    pub fn slice<T: Copy>(&self, n: usize, value: T) -> &mut [T] {
        memory::slice(n, value)
    }

    /// The pieces one after the other.
    pub fn concat(&self, pieces: &[&[u8]]) -> &[u8] {
        let whole = self.bytes(pieces.iter().map(|p| p.len()).sum());
        let mut at = 0;
        for piece in pieces {
            whole[at..at + piece.len()].copy_from_slice(piece);
            at += piece.len();
        }
        whole
    }

    /// Appends to the response.
    pub fn resp(&self, piece: &[u8]) {
        area::resp(piece);
    }

    /// Appends a number in decimal digits.
    pub fn resp_number(&self, number: i64) {
        self.resp(&decimal(number));
    }

    /// Lets others run. Never necessary: every call of the store does.
    pub fn yield_now(&self) {
        unsafe { abi::yield_now() }
    }

    /// A line for the function's log.
    pub fn log(&self, level: Level, line: &[u8]) {
        unsafe { abi::log(level as u32, line.as_ptr(), line.len()) }
    }

    /// Nanoseconds since 1970, in steps of a millisecond.
    pub fn now(&self) -> i64 {
        unsafe { abi::now() }
    }

    /// Random bytes.
    pub fn random(&self, bytes: &mut [u8]) {
        unsafe { abi::random(bytes.as_mut_ptr(), bytes.len()) }
    }

    /// A random number.
    pub fn random_u64(&self) -> u64 {
        let mut bytes = [0; 8];
        self.random(&mut bytes);
        u64::from_le_bytes(bytes)
    }

    /// Ends the call with an error, from wherever it is; nothing is applied.
    pub fn fail(&self, code: i32, message: &[u8]) -> ! {
        unsafe { abi::fail(code, message.as_ptr(), message.len()) }
    }
}
