#!/bin/sh
# Builds the guests that tests use, with clang and lld. They are kept, so that tests need no C compiler.
set -e
cd "$(dirname "$0")"
for src in *.c; do
  object=$(mktemp)
  clang --target=wasm32 -O2 -nostdlib -mbulk-memory -Wno-infinite-recursion -c -o "$object" "$src"
  wasm-ld --no-entry -z stack-size=16384 -o "${src%.c}.wasm" "$object"
  rm "$object"
done
