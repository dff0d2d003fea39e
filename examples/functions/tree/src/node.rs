//! A node: entries in the order of their keys, without gaps.
//!
//!     entry := u32 length of the key   u32 length of the value   key   value
//!
//! In a leaf, values are the tree's. In other nodes they are the names of
//! children, u32, and a key is the least that its child may have.

use ostro::{compare, Error, Reader, Result};

pub const DAMAGED: Error = Error::Own(2, "a node of the tree is damaged");

#[derive(Clone, Copy)]
pub struct Entry<'a> {
    pub key: &'a [u8],
    pub value: &'a [u8],
}

impl<'a> Entry<'a> {
    pub fn head(&self) -> [u8; 8] {
        let mut head = [0; 8];
        head[..4].copy_from_slice(&(self.key.len() as u32).to_le_bytes());
        head[4..].copy_from_slice(&(self.value.len() as u32).to_le_bytes());
        head
    }

    pub fn size(&self) -> usize {
        8 + self.key.len() + self.value.len()
    }

    /// The child that an entry leads to.
    pub fn child(&self) -> Result<u32> {
        Reader::new(self.value).u32().ok_or(DAMAGED)
    }
}

/// The first entry, and what follows it; `None` if there is none.
#[inline]
pub fn first(node: &[u8]) -> Result<Option<(Entry, &[u8])>> {
    if node.is_empty() {
        return Ok(None);
    }
    let mut r = Reader::new(node);
    let (key_len, value_len) = match (r.u32(), r.u32()) {
        (Some(key_len), Some(value_len)) => (key_len as usize, value_len as usize),
        _ => return Err(DAMAGED),
    };
    match (r.take(key_len), r.take(value_len)) {
        (Some(key), Some(value)) => Ok(Some((Entry { key, value }, r.rest()))),
        _ => Err(DAMAGED),
    }
}

/// Splits a node before the first entry that `stop` says.
#[inline]
pub fn split_at<'a>(node: &'a [u8], mut stop: impl FnMut(&Entry) -> bool) -> Result<(&'a [u8], &'a [u8])> {
    let mut rest = node;
    while let Some((entry, next)) = first(rest)? {
        if stop(&entry) {
            break;
        }
        rest = next;
    }
    Ok(node.split_at(node.len() - rest.len()))
}

/// The entry whose child has a key: the last that is not above it, or the first.
pub fn way<'a>(node: &'a [u8], key: &[u8]) -> Result<Entry<'a>> {
    let (mut found, mut rest) = first(node)?.ok_or(DAMAGED)?;
    while let Some((entry, next)) = first(rest)? {
        if compare(entry.key, key).is_gt() {
            break;
        }
        found = entry;
        rest = next;
    }
    Ok(found)
}
