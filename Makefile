# make test    everything a change must pass: format, vet, the linters that are installed, all tests
# make race    tests with the race detector, of packages that share memory between goroutines  (PARALLEL=packages at a time)
# make build   ./waza
# make lint    all linters, which it installs: golangci-lint, actionlint and shellcheck (workflows and the scripts of actions),
#              kubeconform and dockerfile-utils (docs/deploy), misspell (spelling of all texts, code and documents);
#              each has a target: lint-code, lint-actions, lint-deploy, lint-docker, lint-words
# make bench   the table of docs/performance.md and its guard, then the benchmarks  (BENCHTIME=1s BENCH=. BENCHFLAGS=)
# make bench-accept  accept the figures of the guard
# make performance  measure everything on a quiet machine, and write docs/performance.md  (PROMPTFOO=directory for that peer)
# make fuzz    each fuzz target      (FUZZTIME=5s, or 2000x for the same inputs each time)
# make simulate  check the promised error rates by simulation, and write the table of docs/statistics.md
# make simulate-decide  measure the verdicts of waza decide with 100,000 draws per design (about an hour)
# make scale   simulate fleets, and write docs/scale.md  (BenchmarkCosts of cmd/fleetsim measures its cost model)
# make test-agents  drive real agents, without network or account  (AGENTS=directory for them)
# make test-browser  open reports in Chromium  (BROWSER=directory for playwright-core)
# make test-browsing  let browser assistants do a suite in Chromium
# make test-dashboard  rebuild the dashboard, and use it on a real server in Chromium  (BROWSER=directory for playwright-core and axe-core)
# make test-doors  speak to the doors of waza serve with npm's ws  (NODE=directory for ws)
# make test-editors  the editors' clients, in a real extension host, Neovim and Java  (EDITORS=directory for the host)
# make test-podman  run tasks in containers of a real podman, in some minutes
# make test-crash  kill runs, fill their disk, cut their journals, and repeat every attack, for a long time  (CRASH=ci for a fifth of it, ATTACKS=3 repeats attacks, 0 leaves them out, WAZA_TEST_SEED=seed of a failed test)
# make tools   install what test-agents, test-browser, test-dashboard, test-doors and test-editors need
# make docs-site  build the documentation as a site, check its links and search it in Chromium
# make newcomer  follow the README in a fresh clone, to a run in a browser
# make pictures  retake the screenshots in the documents, after test-browser, newcomer and test-editors
# make docs    rewrite the generated documents and schemas
#
# Requires Go and make. Tests of Python assertions need python3; without it they are skipped with a
# notice. The race detector needs a C compiler.

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

# Without paths of this clone in objects, all clones share the build cache of Go.
export GOFLAGS := -trimpath $(filter-out -trimpath,$(shell $(GO) env GOFLAGS))

# Linters are outside the working tree and have their version in their path, so that all clones
# share them, and are built once.
LINTERS     ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/waza-linters
LINTER      := $(LINTERS)/golangci-lint-2.15.0/golangci-lint
ACTIONLINT  := $(LINTERS)/actionlint-1.7.12/actionlint
KUBECONFORM := $(LINTERS)/kubeconform-0.8.0/kubeconform
MISSPELL    := $(LINTERS)/misspell-0.8.0/misspell
DOCKERLINT  := $(LINTERS)/dockerfile-utils-0.16.3/node_modules/dockerfile-utils/bin/dockerfile-utils
# version is the version in a linter's path.
version      = $(lastword $(subst -, ,$(firstword $(subst /, ,$(1:$(LINTERS)/%=%)))))
# installed is the second text if the linter is installed, else the third.
installed    = $(if $(wildcard $(1)),$(2),$(3))

PROGRAM     := $(CURDIR)/.bin/waza
SOURCES     := cmd docs editors eval rpc runner

.PHONY: all test build format vet lint lint-code lint-actions lint-deploy lint-docker lint-words linters missing unit race test-agents test-browser test-browsing test-dashboard test-doors test-editors test-crash test-podman tools bench bench-accept performance fuzz simulate simulate-decide scale docs docs-site newcomer pictures clean
.NOTPARALLEL:

all: test build

# golangci-lint includes go vet.
test: format $(call installed,$(LINTER),lint-code,vet) \
	$(call installed,$(ACTIONLINT),lint-actions) $(call installed,$(KUBECONFORM),lint-deploy) \
	$(call installed,$(DOCKERLINT),lint-docker) $(call installed,$(MISSPELL),lint-words) unit missing

# Repeats at the end which checks make test left out.
missing:
	@for linter in '$(LINTER)' '$(ACTIONLINT)' '$(KUBECONFORM)' '$(DOCKERLINT)' '$(MISSPELL)'; do \
		[ -e "$$linter" ] || echo "notice: $${linter##*/} did not run: make lint installs it once"; \
	done

