//! TAO: objects and associations of a social graph, with all of TAO's simple
//! operations. README.md tells how they are called and what they answer.
//!
//! An invocation's key is the graph's name, and all records of a graph have it as
//! their hash tag, so they are on one node:
//!
//!     {graph}:o:ID                an object: u32 type, data
//!     {graph}:a:ID1:TYPE          an association list, newest first: list.rs
//!     {graph}:b:ID1:TYPE:N        a block of a list's older entries
//!     {graph}:e:ID1:TYPE:ID2      one association: u32 time, data
//!     {graph}:t:TYPE              the inverse of a type: u32
//!
//! An association is in its list and in a record of its own, so that ranges and
//! single ones are both one read: graphs are read five hundred times as often as
//! they are written.
#![no_std]

mod assoc;
mod entry;
mod graph;
mod list;

use graph::Graph;
use ostro::{parse_u64, Call, Error, Reader, Result};

ostro::lean!();

ostro::function! {
    fn obj_add(call: &Call) -> Result<()> {
        let graph = Graph::of(call)?;
        let otype = number_u32(call, 0)?;
        let id = loop {
            // Ids have 53 bits: numbers of every language hold them.
            let id = call.random_u64() >> 11;
            if id != 0 && call.get(&graph.object(id))?.is_none() {
                break id;
            }
        };
        graph.put_object(id, otype, call.arg(1)?)?;
        call.resp_number(id as i64);
        Ok(())
    }

    fn obj_get(call: &Call) -> Result<()> {
        let graph = Graph::of(call)?;
        if let Some(object) = call.get(&graph.object(call.arg_u64(0)?))? {
            call.resp(object);
        }
        Ok(())
    }

    fn obj_update(call: &Call) -> Result<()> {
        let graph = Graph::of(call)?;
        let id = call.arg_u64(0)?;
        let data = call.arg(1)?;
        let otype = call.get(&graph.object(id))?.and_then(|object| Reader::new(object).u32());
        if let Some(otype) = otype {
            graph.put_object(id, otype, data)?;
        }
        call.resp_number(otype.is_some().into());
        Ok(())
    }

    fn obj_delete(call: &Call) -> Result<()> {
        let graph = Graph::of(call)?;
        let key = graph.object(call.arg_u64(0)?);
        let there = call.get(&key)?.is_some();
        if there {
            call.del(&key)?;
        }
        call.resp_number(there.into());
        Ok(())
    }

    fn assoc_inverse(call: &Call) -> Result<()> {
        let graph = Graph::of(call)?;
        let (one, other) = (number_u32(call, 0)?, number_u32(call, 1)?);
        graph.set_inverse(one, other)?;
        graph.set_inverse(other, one)
    }

    fn assoc_add(call: &Call) -> Result<()> {
        let graph = Graph::of(call)?;
        let (id1, atype, id2) = (call.arg_u64(0)?, number_u32(call, 1)?, call.arg_u64(2)?);
        let fresh = assoc::add(&graph, id1, atype, id2, number_u32(call, 3)?, call.arg(4)?)?;
        call.resp_number(fresh.into());
        Ok(())
    }

    fn assoc_delete(call: &Call) -> Result<()> {
        let graph = Graph::of(call)?;
        let was = assoc::delete(&graph, call.arg_u64(0)?, number_u32(call, 1)?, call.arg_u64(2)?)?;
        call.resp_number(was.is_some().into());
        Ok(())
    }

    fn assoc_change_type(call: &Call) -> Result<()> {
        let graph = Graph::of(call)?;
        let (id1, id2, to) = (call.arg_u64(0)?, call.arg_u64(2)?, number_u32(call, 3)?);
        let was = assoc::delete(&graph, id1, number_u32(call, 1)?, id2)?;
        if let Some(was) = was {
            assoc::add(&graph, id1, to, id2, was.time, was.data)?;
        }
        call.resp_number(was.is_some().into());
        Ok(())
    }

    fn assoc_get(call: &Call) -> Result<()> {
        let graph = Graph::of(call)?;
        let (id1, atype) = (call.arg_u64(0)?, number_u32(call, 1)?);
        let (high, low) = match call.args() {
            3 => (u32::MAX, 0),
            _ => (number_u32(call, 3)?, number_u32(call, 4)?),
        };
        for text in call.arg(2)?.split(|&c| c == b',') {
            let id2 = parse_u64(text).ok_or(Error::Argument("ids should be numbers, with commas between them"))?;
            match assoc::get(&graph, id1, atype, id2)? {
                Some(found) if low <= found.time && found.time <= high => found.resp(call),
                _ => {}
            }
        }
        Ok(())
    }

    fn assoc_count(call: &Call) -> Result<()> {
        let graph = Graph::of(call)?;
        call.resp_number(list::count(&graph, call.arg_u64(0)?, number_u32(call, 1)?)?);
        Ok(())
    }

    fn assoc_range(call: &Call) -> Result<()> {
        let graph = Graph::of(call)?;
        let (from, limit) = (call.arg_u64(2)?, call.arg_u64(3)?);
        list::range(&graph, call.arg_u64(0)?, number_u32(call, 1)?, from, limit)
    }

    fn assoc_time_range(call: &Call) -> Result<()> {
        let graph = Graph::of(call)?;
        let (high, low, limit) = (number_u32(call, 2)?, number_u32(call, 3)?, call.arg_u64(4)?);
        list::time_range(&graph, call.arg_u64(0)?, number_u32(call, 1)?, high, low, limit)
    }
}

/// An argument that is a number of 32 bits: types and times.
fn number_u32(call: &Call, i: usize) -> Result<u32> {
    u32::try_from(call.arg_u64(i)?).map_err(|_| Error::Argument("types and times have 32 bits"))
}
