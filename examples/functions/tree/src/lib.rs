//! tree: an ordered map in records, a B-tree, that is walked where it lies.
//!
//!     tree_put TREE KEY VALUE        1 if the key is new, else 0
//!     tree_get TREE KEY              "1" and the value, or nothing
//!     tree_del TREE KEY              1 if it was there, else 0
//!     tree_range TREE FROM TO LIMIT  entries of FROM <= key < TO in order; an empty TO has no end
//!
//! An entry of a range is u32 length of the key, u32 length of the value, both
//! little endian, key, value: as nodes have them.
//!
//! A client would need a round trip for every level of the tree. Here each is a
//! read of some hundred nanoseconds.
#![no_std]

mod node;
mod tree;

use ostro::{Call, Result};
use tree::Tree;

ostro::lean!();

ostro::function! {
    fn tree_put(call: &Call) -> Result<()> {
        let fresh = Tree::load(call)?.put(call.arg(0)?, call.arg(1)?)?;
        call.resp_number(fresh.into());
        Ok(())
    }

    fn tree_get(call: &Call) -> Result<()> {
        if let Some(value) = Tree::load(call)?.get(call.arg(0)?)? {
            call.resp(b"1");
            call.resp(value);
        }
        Ok(())
    }

    fn tree_del(call: &Call) -> Result<()> {
        let was = Tree::load(call)?.del(call.arg(0)?)?;
        call.resp_number(was.into());
        Ok(())
    }

    fn tree_range(call: &Call) -> Result<()> {
        let mut left = call.arg_u64(2)?;
        Tree::load(call)?.range(call.arg(0)?, call.arg(1)?, &mut left)
    }
}
