//! Association lists.
//!
//!     root  := u32 number of entries   u32 number of blocks   u32 next block's name
//!              (u32 name   u32 number of entries   u32 time   u64 id2 of its first entry)*
//!              entry*
//!     block := entry+
//!
//! The root's own entries are the newest ones, so that most ranges need no other
//! record. Older ones are in blocks, newest first, which the root lists.
//!
//! Invariants:
//!   - Every entry of the root is before every one of the first block, and so on.
//!   - No block is empty, and the root has entries if there are any.
//!   - A piece is cut in two when it passes PIECE bytes.

use ostro::{Reader, Result};

use crate::entry::{first, split_at, Entry, Rank};
use crate::graph::{Graph, DAMAGED};

const PIECE: usize = 2048;
const ROOT_HEAD: usize = 12;
const BLOCK_HEAD: usize = 20;

#[derive(Clone, Copy)]
struct Block {
    name: u32,
    entries: u32,
    newest: Rank,
}

impl Block {
    fn read(r: &mut Reader) -> Result<Block> {
        match (r.u32(), r.u32(), r.u32(), r.u64()) {
            (Some(name), Some(entries), Some(time), Some(id2)) => Ok(Block { name, entries, newest: (time, id2) }),
            _ => Err(DAMAGED),
        }
    }

    fn bytes(&self) -> [u8; BLOCK_HEAD] {
        let mut b = [0; BLOCK_HEAD];
        b[..4].copy_from_slice(&self.name.to_le_bytes());
        b[4..8].copy_from_slice(&self.entries.to_le_bytes());
        b[8..12].copy_from_slice(&self.newest.0.to_le_bytes());
        b[12..].copy_from_slice(&self.newest.1.to_le_bytes());
        b
    }
}

/// A root as it lies in the store: what reading needs.
struct Root<'c> {
    entries: u32,
    blocks: u32,
    next: u32,
    directory: Reader<'c>,
    newest: &'c [u8],
}

impl<'c> Root<'c> {
    fn load(graph: &Graph<'c>, id1: u64, atype: u32) -> Result<Option<Root<'c>>> {
        let bytes = match graph.call.get(&graph.list(id1, atype))? {
            Some(bytes) => bytes,
            None => return Ok(None),
        };
        let mut r = Reader::new(bytes);
        let (entries, blocks, next) = match (r.u32(), r.u32(), r.u32()) {
            (Some(entries), Some(blocks), Some(next)) => (entries, blocks, next),
            _ => return Err(DAMAGED),
        };
        let directory = r.take(BLOCK_HEAD.saturating_mul(blocks as usize)).ok_or(DAMAGED)?;
        Ok(Some(Root { entries, blocks, next, directory: Reader::new(directory), newest: r.rest() }))
    }
}

/// How many associations a list has.
pub fn count(graph: &Graph, id1: u64, atype: u32) -> Result<i64> {
    Ok(Root::load(graph, id1, atype)?.map_or(0, |root| root.entries.into()))
}

/// Responds with entries from a position on. Entries lie in a piece as they are
/// sent, so each piece is one call of resp, and blocks in front are not read.
pub fn range(graph: &Graph, id1: u64, atype: u32, from: u64, limit: u64) -> Result<()> {
    let mut root = match Root::load(graph, id1, atype)? {
        Some(root) => root,
        None => return Ok(()),
    };
    let (mut skip, mut left) = (from, limit);
    send_some(graph, root.newest, &mut skip, &mut left)?;
    for _ in 0..root.blocks {
        if left == 0 {
            break;
        }
        let block = Block::read(&mut root.directory)?;
        if skip >= block.entries.into() {
            skip -= u64::from(block.entries);
            continue;
        }
        send_some(graph, load_block(graph, id1, atype, block)?, &mut skip, &mut left)?;
    }
    Ok(())
}

fn send_some(graph: &Graph, piece: &[u8], skip: &mut u64, left: &mut u64) -> Result<()> {
    let (skipped, _, rest) = split_at(piece, |_, n| n == *skip)?;
    let (sent, run, _) = split_at(rest, |_, n| n == *left)?;
    *skip -= skipped;
    *left -= sent;
    graph.call.resp(run);
    Ok(())
}

/// Responds with entries of low <= time <= high.
pub fn time_range(graph: &Graph, id1: u64, atype: u32, high: u32, low: u32, limit: u64) -> Result<()> {
    let mut root = match Root::load(graph, id1, atype)? {
        Some(root) => root,
        None => return Ok(()),
    };
    let mut left = limit;
    send_times(graph, root.newest, high, low, &mut left)?;
    for _ in 0..root.blocks {
        let block = Block::read(&mut root.directory)?;
        if left == 0 || block.newest.0 < low {
            break;
        }
        // Where the next block is too new as a whole, this one is, too.
        match Block::read(&mut root.directory.clone()) {
            Ok(next) if next.newest.0 > high => continue,
            _ => send_times(graph, load_block(graph, id1, atype, block)?, high, low, &mut left)?,
        }
    }
    Ok(())
}

fn send_times(graph: &Graph, piece: &[u8], high: u32, low: u32, left: &mut u64) -> Result<()> {
    let (_, _, rest) = split_at(piece, |e, _| e.time <= high)?;
    let (sent, run, _) = split_at(rest, |e, n| n == *left || e.time < low)?;
    *left -= sent;
    graph.call.resp(run);
    Ok(())
}

fn load_block<'c>(graph: &Graph<'c>, id1: u64, atype: u32, block: Block) -> Result<&'c [u8]> {
    graph.call.get(&graph.block(id1, atype, block.name))?.ok_or(DAMAGED)
}

