# Quorate's commands. The two for a newcomer are `make up` and `make test`.

SHELL := /bin/bash
cache := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)
# Outside the clone, so that several clones share one build and `git clean` costs nothing.
export CARGO_TARGET_DIR ?= $(cache)/quorate/target
# Passed on to `quorate up`, for example: make up ARGS="--nodes 1"
ARGS ?=
# Where `make install` puts things.
PREFIX ?= $(HOME)/.local

.PHONY: help up build install uninstall test performance conformance drivers expected soak floods hostile three-machines lint fmt deps deps-build clean

help:
	@echo "make up      build, start three nodes on this machine, print how to connect (ARGS=...)"
	@echo "make install   build, and put quorate, completions and man pages under PREFIX (~/.local)"
	@echo "make uninstall   take them away again; data stays"
	@echo "make test    every test, with real clusters and the real psql"
	@echo "make expected  write the expected outputs anew, from PostgreSQL 15 (the first on the PATH)"
	@echo "make soak    the simulator for an hour (SOAK_SECONDS=...); results go to docs/TESTING.md"
	@echo "make floods  ten minutes of floods at every port beside pgbench, and its p99 (FLOOD_SECONDS=...)"
	@echo "make hostile  an hour of clients that mean harm, beside pgbench, on three nodes (HOSTILE_SECONDS=...)"
	@echo "make three-machines  docs/THREE-MACHINES.md, command by command, between network namespaces (as root)"
	@echo "make conformance  score against PostgreSQL's regression suite (SCORE=its script), into docs/CONFORMANCE.md"
	@echo "make drivers   programs with drivers of five languages, beside PostgreSQL 15 (DRIVERS=their names), into docs/CONFORMANCE.md"
	@echo "make performance  measure beside PostgreSQL, into docs/PERFORMANCE.md"
	@echo "make lint    formatting and clippy, without warnings; cargo-deny, where it is installed"
	@echo "make fmt     format the sources"
	@echo "make deps    install what building and testing need through apt, if it is missing"

up: build
	@"$(CARGO_TARGET_DIR)/release/quorate" up $(ARGS)

build: deps-build
	cargo build --release --locked -p quorate

install: build
	@scripts/deps.sh binutils
	@scripts/install.sh "$(CARGO_TARGET_DIR)/release/quorate" "$(PREFIX)"

uninstall:
	@scripts/install.sh --remove "$(PREFIX)"

performance: deps build
	"$(CARGO_TARGET_DIR)/release/quorate" lab run all --out "$(CARGO_TARGET_DIR)/lab"
	"$(CARGO_TARGET_DIR)/release/quorate" lab document "$(CARGO_TARGET_DIR)/lab/report.json" docs/PERFORMANCE.md
	cargo bench --locked -p quorate --features rivals -- --rows 5000000 --seconds 10 --document "$(CURDIR)/docs/PERFORMANCE.md"

test: deps
	cargo test --workspace --locked
	@# With quorate, so that the features of all dependencies, and so their builds, are the same.
	cargo test --locked -p quorate-sim -p quorate --features quorate-sim/planted-bugs \
	  --test seeds planted::with_bugs -- --nocapture

conformance: build
	scripts/conformance.py "$(CARGO_TARGET_DIR)/release/quorate" "$(SCORE)"

drivers: deps build
	scripts/drivers.py "$(CARGO_TARGET_DIR)/release/quorate" $(DRIVERS)

expected: deps
	QUORATE_REWRITE_EXPECTED=1 cargo test --locked -p quorate --test all expected_outputs

soak: build
	cargo build --release --locked -p quorate --features planted-bugs --target-dir "$(CARGO_TARGET_DIR)/planted"
	QUORATE_LOSSES=100,30,30,10 QUORATE_LOSSES_DOCUMENT="$(CURDIR)/docs/TESTING.md" QUORATE_COMMIT="$$(git rev-parse --short=10 HEAD)" \
		cargo test --release --locked -p quorate --test all -- losses:: --nocapture
	QUORATE_KILLS=50 cargo test --release --locked -p quorate --test all -- kill:: --nocapture
	QUORATE_FUZZ_SECONDS=$${SOAK_SECONDS:-3600} QUORATE_FUZZ_SEED=$$(date +%s) \
		cargo test --release --locked -p quorate --test all -- fuzz:: --nocapture
	@scripts/soak.sh

floods: deps
	QUORATE_FLOOD_SECONDS=$${FLOOD_SECONDS:-600} cargo test --release --locked -p quorate --test all -- \
		floods::floods_at_every_port --nocapture

hostile: deps
	QUORATE_HOSTILE_SECONDS=$${HOSTILE_SECONDS:-3600} cargo test --release --locked -p quorate --test all -- \
		stress:: --nocapture

three-machines: deps build
	scripts/three_machines.py "$(CARGO_TARGET_DIR)/release/quorate"

lint: deps-build
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	@scripts/deny.sh

fmt:
	cargo fmt --all

deps-build:
	@scripts/deps.sh libclang-dev postgresql-client-15

deps:
	@scripts/deps.sh libclang-dev postgresql-client-15 postgresql-15 strace iproute2 python3 binutils

clean:
	cargo clean
