#!/bin/sh
# Builds the functions that tests of calls use, with clang and lld. They are kept, so that tests need no C compiler.
set -e
cd "$(dirname "$0")"
object=$(mktemp)
clang --target=wasm32 -O2 -nostdlib -mbulk-memory -c -o "$object" calls.c
wasm-ld --no-entry -z stack-size=16384 -o calls.wasm "$object"
rm "$object"
chmod 644 calls.wasm
