use crate::error::check;
use crate::{abi, Result};

/// A new value in the store's memory, which nothing copies further.
///
/// Bytes that are never filled are zero. A buffer that is not put is forgotten.
pub struct Buffer {
    id: i32,
    next: usize,
}

impl Buffer {
    pub(crate) fn new(id: i32) -> Buffer {
        Buffer { id, next: 0 }
    }

    /// Appends to what was pushed before.
    pub fn push(&mut self, piece: &[u8]) -> Result<()> {
        self.fill(self.next, piece)?;
        self.next += piece.len();
        Ok(())
    }

    /// Writes at any place of the value.
    pub fn fill(&mut self, offset: usize, piece: &[u8]) -> Result<()> {
        check(unsafe { abi::fill(self.id, offset, piece.as_ptr(), piece.len()) })
    }

    /// The buffer becomes its key's value, which does not expire.
    pub fn put(self) -> Result<()> {
        self.put_for(0)
    }

    /// The same, but it expires after some milliseconds.
    pub fn put_for(self, ttl_millis: i64) -> Result<()> {
        check(unsafe { abi::put(self.id, ttl_millis) })
    }
}
