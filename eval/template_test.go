package eval_test

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/eval/template"
)

var templateTask = &eval.Task{
	ID: "t1", Name: "Task one",
	Vars:   map[string]string{"name": "Ada", "full name": "Ada L.", "braces": "{{name}}", "trial": "court", "größe": "L"},
	Inputs: eval.Inputs{Context: map[string]any{"a": map[string]any{"b": 1.5, "list": []any{1, "x"}}, "nothing": nil, "yes": true}},
}

func TestExpand(t *testing.T) {
	t.Parallel()
	vars := eval.TrialVars{RunID: "20260102-030405.678-r1", Trial: 2, Attempt: 3}
	for text, want := range map[string]string{
		"": "", "plain": "plain", "{name}": "{name}",
		"{{name}} {{ name }} {{.name}} {{ .name }}":           "Ada Ada Ada Ada",
		"{{.Vars.name}} {{vars.name}} {{inputs.name}}":        "Ada Ada Ada",
		"{{.Inputs.name}} {{full name}} {{größe}}":            "Ada Ada L. L",
		"{{context.a.b}} {{.Context.a.list}} {{context.a}}":   `1.5 [1,"x"] {"b":1.5,"list":[1,"x"]}`,
		"{{context.nothing}}|{{context.yes}}":                 "|true",
		"{{run_id}} {{.JobID}} {{.RunID}}":                    "20260102-030405.678-r1 20260102-030405.678-r1 20260102-030405.678-r1",
		"{{.Timestamp}} {{timestamp}}":                        "2026-01-02T03:04:05Z 2026-01-02T03:04:05Z",
		"{{.Iteration}} {{iteration}} {{trial}} {{.Trial}}":   "2 2 court 2",
		"{{attempt}} {{.Attempt}}":                            "3 3",
		"{{task_id}} {{.TaskID}} {{.TaskName}} {{task_name}}": "t1 t1 Task one Task one",
		"{{braces}}":              "{{name}}",
		"{{{name}}} {{{{name}}}}": "{Ada} {{Ada}}",
		"{{lost}} {{.Vars.lost}} {{context.lost}} {{vars}}":    "{{lost}} {{.Vars.lost}} {{context.lost}} {{vars}}",
		"{{ name | upper }} {{#if name}} {{- name -}} {{/if}}": "{{ name | upper }} {{#if name}} {{- name -}} {{/if}}",
		"{{ {{name}} }}": "{{ Ada }}",
		"{{":             "{{", "}}": "}}", "{{}}": "{{}}", "{{name": "{{name", "{{{": "{{{", "a{{name}}": "aAda", "{{name}}{{name}}": "AdaAda",
		"{{" + strings.Repeat("x", 5000) + "}}": "{{" + strings.Repeat("x", 5000) + "}}",
	} {
		got, err := templateTask.Expand(text, vars, eval.MaxExpandedBytes)
		require.NoError(t, err)
		require.Equal(t, want, got, text)
	}
}

// A suite of one megabyte can describe a prompt of many gigabytes. The limit applies while the
// text is built, so the memory is never used.
func TestExpandStopsAtItsLimit(t *testing.T) {
	task := &eval.Task{Vars: map[string]string{"a": strings.Repeat("x", 500<<10)},
		Inputs: eval.Inputs{Context: map[string]any{"a": map[string]any{"b": strings.Repeat("y", 500<<10)}}}}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, variable := range []string{"{{a}}", "{{context.a.b}}", "{{context.a}}"} {
		text := strings.Repeat(variable, 500<<10/len(variable))
		out, err := task.Expand(text, eval.TrialVars{}, eval.MaxExpandedBytes)
		var tooLong *template.TooLongError
		require.ErrorAs(t, err, &tooLong)
		require.Empty(t, out)
		require.ErrorContains(t, err, variable)
		require.ErrorContains(t, err, "8 MiB")
	}
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(200<<20))

	full := strings.Repeat("{{a}}", 10)
	out, err := task.Expand(full, eval.TrialVars{}, 5000<<10)
	require.NoError(t, err, "as long as the limit")
	require.Len(t, out, 5000<<10)
	_, err = task.Expand(full, eval.TrialVars{}, 5000<<10-1)
	require.Error(t, err)
}

func FuzzTemplate(f *testing.F) {
	for _, s := range []string{
		"", "{{name}}", "{{{name}}}", "{{ {{name}} }}", "{{context.a.b}}", "{{\x00}}", "}}{{", "{{{{{{}}}}}}",
		"{{.Vars.name}} {{x",
	} {
		f.Add(s)
	}
	bare := &eval.Task{}
	f.Fuzz(func(t *testing.T, text string) {
		out, err := templateTask.Expand(text, eval.TrialVars{}, 1000)
		if tooLong := (*template.TooLongError)(nil); len(out) > 1000 && strings.Contains(text, "{{") || err != nil && !errors.As(err, &tooLong) {
			t.Fatalf("%q became %d bytes, %v", text, len(out), err)
		}
		if !strings.Contains(text, "{{") && out != text {
			t.Fatalf("%q became %q", text, out)
		}
		// Unknown variables stay unchanged.
		if out, _ := bare.Expand(text, eval.TrialVars{}, eval.MaxExpandedBytes); len(out) < len(text) && !strings.Contains(text, "}}") {
			t.Fatalf("%q became %q", text, out)
		}
	})
}

func BenchmarkExpandPlain(b *testing.B) {
	text := strings.Repeat("a prompt without variables ", 100)
	for b.Loop() {
		_, _ = templateTask.Expand(text, eval.TrialVars{}, eval.MaxExpandedBytes)
	}
}
