package convert

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval"
)

// A suite with secrets of the machine is not written; one with other variables is.
func TestRefuseSecrets(t *testing.T) {
	t.Setenv("WAZA_TEST_API_KEY", "k3y-of-the-test")
	t.Setenv("WAZA_TEST_PIN_KEY", "7")
	t.Setenv("WAZA_TEST_MODE", "mode-of-the-test")
	for server, refused := range map[string]string{
		`{command: a, env: {A: "${WAZA_TEST_API_KEY}"}}`:                                           "WAZA_TEST_API_KEY",
		`{type: http, url: "https://example.com", headers: {A: "Bearer:${WAZA_TEST_API_KEY}"}}`:    "WAZA_TEST_API_KEY",
		`{type: http, url: "https://example.com", headers: {A: "Bearer ${WAZA_TEST_PIN_KEY}"}}`:    "WAZA_TEST_PIN_KEY",
		`{command: a, args: [k3y-of-the-test.txt], env: {A: "${WAZA_TEST_MODE}", B: "17", C: ""}}`: "",
	} {
		path := filepath.Join(t.TempDir(), "eval.yaml")
		text := "stimuli: [{name: a, prompt: a, environment: {mcpServers: {s: " + server + "}}, graders: [{type: completed}]}]\n"
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		suite, found, err := eval.Load(path, eval.Options{})
		require.NoError(t, err)
		require.Empty(t, found.Errors())
		root, err := suite.Node()
		require.NoError(t, err)
		require.NotEmpty(t, suite.Tasks[0].MCPServers)
		err = refuseSecrets(path, root)
		if refused == "" {
			require.NoError(t, err, server)
			continue
		}
		require.ErrorContains(t, err, "the value of the variable "+refused)
	}
}
