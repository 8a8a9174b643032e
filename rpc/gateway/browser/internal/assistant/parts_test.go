package assistant

import (
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// The clock of a command stops while tools run, and expires once.
func TestClock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var expired atomic.Int64
		c := newClock(30*time.Second, func() { expired.Add(1) })
		time.Sleep(10 * time.Second)
		c.pause()
		c.pause()
		time.Sleep(time.Hour)
		require.Equal(t, 20*time.Second, c.remaining())
		c.resume()
		c.resume()
		time.Sleep(19 * time.Second)
		require.Equal(t, time.Second, c.remaining())
		require.Zero(t, expired.Load())
		time.Sleep(time.Second)
		synctest.Wait()
		require.EqualValues(t, 1, expired.Load())
		require.Zero(t, c.remaining())

		c = newClock(time.Second, func() { expired.Add(1) })
		c.stop()
		c.resume()
		time.Sleep(time.Minute)
		require.EqualValues(t, 1, expired.Load(), "the clock was stopped")
		c = newClock(0, func() { expired.Add(1) })
		time.Sleep(time.Hour)
		c.stop()
		require.EqualValues(t, 1, expired.Load(), "0 means no limit")
	})
}

func TestToolTime(t *testing.T) {
	t.Parallel()
	for ms, want := range map[string]time.Duration{"5000": 5 * time.Second, "1": time.Second, "70000": time.Minute, "1.5": 30 * time.Second} {
		require.Equal(t, want, toolTime(map[string]any{"timeout_ms": json.Number(ms)}, 30*time.Second), ms)
	}
	require.Equal(t, 30*time.Second, toolTime(nil, 30*time.Second))
	require.Equal(t, time.Second, toolTime(nil, time.Millisecond))
}

// The test checks the text that models get for results of tools.
func TestToolResultText(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ä", mostResult)
	for _, c := range []struct {
		tool string
		r    ToolResult
		want string
	}{
		{"navigate", ToolResult{Status: "success"}, "done"},
		{"navigate", ToolResult{Status: "success", Result: json.RawMessage("null")}, "done"},
		{"extract_text", ToolResult{Status: "success", Result: json.RawMessage(`"a\nb"`)}, "a\nb"},
		{"get_dom", ToolResult{Status: "success", Result: json.RawMessage(`{ "a": [1, 2] }`)}, `{"a":[1,2]}`},
		{
			"screenshot", ToolResult{Status: "success", Result: json.RawMessage(`"data:image/png;base64,AAAA"`)},
			"The screenshot was taken (28 bytes). It cannot be shown here.",
		},
		{"navigate", ToolResult{Status: "error", Error: "no such host"}, "error: no such host"},
		{"navigate", ToolResult{Status: "timeout"}, "error: the tool failed: timeout"},
		{
			"extract_text", ToolResult{Status: "success", Result: json.RawMessage(`"` + long + `"`)},
			long[:mostResult] + "… (shortened from 100000 bytes)",
		},
	} {
		require.Equal(t, c.want, c.r.text(c.tool))
	}
}

// Each tool has an object schema with the parameters that the extension accepts.
func TestTools(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{
		"click_element", "extract_links", "extract_tables", "extract_text", "get_dom", "highlight_element",
		"navigate", "screenshot", "scroll", "type_text",
	},
		Tools())
	all, schemas := tools()
	for tool, calls := range map[string]map[string]string{
		"navigate": {
			`{"url":"https://x","wait_until":"load","timeout_ms":1000}`: "", `{}`: "url: is missing",
			`{"url":"x","timeout_ms":1}`: "timeout_ms: minimum: got 1, want 1,000",
		},
		"click_element": {`{"text":"Buy","index":1,"wait_for_navigation":true}`: "", `{"selector":"a"}`: "", `{}`: "selector: is missing"},
		"type_text":     {`{"selector":"a","text":"","clear_first":true,"press_enter":false}`: "", `{"selector":"a"}`: "text: is missing"},
		"scroll": {
			`{"direction":"down","amount":3,"smooth":true}`: "",
			`{"direction":"left"}`:                          `direction: value must be one of 'up', 'down', 'top', 'bottom'`,
		},
		"screenshot":        {`{"selector":"a","full_page":true}`: "", `{"path":"/etc"}`: "path: is not allowed"},
		"extract_text":      {`{"selector":"a","all":true,"trim":false}`: "", `{"all":true}`: "selector: is missing"},
		"extract_links":     {`{"selector":"a","filter_pattern":"^x"}`: "", `{"selector":7}`: "selector: got number, want string"},
		"extract_tables":    {`{}`: "", `{"selector":""}`: "selector: minLength: got 0, want 1"},
		"get_dom":           {`{"selector":"a","depth":2}`: "", `{"depth":0}`: "depth: minimum: got 0, want 1"},
		"highlight_element": {`{"selector":"a","duration_ms":5}`: "", `{}`: "selector: is missing"},
	} {
		require.Equal(t, "object", all[tool].Parameters["type"])
		require.NotEmpty(t, all[tool].Description)
		for call, want := range calls {
			_, err := schemas.Check(tool, []byte(call))
			if want == "" {
				require.NoError(t, err, "%s %s", tool, call)
			} else {
				require.EqualError(t, err, want, "%s %s", tool, call)
			}
		}
	}
}

func TestSanitize(t *testing.T) {
	t.Parallel()
	require.Equal(t, "a\tb\nc ä", Sanitize("a\tb\x00\n\x1bc\u2028 ä\x7f"))
}
