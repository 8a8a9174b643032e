package harbor_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/eval/dialect/harbor"
)

// Programs beside the suite are copied to the tests. A verdict that a program prints is a loss.
func TestWritePrograms(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"check.sh": "exit 0\n", "q.py": "print(1)\n", "eval.yaml": `
config: {mcp_servers: {s: {url: "http://localhost:1/x"}}}
tasks:
  - id: a
    inputs: {prompt: hi}
    graders:
      - {type: program, name: own, config: {command: ./check.sh, trust_workspace: true, expect: {syntax: javascript}}}
      - {type: program, name: script, config: {command: python3, args: [q.py, check.sh], trust_workspace: true, expect: {exit_code: 0}}}
      - {type: program, name: says, config: {command: make, trust_workspace: true}}
      - {type: program, name: above, config: {command: ../x.sh, trust_workspace: true, expect: {exit_code: 0}}}
      - {type: file, name: link, config: {must_exist: [l]}}
`} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700))
	}
	suite, _, err := eval.Load(filepath.Join(dir, "eval.yaml"), eval.Options{})
	require.NoError(t, err)
	d := suite.Document(filepath.Join(dir, "out"))
	list, err := harbor.Dialect().Write(d)
	require.NoError(t, err)
	texts, copies := map[string]string{}, map[string]string{}
	for _, f := range list {
		if f.Content != nil {
			texts[f.Path] = *f.Content
		} else {
			copies[f.Path] = f.Source
		}
	}
	require.Equal(t, map[string]string{"a/tests/check.sh": filepath.Join(dir, "check.sh"), "a/tests/q.py": filepath.Join(dir, "q.py")}, copies)
	require.Contains(t, texts["a/tests/test.sh"], "if '/tests/check.sh' &&\n\t'python3' '/tests/q.py' 'check.sh' &&\n\t'make' &&\n\t'../x.sh' &&\n\t"+
		"{ [ -e 'l' ] || [ -L 'l' ]; }; then")
	require.Contains(t, texts["a/task.toml"], "streamable-http")
	var lost []string
	for _, l := range d.Losses {
		if l.Verdict {
			lost = append(lost, l.String())
		}
	}
	require.Equal(t, []string{
		`not written: task a: grader "says": in Harbor, only the exit code decides, and not a verdict that the program prints`,
		`not written: task a: grader "above": its program is not in the folder of the suite; copy it to tests/`,
	}, lost)
}
