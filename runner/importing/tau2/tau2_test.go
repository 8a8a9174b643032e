package tau2_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/importing/internal/sourcetest"
	"waza/runner/importing/source"
	"waza/runner/importing/tau2"
)

func TestOutlines(t *testing.T) {
	t.Parallel()
	sourcetest.Outlines(t, tau2.Format, "testdata/*.json")
}

func TestRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"info":{},"tasks":[{"id":"1"}],"simulations":[]}`:                                                                    `: the file has no simulations`,
		"{\"info\":{},\"simulations\":[{\"task_id\":\"a\"},\n{\"trial\":0}]}":                                                  `:2: simulations[1]: the id of the task is missing`,
		`{"info":{},"simulations":[{"task_id":"a","trial":20000}]}`:                                                            `:1: simulations[0]: trial 20001 of task "a": the limit is 10000`,
		`[{"id":"0","description":{"purpose":"p"},"user_scenario":{"instructions":"x"},"evaluation_criteria":{"actions":[]}}]`: `: the file has tasks of tau2, and no results`,
		`{"id":"0","user_scenario":{"persona":null},"ticket":"t","initial_state":{},"evaluation_criteria":{}}`:                 `: the file has tasks of tau2, and no results`,
		`{"info":7,"simulations":[]}`:                                           `:1: info: it is a JSON number: expected an object`,
		`{"info":{},"simulations":[{"task_id":"a","reward_info":{"reward":""}}`: `:1: the file ends in the middle of the document`,
	} {
		path := filepath.Join(t.TempDir(), "results.json")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		require.True(t, tau2.Format.Recognizes(source.ReadHead(path)), text)
		_, err := tau2.Format.Open(path)
		require.ErrorContains(t, err, path+want)
	}
}

func FuzzOpen(f *testing.F) { sourcetest.Fuzz(f, tau2.Format, "testdata/results.json") }
