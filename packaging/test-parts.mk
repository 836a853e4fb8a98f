# The parts of `make test` and `make test-all`, which run in parallel. Most parts spend most of the time waiting for
# servers or clocks. The output of a part is printed in one piece when the part has ended. After a part has failed, no
# other part begins.
#
# The Makefile calls this file when everything is built. It passes CARGO, MAKE and everything that its targets
# need.

# The longest parts come first.
.PHONY: test test-all
test: programs matrix tls guest played behaviour the-rest tool
test-all: memory other-servers programs-again registries places seeds guest-again compilers packages install tls-again \
	networks abi-again demo demo-fencing demo-cluster instructions

# Tests run with the whole workspace, as they were built. For a single package, the shared crates have other
# features. Then cargo would build the library and each program again.
TEST = $(CARGO) test --quiet --workspace

# make test ---------------------------------------------------------------------------------------

# Names, or parts of names, of tests that `make test` leaves out and `make test-all` runs. They repeat other tests
# under another condition, compile once more, or look for leaks.
LATER_programs = one_server_is_down under_the_race_detector a_frozen_server a_killed_server \
	while_a_task_waits while_a_greenlet_waits while_a_fiber_waits while_a_call_waits while_a_goroutine_waits \
	leak_nothing with_every_compiler in_every_standard both_compilers on_a_cluster on_one_processor
LATER_guest = over_tls
LATER_matrix = in_a_network_of_its_own o03_a_new_owner o04_a_killed_master o05_a_slot_that_moves \
	o07_the_only_voter o08_a_paused_owner o09_without_the_nodes o09_nodes_that_come_back o10_one_of_three
LATER_played = golden_plays_of_a_few_seeds
LATER_tls = without::
LATER_abi = the_library_has_the_recorded_functions

# A part of the seeds, and of the places at which a conversation is interrupted.
test: export REDLOCK_FEW = 1
# Of each pair of compilers, one that knows the newest standard.
test: export REDLOCK_TEST_COMPILERS = clang clang++

# These tests wait for servers and clocks more than they compute. They get four threads for each processor.
PROCESSORS := $(shell getconf _NPROCESSORS_ONLN)
matrix tls behaviour the-rest places networks other-servers: export RUST_TEST_THREADS = $(shell expr 4 \* $(PROCESSORS))
# The tests of the languages also compile.
programs programs-again compilers: export RUST_TEST_THREADS = $(shell expr 2 \* $(PROCESSORS))

.PHONY: programs matrix tls guest played behaviour tool
programs matrix tls guest played behaviour tool:
	$(TEST) --test $@ -- $(LATER_$@:%=--skip %)

# The rest is all programs that are not in this list. So a new test program is included automatically.
ALONE = programs matrix tls guest played behaviour
PROGRAMS = $(shell sed -n '/^\[\[test\]\]/{n;s/name = "\(.*\)"/\1/p;}' Cargo.toml)
OTHERS = $(filter-out $(ALONE),$(PROGRAMS))

.PHONY: the-rest
the-rest:
	$(TEST) --lib --bins --examples $(foreach program,$(OTHERS),--test $(program)) -- $(LATER_abi:%=--skip %)
	$(TEST) --doc

# make test-all: what `make test` leaves out ----------------------------------------------------------

.PHONY: memory registries packages install demo demo-fencing demo-cluster
memory registries packages install demo demo-fencing demo-cluster:
	@$(MAKE) --no-print-directory -f Makefile test-$@

.PHONY: programs-again guest-again tls-again abi-again
programs-again guest-again tls-again abi-again: %-again:
	$(TEST) --test $* -- $(LATER_$*)

# A network of its own, for tests that cut servers off. Not every container lets a program have one. And clusters whose
# masters change: they wait for elections.
.PHONY: networks
networks:
	$(TEST) --test matrix -- $(LATER_matrix)

# C and C++ with the compilers that `make test` leaves out.
.PHONY: compilers
compilers:
	REDLOCK_TEST_COMPILERS='gcc g++' $(TEST) --test programs -- c:: cpp:: $(LATER_programs:%=--skip %)

# Interrupted at every byte. In the tests that are left out, the steps are always the same.
.PHONY: places
places:
	REDLOCK_EVERY_BYTE=1 $(TEST) --test matrix --test tls -- byte --skip e02_ --skip byte_of_one_server_is_harmless

# In a build that plays twenty times as fast: all seeds of the tests, some recorded plays, and more seeds.
PLAYED = $(CARGO) test --quiet --profile simulation --test played --
SIMULATE = @$(MAKE) --no-print-directory -f Makefile simulate SEEDS=10000
.PHONY: seeds
seeds:
	$(PLAYED) schedules::plays $(LATER_played)
	$(SIMULATE)
	$(SIMULATE) FENCED=1
	$(SIMULATE) GUARDED=1
	$(SIMULATE) STEPPED=1
	$(SIMULATE) LIVES=1
	$(SIMULATE) WATCHED=1 SEEDS=1000

# The client's instructions with 64 calls in flight. More than recorded is a fault, if the tools are the recorded ones.
.PHONY: instructions
instructions:
	$(CARGO) bench --quiet --bench lock -- --only instructions --short

# With the other servers that `make test-servers` has put here. That one runs more with them.
OTHER_SERVERS = $(wildcard $(or $(CARGO_TARGET_DIR),target)/servers/*/*-server)
.PHONY: other-servers
other-servers:
	@$(if $(OTHER_SERVERS),,echo 'test-all: no other server is here (make test-servers)')
	@$(foreach it,$(OTHER_SERVERS),REDLOCK_FEW=1 REDIS_SERVER=$(abspath $(it)) \
		$(TEST) --test servers --test behaviour --test matrix -- $(LATER_matrix:%=--skip %) &&) :
