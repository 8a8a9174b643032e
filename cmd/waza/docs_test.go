package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/urfave/cli/v2"

	"waza/cmd/waza/config"
	"waza/cmd/waza/help"
	"waza/cmd/waza/reports"
	"waza/eval"
	"waza/eval/decode"
	"waza/eval/schema"
	"waza/rpc"
	"waza/runner/grader/builtin"
	"waza/runner/plan"
	"waza/runner/report"
	"waza/runner/report/formats"
)

// TestDocuments holds the documents and schemas that are generated to the code
// that they tell of. With -update it writes them anew, which is what make docs does.
func TestDocuments(t *testing.T) {
	t.Parallel()
	for path, text := range documents(t) {
		file := filepath.Join(filepath.FromSlash(repositoryRoot), filepath.FromSlash(path))
		if *update {
			require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
			require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
			continue
		}
		have, err := os.ReadFile(file)
		require.NoError(t, err, "make docs writes it")
		if string(have) != text {
			t.Errorf("%s lags behind the code: run make docs\n%s", path, firstDifference(string(have), text))
		}
	}
}

// Some tables listed keys without a word on what they mean: comments on types that
// are written in several shapes did not reach the schema.
func TestDocumentsExplainEveryKey(t *testing.T) {
	t.Parallel()
	all := documents(t)
	for _, path := range []string{"docs/graders.md", "docs/executors.md", "docs/suite.md"} {
		for line := range strings.Lines(all[path]) {
			require.NotRegexp(t, `^\|.*\|\s*\|$`, strings.TrimSpace(line), path)
		}
	}
	require.Contains(t, all["docs/graders.md"], "### ToolSpec")
}

// repositoryRoot is where this package's directory stands in.
const repositoryRoot = "../.."

func firstDifference(have, want string) string {
	h, w := strings.Split(have, "\n"), strings.Split(want, "\n")
	for i := range min(len(h), len(w)) {
		if h[i] != w[i] {
			return fmt.Sprintf("line %d\nis      %s\nought   %s", i+1, h[i], w[i])
		}
	}
	return fmt.Sprintf("it has %d lines and ought to have %d", len(h), len(w))
}

func vocabulary() *eval.Vocabulary {
	return &eval.Vocabulary{Executors: plan.Executors.Kinds(), Graders: builtin.Graders.Kinds()}
}

// documents are all generated files by their paths in the repository.
func documents(t *testing.T) map[string]string {
	t.Helper()
	v := vocabulary()
	schemas, err := schema.Generate(v, repositoryRoot)
	require.NoError(t, err)
	docs := map[string]string{
		"docs/cli.md":         cliDocument(),
		"docs/methods.md":     rpc.Reference(),
		"docs/diagnostics.md": diagnosticsDocument(),
		"docs/reports.md":     reportsDocument(),
		"docs/graders.md":     gradersDocument(t, v, schemas[schema.SuiteFile]),
		"docs/executors.md":   executorsDocument(t, v, schemas[schema.SuiteFile]),
		"docs/suite.md":       suiteDocument(t, v, schemas[schema.SuiteFile], schemas[schema.TriggerTestsFile]),
	}
	configuration, err := schema.Of("The configuration of waza serve", config.Default(), repositoryRoot)
	require.NoError(t, err)
	docs["cmd/waza/config/serve.schema.json"] = string(configuration)
	docs["docs/configuration.md"] = configurationDocument(t, configuration)
	for name, text := range schemas {
		docs["eval/schema/"+name] = string(text)
	}
	return docs
}

func cliDocument() string {
	var b strings.Builder
	app := newTestApp()
	b.WriteString("# The command line\n\nWhat `waza help` and `waza COMMAND --help` print.\n\n## waza\n\n```\n")
	help.WriteApp(&b, app)
	b.WriteString("```\n")
	eachCommand(app.Commands, func(c *cli.Command) {
		fmt.Fprintf(&b, "\n##%s %s\n\n```\n", strings.Repeat("#", strings.Count(c.HelpName, " ")-1), c.HelpName)
		help.WriteCommand(&b, c)
		b.WriteString("```\n")
	})
	b.WriteString(`
## For programs

With ` + "`--json`" + ` stdout holds JSON and nothing else. What is wrong is said where the document has a place for it: a
suite that could not be run or checked has an entry with its error. A command that could do nothing at all leaves stdout
empty. Messages for people go to stderr in any case, as text, and the exit code tells what became of it.

## The environment

| variable | meaning |
|---|---|
| ` + "`WAZA_STATE`" + ` | the state directory, where runs are recorded; else waza below ` + "`$XDG_STATE_HOME`, else `~/.local/state/waza`" + ` |
| ` + "`WAZA_AGENT_KEY`" + ` | the key that agents show ` + "`waza serve`" + ` |
| ` + "`WAZA_SERVE_…`" + ` | keys of the configuration of ` + "`waza serve`" + `, see [configuration.md](configuration.md) |
| ` + "`NO_COLOR`" + ` | not empty: no colours |
| ` + "`CLICOLOR_FORCE`" + ` | neither empty nor 0: colours also where there is no terminal, unless NO_COLOR forbids them |
| ` + "`TERM`" + ` | dumb: no colours, and lines in place of the block that is drawn anew |
`)
	return b.String()
}

