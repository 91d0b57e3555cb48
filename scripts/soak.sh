#!/usr/bin/env bash
# The long run of the simulator: seed after seed, until SECONDS_MAX are over, Ctrl-C, or a seed that
# fails. docs/TESTING.md keeps what was run, one row per commit; a later run goes on after the
# largest seed that stands there.
set -eu
cd "$(dirname "$0")/.."
page=docs/TESTING.md
quorate=${CARGO_TARGET_DIR:?}/release/quorate
batch=${SOAK_BATCH:-100}
end=$((SECONDS + ${SOAK_SECONDS:-3600}))
commit=$(git rev-parse --short=10 HEAD)
[ -z "$(git status --porcelain -- crates Cargo.toml Cargo.lock)" ] || commit="$commit+"

# The rows: | commit | seeds | commits | reads | failovers | faults | result |
rows() { sed -n '/<!-- soak -->/,/<!-- end -->/p' "$page" | grep '^| [0-9a-f]\{10\}' || true; }
last_seed() { rows | awk -F'|' '{ split($3, s, "-"); if (s[2] + 0 > most) most = s[2] + 0 } END { print most + 0 }'; }
field() { rows | awk -F'|' -v c="$commit" -v f="$1" '{ gsub(/ /, "", $2); if ($2 == c) { gsub(/^ +| +$/, "", $f); print $f } }'; }

# Puts this commit's row in the place of its old one, or first.
record() {
  awk -v row="$1" -v c="| $commit |" '
    /<!-- soak -->/ { inside = 1 }
    /<!-- end -->/ { inside = 0 }
    inside && index($0, c) == 1 { next }
    { print }
    inside && /^\|---/ { print row }
  ' "$page" >"$page.new"
  mv "$page.new" "$page"
}

seed=$(($(last_seed) + 1))
first=$(field 3); first=${first%%-*}; first=${first:-$seed}
commits=$(field 4); reads=$(field 5); failovers=$(field 6); faults=$(field 7)
commits=${commits:-0}; reads=${reads:-0}; failovers=${failovers:-0}; faults=${faults:-0}
out=$(mktemp); trap 'rm -f "$out"' EXIT
echo "Soak of $commit from seed $seed on; Ctrl-C ends it, and the next run goes on."
while [ $SECONDS -lt $end ]; do
  result=sound
  "$quorate" sim --seed "$seed" --runs "$batch" >"$out" 2>&1 || result=$(grep -v ': sound$' "$out" | grep -m1 '^seed' | tr '|' '/' || tail -n 1 "$out")
  summary=$(grep -m1 '^[0-9]* seeds:' "$out" || true)
  [ -n "$summary" ] || { tail -n 5 "$out" >&2; exit 1; }
  read -r c r f < <(sed -E 's/.*seeds: ([0-9]+) commits, ([0-9]+) reads, ([0-9]+) failovers.*/\1 \2 \3/' <<<"$summary")
  n=$(grep -m1 '^faults:' "$out" | grep -oE '[0-9]+' | awk '{ sum += $1 } END { print sum + 0 }')
  commits=$((commits + c)); reads=$((reads + r)); failovers=$((failovers + f)); faults=$((faults + n))
  last=$((seed + batch - 1))
  record "| $commit | $first-$last | $commits | $reads | $failovers | $faults | $result |"
  echo "seeds $seed-$last: $summary ($result)"
  [ "$result" = sound ] || exit 1
  seed=$((last + 1))
done
