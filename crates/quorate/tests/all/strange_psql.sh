#!/usr/bin/env bash
# A psql of a version that nobody has seen, which calls rows lines: the test of corpus.rs that
# unknown versions pass runs it.
[ "$1" = --version ] && { echo "psql (PostgreSQL) 15.999"; exit; }
psql "$@" 2>&1 | sed -E 's/^\(([0-9]+) [a-z]+\)$/(\1 lines)/'
