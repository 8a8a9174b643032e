//go:build browser && linux

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/cmd/waza/exit"
	"waza/rpc/client/chromium"
	"waza/runner/record"
	"waza/runner/record/recordtest"
	"waza/runner/runnertest"
)

// move is the model's next step: a tool call, or an answer with the text that read matches in
// the last result.
type move struct {
	tool   string
	params string
	answer string // a format for the match of read
	read   string // a pattern with one group
}

// moves are the model's steps for prompts that contain a text.
var moves = map[string][]move{
	"medium jug cost": {
		{tool: "navigate", params: `{"url":"SITE/prices.html"}`},
		{tool: "extract_tables", params: `{}`},
		{answer: "The medium jug costs %s.", read: `\["medium","([^"]*)"\]`},
	},
	"phone number": {
		{tool: "navigate", params: `{"url":"SITE/"}`},
		{tool: "click_element", params: `{"text":"About us"}`},
		{tool: "click_element", params: `{"text":"Contact","wait_for_navigation":true}`},
		{tool: "extract_text", params: `{"selector":"#phone"}`},
		{answer: "Call %s.", read: `"text":"([^"]*)"`},
	},
	"Order two large jugs": {
		{tool: "navigate", params: `{"url":"SITE/order.html","wait_until":"domcontentloaded"}`},
		{tool: "type_text", params: `{"selector":"#name","text":"Ada Lovelace"}`},
		{tool: "type_text", params: `{"selector":"#size","text":"large"}`},
		{tool: "type_text", params: `{"selector":"#count","text":"2","clear_first":true}`},
		{tool: "click_element", params: `{"text":"Send the order"}`},
		{tool: "extract_text", params: `{"selector":"#done"}`},
		{answer: "The shop says: %s", read: `"text":"([^"]*)"`},
	},
	"does the search": {
		{tool: "navigate", params: `{"url":"SITE/search.html"}`},
		{tool: "type_text", params: `{"selector":"#q","text":"jug","press_enter":true}`},
		{tool: "extract_links", params: `{"selector":"#found","filter_pattern":"jug"}`},
		{answer: "It finds %s jugs.", read: `"count":(\d+)`},
	},
	"guest book": {
		{tool: "navigate", params: `{"url":"SITE/guests.html"}`},
		{tool: "scroll", params: `{"direction":"bottom"}`},
		{tool: "scroll", params: `{"direction":"bottom","smooth":true}`},
		{tool: "highlight_element", params: `{"selector":"#last"}`},
		{tool: "get_dom", params: `{"selector":"#last"}`},
		{answer: "It says: %s", read: `(?s)<li[^>]*>\\n\s*(.*?)\\n`},
	},
	"who wrote it": {
		{tool: "extract_text", params: `{"selector":"#last"}`},
		{answer: "It is by %s.", read: `"text":"[^"]*\. (\w+)"`},
	},
}

// next returns the model's next step. It gives up when read does not match.
func next(site string, asked runnertest.Asked) runnertest.Answer {
	for prompt, moves := range moves {
		if !strings.Contains(asked.Prompt, prompt) {
			continue
		}
		n := len(asked.Results)
		if n > 0 && strings.HasPrefix(asked.Results[n-1], "error") {
			return runnertest.Answer{Text: "I could not do it: " + asked.Results[n-1], InputTokens: 100, OutputTokens: 10}
		}
		m := moves[min(n, len(moves)-1)]
		if m.tool != "" {
			return runnertest.Answer{
				Tool: m.tool, Arguments: json.RawMessage(strings.ReplaceAll(m.params, "SITE", site)), InputTokens: 100,
				OutputTokens: 10,
			}
		}
		found := regexp.MustCompile(m.read).FindStringSubmatch(asked.Results[n-1])
		if found == nil {
			return runnertest.Answer{Text: "I do not understand " + asked.Results[n-1]}
		}
		return runnertest.Answer{Text: fmt.Sprintf(m.answer, found[1]), InputTokens: 100, OutputTokens: 10}
	}
	return runnertest.Answer{Status: http.StatusTeapot}
}

