//! Uses everything that the SDK has; probe_test.go says what must come out.
#![no_std]

use ostro::{Call, Error, Level, Result};

ostro::lean!();

fn resp_bytes(call: &Call, b: &[u8]) {
    call.resp_number(b.len() as i64);
    call.resp(b":");
    call.resp(b);
    call.resp(b";");
}

fn resp_maybe(call: &Call, b: Option<&[u8]>) {
    match b {
        Some(b) => resp_bytes(call, b),
        None => call.resp(b"absent;"),
    }
}

ostro::function! {
    fn args(call: &Call) -> Result<()> {
        for i in 0..call.keys() {
            resp_bytes(call, call.key(i)?);
        }
        call.resp(b"|");
        for i in 0..call.args() {
            resp_bytes(call, call.arg(i)?);
        }
        Ok(())
    }

    fn get(call: &Call) -> Result<()> {
        let table = call.table(call.arg_u64(0)? as u32);
        match table.get(call.key(0)?)? {
            Some(value) => resp_bytes(call, value),
            None => call.resp(b"absent"),
        }
        let mut scratch = table.scratch(8);
        for _ in 0..2 {
            let again = scratch.get(call.key(0)?)?;
            assert_eq!(again.is_some(), table.get(call.key(0)?)?.is_some());
            assert_eq!(again, table.get(call.key(0)?)?);
        }
        Ok(())
    }

    fn multiget(call: &Call) -> Result<()> {
        let keys: &mut [&[u8]] = call.slice(call.args(), &[][..]);
        for (i, key) in keys.iter_mut().enumerate() {
            *key = call.arg(i)?;
        }
        for value in call.multiget(keys)? {
            resp_maybe(call, *value);
        }
        Ok(())
    }

    fn build(call: &Call) -> Result<()> {
        let key = call.key(0)?;
        let mut len = 2;
        for i in 1..call.args() {
            len += call.arg(i)?.len();
        }
        let mut buffer = call.alloc(key, len)?;
        for i in 1..call.args() {
            buffer.push(call.arg(i)?)?;
        }
        buffer.put_for(call.arg_i64(0)?)?;
        if let Some(value) = call.get(key)? {
            resp_bytes(call, value); // Its own write.
        }
        Ok(())
    }

    fn del(call: &Call) -> Result<()> {
        call.set_for(b"beside", call.key(0)?, 7)?;
        call.del(call.key(0)?)
    }

    fn scan(call: &Call) -> Result<()> {
        let mut scan = call.scan(call.key(0)?);
        while let Some(entry) = scan.next()? {
            resp_bytes(call, entry.key);
            resp_bytes(call, entry.value);
        }
        call.resp_number(scan.skipped() as i64);
        let mut keys = call.scan_keys(call.key(0)?);
        while let Some(entry) = keys.next()? {
            assert!(entry.value.is_empty());
            assert_eq!(call.get(entry.key)?.map(|v| v.len()), Some(entry.value_len));
        }
        Ok(())
    }

    fn rest(call: &Call) -> Result<()> {
        call.log(Level::Debug, b"one");
        call.log(Level::Error, b"two");
        call.yield_now();
        call.resp_number(call.now());
        call.resp(if call.random_u64() != call.random_u64() { b" random" } else { b" same" });
        Ok(())
    }

    fn fail(call: &Call) -> Result<()> {
        Err(Error::Own(call.arg_i64(0)? as i32, "on purpose"))
    }

    fn panic(call: &Call) -> Result<()> {
        call.resp(&[1, 2, 3][4 + call.keys()..]);
        Ok(())
    }
}
