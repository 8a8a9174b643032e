package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The floor of a trial writes lines with the members, and nearly the size, of real ones.
func TestFloorLinesResembleRealOnes(t *testing.T) {
	t.Parallel()
	program := os.Getenv("WAZA_TEST_PROGRAM")
	if program == "" {
		t.Skip("make test builds waza and sets WAZA_TEST_PROGRAM")
	}
	b := &bench{options: options{program: program}, dir: t.TempDir()}
	suite, err := b.suite(mockSuite(someTasks, manyTrials/10, 1))
	require.NoError(t, err)
	d, err := b.daemon(t.Context())
	require.NoError(t, err)
	id, err := d.startRun(suite)
	require.NoError(t, err)
	var stream []string
	for !slices.ContainsFunc(stream, isTrialComplete) {
		line, err := d.next()
		require.NoError(t, err)
		stream = append(stream, string(line))
	}
	require.NoError(t, d.complete())
	journal, err := os.ReadFile(filepath.Join(d.state, "runs", id, "journal.jsonl"))
	require.NoError(t, err)
	_, err = d.close()
	require.NoError(t, err)

	file := filepath.Join(t.TempDir(), "floor")
	out, err := exec.Command(os.Args[0], "floor-trials", file, "1").Output()
	require.NoError(t, err)
	floor, err := os.ReadFile(file)
	require.NoError(t, err)
	for _, event := range []string{`"trial_start"`, `"trial_complete"`} {
		resembles(t, firstWith(t, string(journal), event), firstWith(t, string(floor), event))
		resembles(t, firstWith(t, strings.Join(stream, ""), event), firstWith(t, string(out), event))
	}
}

func isTrialComplete(line string) bool { return strings.Contains(line, `"trial_complete"`) }

// firstWith returns the first line with a text.
func firstWith(t *testing.T, lines, text string) string {
	t.Helper()
	for line := range strings.Lines(lines) {
		if strings.Contains(line, text) {
			return line
		}
	}
	t.Fatalf("no line has %s", text)
	return ""
}

// durations matches the members of a line that depend on the speed of the machine. Some are left out
// when they are 0.
var durations = regexp.MustCompile(`,"(durationMs|executorMs)":\d+`)

// resembles compares the members and the size of two lines, without durations.
func resembles(t *testing.T, line, floor string) {
	t.Helper()
	line, floor = durations.ReplaceAllString(line, ""), durations.ReplaceAllString(floor, "")
	require.Equal(t, members(t, line), members(t, floor))
	require.InEpsilon(t, len(line), len(floor), 0.03, "%s%s", line, floor)
}

// members returns the paths of all members of a JSON object.
func members(t *testing.T, line string) []string {
	t.Helper()
	var value any
	require.NoError(t, json.NewDecoder(bytes.NewReader([]byte(line))).Decode(&value), line)
	paths := map[string]bool{}
	var walk func(path string, value any)
	walk = func(path string, value any) {
		paths[path] = true
		switch v := value.(type) {
		case map[string]any:
			for name, member := range v {
				walk(path+"."+name, member)
			}
		case []any:
			for _, element := range v {
				walk(path+"[]", element)
			}
		}
	}
	walk("", value)
	return slices.Sorted(maps.Keys(paths))
}

// Each helper that is a floor ends without an error, and the agent answers all requests.
func TestFloors(t *testing.T) {
	t.Parallel()
	text := filepath.Join(t.TempDir(), "text")
	require.NoError(t, os.WriteFile(text, []byte(outputLine), 0o600))
	for _, args := range [][]string{{"floor-agent", "3"}, {"floor-commands"}, {"floor-output", text, "2"}} {
		out, err := exec.Command(os.Args[0], args...).CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.NotNil(t, helpers[args[0]])
	}
	require.NoFileExists(t, text+".copy")
}