// shop is the site of testdata/browsing, with a server and a browser for it.
type shop struct {
	*testing.T
	dir    string // directory of the suite; its site can be changed
	env    []string
	server *command
	agent  *command
	jobs   string
}

func openShop(t *testing.T) *shop {
	t.Helper()
	if _, err := chromium.Find(""); err != nil {
		t.Skip("skipped: chromium is not installed")
	}
	s := &shop{T: t, dir: t.TempDir(), env: environment(t, "OPENAI_API_KEY=sk-0123456789abcdef")}
	require.NoError(t, os.CopyFS(s.dir, os.DirFS("../../testdata/browsing")))
	site := httptest.NewServer(http.FileServer(http.Dir(filepath.Join(s.dir, "site"))))
	t.Cleanup(site.Close)
	s.change("eval.yaml", "http://127.0.0.1:8099", site.URL)
	model := runnertest.NewModel(t, func(a runnertest.Asked) runnertest.Answer { return next(site.URL, a) })
	config := filepath.Join(s.dir, "waza.yaml")
	require.NoError(t, os.WriteFile(config, []byte("model: {executor: openai, model: shopper-1, base_url: "+model.URL+"}\n"), 0o600))
	s.server = startWaza(t, s.env, "serve", "--config", config, "--agents", "off", "--router", "off", "--jobs",
		"127.0.0.1:0", "--browser", "127.0.0.1:0")
	address := map[string]string{}
	for len(address) < 2 {
		line := s.server.says(t, "msg=listening door=")
		found := regexp.MustCompile(`door=(\S+) address=(\S+)`).FindStringSubmatch(line)
		address[found[1]] = found[2]
	}
	s.jobs = address["jobs"]
	s.agent = startWaza(t, s.env, "browser-agent", "--connect", "ws://"+address["browser"]+"/ws", "--allow-hosts", "127.0.0.1")
	s.agent.says(t, "msg=connected")
	return s
}

// change changes a file of the suite.
func (s *shop) change(file, from, to string) {
	s.Helper()
	path := filepath.Join(s.dir, file)
	text, err := os.ReadFile(path)
	require.NoError(s, err)
	require.Contains(s, string(text), from)
	require.NoError(s, os.WriteFile(path, []byte(strings.ReplaceAll(string(text), from, to)), 0o600))
}

// run runs the suite and returns its trials by task.
func (s *shop) run(want int, args ...string) map[string]*record.Trial {
	s.Helper()
	out, code := waza(s.T, s.env, append([]string{"run", filepath.Join(s.dir, "eval.yaml"), "--json"}, args...)...)
	require.Equal(s, want, code, out)
	var res recordtest.Result
	require.NoError(s, json.Unmarshal([]byte(out), &res))
	trials := map[string]*record.Trial{}
	for _, task := range res.Tasks {
		trials[task.ID] = &task.Trials[0]
	}
	return trials
}

// toolCalls returns the tool calls of a trial in order.
func toolCalls(trial *record.Trial) (calls []*record.ToolCall) {
	for _, e := range trial.Transcript {
		if e.Tool != nil {
			calls = append(calls, e.Tool)
		}
	}
	return calls
}

// close ends the browser and the server, and checks that they leave nothing behind.
func (s *shop) close() {
	s.Helper()
	require.NoError(s, s.agent.Process.Signal(syscall.SIGTERM))
	require.Equal(s, exit.Interrupted, s.agent.exitCode(s.T))
	require.Empty(s, s.browsers(), "Chromium is gone")
	profiles, err := filepath.Glob(filepath.Join(s.extensions(), "profile-*"))
	require.NoError(s, err)
	require.Empty(s, profiles, "and so is its profile")
	require.NoError(s, s.server.Process.Signal(syscall.SIGTERM))
	require.Equal(s, exit.Passed, s.server.exitCode(s.T))
}

