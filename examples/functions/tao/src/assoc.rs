//! Single associations, and their inverses.

use ostro::{Reader, Result};

use crate::entry::Entry;
use crate::graph::{Graph, DAMAGED};
use crate::list::List;

/// One association, `None` if it is not there.
pub fn get<'c>(graph: &Graph<'c>, id1: u64, atype: u32, id2: u64) -> Result<Option<Entry<'c>>> {
    let found = match graph.call.get(&graph.edge(id1, atype, id2))? {
        Some(found) => found,
        None => return Ok(None),
    };
    let mut r = Reader::new(found);
    let time = r.u32().ok_or(DAMAGED)?;
    Ok(Some(Entry { id2, time, data: r.rest() }))
}

/// Adds an association, and its inverse if its type has one, in place of what was
/// there. Tells whether nothing was.
pub fn add(graph: &Graph, id1: u64, atype: u32, id2: u64, time: u32, data: &[u8]) -> Result<bool> {
    let fresh = add_one(graph, id1, atype, Entry { id2, time, data })?;
    if let Some(inverse) = graph.inverse(atype)? {
        add_one(graph, id2, inverse, Entry { id2: id1, time, data })?;
    }
    Ok(fresh)
}

/// Removes an association and its inverse, and returns it as it was.
pub fn delete<'c>(graph: &Graph<'c>, id1: u64, atype: u32, id2: u64) -> Result<Option<Entry<'c>>> {
    let was = delete_one(graph, id1, atype, id2)?;
    if let Some(inverse) = graph.inverse(atype)? {
        delete_one(graph, id2, inverse, id1)?;
    }
    Ok(was)
}

fn add_one(graph: &Graph, id1: u64, atype: u32, new: Entry) -> Result<bool> {
    let was = get(graph, id1, atype, new.id2)?;
    let mut list = List::load(graph, id1, atype)?;
    if let Some(was) = was {
        list.remove(was.rank())?;
    }
    list.insert(new)?;
    list.save()?;

    let mut edge = graph.call.alloc(&graph.edge(id1, atype, new.id2), 4 + new.data.len())?;
    edge.push(&new.time.to_le_bytes())?;
    edge.push(new.data)?;
    edge.put()?;
    Ok(was.is_none())
}

fn delete_one<'c>(graph: &Graph<'c>, id1: u64, atype: u32, id2: u64) -> Result<Option<Entry<'c>>> {
    let was = get(graph, id1, atype, id2)?;
    if let Some(was) = was {
        let mut list = List::load(graph, id1, atype)?;
        list.remove(was.rank())?;
        list.save()?;
        graph.call.del(&graph.edge(id1, atype, id2))?;
    }
    Ok(was)
}
