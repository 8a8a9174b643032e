package sarif

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"waza/eval/decode"
	"waza/runner/record"
	"waza/runner/report/reporttest"
)

// sarifOf checks a document against the schema, and results against their rules.
func sarifOf(t *testing.T, doc string) map[string]any {
	t.Helper()
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	schema, err := compiler.Compile(filepath.Join("testdata", "sarif.schema.json"))
	require.NoError(t, err)
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(doc))
	require.NoError(t, err, doc)
	require.NoError(t, schema.Validate(value))
	// The standard's own schema is too large to keep here.
	if official := os.Getenv("WAZA_SARIF_SCHEMA"); official != "" {
		theirs, err := jsonschema.NewCompiler().Compile(official)
		require.NoError(t, err)
		require.NoError(t, theirs.Validate(value))
	}
	var log struct {
		Runs []struct {
			Tool struct {
				Driver struct {
					Rules []struct{ ID string }
				}
			}
			Results []struct {
				RuleID    string
				RuleIndex int
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(doc), &log))
	for _, r := range log.Runs[0].Results {
		require.Equal(t, r.RuleID, log.Runs[0].Tool.Driver.Rules[r.RuleIndex].ID)
	}
	return value.(map[string]any)["runs"].([]any)[0].(map[string]any)
}

func indented(t *testing.T, doc string) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, json.Indent(&b, []byte(doc), "", "  "))
	return b.String()
}

func TestSARIFOfDiagnostics(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(root, ".git"), 0o755))
	dir := filepath.Join(root, "evals")
	ds := decode.Diagnostics{
		{
			File: "a b/eval.yaml", Line: 3, Column: 5, EndColumn: 19, Severity: decode.Warning,
			Code: decode.CodeUnknownKey, Message: `unknown key "trials_per_taks" in [config]`,
			Suggestion: "trials_per_task",
		},
		{File: "../other.yaml", Severity: decode.Error, Code: decode.CodeMissingFile, Message: "no such file: \x1b[31m"},
		{File: filepath.Join(dir, "ü.yaml"), Line: 2, Column: 1, Severity: decode.Info, Code: decode.CodeNoEffect, Message: "", Suggestion: "x"},
		{File: "../../outside.yaml", Line: 1, Column: 1, Severity: decode.Error, Code: "not-a-code", Message: "m"},
	}
	var b bytes.Buffer
	require.NoError(t, Diagnostics(&b, ds, dir))
	run := sarifOf(t, b.String())
	require.Len(t, run["results"], 4)
	require.Equal(t, map[string]any{"%SRCROOT%": map[string]any{"uri": "file://" + root + "/"}}, run["originalUriBaseIds"])
	outside := run["results"].([]any)[3].(map[string]any)
	place, err := json.Marshal(outside["locations"])
	require.NoError(t, err)
	require.Contains(t, string(place), `"file://`+filepath.Dir(root)+`/outside.yaml"`)
	doc, err := json.MarshalIndent(run["results"].([]any)[:3], "", "  ")
	require.NoError(t, err)
	reporttest.Golden(t, "validate.sarif.json", string(doc)+"\n")

	b.Reset()
	require.NoError(t, Diagnostics(&b, nil, dir))
	require.Empty(t, sarifOf(t, b.String())["results"])
}

func TestSARIFOfARun(t *testing.T) {
	t.Parallel()
	c := reporttest.CannedRun()
	doc := reporttest.Written(t, Write, c)
	sarifOf(t, doc)
	reporttest.Golden(t, "run.sarif", indented(t, doc))
	c.Now.Status, c.Now.Error = record.StatusFailed, "no such program"
	require.Contains(t, reporttest.Written(t, Write, c), "the run did not complete: its status is failed: no such program")
}

func TestSARIFIsBounded(t *testing.T) {
	t.Parallel()
	c := &reporttest.Canned{
		Rec: &record.Run{RunID: "r", Suite: record.SuiteRef{Name: "s", Path: "/repo/eval.yaml"}},
		Now: record.Progress{Status: record.StatusCompleted},
	}
	long := strings.Repeat("long ", 1000)
	for i := range 60 {
		var trials []*record.Trial
		for n := range 100 {
			g := record.Grade{Name: "g", Type: "text", Weight: 1, Feedback: "short"}
			if n == 0 {
				g.Feedback = long
			}
			trials = append(trials, c.Graded(record.Failed, g))
		}
		trials = append(trials, c.Ungraded(record.Errored, "out of reach"), c.Ungraded(record.Errored, "out of reach"))
		c.AddTask(fmt.Sprint("t", i), record.RoleTask, record.Failed, trials...)
	}
	doc := reporttest.Written(t, Write, c)
	require.True(t, json.Valid([]byte(doc)))
	require.Equal(t, mostSARIFResults, strings.Count(doc, `"ruleId"`))
	require.NotContains(t, doc, long)
	require.Contains(t, doc, "1000 more results are not written")
	require.Contains(t, doc, "and 20 more errors")
}
