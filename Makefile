# redlock: build it, see it work, test it, install it. Cargo does the building. This file contains the commands
# and their order. `make help` lists the targets.

CARGO = cargo
# For example --locked --offline, or --no-default-features for a library without TLS.
CARGOFLAGS =
CFLAGS = -O2
CXXFLAGS = -O2
WARNINGS = -Wall -Wextra -Wpedantic -Werror

PREFIX ?= /usr/local
LIBDIR ?= lib
BINDIR ?= bin
INCLUDEDIR ?= include
MANDIR ?= share/man
DESTDIR ?=

TARGET = $(or $(CARGO_TARGET_DIR),target)
RELEASE = $(TARGET)/$(if $(CARGO_BUILD_TARGET),$(CARGO_BUILD_TARGET)/)release
EXAMPLES = $(TARGET)/examples
# The command. It has a build profile of its own and builds faster than the library.
TOOL = $(TARGET)/$(if $(CARGO_BUILD_TARGET),$(CARGO_BUILD_TARGET)/)tool/redlock

# For programs that run from this directory: the headers, the library, and the path where the dynamic linker finds
# it.
HEADERS = include/redlock.h include/redlock.hpp include/redlock-cpp/redlock.h
USE_HERE = -pthread -Iinclude -L$(RELEASE) -lredlock -Wl,-rpath,"$(abspath $(RELEASE))"
COMPILE_C = $(CC) -std=c11 $(WARNINGS) $(CFLAGS)
COMPILE_CXX = $(CXX) -std=c++11 $(WARNINGS) $(CXXFLAGS)

INSTALL = PREFIX="$(PREFIX)" LIBDIR="$(LIBDIR)" INCLUDEDIR="$(INCLUDEDIR)" MANDIR="$(MANDIR)" \
	BINDIR="$(BINDIR)" TOOL="$(TOOL)" DESTDIR="$(DESTDIR)" sh packaging/install.sh
TOOLS = CC="$(CC)" sh packaging/tools.sh

# SERVER chooses the server program for the tests, the demo and the soak. See packaging/servers.sh.
ifneq ($(SERVER),)
REDIS_SERVER := $(shell sh packaging/servers.sh "$(SERVER)" "$(TARGET)")
$(if $(REDIS_SERVER),,$(error there is no server: $(SERVER)))
export REDIS_SERVER
endif

.NOTPARALLEL:
.PHONY: all build help demo test bench bench-short bench-report bench-calls bench-kept bench-peers header examples lint \
	install uninstall clean demo-tools test-tools test-install test-demo test-memory bench-tools go-example \
	libuv-example demo-fencing demo-fencing-tools test-demo-fencing demo-cluster demo-cluster-tools test-demo-cluster

all: build tool

