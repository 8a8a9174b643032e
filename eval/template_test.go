package eval_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval"
)

var templateTask = &eval.Task{
	ID: "t1", Name: "Task one",
	Vars:   map[string]string{"name": "Ada", "full name": "Ada L.", "braces": "{{name}}", "trial": "court", "größe": "L"},
	Inputs: eval.Inputs{Context: map[string]any{"a": map[string]any{"b": 1.5, "list": []any{1, "x"}}, "nothing": nil, "yes": true}},
}

func TestExpand(t *testing.T) {
	t.Parallel()
	vars := eval.TrialVars{RunID: "r1", Trial: 2, Attempt: 3}
	for text, want := range map[string]string{
		"": "", "plain": "plain", "{name}": "{name}",
		"{{name}} {{ name }} {{.name}} {{ .name }}":           "Ada Ada Ada Ada",
		"{{.Vars.name}} {{vars.name}} {{inputs.name}}":        "Ada Ada Ada",
		"{{.Inputs.name}} {{full name}} {{größe}}":            "Ada Ada L. L",
		"{{context.a.b}} {{.Context.a.list}} {{context.a}}":   `1.5 [1,"x"] {"b":1.5,"list":[1,"x"]}`,
		"{{context.nothing}}|{{context.yes}}":                 "|true",
		"{{run_id}} {{.JobID}} {{.RunID}}":                    "r1 r1 r1",
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
		require.Equal(t, want, templateTask.Expand(text, vars), text)
	}
}

func FuzzTemplate(f *testing.F) {
	for _, s := range []string{"", "{{name}}", "{{{name}}}", "{{ {{name}} }}", "{{context.a.b}}", "{{\x00}}", "}}{{", "{{{{{{}}}}}}", "{{.Vars.name}} {{x"} {
		f.Add(s)
	}
	bare := &eval.Task{}
	f.Fuzz(func(t *testing.T, text string) {
		out := templateTask.Expand(text, eval.TrialVars{})
		if !strings.Contains(text, "{{") && out != text {
			t.Fatalf("%q became %q", text, out)
		}
		// What no variable stands for is left as it is.
		if out := bare.Expand(text, eval.TrialVars{}); len(out) < len(text) && !strings.Contains(text, "}}") {
			t.Fatalf("%q became %q", text, out)
		}
	})
}

func BenchmarkExpandPlain(b *testing.B) {
	text := strings.Repeat("a prompt without variables ", 100)
	for b.Loop() {
		templateTask.Expand(text, eval.TrialVars{})
	}
}