build:
	$(GO) build -trimpath -ldflags '-s -w' -o waza ./cmd/waza

format:
	@files=$$(gofmt -l $(SOURCES)) || exit 1; \
	if [ -n "$$files" ]; then \
		echo 'these files are not formatted; run gofmt -w:'; echo "$$files"; exit 1; \
	fi

vet:
	$(GO) vet ./...

# A linter that cannot be installed is skipped with a notice.
linters: $(LINTER) $(ACTIONLINT) $(KUBECONFORM) $(DOCKERLINT) $(MISSPELL)

lint: linters format
	@$(MAKE) --no-print-directory $(foreach l,code actions deploy docker words,lint-$(l))

$(LINTER): MODULE := github.com/golangci/golangci-lint/v2/cmd/golangci-lint
$(ACTIONLINT): MODULE := github.com/rhysd/actionlint/cmd/actionlint
$(KUBECONFORM): MODULE := github.com/yannh/kubeconform/cmd/kubeconform
$(MISSPELL): MODULE := github.com/golangci/misspell/cmd/misspell
$(LINTER) $(ACTIONLINT) $(KUBECONFORM) $(MISSPELL):
	@echo 'installing $(@F) $(call version,$@) (once; golangci-lint takes some minutes)'; \
	GOBIN='$(@D)' $(GO) install $(MODULE)@v$(call version,$@) || \
		echo 'notice: $(@F) could not be installed; see above'

$(DOCKERLINT):
	@echo 'installing $(@F) $(call version,$@)'; \
	command -v npm >/dev/null && npm install --silent --no-save --prefix '$(LINTERS)/dockerfile-utils-$(call version,$@)' dockerfile-utils@$(call version,$@) || \
		echo 'notice: $(@F) could not be installed (apt-get install npm)'

# has is a line of a recipe that ends it unless the linter is installed.
has = [ -e '$(1)' ] || { echo 'notice: $(notdir $(1)) is not installed, so its checks are skipped'; exit 0; }

lint-code:
	@$(call has,$(LINTER)); $(LINTER) run ./...