help:
	@echo 'make              build the shared and the static library in $(RELEASE), and the command redlock'
	@echo 'make tool         build the command alone: $(TOOL)'
	@echo 'make demo         see two processes share a lock while servers fail (10 seconds)'
	@echo 'make demo-fencing see what goes wrong with locks that end by themselves, and what stops it (10 seconds)'
	@echo 'make demo-cluster see three masters of a Redis Cluster as three voters: one is killed, and a slot moves (25 seconds)'
	@echo 'make check        lint, and what can be tested without a server (2 minutes)'
	@echo 'make test         the tests: the core, schedules in a simulated world, real servers, each language'
	@echo '                  (10 minutes on two processors, 14 with nothing built before)'
	@echo '                  (SERVER=redis, valkey, redis-6.2 or a path: with this server)'
	@echo 'make test-all     the rest: lint, memory errors, packages, demos, more seeds, every byte, other compilers'
	@echo '                  (15 minutes on two processors)'
	@echo 'make test-servers everything that talks to a server, with each of $(SERVERS) (20 minutes)'
	@echo 'make test-under-load the same as test, TIMES=$(TIMES) times in a row beside LOOPS=$(LOOPS) busy loops (hours);'
	@echo '                  TESTS="--test matrix s11": only what `cargo test` runs with that'
	@echo 'make simulate     play SEEDS=$(SEEDS) schedules of faults in a simulated world, on all processors;'
	@echo '                  GUARDED=1: those in which one server forgets again and again; STEPPED=1: in which its clock is set;'
	@echo '                  LIVES=1: in which it changes its life in every way; FENCED=1: all with fencing tokens;'
	@echo '                  COUNTED=1: those in which servers lose these one after another;'
	@echo '                  WATCHED=1: those in which Sentinels watch masters, and these fail over'
	@echo 'make model        go through everything that can happen to a lock that is extended and repaired, to fencing tokens, and as owners change (25 minutes)'
	@echo 'make test-long    crowds of waiters in greater numbers, and what must not grow with servers, names, locks and so on (3 minutes)'
	@echo 'make golden       what a change of the structure must leave as it is (5 minutes; make golden-record: records it)'
	@echo 'make check-threads run many threads under ThreadSanitizer (1 minute)'
	@echo 'make check-memory run all programs under AddressSanitizer and valgrind (15 minutes)'
	@echo 'make check-long   both of these'
	@echo 'make test-portable the process and every language with the library that packages have (10 minutes)'
	@echo 'make mutants      break the library in every way that is listed, and see a test fail for each'
	@echo '                  (ONLY=M05,M16: these; 40 minutes)'
	@echo 'make mutants-all  the same for each operator and result of the core, by cargo-mutants (some hours)'
	@echo 'make abi-record   record the interface that programs are built against in abi/'
	@echo 'make soak         lock for MINUTES=$(MINUTES) while servers and workers fail at random, and check the logs'
	@echo 'make fuzz         have a fuzzer look for bytes that do harm (MINUTES=$(MINUTES) each, or RUNS=)'
	@echo 'make bench        measure (a quarter of an hour; ONLY=kinds,woken: these parts; make bench-short: 4 minutes)'
	@echo 'make bench-calls  measure only calls that block nobody (make bench-kept: locks that are kept for ten minutes)'
	@echo 'make bench-command measure what `redlock run` costs more than the program that it runs'
	@echo 'make bench-instructions count the instructions and allocations of a lock and its release (2 minutes)'
	@echo 'make bench-peers  build and install what others made, to be measured beside ours'
	@echo 'make bench-report measure, and write docs/BENCH.md with its picture, and the figures of the pages'
	@echo 'make pictures     record and draw the pictures of docs/ (20 seconds)'
	@echo 'make examples     build the C, C++ and Go examples in $(EXAMPLES)'
	@echo 'make header       generate include/redlock.h anew from src/ffi, and man/ from that'
	@echo 'make lint         format and lints'
	@echo 'make install      into PREFIX=$(PREFIX); also DESTDIR=, BINDIR=, LIBDIR=, INCLUDEDIR= and MANDIR=; with TOOL= without the command'
	@echo 'make uninstall    with the same variables'
	@echo 'make deb          Debian packages of it, in $(TARGET)/debian'
	@echo 'make packages     the packages for pip, gem, npm, go and cargo, in $(TARGET)/packages (1 minute): docs/packages.md'
	@echo 'make clean        remove what was built'
	@echo
	@echo 'demo, test, packages and bench install what they lack; with NO_INSTALL=1 they only name it.'

build:
	$(CARGO) build --release $(CARGOFLAGS)
	@sh packaging/install.sh link $(RELEASE)

.PHONY: tool tool-pages
tool:
	$(CARGO) build --profile tool --package redlock-cli $(CARGOFLAGS)

# Measures how much longer `redlock run NAME -- true` takes than `true`.
.PHONY: bench-command
bench-command: bench-tools
	$(CARGO) bench --profile tool --package redlock-cli --bench overhead

# Generates the completions of the command again.
tool-pages:
	UPDATE_MANUAL=1 $(CARGO) test --package redlock-cli --test tool manual

