package atif

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"waza/runner/record"
	"waza/runner/report/reporttest"
)

// check checks a document against the schema, and for what the schema cannot express.
func check(t *testing.T, doc string) trajectory {
	t.Helper()
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	schema, err := compiler.Compile(filepath.Join("testdata", "atif.schema.json"))
	require.NoError(t, err)
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(doc))
	require.NoError(t, err, doc)
	require.NoError(t, schema.Validate(value), doc)
	var all trajectory
	require.NoError(t, json.Unmarshal([]byte(doc), &all))
	ids := map[string]bool{}
	for i, s := range all.Steps {
		require.Equal(t, i+1, s.ID)
		own := map[string]bool{}
		for _, c := range s.ToolCalls {
			require.False(t, ids[c.ID], c.ID)
			ids[c.ID], own[c.ID] = true, true
		}
		if s.Observed != nil {
			for _, r := range s.Observed.Results {
				require.True(t, own[r.CallID], "results are in the step of their call")
			}
		}
	}
	return all
}

// The schema refuses what the format forbids.
func TestSchemaIsStrict(t *testing.T) {
	t.Parallel()
	schema, err := jsonschema.NewCompiler().Compile(filepath.Join("testdata", "atif.schema.json"))
	require.NoError(t, err)
	good := `{"schema_version":"ATIF-v1.7","agent":{"name":"a","version":"1"},"steps":[{"step_id":1,"source":"agent","message":"m","reasoning_content":"r"}]}`
	valid := func(doc string) error {
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(doc))
		require.NoError(t, err)
		return schema.Validate(value)
	}
	require.NoError(t, valid(good))
	for old, new := range map[string]string{
		`"agent":{`: `"more":1,"agent":{`, `"version":"1"`: `"release":"1"`, `ATIF-v1.7`: `ATIF-v2.0`, `"source":"agent"`: `"source":"user"`,
		`"message":"m",`: ``, `"step_id":1`: `"step_id":0`,
	} {
		require.Error(t, valid(strings.Replace(good, old, new, 1)), new)
	}
	require.Error(t, valid(`{"schema_version":"ATIF-v1.7","agent":{"name":"a","version":"1"},"steps":[]}`))
}

func TestGolden(t *testing.T) {
	t.Parallel()
	all := reporttest.Files(t, Write, reporttest.CannedRun())
	for _, doc := range all {
		check(t, doc)
	}
	reporttest.Golden(t, "trial.json", all["ok/trial-2.json"])
	require.Contains(t, all, "failed--b--x---b/trial-1.json")
}

// stepsFor returns the checked steps of a trial in short form.
func stepsFor(t *testing.T, trial *record.Trial) []string {
	t.Helper()
	c := &reporttest.Canned{Rec: &record.Run{RunID: "r"}}
	c.AddTask("a", record.RoleTask, record.Passed, trial)
	var short []string
	for _, s := range check(t, reporttest.Files(t, Write, c)["a/trial-1.json"]).Steps {
		line := s.Source + ":" + s.Message
		if s.Reasoning != "" {
			line += " (" + s.Reasoning + ")"
		}
		for _, call := range s.ToolCalls {
			args, err := json.Marshal(call.Arguments)
			require.NoError(t, err)
			line += " " + call.ID + "=" + call.Name + string(args)
		}
		if s.Observed != nil {
			line += " -> " + s.Observed.Results[0].Content
		}
		short = append(short, line)
	}
	return short
}