func reportsDocument() string {
	var b strings.Builder
	b.WriteString("# Reports\n\n`waza run --report FORMAT[=FILE]` writes them when a run has ended, `waza runs export RUN --format FORMAT` and\n`run.export` at any time.\n\n" +
		"| format | file | what it is |\n|---|---|---|\n")
	for _, f := range formats.Exports(nil) {
		fmt.Fprintf(&b, "| `%s` | `%s` | %s |\n", f.Name, f.File, inCell(f.Doc))
	}
	b.WriteString("\n`archive` is for exports alone.\n\n## Files\n\n" + reports.Help + `

What a report is about to replace stays as it is until the new one is whole. A report that cannot be written makes the
exit code 3; the others are written all the same. After the third Ctrl-C none is.

Each run has ` + "`junit.xml`" + ` in the directory of its record, whoever asked for the run, and also when it was cancelled or
failed; ` + "`waza grade` and `waza review`" + ` write it anew. A run whose process was killed has none: export it.

Where ` + "`.waza.yaml` has `paths.results`" + `, ` + "`waza run`" + ` writes the format ` + "`results`" + ` there, too: ` + "`TIME/MODEL.json`" + `, of several
suites ` + "`TIME/SUITE/MODEL.json`" + `.

## HTML

One file for people. It loads nothing, so it works from a disk and can be sent to somebody; a content policy lets nothing
in it act but its own program, whatever agents wrote. Tasks are filtered, searched and sorted; a task opens to its
trials, and a trial to its graders, files and transcript. ` + "`?`" + ` shows the keys. The address names what is open
(` + "`#task/ID/trial/2`" + `), so that it can be linked to.

What files have changed is told of those that the task put into the workspace: what they held before and after, as a
unified diff. ` + "`waza runs export RUN --format html --against EARLIER`" + ` tells what has changed since another run.

Transcripts and files take 50 MB at most, compressed. Beyond that, transcripts of trials that passed are left out, but
for the first of each task, and then others; the numbers of all trials are there. Of one trial, texts are shortened to
64 KiB each and 768 KiB in all, and the middle of a transcript of more than 2,000 entries is left out. The report says
where it did so; ` + "`waza runs show RUN --json`" + ` has all of it.

## JUnit XML

A testsuite per task, a testcase per trial, named ` + "`TASK (trial N)`" + ` of class ` + "`SUITE.TASK`" + `.

| verdict | in the file |
|---|---|
| passed | a testcase without more |
| failed | ` + "`<failure type=\"failed\">`" + `, with the graders that were not satisfied and what they say |
| timeout | ` + "`<failure type=\"timeout\">`" + ` |
| error | ` + "`<error>`" + `, never a failure |
| skipped, cancelled, needs_review, not finished | ` + "`<skipped>`" + ` with a message |

What an agent without skills did not do (` + "`baseline`" + `), and wrong answers to trigger tests, count in no task: they are
*skipped*, with a message. A trial that failed is a failure also where ` + "`pass_threshold`" + ` lets its task pass; the property
` + "`verdict`" + ` of the testsuite is that of the task. The testsuite ` + "`SUITE.run`" + ` has a testcase for each metric with a
threshold and, when the run did not complete, an error that says so. A run of more than 10,000 trials has a testcase per
task. Outputs are cut to 8 KiB, of trials that passed to 1 KiB.

## Results for other tools

` + "`results.json`" + ` has the members that other tools know which run these suites, under their names. The numbers are ours:
rates and scores are of the trials that count, so an error is none; timeouts are *failed*; what was skipped or cancelled,
or waits for review, is *skipped*. ` + "`bootstrap_ci`" + ` holds the intervals that waza prints elsewhere, which are no bootstraps
(see [statistics.md](statistics.md)); ` + "`is_significant`" + ` says that the interval excludes 0.

## SARIF

` + "`waza validate --format sarif`" + ` tells findings about suites, each with a rule (see [diagnostics.md](diagnostics.md)), its
place and, where one is known, a fix. As a report of a run it has a result for each trial of a task or trigger test that
failed or ran out of time, at the first line of the task's file, 5,000 at most; errors are notifications of the tool.
Paths are relative to the root of the repository.

## CSV

UTF-8, lines end with CR LF, fields are quoted as RFC 4180 says. A text that a spreadsheet would take for a formula begins
with an apostrophe.

| column | what is in it |
|---|---|
`)
	for _, c := range report.CSVColumns() {
		fmt.Fprintf(&b, "| `%s` | %s |\n", c.Name, inCell(c.Doc))
	}
	return b.String()
}

func diagnosticsDocument() string {
	var b strings.Builder
	b.WriteString(`# Findings about suites

` + "`waza validate`" + ` prints findings, ` + "`eval.validate`" + ` returns them. Each has a code, which keeps its meaning. Errors keep a suite
from running, warnings and remarks do not.

| code | when it is reported |
|---|---|
`)
	for _, c := range decode.Codes() {
		fmt.Fprintf(&b, "| `%s` | %s |\n", c.Code, inCell(c.Doc))
	}
	return b.String()
}

// inCell makes a text fit for a cell of a table: one line, and what looks like
// HTML is text.
func inCell(s string) string {
	parts := strings.Split(strings.Join(strings.Fields(s), " "), "`")
	for i := 0; i < len(parts); i += 2 { // those between are code
		parts[i] = strings.ReplaceAll(parts[i], "<", `\<`)
	}
	return strings.ReplaceAll(strings.Join(parts, "`"), "|", `\|`)
}
