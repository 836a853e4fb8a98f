# The parts of `make test`, which run beside each other: most of them wait for servers or for clocks most of
# the time. What a part says comes in one piece, when it has ended. After a part that failed no other begins.
#
# Called by the Makefile, with CARGO, MAKE and all that its targets want, when everything is built.

.PHONY: parts
# The longest come first.
parts: memory programs matrix tls guest played behaviour the-rest tool registries mutants packages install demo demo-fencing

# With the workspace, as they were built: for one package alone cargo would build the library, and each program, once
# more, for the crates that they share have other features then.
TEST = $(CARGO) test --quiet --workspace

.PHONY: memory registries packages install demo demo-fencing
memory registries packages install demo demo-fencing:
	@$(MAKE) --no-print-directory -f Makefile test-$@

# Tests that wait for servers and for clocks more than they compute: four for each processor.
PROCESSORS := $(shell getconf _NPROCESSORS_ONLN)
matrix tls behaviour the-rest: export RUST_TEST_THREADS = $(shell expr 4 \* $(PROCESSORS))
# Those of the languages compile as well.
programs: export RUST_TEST_THREADS = $(shell expr 2 \* $(PROCESSORS))

.PHONY: programs matrix tls guest played behaviour mutants tool
programs matrix tls guest played behaviour mutants tool:
	$(TEST) --test $@

# Named by what they are not, so that a new test program is among them.
ALONE = memory programs matrix tls guest played behaviour mutants
PROGRAMS = $(shell sed -n '/^\[\[test\]\]/{n;s/name = "\(.*\)"/\1/p;}' Cargo.toml)
OTHERS = $(filter-out $(ALONE),$(PROGRAMS))

.PHONY: the-rest
the-rest:
	$(TEST) --lib --bins --examples $(foreach program,$(OTHERS),--test $(program))
	$(TEST) --doc
