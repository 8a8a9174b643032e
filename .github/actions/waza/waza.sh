#!/usr/bin/env bash
# The steps of action.yml: waza.sh sources | install | base | evaluate | comment | check. Their inputs
# are WAZA_* variables, never arguments, so that no text of a pull request runs as code. They
# need git, and comment needs curl and jq, which GitHub's runners have.
set -euo pipefail

fail() {
	echo "::error title=waza::$1"
	exit 1
}

# output sets an output of the step. Values come from this script and have one line.
output() { printf '%s=%s\n' "$1" "$2" >>"$GITHUB_OUTPUT"; }

# built is where install puts the program.
built() { echo "$RUNNER_TEMP/waza-bin"; }

# sources finds the sources of this action, and the digest of the files that the program is
# built from. Its outputs are absolute paths without "..", which other actions require.
sources() {
	local root digest
	root=$(cd "$GITHUB_ACTION_PATH/../../.." && pwd -P)
	digest=$(cd "$root" && find go.mod go.sum cmd eval rpc runner .third_party -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum)
	output root "$root"
	output program "$(built)"
	output digest "${digest%% *}"
}

# install puts waza on the path of the following steps: the named program, the cached one, or
# one built from the commit of this action.
install() {
	local into
	into=$(built)
	mkdir -p "$into"
	if [ -n "${WAZA_PROGRAM:-}" ]; then
		[ -x "$WAZA_PROGRAM" ] || fail "the input waza names no program: $WAZA_PROGRAM"
		ln -sf "$(realpath "$WAZA_PROGRAM")" "$into/waza"
	elif [ ! -x "$into/waza" ]; then
		(cd "$GITHUB_ACTION_PATH/../../.." && CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o "$into/waza" ./cmd/waza)
	fi
	"$into/waza" version
	echo "$into" >>"$GITHUB_PATH"
}

# run_suite runs a suite and writes its results to a directory. It sets code.
run_suite() {
	local suite="$1" into="$2"
	shift 2
	mkdir -p "$into"
	code=0
	# The summary of the step is written at the end, once.
	GITHUB_STEP_SUMMARY='' waza run "$suite" ${args[@]+"${args[@]}"} --output "$into/result.jsonl" "$@" || code=$?
}

# compare_suite compares a suite with the base. It sets code.
compare_suite() {
	local base="$1" head="$2" into="$3"
	local policies=()
	[ -z "${WAZA_MAX_REGRESSION_PCT:-}" ] || policies+=(--max-regression-pct "$WAZA_MAX_REGRESSION_PCT")
	[ "${WAZA_GOLDEN_MUST_PASS:-}" != true ] || policies+=(--golden-must-pass)
	policies+=(--on-new-tasks "${WAZA_ON_NEW_TASKS:-allow}" --on-removed-tasks "${WAZA_ON_REMOVED_TASKS:-warn}")
	code=0
	GITHUB_STEP_SUMMARY='' waza compare "$base" "$head" --fail-on regression "${policies[@]}" --format github-actions || code=$?
	waza compare "$base" "$head" "${policies[@]}" --format markdown >"$into/compare.md" || true
	waza compare "$base" "$head" "${policies[@]}" --json >"$into/compare.json" || true
}

# base fetches the commit to compare with, if the checkout lacks it. A private repository whose
# checkout keeps no credentials needs the token. This is a step of its own, because agents can
# read the environment of the step that runs them. The token is in no argument and no file.
base() {
	local base="${WAZA_BASE:-}" server="${GITHUB_SERVER_URL:-https://github.com}"
	if [ -z "$base" ] || [ "$base" = none ]; then return; fi
	if git rev-parse --quiet --verify "$base^{commit}" >/dev/null; then return; fi
	if [ -n "${WAZA_TOKEN:-}" ]; then
		# The empty value drops the header of a checkout that kept its credentials.
		export GIT_CONFIG_COUNT=2 "GIT_CONFIG_KEY_0=http.$server/.extraheader" GIT_CONFIG_VALUE_0='' "GIT_CONFIG_KEY_1=http.$server/.extraheader"
		GIT_CONFIG_VALUE_1="Authorization: basic $(printf 'x-access-token:%s' "$WAZA_TOKEN" | base64 | tr -d '\n')"
		export GIT_CONFIG_VALUE_1
	fi
	GIT_TERMINAL_PROMPT=0 git fetch --quiet --no-tags --depth=1 origin "$base" ||
		echo "::warning title=waza::cannot fetch the base $base; the input token must be able to read the repository"
}

# base_tree checks the base out beside the repository and prints its path, or nothing without
# a base.
base_tree() {
	local base="${WAZA_BASE:-}" tree="$RUNNER_TEMP/waza-base"
	if [ -z "$base" ] || [ "$base" = none ]; then return; fi
	if ! git worktree add --quiet --force --detach "$tree" "$base" >&2; then
		echo "::warning title=waza::cannot check out the base $base, so there is no comparison with it" >&2
		return
	fi
	echo "$tree"
}

