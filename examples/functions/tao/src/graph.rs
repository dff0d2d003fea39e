use ostro::{decimal_u64, Call, Error, Line, Reader, Result};

const NO_NAME: Error = Error::Own(1, "a graph's name has 1 to 64 bytes and no braces");
const OTHER_INVERSE: Error = Error::Own(2, "the type has another inverse already");
pub const DAMAGED: Error = Error::Own(3, "a record of the graph is damaged");

/// Room for a name of 64 bytes, three numbers, and what is between them.
pub type Key = Line<160>;

/// A graph: its name, and where it puts things.
pub struct Graph<'c> {
    pub call: &'c Call,
    name: &'c [u8],
}

impl<'c> Graph<'c> {
    pub fn of(call: &'c Call) -> Result<Graph<'c>> {
        let name = call.key(0)?;
        if name.is_empty() || name.len() > 64 || name.iter().any(|c| b"{}".contains(c)) {
            return Err(NO_NAME);
        }
        Ok(Graph { call, name })
    }

    #[inline(never)]
    fn key(&self, kind: &[u8], numbers: &[u64]) -> Key {
        let mut key = Key::new();
        key.push(b"{");
        key.push(self.name);
        key.push(kind);
        for &n in numbers {
            key.push(b":");
            key.push(&decimal_u64(n));
        }
        key
    }

    pub fn object(&self, id: u64) -> Key {
        self.key(b"}:o", &[id])
    }

    pub fn list(&self, id1: u64, atype: u32) -> Key {
        self.key(b"}:a", &[id1, atype.into()])
    }

    pub fn block(&self, id1: u64, atype: u32, block: u32) -> Key {
        self.key(b"}:b", &[id1, atype.into(), block.into()])
    }

    pub fn edge(&self, id1: u64, atype: u32, id2: u64) -> Key {
        self.key(b"}:e", &[id1, atype.into(), id2])
    }

    fn of_type(&self, atype: u32) -> Key {
        self.key(b"}:t", &[atype.into()])
    }

    pub fn put_object(&self, id: u64, otype: u32, data: &[u8]) -> Result<()> {
        let mut object = self.call.alloc(&self.object(id), 4 + data.len())?;
        object.push(&otype.to_le_bytes())?;
        object.push(data)?;
        object.put()
    }

    pub fn inverse(&self, atype: u32) -> Result<Option<u32>> {
        let found = self.call.get(&self.of_type(atype))?;
        found.map(|value| Reader::new(value).u32().ok_or(DAMAGED)).transpose()
    }

    pub fn set_inverse(&self, atype: u32, inverse: u32) -> Result<()> {
        match self.inverse(atype)? {
            Some(other) if other != inverse => Err(OTHER_INVERSE),
            _ => self.call.set(&self.of_type(atype), &inverse.to_le_bytes()),
        }
    }
}
