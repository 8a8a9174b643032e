//go:build linux

package acp_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/record"
	"waza/runner/sandbox"
	"waza/runner/sandbox/sandboxtest"
)

// An agent in a container works in its workspace, calls the tools of mocks, and reaches only the hosts
// that the suite lists.
func TestAgentInContainer(t *testing.T) {
	root := sandboxtest.Root(t)
	build := exec.Command("go", "build", "-o", filepath.Join(root, "bin", "agent"), "./testdata/agent")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	res := run(t, setup{sandboxes: sandbox.Of, config: "  agent: {command: [agent]}\n  sandbox: {mode: container, image: " + root + ", network: [api.example.com]}\n  trials_per_task: 2\n"}, `
mcp_mocks:
  - {name: docs, tools: {read: {responses: [{match_regex: {page: ^intro}, return: Welcome.}]}}}
graders:
  - {name: answer, type: text, config: {contains: ["Welcome.", "403 Forbidden"]}}
  - {name: files, type: file, config: {must_exist: [out.txt]}}
  - {name: refused, type: code, config: {assertions: ["[e for e in transcript if e['type'] == 'sandbox' and 'example.com' in e['text']]"]}}
tasks: [{id: a, prompt: x}]
`)
	for _, trial := range res.Tasks[0].Trials {
		require.Equal(t, record.Passed, trial.Verdict, "%s %+v", trial.Error, trial.Graders)
	}
}
