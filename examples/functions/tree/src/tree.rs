use ostro::{compare, Call, Error, Line, Reader, Result};

use crate::node::{first, split_at, way, Entry, DAMAGED};

const NO_NAME: Error = Error::Own(1, "a tree's name has 1 to 64 bytes and no braces");
const TOO_LARGE: Error = Error::Own(3, "a key has 1,024 bytes at most");

/// A node is cut in two when it passes this many bytes, if it has two entries.
const NODE: usize = 2048;
const MOST_LEVELS: usize = 32;

/// The tree: where its root is and how many levels it has.
///
///     {TREE}:r     u32 name of the root   u32 levels   u32 next name
///     {TREE}:n:N   a node
///
/// A tree that never had an entry has no records. Leaves that became empty stay.
pub struct Tree<'c> {
    call: &'c Call,
    name: &'c [u8],
    root: u32,
    levels: usize,
    next: u32,
}

impl<'c> Tree<'c> {
    pub fn load(call: &'c Call) -> Result<Tree<'c>> {
        let name = call.key(0)?;
        if name.is_empty() || name.len() > 64 || name.iter().any(|c| b"{}".contains(c)) {
            return Err(NO_NAME);
        }
        let mut tree = Tree { call, name, root: 0, levels: 0, next: 0 };
        if let Some(found) = call.get(&tree.record(b":r"))? {
            let mut r = Reader::new(found);
            match (r.u32(), r.u32(), r.u32()) {
                (Some(root), Some(levels), Some(next)) if levels as usize <= MOST_LEVELS => {
                    tree.root = root;
                    tree.levels = levels as usize;
                    tree.next = next;
                }
                _ => return Err(DAMAGED),
            }
        }
        Ok(tree)
    }

    fn record(&self, kind: &[u8]) -> Line<96> {
        Line::new().with(b"{").with(self.name).with(b"}").with(kind)
    }

    fn node_key(&self, name: u32) -> Line<96> {
        self.record(b":n:").with_number(name.into())
    }

    fn node(&self, name: u32) -> Result<&'c [u8]> {
        self.call.get(&self.node_key(name))?.ok_or(DAMAGED)
    }

