# make test    everything a change must pass: format, vet, lint, all tests
# make build   ./waza
# make lint    golangci-lint alone
# make bench   the benchmarks        (BENCHTIME=1s BENCH=. BENCHFLAGS=)
# make fuzz    each fuzz target      (FUZZTIME=5s)
# make simulate  measure what the numbers promise, and write the table of docs/statistics.md
# make test-agents  drive real agents, without network or account  (AGENTS=directory they are installed into)
# make test-browser  open reports in Chromium  (BROWSER=directory playwright-core is installed into)
# make test-dashboard  build the dashboard again, and use that of a real server in Chromium  (BROWSER=directory playwright-core and axe-core are installed into)
# make test-doors  speak to the doors of waza serve with npm's ws  (NODE=directory ws is installed into)
# make test-editors  the editors' clients, in a real extension host, Neovim and Java  (EDITORS=directory the host is installed into)
# make test-crash  kill runs, fill their disk, cut their journals, and repeat every attack, at length  (CRASH=ci for a fifth of it, ATTACKS=3, WAZA_TEST_SEED=of a test that failed)
# make tools   install what test-agents, test-browser, test-dashboard, test-doors and test-editors want
# make docs    rewrite the generated documents and schemas
#
# Needs Go and make. Tests of Python assertions want python3, and the race
# detector a C compiler; without them the tests run all the same and say so.

GO         ?= go
BENCH      ?= .
BENCHTIME  ?= 1s
BENCHFLAGS ?=
FUZZTIME   ?= 5s
AGENTS     ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/waza-agents
BROWSER    ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/waza-browser
NODE       ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/waza-node
CRASH      ?= 1
ATTACKS    ?= 3
EDITORS    ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/waza-editors

BIN         := $(CURDIR)/.bin
LINTER      := $(BIN)/golangci-lint
LINTVERSION := 2.15.0
SOURCES     := cmd editors eval rpc runner

.PHONY: all test build format vet lint linter unit test-agents test-browser test-dashboard test-doors test-editors test-crash tools bench fuzz simulate docs clean
.NOTPARALLEL:

all: test build

test: format
	@if $(MAKE) --no-print-directory linter; then \
		$(MAKE) --no-print-directory lint; \
	else \
		echo 'notice: golangci-lint could not be installed, so nothing is linted; see above'; \
		$(MAKE) --no-print-directory vet; \
	fi
	@$(MAKE) --no-print-directory unit

build:
	$(GO) build -trimpath -ldflags '-s -w' -o waza ./cmd/waza

format:
	@files=$$(gofmt -l $(SOURCES)) || exit 1; \
	if [ -n "$$files" ]; then \
		echo 'these files want gofmt -w:'; echo "$$files"; exit 1; \
	fi

vet:
	$(GO) vet ./...

# The linter does what go vet does, too.
lint: linter
	$(LINTER) run ./...

# The linter is built once, in its pinned version, into .bin.
linter:
	@$(LINTER) version 2>/dev/null | grep -qF '$(LINTVERSION)' || { \
		echo 'installing golangci-lint $(LINTVERSION) into .bin (once, some minutes)'; \
		GOBIN='$(BIN)' $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v$(LINTVERSION); \
	}

unit:
	@command -v python3 >/dev/null || \
		echo 'notice: python3 is missing, so tests of Python assertions are skipped (apt-get install python3)'
	@if [ "$$($(GO) env CGO_ENABLED)" = 1 ] && command -v $$($(GO) env CC) >/dev/null; then \
		race=-race; \
	else \
		race=; \
		echo 'notice: no C compiler, so the tests run without the race detector (apt-get install gcc libc6-dev)'; \
	fi; \
	echo "$(GO) test $$race ./..."; $(GO) test $$race ./...

# Each scenario is listed with its result, and what is skipped says why.
test-agents:
	@GO='$(GO)' .ci/test-agents '$(AGENTS)'

# The same, and screenshots are left in .ci/out/browser.
test-browser:
	@GO='$(GO)' .ci/test-browser '$(BROWSER)'

# The same; screenshots are left in .ci/out/dashboard.
test-dashboard:
	@GO='$(GO)' .ci/test-dashboard '$(BROWSER)'

# The same for the dialogues of the doors.
test-doors:
	@GO='$(GO)' .ci/test-doors '$(NODE)'

# The same for the editors; screenshots are left in .ci/out/editors.
test-editors:
	@GO='$(GO)' .ci/test-editors '$(EDITORS)'

# What they install is kept, and they do it themselves where this was not done.
tools:
	@.ci/agents '$(AGENTS)'
	@.ci/dashboard '$(BROWSER)'
	@.ci/node '$(NODE)'
	@.ci/editors '$(EDITORS)'

# What make test does of this in little. A seed that is printed repeats it.
test-crash:
	WAZA_TEST_CRASH=$(CRASH) $(GO) test -count=1 -timeout 60m -v -run '^TestCrash' $$(.ci/packages TestCrash)
	WAZA_TEST_CRASH=$(CRASH) $(GO) test -count=1 -timeout 60m -run '^TestResumeAfterAnyCut$$' $$(.ci/packages TestResumeAfterAnyCut)
	WAZA_TEST_CRASH=$(CRASH) $(GO) test -count=1 -timeout 60m -v -run '^TestAttack' ./runner/grader/assertion
	$(GO) test -count=$(ATTACKS) -timeout 60m -run '^TestAttack' $$(.ci/packages TestAttack)

bench:
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchtime $(BENCHTIME) $(BENCHFLAGS) $$(.ci/packages Benchmark)

fuzz:
	@GO='$(GO)' .ci/fuzz '$(FUZZTIME)'

# Some minutes. It fails where a measured share breaks its promise.
simulate:
	$(GO) run ./runner/stats/simulation -write docs/statistics.md

docs:
	$(GO) generate ./...

clean:
	rm -f waza
