//! Entries of lists, as lists keep them and responses carry them:
//!
//!     u64 id2   u32 time   u32 length of data   data
//!
//! They are ordered by time and then id2, the greatest first.

use ostro::{Call, Reader, Result};

use crate::graph::DAMAGED;

pub const HEAD: usize = 16;

/// What orders entries.
pub type Rank = (u32, u64);

#[derive(Clone, Copy)]
pub struct Entry<'a> {
    pub id2: u64,
    pub time: u32,
    pub data: &'a [u8],
}

impl<'a> Entry<'a> {
    pub fn rank(&self) -> Rank {
        (self.time, self.id2)
    }

    pub fn size(&self) -> usize {
        HEAD + self.data.len()
    }

    pub fn head(&self) -> [u8; HEAD] {
        let mut head = [0; HEAD];
        head[..8].copy_from_slice(&self.id2.to_le_bytes());
        head[8..12].copy_from_slice(&self.time.to_le_bytes());
        head[12..].copy_from_slice(&(self.data.len() as u32).to_le_bytes());
        head
    }

    pub fn resp(&self, call: &Call) {
        call.resp(&self.head());
        call.resp(self.data);
    }
}

/// The first entry of a piece, and the rest; `None` if the piece is empty.
#[inline]
pub fn first(piece: &[u8]) -> Result<Option<(Entry, &[u8])>> {
    if piece.is_empty() {
        return Ok(None);
    }
    let mut r = Reader::new(piece);
    let (id2, time, len) = match (r.u64(), r.u32(), r.u32()) {
        (Some(id2), Some(time), Some(len)) => (id2, time, len as usize),
        _ => return Err(DAMAGED),
    };
    let data = r.take(len).ok_or(DAMAGED)?;
    Ok(Some((Entry { id2, time, data }, r.rest())))
}

/// Splits a piece before the first entry that `stop` says, which is also told
/// how many were before. Returns how many there are in front, and both parts.
#[inline]
pub fn split_at<'a>(piece: &'a [u8], mut stop: impl FnMut(&Entry, u64) -> bool) -> Result<(u64, &'a [u8], &'a [u8])> {
    let (mut n, mut rest) = (0, piece);
    while let Some((entry, next)) = first(rest)? {
        if stop(&entry, n) {
            break;
        }
        n += 1;
        rest = next;
    }
    let (front, back) = piece.split_at(piece.len() - rest.len());
    Ok((n, front, back))
}