# Lints workflows and, with shellcheck, the scripts of steps.
lint-actions:
	@command -v shellcheck >/dev/null || \
		echo 'notice: shellcheck is missing, so the scripts of workflows are not linted (apt-get install shellcheck)'; \
	if command -v shellcheck >/dev/null; then shellcheck .github/actions/*/*.sh || exit 1; fi; \
	$(call has,$(ACTIONLINT)); $(ACTIONLINT) .github/workflows/*.yml

# Checks manifests against the schemas in the repository, which .ci/deploy-schemas writes.
lint-deploy:
	@$(call has,$(KUBECONFORM)); '$(KUBECONFORM)' -strict -summary -skip Kustomization \
		-schema-location '.ci/schemas/{{.ResourceKind}}{{.KindSuffix}}.json' docs/deploy/kubernetes

lint-docker:
	@$(call has,$(DOCKERLINT)); node '$(DOCKERLINT)' lint docs/deploy/Dockerfile

# The words after -i are misspelled on purpose in tests of "did you mean"; "cancelled" is part of the protocols.
lint-words:
	@$(call has,$(MISSPELL)); \
	git ls-files -z -- '*.go' '*.md' '*.txtar' '*.ts' '*.tsx' '*.lua' '*.java' '*.kt' '*.mjs' '*.yaml' '*.json' Makefile .ci ':!*/package-lock.json' ':!.third_party/*/*' | \
		xargs -0 '$(MISSPELL)' -error -i cancelled,embeded,nmae,modle,notebok,langauge,descriptoin

# go vet has run, so the tests need no vet of their own, and no tables for debuggers.
UNITTEST = $(GO) test -vet=off -timeout 20m -ldflags='-s -w' -p $(PARALLEL)
# Many tests wait, so there are twice as many packages at a time as processors.
PARALLEL ?= $$((2 * $$(getconf _NPROCESSORS_ONLN)))

unit:
	@command -v python3 >/dev/null || \
		echo 'notice: python3 is missing, so tests of Python assertions are skipped (apt-get install python3)'
	@$(GO) build -ldflags '-s -w' -o '$(PROGRAM)' ./cmd/waza
	@TMPDIR=$$(.ci/tempdir) WAZA_TEST_PROGRAM='$(PROGRAM)' $(UNITTEST) ./...

# The race detector makes tests five times as expensive, and needs all packages compiled again, so it is not
# part of make test. It would let each of a hundred programs of tests sleep for a second at its end.
race:
	@if [ "$$($(GO) env CGO_ENABLED)" != 1 ] || ! command -v $$($(GO) env CC) >/dev/null; then \
		echo 'the race detector needs a C compiler (apt-get install gcc libc6-dev)'; exit 1; \
	fi
	@export TMPDIR=$$(.ci/tempdir) GORACE=atexit_sleep_ms=0 WAZA_TEST_RACES=1; \
	$(UNITTEST) -race $$(.ci/concurrent) && $(UNITTEST) -run '^TestRaces$$' $$(.ci/packages TestRaces)

# Lists each scenario with its result, and the reason if it was skipped.
test-agents:
	@GO='$(GO)' .ci/test-agents '$(AGENTS)'

# The same; screenshots go to .ci/out/browser.
test-browser:
	@GO='$(GO)' .ci/test-browser '$(BROWSER)'

# The same; requires only Chromium.
test-browsing:
	@GO='$(GO)' .ci/test-browsing

# The same; screenshots go to .ci/out/dashboard.
test-dashboard:
	@GO='$(GO)' .ci/test-dashboard '$(BROWSER)'

# The same for the dialogues of the doors.
test-doors:
	@GO='$(GO)' .ci/test-doors '$(NODE)'

# The same for the editors; screenshots go to .ci/out/editors.
test-editors:
	@GO='$(GO)' .ci/test-editors '$(EDITORS)'

# The tests install missing tools themselves. Installed tools are kept.
tools:
	@.ci/agents '$(AGENTS)'
	@.ci/dashboard '$(BROWSER)'
	@.ci/node '$(NODE)'
	@.ci/editors '$(EDITORS)'

# A longer version of the crash tests of make test. The printed seed repeats a failure.
test-podman:
	$(GO) build -ldflags '-s -w' -o '$(PROGRAM)' ./cmd/waza
	WAZA_TEST_PODMAN=1 WAZA_TEST_PROGRAM='$(PROGRAM)' $(GO) test -vet=off -count=1 -parallel 1 -timeout 30m -v -run '^TestPodmanScript$$' ./cmd/waza

test-crash:
	$(GO) build -ldflags '-s -w' -o '$(PROGRAM)' ./cmd/waza
	WAZA_TEST_CRASH=$(CRASH) $(CRASHTEST) -v -run '^TestCrash|^TestAttackFullDiskOfFleet$$' $$(.ci/packages TestCrash)
	WAZA_TEST_CRASH=$(CRASH) $(CRASHTEST) -run '^TestResumeAfterAnyCut$$' $$(.ci/packages TestResumeAfterAnyCut)
	WAZA_TEST_CRASH=$(CRASH) $(CRASHTEST) -v -run '^TestAttack' ./runner/grader/assertion
	[ $(ATTACKS) = 0 ] || $(GO) test -vet=off -count=$(ATTACKS) -timeout 60m -run '^TestAttack' $$(.ci/packages TestAttack)

CRASHTEST = WAZA_TEST_PROGRAM='$(PROGRAM)' $(GO) test -vet=off -ldflags='-s -w' -count=1 -timeout 60m

# The table comes with all benchmarks only. -short leaves out measures that take minutes.
bench:
	$(if $(filter .,$(BENCH)),$(GO) run ./cmd/perfbench $(filter -short,$(BENCHFLAGS)) -json .ci/out/bench.json)
	$(GO) test -vet=off -ldflags='-s -w' -run '^$$' -bench '$(BENCH)' -benchtime $(BENCHTIME) $(BENCHFLAGS) $$(.ci/packages Benchmark)

bench-accept:
	$(GO) run ./cmd/perfbench -guard -accept -write docs/performance.md

# Takes about ten minutes on two cores.
performance:
	$(GO) run ./cmd/perfbench -accept -write docs/performance.md -json .ci/out/bench.json $(if $(PROMPTFOO),-promptfoo '$(PROMPTFOO)')

fuzz:
	@GO='$(GO)' .ci/fuzz '$(FUZZTIME)'

# Takes about 20 minutes on two processors. It fails if a measured share is outside the promised bounds.
simulate:
	$(GO) run ./cmd/statsim -write docs/statistics.md

simulate-decide:
	$(GO) run ./cmd/statsim -long

# Takes half a minute.
scale:
	$(GO) run ./cmd/fleetsim -write docs/scale.md

# The site goes to .ci/out/site.
docs-site:
	@.ci/docs-site '$(BROWSER)'

newcomer:
	@.ci/browser '$(BROWSER)'
	@chromium=$$(command -v chromium || command -v chromium-browser || command -v google-chrome); \
	if [ -z "$$chromium" ] || [ ! -d '$(BROWSER)/node_modules/playwright-core' ]; then \
		echo 'skipped: the newcomer needs Chromium and playwright-core (apt-get install chromium npm)'; \
	else .ci/newcomer '$(BROWSER)' "$$chromium" .ci/out/newcomer; fi

pictures: build
	@.ci/terminal ./waza
	@.ci/pictures

docs:
	$(GO) generate ./...

clean:
	rm -f waza
