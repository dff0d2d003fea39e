#!/bin/sh
# Builds the guests that tests and benchmarks use, with clang and lld. They are kept, so that those need no C compiler.
set -e
cd "$(dirname "$0")"
for src in *.c; do
  object=$(mktemp)
  clang --target=wasm32 -O2 -nostdlib -fno-builtin -mbulk-memory -mnontrapping-fptoint -msign-ext -c -o "$object" "$src"
  wasm-ld --no-entry --strip-all -z stack-size=8192 -o "${src%.c}.wasm" "$object"
  rm "$object"
done
