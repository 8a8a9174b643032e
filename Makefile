# make test    everything a change must pass: format, vet, lint, all tests
# make build   ./waza
# make lint    golangci-lint alone
# make lint-actions  actionlint and shellcheck: workflows and the scripts of actions
# make lint-words  misspell: spelling of all texts, code and documents
# make lint-deploy  kubeconform and dockerfile-utils: the files of docs/deploy for Kubernetes and Docker
# make bench   the benchmarks        (BENCHTIME=1s BENCH=. BENCHFLAGS=)
# make fuzz    each fuzz target      (FUZZTIME=5s)
# make simulate  check the promised error rates by simulation, and write the table of docs/statistics.md
# make scale   simulate fleets, and write docs/scale.md  (go run ./cmd/fleetsim -measure 20000 measures its cost model)
# make test-agents  drive real agents, without network or account  (AGENTS=directory for them)
# make test-browser  open reports in Chromium  (BROWSER=directory for playwright-core)
# make test-browsing  let browser assistants do a suite in Chromium
# make test-dashboard  rebuild the dashboard, and use it on a real server in Chromium  (BROWSER=directory for playwright-core and axe-core)
# make test-doors  speak to the doors of waza serve with npm's ws  (NODE=directory for ws)
# make test-editors  the editors' clients, in a real extension host, Neovim and Java  (EDITORS=directory for the host)
# make test-crash  kill runs, fill their disk, cut their journals, and repeat every attack, for a long time  (CRASH=ci for a fifth of it, ATTACKS=3, WAZA_TEST_SEED=seed of a failed test)
# make tools   install what test-agents, test-browser, test-dashboard, test-doors and test-editors need
# make docs-site  build the documentation as a site, check its links and search it in Chromium
# make newcomer  follow the README in a fresh clone, to a run in a browser
# make pictures  retake the screenshots in the documents, after test-browser, newcomer and test-editors
# make docs    rewrite the generated documents and schemas
#
# Requires Go and make. Tests of Python assertions need python3, and the race
# detector needs a C compiler. Without them the tests run with a notice.

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
ACTIONLINT  := $(BIN)/actionlint
ACTIONLINTVERSION := 1.7.12
KUBECONFORM := $(BIN)/kubeconform
KUBECONFORMVERSION := 0.8.0
MISSPELL   := $(BIN)/misspell
MISSPELLVERSION := 0.8.0
DOCKERLINT := $(BIN)/dockerfile-utils
DOCKERLINTVERSION := 0.16.3
SOURCES     := cmd editors eval house rpc runner

.PHONY: all test build format vet lint lint-actions lint-deploy lint-words linter unit test-agents test-browser test-browsing test-dashboard test-doors test-editors test-crash tools bench fuzz simulate scale docs docs-site newcomer pictures clean
.NOTPARALLEL:

all: test build

test: format
	@if $(MAKE) --no-print-directory linter; then \
		$(MAKE) --no-print-directory lint; \
	else \
		echo 'notice: golangci-lint could not be installed, so nothing is linted; see above'; \
		$(MAKE) --no-print-directory vet; \
	fi
	@$(MAKE) --no-print-directory lint-actions
	@$(MAKE) --no-print-directory lint-deploy
	@$(MAKE) --no-print-directory lint-words
	@$(MAKE) --no-print-directory unit

build:
	$(GO) build -trimpath -ldflags '-s -w' -o waza ./cmd/waza

format:
	@files=$$(gofmt -l $(SOURCES)) || exit 1; \
	if [ -n "$$files" ]; then \
		echo 'these files are not formatted; run gofmt -w:'; echo "$$files"; exit 1; \
	fi

vet:
	$(GO) vet ./...

# The linter includes the checks of go vet.
lint: linter
	$(LINTER) run ./...

# The linter is built once, in its pinned version, into .bin.
linter:
	@$(LINTER) version 2>/dev/null | grep -qF '$(LINTVERSION)' || { \
		echo 'installing golangci-lint $(LINTVERSION) into .bin (once, some minutes)'; \
		GOBIN='$(BIN)' $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v$(LINTVERSION); \
	}

# Lints workflows and, with shellcheck, the scripts of steps. actionlint is built once, like
# the linter.
lint-actions:
	@$(ACTIONLINT) -version 2>/dev/null | grep -qF 'v$(ACTIONLINTVERSION)' || \
		GOBIN='$(BIN)' $(GO) install github.com/rhysd/actionlint/cmd/actionlint@v$(ACTIONLINTVERSION) || { \
		echo 'notice: actionlint could not be installed, so workflows are not linted; see above'; exit 0; }; \
	command -v shellcheck >/dev/null || \
		echo 'notice: shellcheck is missing, so the scripts of workflows are not linted (apt-get install shellcheck)'; \
	if [ -x '$(ACTIONLINT)' ]; then $(ACTIONLINT) .github/workflows/*.yml || exit 1; fi; \
	if command -v shellcheck >/dev/null; then shellcheck .github/actions/*/*.sh || exit 1; fi