func TestStepsOfTranscripts(t *testing.T) {
	t.Parallel()
	said := func(role, text string) record.Entry {
		return record.Entry{Type: record.EntryMessage, Role: role, Text: text}
	}
	thought := record.Entry{Type: record.EntryThought, Text: "hm"}
	called := func(id, name, args, result string) record.Entry {
		return record.Entry{Type: record.EntryToolCall, Tool: &record.ToolCall{
			ID: id, Name: name, Arguments: json.RawMessage(args), Result: json.RawMessage(result),
		}}
	}
	for name, c := range map[string]struct {
		trial record.Trial
		want  []string
	}{
		"nothing":       {record.Trial{}, []string{"user:"}},
		"no transcript": {record.Trial{Prompt: "p", Output: "o"}, []string{"user:p", "agent:o"}},
		"several turns": {
			record.Trial{Prompt: "p", Output: "b", Transcript: []record.Entry{said("user", "p"), said("assistant", "a"), said("user", "q"), said("assistant", "b")}},
			[]string{"user:p", "agent:a", "user:q", "agent:b"},
		},
		"the prompt is missing": {
			record.Trial{Prompt: "p", Output: "a", Transcript: []record.Entry{said("assistant", "a")}}, []string{"user:p", "agent:a"},
		},
		"calls": {
			record.Trial{Prompt: "p", Transcript: []record.Entry{
				said("user", "p"), said("assistant", "I look"), called("c", "ls", `{"x":1}`, `"a.txt"`), called("c", "ls", `[1]`, ``),
				called("", "", `nonsense`, `{"e":1}`), called("call-2", "x", `null`, `null`),
			}},
			[]string{"user:p", `agent:I look c=ls{"x":1} -> a.txt`, `agent: call-2=ls{"value":[1]}`, `agent: call-3=unknown{} -> {"e":1}`, `agent: call-4=x{} -> `},
		},
		"thoughts": {
			record.Trial{Prompt: "p", Transcript: []record.Entry{
				said("user", "p"), thought, thought, said("assistant", "a"), thought, called("c", "ls", `{}`, ``), thought, said("user", "q"), thought,
			}},
			[]string{"user:p", "agent:a (hm\n\nhm)", "agent: (hm) c=ls{}", "agent: (hm)", "user:q", "agent: (hm)"},
		},
		"other entries": {
			record.Trial{Transcript: []record.Entry{
				{Type: record.EntrySkill, Text: "pdf"}, {Type: record.EntryStop, Text: "end_turn"}, {Type: record.EntryError, Text: "oops"},
				{Type: record.EntryPermission, Permission: &record.Permission{Title: "write", Reason: "outside"}},
				{Type: record.EntryPlan, Plan: []record.PlanStep{{Text: "do", Status: "done"}}},
			}},
			[]string{"system:skill: pdf", "system:error: oops", "system:permission: write: refused outside", "system:plan: - do (done)"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, stepsFor(t, &c.trial))
		})
	}
}

// Numbers that nobody knows are left out.
func TestMetrics(t *testing.T) {
	t.Parallel()
	c := &reporttest.Canned{Rec: &record.Run{RunID: "r"}}
	c.AddTask("a", record.RoleTask, record.Passed,
		&record.Trial{Usage: &record.Usage{InputTokens: 5, OutputTokens: 2, CostUSD: 0.5}}, &record.Trial{})
	all := reporttest.Files(t, Write, c)
	first, second := check(t, all["a/trial-1.json"]).FinalMetrics, check(t, all["a/trial-2.json"]).FinalMetrics
	require.EqualValues(t, 5, *first.PromptTokens)
	require.EqualValues(t, 2, *first.CompletionTokens)
	require.InDelta(t, 0.5, *first.CostUSD, 0)
	require.Equal(t, &finalMetrics{TotalSteps: 1}, second)
}

// Any texts and calls of agents give a valid trajectory.
func FuzzSteps(f *testing.F) {
	f.Add("p", "m", "id", "name", `{"a":1}`, `"r"`)
	f.Add("", "\xff", "", "", `[`, `{"a":"##[group]"}`)
	f.Fuzz(func(t *testing.T, prompt, text, id, name, args, result string) {
		call := record.Entry{Type: record.EntryToolCall, Tool: &record.ToolCall{
			ID: id, Name: name, Arguments: json.RawMessage(args), Result: json.RawMessage(result),
		}}
		stepsFor(t, &record.Trial{Prompt: prompt, Transcript: []record.Entry{
			{Type: record.EntryThought, Text: text}, call, {Type: record.EntryMessage, Role: "assistant", Text: text}, call,
		}})
	})
}
