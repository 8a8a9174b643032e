//go:build unix

package dialogues_test

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// workspace is the directory of the suite in recorded dialogues.
const workspace = "/workspace"

// names replaces values that differ from recording to recording.
type names struct {
	suite string   // the directory of the suite
	runs  []string // ids, in order of appearance
}

func newNames(suite string) *names { return &names{suite: suite} }

var runID = regexp.MustCompile(`\b\d{8}-\d{6}\.\d{3}-[a-z0-9]{10}\b`)

// runName returns the id of run number i in dialogues.
func runName(i int) string { return runPrefix + string(rune('1'+i)) }

const runPrefix = "20240102-030405.006-run000000"

// real replaces the names in a script by real values.
func (n *names) real(text string) string {
	text = strings.ReplaceAll(text, workspace, n.suite)
	for i, id := range n.runs {
		text = strings.ReplaceAll(text, runName(i), id)
	}
	return text
}

// simplify replaces values in a message by fixed names and numbers. It removes the member
// jsonrpc, which is always the same.
func (n *names) simplify(t *testing.T, text []byte) json.RawMessage {
	t.Helper()
	named := strings.ReplaceAll(string(text), n.suite, workspace)
	named = runID.ReplaceAllStringFunc(named, func(id string) string {
		if strings.HasPrefix(id, runPrefix) {
			return id // not a run: the script contains this name
		}
		i := slices.Index(n.runs, id)
		if i < 0 {
			i = len(n.runs)
			n.runs = append(n.runs, id)
		}
		return runName(i)
	})
	d := json.NewDecoder(strings.NewReader(named))
	d.UseNumber()
	var v map[string]any
	require.NoError(t, d.Decode(&v), "%s", text)
	require.Equal(t, "2.0", v["jsonrpc"], "%s", text)
	delete(v, "jsonrpc")
	steady(v)
	if result, ok := v["result"].(map[string]any); ok && result["serverInfo"] != nil {
		shorten(result)
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	require.NoError(t, e.Encode(v))
	return bytes.TrimSpace(out.Bytes())
}

// steady replaces durations by a fixed one.
func steady(v any) {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			if _, ok := value.(json.Number); ok && strings.HasSuffix(name, "Ms") {
				v[name] = 5
			}
			steady(value)
		}
	case []any:
		for _, value := range v {
			steady(value)
		}
	}
}

// shorten keeps the members of the result of initialize that clients read.
func shorten(result map[string]any) {
	info := result["serverInfo"].(map[string]any)
	info["version"] = "(devel)" // the version of a binary built from sources
	capabilities := result["capabilities"].(map[string]any)
	result["capabilities"] = map[string]any{"notifications": capabilities["notifications"]}
}

// landmark returns the part of a message that distinguishes it from all others of a dialogue,
// except those that are the same for a client.
func landmark(t *testing.T, text json.RawMessage) string {
	t.Helper()
	var m message
	require.NoError(t, json.Unmarshal(text, &m))
	id := m.Params
	id.Seq, id.TaskName, id.TotalTrials, id.Message, id.Error, id.KeptTrials = 0, "", 0, "", "", 0
	if m.Method == "eval.progress" {
		id.Status = ""
	}
	b, err := json.Marshal([]any{m.ID, m.Method, id})
	require.NoError(t, err)
	return string(b)
}