# Checks manifests against the schemas in the repository (.ci/deploy-schemas writes them), and
# the Dockerfile. Both tools are installed once; a check without its tool is skipped.
lint-deploy:
	@$(GO) version -m '$(KUBECONFORM)' 2>/dev/null | grep -qF 'v$(KUBECONFORMVERSION)' || \
		GOBIN='$(BIN)' $(GO) install github.com/yannh/kubeconform/cmd/kubeconform@v$(KUBECONFORMVERSION) || { \
		echo 'notice: kubeconform could not be installed, so manifests are not checked; see above'; exit 0; }; \
	if [ -x '$(KUBECONFORM)' ]; then '$(KUBECONFORM)' -strict -summary -skip Kustomization \
		-schema-location '.ci/schemas/{{.ResourceKind}}{{.KindSuffix}}.json' docs/deploy/kubernetes || exit 1; fi
	@[ -e '$(DOCKERLINT)/$(DOCKERLINTVERSION)' ] || { \
		command -v npm >/dev/null && npm install --silent --no-save --prefix '$(DOCKERLINT)' dockerfile-utils@$(DOCKERLINTVERSION) && \
		touch '$(DOCKERLINT)/$(DOCKERLINTVERSION)'; } || \
		echo 'notice: dockerfile-utils could not be installed, so the Dockerfile is not linted (apt-get install npm)'; \
	if [ -e '$(DOCKERLINT)/$(DOCKERLINTVERSION)' ]; then \
		node '$(DOCKERLINT)/node_modules/dockerfile-utils/bin/dockerfile-utils' lint docs/deploy/Dockerfile || exit 1; fi

# The words after -i are misspelled on purpose in tests of "did you mean"; "cancelled" is part of the protocols.
lint-words:
	@[ "$$('$(MISSPELL)' -v 2>/dev/null)" = $(MISSPELLVERSION) ] || \
		GOBIN='$(BIN)' $(GO) install -ldflags '-X main.version=$(MISSPELLVERSION)' github.com/golangci/misspell/cmd/misspell@v$(MISSPELLVERSION) || { \
		echo 'notice: misspell could not be installed, so spelling is not checked; see above'; exit 0; }; \
	git ls-files -z -- '*.go' '*.md' '*.txtar' '*.ts' '*.tsx' '*.lua' '*.java' '*.kt' '*.mjs' '*.yaml' '*.json' Makefile .ci ':!*/package-lock.json' | \
		xargs -0 '$(MISSPELL)' -error -i cancelled,embeded,nmae,modle,notebok,langauge,descriptoin

unit:
	@command -v python3 >/dev/null || \
		echo 'notice: python3 is missing, so tests of Python assertions are skipped (apt-get install python3)'
	@if [ "$$($(GO) env CGO_ENABLED)" = 1 ] && command -v $$($(GO) env CC) >/dev/null; then \
		race=-race; \
	else \
		race=; \
		echo 'notice: no C compiler, so the tests run without the race detector (apt-get install gcc libc6-dev)'; \
	fi; \
	echo "$(GO) test $$race -timeout 20m ./..."; $(GO) test $$race -timeout 20m ./...

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
test-crash:
	WAZA_TEST_CRASH=$(CRASH) $(GO) test -count=1 -timeout 60m -v -run '^TestCrash' $$(.ci/packages TestCrash)
	WAZA_TEST_CRASH=$(CRASH) $(GO) test -count=1 -timeout 60m -run '^TestResumeAfterAnyCut$$' $$(.ci/packages TestResumeAfterAnyCut)
	WAZA_TEST_CRASH=$(CRASH) $(GO) test -count=1 -timeout 60m -v -run '^TestAttack' ./runner/grader/assertion
	WAZA_TEST_CRASH=$(CRASH) $(GO) test -count=1 -timeout 60m -v -run '^TestAttackFullDiskOfFleet$$' ./cmd/waza
	$(GO) test -count=$(ATTACKS) -timeout 60m -run '^TestAttack' $$(.ci/packages TestAttack)

bench:
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchtime $(BENCHTIME) $(BENCHFLAGS) $$(.ci/packages Benchmark)

fuzz:
	@GO='$(GO)' .ci/fuzz '$(FUZZTIME)'

# Takes about 20 minutes on two processors. It fails if a measured share is outside the promised bounds.
simulate:
	$(GO) run ./cmd/statsim -write docs/statistics.md

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
