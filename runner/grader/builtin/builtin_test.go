package builtin_test

import (
	"context"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/runner/executor"
	"waza/runner/grader"
	"waza/runner/grader/builtin"
	"waza/runner/grader/internal/gradertest"
)

// Every type of the format is registered with its options.
func TestBuiltin(t *testing.T) {
	t.Parallel()
	require.Subset(t, builtin.Graders.Names(), []string{
		"text", "code", "file", "diff", "json_schema", "program", "behavior", "action_sequence", "skill_invocation",
		"tool_constraint", "tool_calls", "trigger", "prompt", "human", "human_calibration",
	})
	for alias, name := range map[string]string{
		"regex": "text", "keyword": "text", "inline_script": "code", "file_exists": "file", "script": "program",
		"llm": "prompt",
	} {
		k, ok := builtin.Graders.Lookup(alias)
		require.True(t, ok)
		require.Equal(t, name, k.Name)
	}
	_, ok := builtin.Graders.Lookup("nothing")
	require.False(t, ok)
	for _, k := range builtin.Graders.Kinds() {
		require.NotEmpty(t, k.Summary, k.Name)
		requireKeys(t, reflect.TypeOf(k.Options()).Elem())
	}
}

// requireKeys checks that every exported field of options has a YAML key.
func requireKeys(t *testing.T, typ reflect.Type) {
	t.Helper()
	for i := range typ.NumField() {
		f := typ.Field(i)
		if f.IsExported() {
			require.NotEmpty(t, f.Tag.Get("yaml"), "%s.%s", typ, f.Name)
		}
	}
}

func TestUngradable(t *testing.T) {
	t.Parallel()
	known := grader.NewRegistry(grader.Kind{Kind: eval.Kind{Name: "known"}})
	b, err := known.Bind(&eval.Grader{Name: "g", Type: "known"}, &grader.Env{Suite: &eval.Suite{}, Workers: 1})
	require.NoError(t, err)
	_, err = b.Grade(context.Background(), gradertest.Subject(""))
	require.ErrorContains(t, err, "cannot grade with type")
	require.True(t, executor.IsPermanent(err))
	_, err = builtin.Graders.Bind(&eval.Grader{Name: "g", Type: "zzz"}, &grader.Env{Suite: &eval.Suite{}, Workers: 1})
	require.ErrorContains(t, err, `unknown type "zzz"; known types: text,`)
	_, err = builtin.Graders.Bind(&eval.Grader{Name: "g", Type: "text"}, &grader.Env{Suite: &eval.Suite{}, Workers: 1})
	require.ErrorContains(t, err, "options of type text are missing")
	gradertest.RunOptions(t, "prompt", []gradertest.OptionCase{
		{"nothing", "model: m", "checks-nothing: give prompt, rubric or statements", nil},
		{"mode", "prompt: p\nmode: both", "invalid-value: independent, pairwise", nil},
	})
}

func TestTextAliases(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"text", "regex", "keyword", "Text"} {
		k, ok := builtin.Graders.Lookup(name)
		require.True(t, ok)
		require.Equal(t, "text", k.Name)
	}
}