func (s *shop) extensions() string { return filepath.Join(variable(s.env, "WAZA_STATE"), "extensions") }

// browsers lists the processes of the browser.
func (s *shop) browsers() string {
	out, _ := exec.Command("pgrep", "-f", "--", "user-data-dir="+s.extensions()).Output()
	return string(out)
}

func TestBrowsingSuite(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	trials := s.run(exit.Passed)
	require.Len(t, trials, 5)
	for id, trial := range trials {
		require.Equal(t, record.Passed, trial.Verdict, "%s: %s", id, trial.Error)
		require.NotZero(t, trial.Usage.InputTokens, id)
	}
	form := trials["fill-a-form"]
	require.Equal(t, "The shop says: Thank you: 2 large jugs for Ada Lovelace", form.Output)
	var calls []string
	for _, call := range toolCalls(form) {
		require.Equal(t, "completed", call.Status, "%s %s", call.Name, call.Result)
		calls = append(calls, call.Name)
	}
	require.Equal(t, []string{"navigate", "type_text", "type_text", "type_text", "click_element", "extract_text"}, calls)
	require.Equal(t, "It is by Grace.", trials["scroll"].Output, "the follow-up has the page of the prompt")

	// Suites in the server's own runs reach the browser without the link.
	var started struct{ RunID string }
	c := dialRPC(t, s.jobs, strings.TrimSpace(reportAt(t, filepath.Join(variable(s.env, "WAZA_STATE"), "serve.token"))))
	b, err := json.Marshal(c.must("eval.run", map[string]any{"path": filepath.Join(s.dir, "eval.yaml"), "tasks": []string{"search"}}))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, &started))
	out, code := waza(t, s.env, "runs", "follow", started.RunID)
	require.Equal(t, exit.Passed, code, out)
	s.close()
}

// When a page changes, only the task that reads it fails.
func TestBrowsingAChangedPrice(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	s.change("site/prices.html", "12.50", "13.75")
	trials := s.run(exit.Failed, "--task", "read-a-table", "--task", "search")
	require.Equal(t, record.Passed, trials["search"].Verdict)
	failed := trials["read-a-table"]
	require.Equal(t, record.Failed, failed.Verdict)
	require.Equal(t, "The medium jug costs 13.75.", failed.Output)
	grades := map[string]bool{}
	for _, g := range failed.Graders {
		grades[g.Name] = g.Passed
	}
	require.Equal(t, map[string]bool{"price": false, "reads-the-table": true}, grades)
	s.close()
}

// When a page renames a field, the tool fails, and the transcript shows the error. If waza is
// killed, it leaves no browser, and the next waza removes the profile.
func TestBrowsingAChangedForm(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	s.change("site/order.html", `id="name"`, `id="customer"`)
	failed := s.run(exit.Failed, "--task", "fill-a-form")["fill-a-form"]
	require.Equal(t, record.Failed, failed.Verdict, failed.Error)
	require.Contains(t, failed.Output, "I could not do it: ")
	calls := toolCalls(failed)
	require.Len(t, calls, 2)
	require.Equal(t, "failed", calls[1].Status)
	require.Contains(t, string(calls[1].Result), "no element matches #name")

	require.NotEmpty(t, s.browsers())
	require.NoError(t, s.agent.Process.Kill())
	served := &served{T: t, log: &syncBuffer{}}
	served.until("the guard has killed the browser", func() bool { return s.browsers() == "" })
	profiles := func() int {
		found, err := filepath.Glob(filepath.Join(s.extensions(), "profile-*"))
		require.NoError(t, err)
		return len(found)
	}
	require.Equal(t, 1, profiles())
	_ = s.agent.Wait()
	s.agent = startWaza(t, s.env, "browser-agent", "--connect", "ws://127.0.0.1:1/ws")
	s.agent.says(t, "connection failed; retrying")
	require.Equal(t, 1, profiles(), "its own")
	s.close()
}