# The demo ---------------------------------------------------------------------------------------

demo: demo-tools build $(EXAMPLES)/demo
	@$(EXAMPLES)/demo

demo-tools:
	@$(TOOLS) demo

DEMO_PARTS = c-examples/demo.c $(wildcard c-examples/demo/*.c)

$(EXAMPLES)/demo: $(DEMO_PARTS) $(wildcard c-examples/demo/*.h) $(HEADERS)
	@mkdir -p $(EXAMPLES)
	$(COMPILE_C) -o $@ $(DEMO_PARTS) $(USE_HERE)

demo-fencing: demo-fencing-tools build $(EXAMPLES)/demo-fencing
	@$(EXAMPLES)/demo-fencing

demo-fencing-tools:
	@$(TOOLS) demo-fencing

FENCING_PARTS = $(wildcard c-examples/fencing/*.c) c-examples/demo/servers.c c-examples/demo/terminal.c

# A library that is loaded between a server and the clock. Without it, the demo leaves out its last part.
ifeq ($(shell uname -s),Linux)
SET_CLOCK = $(EXAMPLES)/demo-fencing-set_clock.so
endif

$(EXAMPLES)/demo-fencing: $(SET_CLOCK) $(FENCING_PARTS) c-examples/fencing/fencing.h c-examples/demo/common.h $(HEADERS)
	@mkdir -p $(EXAMPLES)
	$(COMPILE_C) -o $@ $(FENCING_PARTS) $(USE_HERE) -lsqlite3

$(EXAMPLES)/demo-fencing-set_clock.so: c-examples/fencing/preload/set_clock.c
	@mkdir -p $(EXAMPLES)
	$(COMPILE_C) -shared -fPIC -o $@ $<

demo-cluster: demo-cluster-tools build $(EXAMPLES)/demo-cluster
	@$(EXAMPLES)/demo-cluster

demo-cluster-tools:
	@$(TOOLS) demo-cluster

CLUSTER_PARTS = $(wildcard c-examples/cluster/*.c) c-examples/demo/servers.c c-examples/demo/terminal.c

$(EXAMPLES)/demo-cluster: $(CLUSTER_PARTS) c-examples/cluster/cluster.h c-examples/demo/common.h $(HEADERS)
	@mkdir -p $(EXAMPLES)
	$(COMPILE_C) -o $@ $(CLUSTER_PARTS) $(USE_HERE)

# Tests -------------------------------------------------------------------------------------------

# How many parts run in parallel.
JOBS := $(shell getconf _NPROCESSORS_ONLN)

PARTS = CARGO="$(CARGO)" $(MAKE) --no-print-directory -j $(JOBS) --output-sync=target -f packaging/test-parts.mk

test: test-tools
	$(CARGO) test --workspace --no-run
	@$(PARTS) test

# Everything that `make test` leaves out. Together they check everything, and nothing twice.
.PHONY: test-all
test-all: test-tools package-tools lint build tool
	$(CARGO) test --workspace --no-run
	@$(PARTS) test-all

# The check to run before each commit: no server, no release build, few seeds. It takes two to three minutes.
CHECKED = exports facts header history hostile model mutants numbering ownership pages played project standing tidy versions
.PHONY: check
check: lint
	REDLOCK_FEW=1 $(CARGO) test --quiet --workspace --lib --bins $(foreach program,$(CHECKED),--test $(program)) -- --skip differential

test-tools:
	@$(TOOLS) test

# The tools that make and check the packages for languages. System programs are installed. Python programs go into
# the build directory.
.PHONY: package-tools
package-tools:
	@$(TOOLS) packages
	@sh packaging/package-tools.sh "$(TARGET)" > /dev/null

TEST_INSTALL = MAKE="$(MAKE_COMMAND)" CC="$(CC)" CXX="$(CXX)" CARGO="$(CARGO)" RELEASE="$(RELEASE)" TOOL="$(TOOL)" \
	sh packaging/test-install.sh

test-install: build tool
	@$(TEST_INSTALL)

# Includes one more build of the library, without TLS, to check its size. If that is not built yet, it takes half
# a minute.
.PHONY: test-packages
test-packages: build tool
	@$(TEST_INSTALL) debian cargo-c size

# The packages for languages, each installed into an otherwise empty environment.
.PHONY: test-registries
test-registries: build
	@$(TEST_INSTALL) docker wheel gem npm go-module crate

# Tests the packages' library, which was linked by another linker. The tests are those that may depend on the
# linker: the process around the library, and every language. This is not part of the tests, because the code is
# the same.
PORTABLE = $(TARGET)/portable/libredlock.so
.PHONY: test-portable
test-portable: test-tools package-tools build
	@mkdir -p $(dir $(PORTABLE))
	@sh packaging/portable.sh $(RELEASE) $(TARGET)/package-tools $(PORTABLE)
	REDLOCK_TEST_LIBRARY="$(abspath $(PORTABLE))" $(CARGO) test --test guest --test programs

test-demo: build $(EXAMPLES)/demo
	@sh packaging/test-demo.sh $(EXAMPLES)/demo

test-demo-fencing: build $(EXAMPLES)/demo-fencing
	@sh packaging/test-demo.sh $(EXAMPLES)/demo-fencing

test-demo-cluster: build $(EXAMPLES)/demo-cluster
	@sh packaging/test-demo.sh $(EXAMPLES)/demo-cluster

# The part that takes a minute.
test-memory:
	@CARGO="$(CARGO)" sh packaging/check-memory.sh short

# Runs with every available server.
SERVERS = redis valkey redis-6.2
.PHONY: test-servers
test-servers: test-tools build $(EXAMPLES)/demo $(EXAMPLES)/demo-fencing $(EXAMPLES)/demo-cluster
	@$(TOOLS) servers
	@CARGO="$(CARGO)" sh packaging/test-servers.sh "$(TARGET)" $(EXAMPLES)/demo $(SERVERS)

# A test that passes only on a quiet machine will fail somewhere. The first run that fails is the last.
TIMES = 5
LOOPS = 4
TESTS =
.PHONY: test-under-load
test-under-load: test-tools
	@REDLOCK_EVERY_BYTE=1 sh packaging/test-under-load.sh $(TIMES) $(LOOPS) $(if $(TESTS),$(CARGO) test $(TESTS),$(MAKE_COMMAND) test)

# Not part of the tests: these checks take long, and not every Rust toolchain has what they need. They say what is
# missing.
.PHONY: check-long check-memory check-threads
check-long: check-memory check-threads

check-memory: test-tools
	@CARGO="$(CARGO)" sh packaging/check-memory.sh long

check-threads:
	@CC="$(CC)" CARGO="$(CARGO)" sh packaging/check-threads.sh

# Complete schedules in a simulated world. GUARDED=1 plays those in which one server forgets. STEPPED=1 plays
# those in which its clock is set. LIVES=1 plays those in which it changes its life in every way, and clocks are set
# forward and back. FENCED=1 plays all of them with fencing tokens. COUNTED=1 plays those in which servers lose these
# one after another. WATCHED=1 plays those in which Sentinels watch masters that fail over. If a seed fails, its story is printed, reduced as far as possible; with WHOLE=1 as it is.
SEEDS = 100000
FIRST = 0
.PHONY: simulate
simulate:
	@REDLOCK_FIRST=$(FIRST) REDLOCK_SEEDS=$(SEEDS) $(if $(FENCED),REDLOCK_FENCED=1) $(if $(WHOLE),REDLOCK_WHOLE=1) \
		$(CARGO) test -q --profile simulation --test played -- \
		--ignored --nocapture --exact schedules::plays::many_seeds$(if $(GUARDED),_that_are_guarded)$(if $(STEPPED),_that_are_stepped)$(if $(LIVES),_that_are_lived)$(if $(COUNTED),_that_are_counted)$(if $(WATCHED),_that_are_watched)

# Explores everything that can happen to a lock on three servers, under the rules for which server may confirm it;
# everything that can happen to the numbers of fencing tokens; and everything that can happen to a lock as the owner of
# a voter changes. One search after the other, because of the memory.
.PHONY: model
model:
	@$(CARGO) test -q --profile simulation --test standing --test numbering --test ownership -- \
		--ignored --nocapture --test-threads=1

# Not part of the tests, either. They only check that each broken copy can still be made.
.PHONY: mutants
mutants: test-tools
	@$(CARGO) test --quiet --test mutants -- --run $(ONLY)

# All mutants that cargo-mutants generates under .cargo/mutants.toml. OF= is the beginning of the file names.
.PHONY: mutants-all
OF = src/
mutants-all:
	@$(CARGO) mutants --version > /dev/null 2>&1 \
		|| { echo 'mutants-all: there is no cargo-mutants: cargo install cargo-mutants' >&2; exit 1; }
	$(CARGO) mutants --re '^$(OF)' --output $(TARGET)
# Longer than the soak in the tests. With LAWLESS=1 the servers forget their keys, and the soak must fail.
MINUTES = 5
.PHONY: soak
soak:
	@$(TOOLS) soak
	@REDLOCK_MINUTES="$(MINUTES)" REDLOCK_SEED="$(SEED)" REDLOCK_LAWLESS="$(LAWLESS)" \
		$(CARGO) test -q --release --test soak -- --ignored --exact soak --nocapture

# What grows with the number of waiters, in greater numbers than the tests have, and what must not grow with other
# numbers: servers, names, held and kept locks and so on. The figures of these curves are counts, and are shown.
.PHONY: test-long
test-long: test-tools
	$(CARGO) test --profile simulation --test events -- --ignored --show-output crowds curves

# What a change of the structure must leave as it is: each byte, moment, result and word in many simulated plays and in
# each call, the interface, and what six walks through the library cost. golden-record writes it anew, for a change
# that is meant to change it.
.PHONY: golden golden-record
golden: test-tools
	$(CARGO) test -q --test exports --test header
	$(CARGO) test -q --test abi the_interface_is_as_recorded
	$(CARGO) test -q --profile simulation --test played --test events -- --include-ignored golden

golden-record: test-tools
	REDLOCK_RECORD_GOLDEN=1 $(CARGO) test -q --profile simulation --test played --test events -- --include-ignored golden

# Looks for harmful bytes for MINUTES each, or for RUNS runs. Needs a nightly Rust and cargo-fuzz.
.PHONY: fuzz
fuzz:
	@CARGO="$(CARGO)" MINUTES="$(MINUTES)" RUNS="$(RUNS)" sh packaging/fuzz.sh

# Records the interface that programs are built against, for comparison by tests/pure/abi. Needs abidw.
.PHONY: abi-record
abi-record:
	ABI_RECORD=1 $(CARGO) test --test abi the_interface_is_as_recorded

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	$(CARGO) clippy --no-default-features -- -D warnings
	@sh packaging/lint.sh

# The bench: docs/BENCH.md tells what it measures ------------------------------------------------------

# ONLY: some parts of the bench, separated by commas.
BENCH = $(CARGO) bench --bench lock -- $(if $(ONLY),--only $(ONLY))

bench: bench-tools build
	$(BENCH)

bench-short: bench-tools build
	$(BENCH) --short

# The client's instructions and allocations, which do not depend on other programs. Fails if they are more than recorded in
# benches/instructions.txt, with the tools that are named there. RECORD=1 records them.
.PHONY: bench-instructions
bench-instructions: ONLY = instructions
bench-instructions: bench-tools build
	$(BENCH) $(if $(RECORD),--record)

bench-report: bench-tools bench-peers build
	$(BENCH) --kept 120 --write docs/BENCH.md
	@$(MAKE) --no-print-directory figures
	@$(MAKE) --no-print-directory pictures PICTURES=latency

# Copies the figures of the run in docs/BENCH.md to the pages.
.PHONY: figures
figures:
	UPDATE_FIGURES=1 $(CARGO) test --quiet --test facts figures

# Calls that block no thread: submitted calls, kept locks, waiters in other languages, memory.
bench-calls: ONLY = submitted,kept,lost,waiters,footprint
bench-calls: bench-tools build
	$(BENCH) --short

# Keeps locks for ten minutes.
bench-kept: ONLY = kept,lost
bench-kept: bench-tools build
	$(BENCH) --kept 600

bench-peers:
	@$(TOOLS) bench-peers
	@sh benches/peers/install.sh $(TARGET)/bench-peers

bench-tools:
	@$(TOOLS) bench

# The pictures of the pages. Two are recorded from servers that are started for this. One is drawn from docs/BENCH.md.
# One is a plain drawing.
.PHONY: pictures
PICTURES = life fencing latency cluster
pictures: build
	@PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=bindings/python REDLOCK_LIBRARY="$(abspath $(RELEASE))/libredlock.so" \
		python3 benches/pictures/draw.py $(PICTURES)

header:
	UPDATE_HEADER=1 $(CARGO) test --test header up_to_date
	UPDATE_MANUAL=1 $(CARGO) test --test manual up_to_date

# Examples ---------------------------------------------------------------------------------------

C_EXAMPLES = $(filter-out %/libuv,$(patsubst c-examples/%.c,$(EXAMPLES)/%,$(wildcard c-examples/*.c)))
CXX_EXAMPLES = $(patsubst c-examples/%.cpp,$(EXAMPLES)/%,$(wildcard c-examples/*.cpp))

examples: build $(C_EXAMPLES) $(CXX_EXAMPLES) libuv-example go-example

$(EXAMPLES)/%: c-examples/%.c $(HEADERS)
	@mkdir -p $(EXAMPLES)
	$(COMPILE_C) -o $@ $< $(USE_HERE) $(OTHER_LIBRARIES)

$(EXAMPLES)/libuv: OTHER_LIBRARIES = -luv

$(EXAMPLES)/%: c-examples/%.cpp $(HEADERS)
	@mkdir -p $(EXAMPLES)
	$(COMPILE_CXX) -o $@ $< $(USE_HERE)

libuv-example: build
	@if echo '#include <uv.h>' | $(CC) -D_POSIX_C_SOURCE=200809L -E - > /dev/null 2>&1; then $(MAKE) $(EXAMPLES)/libuv; \
	else echo 'There is no libuv here: the libuv example is left out.'; fi

go-example: build
	@if command -v go > /dev/null; then CC="$(CC)" sh packaging/go-example.sh $(RELEASE) $(EXAMPLES); \
	else echo 'There is no go here: the Go example is left out.'; fi

# Installation -----------------------------------------------------------------------------------

# Installs what is already built, because root may have no Rust toolchain.
install:
	@test -f $(RELEASE)/libredlock.a || $(MAKE) build
	@test -z "$(TOOL)" || test -f "$(TOOL)" || $(MAKE) tool
	@$(INSTALL) install $(RELEASE)

uninstall:
	@$(INSTALL) uninstall $(RELEASE)

.PHONY: deb
deb: build tool
	@TOOL="$(TOOL)" CARGO="$(CARGO)" CARGOFLAGS="$(CARGOFLAGS)" CC="$(CC)" sh packaging/deb.sh $(RELEASE) $(TARGET)/debian

.PHONY: packages
packages: package-tools build
	@CARGO="$(CARGO)" CARGOFLAGS="$(CARGOFLAGS)" CC="$(CC)" sh packaging/packages.sh $(RELEASE) $(TARGET)/packages

clean:
	$(CARGO) clean
