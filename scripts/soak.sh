#!/usr/bin/env bash
# The long run: first the planted bugs, each searched for within a thousand seeds, then sound worlds
# of three, one and five nodes, seed after seed, each twice, until SOAK_SECONDS are over, Ctrl-C, or
# a seed with something wrong. docs/TESTING.md keeps what was run and is all that this script
# remembers: a bug that stands there for this commit is not searched again, and sound seeds go on
# after the largest that stands there for that number of nodes.
set -eu
cd "$(dirname "$0")/.."
page=docs/TESTING.md
recorded=crates/sim/tests/seeds/planted.txt
quorate=${CARGO_TARGET_DIR:?}/release/quorate
planted=$CARGO_TARGET_DIR/planted/release/quorate
batch=${SOAK_BATCH:-100}
jobs=${SOAK_JOBS:-$(nproc)}
seeds_max=1000
end=$((SECONDS + ${SOAK_SECONDS:-3600}))
commit=$(git rev-parse --short=10 HEAD)
[ -z "$(git status --porcelain -- crates/*/src Cargo.toml Cargo.lock)" ] || commit="$commit+"
out=$(mktemp); trap 'rm -f "$out" "$out".*' EXIT

# The rows between <!-- NAME --> and <!-- end -->.
rows() { sed -n "/<!-- $1 -->/,/<!-- end -->/p" "$page" | grep '^| [0-9a-f]\{10\}' || true; }
# A field of the row of table $1 whose first two fields are $2 and $3.
field() { rows "$1" | awk -F' *[|] *' -v a="$2" -v b="$3" -v f="$4" '$2 == a && $3 == b { print $f }'; }
# Puts a row in the place of the one with the same two first fields, or first.
record() {
  awk -v table="<!-- $1 -->" -v key="| $2 | $3 |" -v row="$4" '
    $0 == table { inside = 1 }
    $0 == "<!-- end -->" { inside = 0 }
    inside && index($0, key) == 1 { next }
    { print }
    inside && /^\|---/ { print row }
  ' "$page" >"$page.new"
  mv "$page.new" "$page"
}

search() { # bug, nodes, recorded seed, what is on if not the usual
  local from seed found
  [ -z "$(field planted "$commit" "$1" 2)" ] || return 0
  # The recorded seed first: it may still be good.
  for from in "$3 1" "1 $seeds_max"; do
    read -r from runs <<<"$from"
    "$planted" sim --seed "$from" --runs "$runs" --nodes "$2" --bug "$1" --until-wrong \
      ${4:+--config "$(dirname "$recorded")/$4"} >"$out" 2>/dev/null || true
    found=$(grep -m1 '^seed [0-9]*: ' "$out" || true)
    [ -z "$found" ] || break
  done
  if [ -z "$found" ]; then
    record planted "$commit" "$1" "| $commit | $1 | $2 | none of $seeds_max | |"
    echo "$1: not found within $seeds_max seeds" >&2
    return 1
  fi
  seed=${found#seed }; seed=${seed%%:*}
  sed -i "s/^$1 .*/$1 $2 $seed${4:+ $4}/" "$recorded"
  record planted "$commit" "$1" "| $commit | $1 | $2 | $seed | $(sed "s/^seed [0-9]*: //; s/|/\//g" <<<"$found") |"
  echo "$1: seed $seed of $2 nodes"
}

soak() { # nodes
  local last first seed result c r f n
  last=$(rows soak | awk -F' *[|] *' -v n="$1" '$3 == n { split($4, s, "-"); if (s[2] + 0 > most) most = s[2] + 0 } END { print most + 0 }')
  seed=$((last + 1)); last=$((last + batch))
  first=$(field soak "$commit" "$1" 4); first=${first%%-*}; first=${first:-$seed}
  result=sound
  # One process for each seed, as many at once as there are processors.
  seq "$seed" "$last" | xargs -P "$jobs" -I{} sh -c \
    '"$1" sim --seed {} --nodes "$2" --twice >"$3.{}" 2>&1 || exit 1' sh "$quorate" "$1" "$out" ||
    result=$(cat "$out".* | sed -n 's/|/\//g; /^seed [0-9]*: /p' | head -n 1)
  [ -n "$result" ] || result="a world ended its process: $(cat "$out".* | grep -v '^ \|seed' | tail -n 1)"
  read -r c r f n < <(sed -nE 's/^1 seeds: ([0-9]+) commits, ([0-9]+) reads, ([0-9]+) failovers, ([0-9]+) faults$/\1 \2 \3 \4/p' "$out".* |
    awk '{ c += $1; r += $2; f += $3; n += $4 } END { if (NR) print c, r, f, n }')
  rm -f "$out".*
  [ -n "${n:-}" ] || { echo "no seed of $seed-$last ran to its end" >&2; exit 1; }
  sum() { echo $(($(field soak "$commit" "$1" "$2") + $3)); }
  record soak "$commit" "$1" "| $commit | $1 | $first-$last | $(sum "$1" 5 "$c") | $(sum "$1" 6 "$r") | $(sum "$1" 7 "$f") | $(sum "$1" 8 "$n") | $result |"
  echo "$1 nodes, seeds $seed-$last: $result"
  [ "$result" = sound ]
}

echo "Soak of $commit; Ctrl-C ends it, and the next run goes on."
while read -r bug nodes seed mix; do
  [ "${bug#\#}" = "$bug" ] || continue
  search "$bug" "$nodes" "$seed" "$mix"
done < <(cat "$recorded")
while [ $SECONDS -lt $end ]; do
  for nodes in 3 1 3 5; do
    [ $SECONDS -lt $end ] || break
    soak $nodes
  done
done
