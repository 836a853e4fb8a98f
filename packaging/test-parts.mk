# The parts of `make test`, which run in parallel. Most parts spend most of the time waiting for servers or
# clocks. The output of a part is printed in one piece when the part has ended. After a part has failed, no other
# part begins.
#
# The Makefile calls this file when everything is built. It passes CARGO, MAKE and everything that its targets
# need.

.PHONY: parts
# The longest parts come first.
parts: memory programs matrix tls guest played behaviour the-rest tool registries mutants packages install demo demo-fencing

# Tests run with the whole workspace, as they were built. For a single package, the shared crates have other
# features. Then cargo would build the library and each program again.
TEST = $(CARGO) test --quiet --workspace

.PHONY: memory registries packages install demo demo-fencing
memory registries packages install demo demo-fencing:
	@$(MAKE) --no-print-directory -f Makefile test-$@

# These tests wait for servers and clocks more than they compute. They get four threads for each processor.
PROCESSORS := $(shell getconf _NPROCESSORS_ONLN)
matrix tls behaviour the-rest: export RUST_TEST_THREADS = $(shell expr 4 \* $(PROCESSORS))
# The tests of the languages also compile.
programs: export RUST_TEST_THREADS = $(shell expr 2 \* $(PROCESSORS))

.PHONY: programs matrix tls guest played behaviour mutants tool
programs matrix tls guest played behaviour mutants tool:
	$(TEST) --test $@

# The rest is all programs that are not in this list. So a new test program is included automatically.
ALONE = memory programs matrix tls guest played behaviour mutants
PROGRAMS = $(shell sed -n '/^\[\[test\]\]/{n;s/name = "\(.*\)"/\1/p;}' Cargo.toml)
OTHERS = $(filter-out $(ALONE),$(PROGRAMS))

.PHONY: the-rest
the-rest:
	$(TEST) --lib --bins --examples $(foreach program,$(OTHERS),--test $(program))
	$(TEST) --doc
