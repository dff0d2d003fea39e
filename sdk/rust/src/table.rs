use crate::error::{check, ABSENT};
use crate::{abi, memory, Buffer, Error, Result, Scan};

/// One of the tenant's tables.
pub struct Table {
    id: u32,
}

impl Table {
    pub(crate) fn new(id: u32) -> Table {
        Table { id }
    }

    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    /// The value of a key, `None` if it is not there. It stays as it is until the
    /// call's end, whatever happens to the key.
    pub fn get(&self, key: &[u8]) -> Result<Option<&[u8]>> {
        let (buf, cap) = memory::free();
        let found = unsafe { abi::get(self.id, key.as_ptr(), key.len(), buf, cap) };
        let (len, view) = match split(found)? {
            Some(parts) => parts,
            None => return Ok(None),
        };
        let value = memory::keep(len);
        if view != 0 {
            unsafe { abi::read(view, 0, value.as_ptr() as *mut u8, len) };
        }
        Ok(Some(value))
    }

    /// The values of many keys, 4,096 at most, in the keys' order.
    pub fn multiget(&self, keys: &[&[u8]]) -> Result<&[Option<&[u8]>]> {
        let spans = memory::slice(keys.len(), abi::Span { ptr: core::ptr::null(), len: 0 });
        for (span, key) in spans.iter_mut().zip(keys) {
            *span = abi::Span { ptr: key.as_ptr(), len: key.len() };
        }
        let found = memory::slice(keys.len(), abi::Found { ptr: core::ptr::null(), len: 0, view: 0, zero: 0 });
        let values = memory::slice(keys.len(), None);
        let (buf, cap) = memory::free();
        check(unsafe { abi::multiget(self.id, spans.as_ptr(), keys.len(), found.as_mut_ptr(), buf, cap) })?;
        let copied = found.iter().filter(|f| f.view == 0 && f.len > 0);
        let end = copied.map(|f| f.ptr as usize + f.len as usize).max().unwrap_or(buf as usize);
        memory::keep(end - buf as usize);
        for (value, one) in values.iter_mut().zip(found.iter()) {
            *value = one.value()?;
        }
        Ok(values)
    }

    /// Gives a key a value, which does not expire.
    pub fn set(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.set_for(key, value, 0)
    }

    /// The same, but it expires after some milliseconds.
    pub fn set_for(&self, key: &[u8], value: &[u8], ttl_millis: i64) -> Result<()> {
        check(unsafe { abi::set(self.id, key.as_ptr(), key.len(), value.as_ptr(), value.len(), ttl_millis) })
    }

    /// A new value of exactly len bytes, to be filled piece by piece and put.
    pub fn alloc(&self, key: &[u8], len: usize) -> Result<Buffer> {
        let id = unsafe { abi::alloc(self.id, key.as_ptr(), key.len(), len) };
        check(id)?;
        Ok(Buffer::new(id))
    }

    /// Removes a key, if it is there.
    pub fn del(&self, key: &[u8]) -> Result<()> {
        check(unsafe { abi::del(self.id, key.as_ptr(), key.len()) })
    }

    /// The tenant's keys of this node that begin with a prefix, in no order.
    pub fn scan<'a>(&'a self, prefix: &'a [u8]) -> Scan<'a> {
        Scan::new(self, prefix, true)
    }

    /// The same without values.
    pub fn scan_keys<'a>(&'a self, prefix: &'a [u8]) -> Scan<'a> {
        Scan::new(self, prefix, false)
    }

    /// Memory for one value after the other, for loops over many.
    pub fn scratch(&self, len: usize) -> Scratch<'_> {
        Scratch { table: self, room: memory::slice(len, 0) }
    }
}

/// Reads values one after the other into the same memory.
pub struct Scratch<'a> {
    table: &'a Table,
    room: &'a mut [u8],
}

impl<'a> Scratch<'a> {
    /// The value of a key; it is gone with the next call.
    pub fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>> {
        let (buf, cap) = (self.room.as_mut_ptr(), self.room.len());
        let found = unsafe { abi::get(self.table.id, key.as_ptr(), key.len(), buf, cap) };
        let (len, view) = match split(found)? {
            Some(parts) => parts,
            None => return Ok(None),
        };
        if view != 0 {
            self.room = memory::slice(len.max(2 * cap), 0);
            unsafe { abi::read(view, 0, self.room.as_mut_ptr(), len) };
        }
        Ok(Some(&self.room[..len]))
    }
}

/// The length and view of what `get` returned.
fn split(found: i64) -> Result<Option<(usize, u32)>> {
    if found >= 0 {
        return Ok(Some((found as u32 as usize, (found >> 32) as u32)));
    }
    if found as i32 == ABSENT {
        return Ok(None);
    }
    Err(Error::of(found as i32))
}

impl abi::Found {
    fn value<'a>(&self) -> Result<Option<&'a [u8]>> {
        if self.len == ABSENT {
            return Ok(None);
        }
        check(self.len)?;
        let len = self.len as usize;
        if self.view == 0 && len > 0 {
            return Ok(Some(unsafe { core::slice::from_raw_parts(self.ptr, len) }));
        }
        let value = memory::keep(len);
        if len > 0 {
            unsafe { abi::read(self.view, 0, value.as_ptr() as *mut u8, len) };
        }
        Ok(Some(value))
    }
}