evaluate() {
	local results="${WAZA_RESULTS:-waza-results}" root tree suite name n=0 passed=true verdict base_results
	local suites=() args=() wanted=()
	case "${WAZA_FAIL_ON:-regression}" in
	regression | failure | never) ;;
	*) fail "the input fail-on is regression, failure or never, not $WAZA_FAIL_ON" ;;
	esac
	read -ra wanted <<<"${WAZA_SUITES:-.}"
	read -ra args <<<"${WAZA_ARGS:-}"
	root=$(git rev-parse --show-toplevel)
	mkdir -p "$results/sarif"
	results=$(cd "$results" && pwd)
	for suite in "${wanted[@]}"; do
		if [ -d "$suite" ]; then
			while IFS= read -r name; do suites+=("$name"); done < <(waza list "$suite" --json | jq -r '.suites[].path')
		else
			suites+=("$suite")
		fi
	done
	[ "${#suites[@]}" -gt 0 ] || fail "no suites found in ${wanted[*]}"
	tree=$(base_tree)
	: >"$results/comment.md"
	for suite in "${suites[@]}"; do
		n=$((n + 1))
		suite=$(realpath "$suite")
		suite=${suite#"$root/"}
		local into="$results/$n"
		echo "::group::waza run $suite"
		pushd "$root" >/dev/null
		run_suite "$suite" "$into" --report "junit=$into/junit.xml" --report "sarif=$into/waza.sarif" \
			--report "results=$into/results.json" --report "html=$into/report.html" --report "comment=$into/comment.md"
		popd >/dev/null
		echo "::endgroup::"
		verdict=$code
		[ ! -f "$into/waza.sarif" ] || cp "$into/waza.sarif" "$results/sarif/$n.sarif"
		[ ! -f "$into/comment.md" ] || cat "$into/comment.md" >>"$results/comment.md"
		case "$verdict" in
		0 | 1) ;;
		*) echo "::error title=waza::$suite: waza run ended with exit code $verdict" ;;
		esac
		if [ -n "$tree" ] && [ -e "$tree/$suite" ] && [ -f "$into/result.jsonl" ]; then
			base_results="$into/base"
			echo "::group::waza run $suite, base"
			pushd "$tree" >/dev/null
			run_suite "$suite" "$base_results"
			popd >/dev/null
			echo "::endgroup::"
			if [ -s "$base_results/result.jsonl" ]; then
				compare_suite "$base_results/result.jsonl" "$into/result.jsonl" "$into"
				{
					echo
					echo "### Against the base"
					echo
					cat "$into/compare.md"
				} >>"$results/comment.md"
				# Failed tasks count only through the comparison, unless all of them should count.
				if [ "$verdict" = 1 ] && [ "${WAZA_FAIL_ON:-}" != failure ]; then verdict=0; fi
				[ "$verdict" -gt "$code" ] || verdict=$code
			fi
		fi
		[ "$verdict" = 0 ] || passed=false
	done
	[ -z "$tree" ] || git worktree remove --force "$tree"
	[ "${WAZA_FAIL_ON:-}" != never ] || passed=true
	# GitHub accepts comments of up to 65,536 characters.
	head -c 60000 "$results/comment.md" | iconv -f UTF-8 -t UTF-8 -c >"$results/comment.cut" || true
	mv "$results/comment.cut" "$results/comment.md"
	cat "$results/comment.md" >>"$GITHUB_STEP_SUMMARY"
	output passed "$passed"
	output results "$results"
	output junit "$results/*/junit.xml"
	output sarif "$results/sarif"
	output comment "$results/comment.md"
}

# api METHOD PATH calls the API of GitHub with standard input as body, prints the answer, and
# returns 22 if the request was denied. curl reads the token from a file of this user, so that
# it is not in the list of processes.
api() {
	local method="$1" path="$2" status
	status=$(curl --silent --show-error --max-time 30 --request "$method" \
		--header @<(printf 'Authorization: Bearer %s' "$WAZA_TOKEN") \
		--header 'Accept: application/vnd.github+json' --header 'X-GitHub-Api-Version: 2022-11-28' \
		--header 'Content-Type: application/json' --data @- --output "$answer" --write-out '%{http_code}' \
		"${GITHUB_API_URL:-https://api.github.com}$path") || return 1
	case "$status" in
	2*) cat "$answer" ;;
	401 | 403 | 404) return 22 ;;
	*)
		echo "the API of GitHub answered $status" >&2
		return 1
		;;
	esac
}

# comment writes the comment, or replaces the comment of an earlier check of the same job.
comment() {
	local marker body page=1 found='' list answer
	answer=$(mktemp)
	trap 'rm -f "$answer"' RETURN
	case "$WAZA_PULL_REQUEST" in '' | *[!0-9]*) fail "no number of a pull request: $WAZA_PULL_REQUEST" ;; esac
	marker="<!-- waza $GITHUB_WORKFLOW/$GITHUB_JOB -->"
	body=$(jq -n --arg marker "$marker" --rawfile text "$WAZA_COMMENT" '{body: ($marker + "\n" + $text)}')
	local issue="/repos/$GITHUB_REPOSITORY/issues/$WAZA_PULL_REQUEST/comments" code=0
	while [ "$page" -le 30 ]; do
		list=$(api GET "$issue?per_page=100&page=$page" </dev/null) || code=$?
		[ "$code" = 0 ] || break
		found=$(jq -r --arg marker "$marker" 'map(select(.body // "" | startswith($marker))) | .[0].id // empty' <<<"$list")
		if [ -n "$found" ] || [ "$(jq length <<<"$list")" -lt 100 ]; then break; fi
		page=$((page + 1))
	done
	if [ "$code" = 0 ] && [ -n "$found" ]; then
		api PATCH "/repos/$GITHUB_REPOSITORY/issues/comments/$found" <<<"$body" >/dev/null || code=$?
	elif [ "$code" = 0 ]; then
		api POST "$issue" <<<"$body" >/dev/null || code=$?
	fi
	case "$code" in
	0) ;;
	22) echo "::notice title=waza::the token cannot comment, as in pull requests from forks; the text is in the summary of the step" ;;
	*) echo "::warning title=waza::could not write the comment; the text is in the summary of the step" ;;
	esac
}

check() {
	[ "${WAZA_PASSED:-}" = true ] || fail "the check failed; the summary of the step says why"
}

case "${1:-}" in
sources | install | base | evaluate | comment | check) "$1" ;;
*) fail "usage: waza.sh sources | install | base | evaluate | comment | check" ;;
esac
