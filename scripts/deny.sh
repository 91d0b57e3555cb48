#!/usr/bin/env bash
# Runs cargo-deny by deny.toml, where it is installed (`cargo install --locked cargo-deny`); `cargo test` holds the same rules
# but for the advisories. Those need their database: where it cannot be had, that is said, and nothing fails.
set -eu
if ! command -v cargo-deny > /dev/null; then
  echo "cargo-deny is not installed: advisories are not looked up, and what else deny.toml says is left to the tests"
  exit 0
fi
cargo deny --locked check licenses bans sources
if cargo deny --locked fetch db > /dev/null 2>&1; then
  cargo deny --locked check --disable-fetch advisories
else
  echo "the advisories' database cannot be had: they are not looked up"
fi