/// A list that is about to change: load, remove and insert, save.
pub struct List<'g, 'c> {
    graph: &'g Graph<'c>,
    id1: u64,
    atype: u32,
    entries: u32,
    next: u32,
    blocks: &'c mut [Block], // The first `used` of them.
    used: usize,
    newest: &'c [u8],
}

impl<'g, 'c> List<'g, 'c> {
    pub fn load(graph: &'g Graph<'c>, id1: u64, atype: u32) -> Result<List<'g, 'c>> {
        let none = Block { name: 0, entries: 0, newest: (0, 0) };
        let (entries, used, next, mut directory, newest) = match Root::load(graph, id1, atype)? {
            Some(r) => (r.entries, r.blocks as usize, r.next, r.directory, r.newest),
            None => (0, 0, 0, Reader::new(&[]), &[][..]),
        };
        // A removal and an insertion make one block each at most.
        let blocks = graph.call.slice(used + 2, none);
        for block in &mut blocks[..used] {
            *block = Block::read(&mut directory)?;
        }
        Ok(List { graph, id1, atype, entries, next, blocks, used, newest })
    }

    /// Inserts an entry that is not there.
    pub fn insert(&mut self, new: Entry) -> Result<()> {
        let place = self.place(new.rank());
        let (_, front, back) = split_at(self.piece(place)?, |e, _| e.rank() < new.rank())?;
        let piece = self.graph.call.concat(&[front, &new.head(), new.data, back]);
        self.entries += 1;
        self.replace(place, piece)
    }

    /// Removes the entry of this rank, which must be there.
    pub fn remove(&mut self, rank: Rank) -> Result<()> {
        let place = self.place(rank);
        let (_, front, back) = split_at(self.piece(place)?, |e, _| e.rank() <= rank)?;
        let rest = match first(back)? {
            Some((entry, rest)) if entry.rank() == rank => rest,
            _ => return Err(DAMAGED),
        };
        self.entries -= 1;
        self.replace(place, self.graph.call.concat(&[front, rest]))
    }

    /// Writes the root; a list without entries has none.
    pub fn save(&self) -> Result<()> {
        let key = self.graph.list(self.id1, self.atype);
        if self.entries == 0 {
            return self.graph.call.del(&key);
        }
        let len = ROOT_HEAD + BLOCK_HEAD * self.used + self.newest.len();
        let mut root = self.graph.call.alloc(&key, len)?;
        for n in [self.entries, self.used as u32, self.next] {
            root.push(&n.to_le_bytes())?;
        }
        for block in &self.blocks[..self.used] {
            root.push(&block.bytes())?;
        }
        root.push(self.newest)?;
        root.put()
    }

    /// The block that an entry belongs to: the last one that begins before it.
    /// `None` is the root.
    fn place(&self, rank: Rank) -> Option<usize> {
        self.blocks[..self.used].iter().rposition(|block| block.newest >= rank)
    }

    fn piece(&self, place: Option<usize>) -> Result<&'c [u8]> {
        match place {
            None => Ok(self.newest),
            Some(i) => load_block(self.graph, self.id1, self.atype, self.blocks[i]),
        }
    }

    /// Puts a piece that changed in its place, in two if it became too large.
    fn replace(&mut self, place: Option<usize>, piece: &'c [u8]) -> Result<()> {
        let (front, back) = halves(piece)?;
        if !back.is_empty() {
            let name = self.next;
            self.next += 1;
            let at = place.map_or(0, |i| i + 1);
            self.blocks[at..=self.used].rotate_right(1);
            self.used += 1;
            self.write(at, name, back)?;
        }
        match place {
            Some(i) if front.is_empty() => self.drop_block(i),
            Some(i) => self.write(i, self.blocks[i].name, front),
            None if front.is_empty() && self.used > 0 => {
                self.newest = self.piece(Some(0))?;
                self.drop_block(0)
            }
            None => {
                self.newest = front;
                Ok(())
            }
        }
    }

    fn write(&mut self, i: usize, name: u32, piece: &[u8]) -> Result<()> {
        let (newest, _) = first(piece)?.ok_or(DAMAGED)?;
        let (entries, _, _) = split_at(piece, |_, _| false)?;
        self.blocks[i] = Block { name, entries: entries as u32, newest: newest.rank() };
        self.graph.call.set(&self.graph.block(self.id1, self.atype, name), piece)
    }

    fn drop_block(&mut self, i: usize) -> Result<()> {
        self.graph.call.del(&self.graph.block(self.id1, self.atype, self.blocks[i].name))?;
        self.blocks[i..self.used].rotate_left(1);
        self.used -= 1;
        Ok(())
    }
}

/// A piece that is too large in two of about the same size; else all and nothing.
fn halves(piece: &[u8]) -> Result<(&[u8], &[u8])> {
    if piece.len() <= PIECE {
        return Ok((piece, &[]));
    }
    let mut before = 0;
    let (_, front, back) = split_at(piece, |e, _| {
        let stop = before > 0 && before + e.size() > piece.len() / 2;
        before += e.size();
        stop
    })?;
    Ok((front, back))
}