    pub fn get(&self, key: &[u8]) -> Result<Option<&'c [u8]>> {
        if self.levels == 0 {
            return Ok(None);
        }
        let mut node = self.node(self.root)?;
        for _ in 1..self.levels {
            node = self.node(way(node, key)?.child()?)?;
        }
        let (_, back) = split_at(node, |e| compare(e.key, key).is_ge())?;
        Ok(first(back)?.filter(|(e, _)| e.key == key).map(|(e, _)| e.value))
    }

    /// Puts an entry and tells whether its key is new.
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<bool> {
        if key.len() > 1024 {
            return Err(TOO_LARGE);
        }
        if self.levels == 0 {
            self.levels = 1;
            self.root = self.name_node();
            self.call.set(&self.node_key(self.root), &[])?;
        }
        let (path, leaf) = self.descend(key)?;
        let (front, back) = split_at(leaf, |e| compare(e.key, key).is_ge())?;
        let (fresh, back) = match first(back)? {
            Some((e, rest)) if e.key == key => (false, rest),
            _ => (true, back),
        };
        let new = Entry { key, value };
        self.replace(&path, self.call.concat(&[front, &new.head(), key, value, back]))?;
        self.save()?;
        Ok(fresh)
    }

    /// Removes a key and tells whether it was there.
    pub fn del(&mut self, key: &[u8]) -> Result<bool> {
        if self.levels == 0 {
            return Ok(false);
        }
        let (path, leaf) = self.descend(key)?;
        let (front, back) = split_at(leaf, |e| compare(e.key, key).is_ge())?;
        match first(back)? {
            Some((e, rest)) if e.key == key => {
                let name = path[self.levels - 1];
                self.call.set(&self.node_key(name), self.call.concat(&[front, rest]))?;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// The names of the nodes on the way to a key, from the root on, and its leaf.
    fn descend(&self, key: &[u8]) -> Result<([u32; MOST_LEVELS], &'c [u8])> {
        let mut path = [0; MOST_LEVELS];
        path[0] = self.root;
        let mut node = self.node(self.root)?;
        for step in path.iter_mut().take(self.levels).skip(1) {
            *step = way(node, key)?.child()?;
            node = self.node(*step)?;
        }
        Ok((path, node))
    }

    /// Writes a leaf that grew; cuts it, and whatever is above it, as need be.
    fn replace(&mut self, path: &[u32; MOST_LEVELS], leaf: &'c [u8]) -> Result<()> {
        let mut node = leaf;
        for level in (0..self.levels).rev() {
            let (left, right) = halves(node)?;
            self.call.set(&self.node_key(path[level]), left)?;
            let (least, _) = match first(right)? {
                Some(found) => found,
                None => return Ok(()),
            };
            let name = self.name_node();
            self.call.set(&self.node_key(name), right)?;
            let (key, child) = (least.key, name.to_le_bytes());
            let new = Entry { key, value: &child };
            if level == 0 {
                return self.grow(path[0], new);
            }
            // A key equal to the new one cannot be there: the child was cut behind it.
            let (front, back) = split_at(self.node(path[level - 1])?, |e| compare(e.key, key).is_gt())?;
            node = self.call.concat(&[front, &new.head(), key, &child, back]);
        }
        Ok(())
    }

    /// A new root above the two halves of the old one.
    fn grow(&mut self, left: u32, right: Entry) -> Result<()> {
        if self.levels == MOST_LEVELS {
            return Err(Error::Full);
        }
        self.root = self.name_node();
        self.levels += 1;
        let child = left.to_le_bytes();
        let all = Entry { key: &[], value: &child };
        let node = self.call.concat(&[&all.head(), &child, &right.head(), right.key, right.value]);
        self.call.set(&self.node_key(self.root), node)
    }

    fn name_node(&mut self) -> u32 {
        self.next += 1;
        self.next
    }

    fn save(&self) -> Result<()> {
        let mut root = [0; 12];
        root[..4].copy_from_slice(&self.root.to_le_bytes());
        root[4..8].copy_from_slice(&(self.levels as u32).to_le_bytes());
        root[8..].copy_from_slice(&self.next.to_le_bytes());
        self.call.set(&self.record(b":r"), &root)
    }

    /// Responds with entries in order. A run of a leaf is one call of resp.
    pub fn range(&self, from: &[u8], to: &[u8], left: &mut u64) -> Result<()> {
        if self.levels == 0 || *left == 0 {
            return Ok(());
        }
        self.walk(self.root, self.levels, from, to, left)?;
        Ok(())
    }

    /// Tells whether there may be more.
    fn walk(&self, name: u32, levels: usize, from: &[u8], to: &[u8], left: &mut u64) -> Result<bool> {
        let node = self.node(name)?;
        let beyond = |key: &[u8]| !to.is_empty() && compare(key, to).is_ge();
        if levels == 1 {
            let (_, rest) = split_at(node, |e| compare(e.key, from).is_ge())?;
            let (run, rest) = split_at(rest, |e| {
                let stop = *left == 0 || beyond(e.key);
                *left -= !stop as u64;
                stop
            })?;
            self.call.resp(run);
            return Ok(rest.is_empty() && *left > 0);
        }
        let begin = way(node, from)?;
        let (_, mut rest) = split_at(node, |e| core::ptr::eq(e.key, begin.key))?;
        while let Some((entry, next)) = first(rest)? {
            if beyond(entry.key) || !self.walk(entry.child()?, levels - 1, from, to, left)? {
                return Ok(false);
            }
            rest = next;
        }
        Ok(true)
    }
}

/// A node that is too large in two of about the same size; else all and nothing.
fn halves(node: &[u8]) -> Result<(&[u8], &[u8])> {
    if node.len() <= NODE {
        return Ok((node, &[]));
    }
    let mut before = 0;
    split_at(node, |e| {
        let stop = before > 0 && before + e.size() > node.len() / 2;
        before += e.size();
        stop
    })
}
