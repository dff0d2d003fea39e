use crate::number::u32_at;
use crate::{abi, memory, Error, Result, Table};

const TOO_LARGE: i32 = -3;
const ROOM: usize = 16 << 10;

/// A walk over keys. Keys come at least once if they are there all the time.
///
/// ```ignore
/// let mut users = call.scan(b"user:");
/// while let Some(entry) = users.next()? { ... }
/// ```
///
/// It is no `Iterator`: an entry is gone with the next one.
pub struct Scan<'a> {
    table: &'a Table,
    prefix: &'a [u8],
    values: bool,
    cursor: u64,
    last: bool,
    left: usize,
    at: usize,
    skipped: usize,
    room: &'a mut [u8],
}

/// A key, and its value if the scan has values.
pub struct Entry<'a> {
    /// The whole key.
    pub key: &'a [u8],
    /// Its value; empty in a scan without values.
    pub value: &'a [u8],
    /// The value's length, also in a scan without values.
    pub value_len: usize,
}

impl<'a> Scan<'a> {
    pub(crate) fn new(table: &'a Table, prefix: &'a [u8], values: bool) -> Scan<'a> {
        let room = memory::slice(ROOM, 0);
        Scan { table, prefix, values, cursor: 0, last: false, left: 0, at: 0, skipped: 0, room }
    }

    /// How many entries were left out, as they are larger than 16 KiB: read them with `get`.
    pub fn skipped(&self) -> usize {
        self.skipped
    }

    /// The next entry, `None` at the end.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<Entry<'_>>> {
        while self.left == 0 {
            if self.last {
                return Ok(None);
            }
            self.refill()?;
        }
        self.left -= 1;
        let value_len = u32_at(self.room, self.at + 4);
        let key_at = self.at + 8;
        let value_at = key_at + u32_at(self.room, self.at);
        self.at = if self.values { value_at + value_len } else { value_at };
        Ok(Some(Entry { key: &self.room[key_at..value_at], value: &self.room[value_at..self.at], value_len }))
    }

    fn refill(&mut self) -> Result<()> {
        let (prefix, room) = (self.prefix, &mut self.room);
        let flags = self.values as u32;
        let n = unsafe {
            abi::scan(self.table.id(), &mut self.cursor, prefix.as_ptr(), prefix.len(), room.as_mut_ptr(), room.len(), flags)
        };
        self.last = self.cursor == 0;
        self.at = 0;
        match n {
            TOO_LARGE => self.skipped += 1,
            n if n < 0 => return Err(Error::of(n)),
            n => self.left = n as usize,
        }
        Ok(())
    }
}
