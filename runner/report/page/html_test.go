package page

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"waza/runner/compare"
	"waza/runner/journal"
	"waza/runner/record"
	"waza/runner/report"
	"waza/runner/report/reporttest"
	"waza/runner/stats"
)

// A report contains the run, its numbers and every transcript. Texts of agents are in it only as
// data.
func TestHTML(t *testing.T) {
	t.Parallel()
	r := newHTMLRunner(t)
	h := runSuite(t, r, "hostile", record.Request{})
	p, file := pageOfHandle(t, h, Options{})

	require.Equal(t, "&lt;script&gt;alert(&#39;suite&#39;)&lt;/script&gt; · waza", p.title)
	require.Equal(t, h.ID(), p.data.Run["runId"])
	require.Len(t, p.data.Tasks, 2)
	require.Equal(t, "ffee", p.data.Trials.Verdict)
	require.Equal(t, []int{1, 2, 1, 2}, p.data.Trials.Num)
	require.Equal(t, []float64{0, 0, -1, -1}, p.data.Trials.Score)
	require.Equal(t, []int64{15, 15, -1, -1}, p.data.Trials.Tokens)
	require.Equal(t, []int{1, 1, 2, 2}, p.data.Trials.Tries)
	require.Len(t, p.data.Trials.Whys, 2)
	require.Len(t, p.trials, 4)
	trial := p.trial(t, `a"><script>alert('id')</script>/trial/1`, 1)
	require.Contains(t, trial.Output, "<script>alert('output')</script>")
	require.Equal(t, "added", trial.Files[0].State)
	require.Contains(t, *trial.Files[0].Text, "</script><script>alert('content')</script>")
	require.Len(t, p.trial(t, "__proto__", 1).Attempts, 1)

	for _, wrong := range []string{"<script>alert", "<img", "<iframe", "</script><", "<b on", "<svg/onload"} {
		require.False(t, bytes.Contains(file, []byte(wrong)), wrong)
	}
	again, second := pageOfHandle(t, h, Options{})
	require.Equal(t, p.policy, again.policy)
	require.True(t, bytes.Equal(file, second), "the same record gives the same bytes")
}

// The policy names style and program of the page by their hashes and allows nothing else, and
// nothing in the page requests anything.
func TestHTMLPolicy(t *testing.T) {
	t.Parallel()
	p, file := pageOfHandle(t, hold(), Options{})
	require.Equal(t, "default-src 'none'; script-src '"+policyHash(p.script)+"'; style-src '"+policyHash(p.style)+
		"'; img-src data:; base-uri 'none'; form-action 'none'",
		p.policy)
	for _, url := range regexp.MustCompile(`https?://[^'" ]*`).FindAllString(string(file), -1) {
		require.Equal(t, "http://www.w3.org/2000/svg", url, "the name of a vocabulary, which nobody fetches")
	}
	require.NotRegexp(t, `(?i)<[^>]* on[a-z]+=|<[^>]* style=|javascript:|<iframe|<img|@import|url\(`,
		strings.Replace(string(file), p.script, "", 1))
}

// All parts of the page exist and are used, and the program never interprets texts as markup.
func TestHTMLParts(t *testing.T) {
	t.Parallel()
	entries, err := htmlWeb.ReadDir("web")
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	want := slices.Concat(htmlScripts, htmlStyles, []string{"page.html", "file.js"})
	slices.Sort(want)
	require.Equal(t, want, names)
	for _, name := range names {
		text := readAsset(name)
		require.NotContains(t, text, "\r", "%s: the hashes of the policy would be others", name)
		if filepath.Ext(name) != ".html" {
			require.Regexp(t, `^(// |/\* )[A-Z]`, text, "%s: says at its head what it is for", name)
		}
	}
	script := htmlAssets().start
	require.NotRegexp(t, `innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment|DOMParser|\beval\(|new Function|setAttributeNS`,
		script)
	require.NotContains(t, script, "</script")
	require.NotContains(t, script, "<!--")
	require.NotContains(t, htmlAssets().style, "</style")
}

// Node.js can parse the program.
func TestHTMLScriptIsJavaScript(t *testing.T) {
	t.Parallel()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed")
	}
	path := filepath.Join(t.TempDir(), "page.js")
	require.NoError(t, os.WriteFile(path, []byte(htmlAssets().start), 0o600))
	for _, file := range []string{path, filepath.Join("testdata", "browser", "report.mjs")} {
		out, err := exec.Command(node, "--check", file).CombinedOutput()
		require.NoError(t, err, "%s: %s", file, out)
	}
}

// If there is no room for all transcripts, those of passed trials are omitted first, except for
// one of each task.
func TestHTMLBudget(t *testing.T) {
	t.Parallel()
	chance := rand.New(rand.NewPCG(1, 2))
	var tasks [][]*record.Trial
	for range 4 {
		var list []*record.Trial
		for i := range 50 {
			trial := &record.Trial{Output: noise(chance, 10_000)}
			if i%10 == 7 {
				trial.Verdict = record.Failed
			}
			list = append(list, trial)
		}
		tasks = append(tasks, list)
	}
	h := hold(tasks...)
	all, whole := pageOfHandle(t, h, Options{})
	require.Len(t, all.trials, 200)
	require.Greater(t, all.chunks, 2)
	require.True(t, slices.IsSorted(all.order))

	const room = 500_000
	p, file := pageOfHandle(t, h, Options{TranscriptBytes: room})
	require.Less(t, len(file), room*4/3+150_000)
	require.Less(t, len(file), len(whole)/2)
	require.Len(t, p.data.Trials.Num, 200, "their numbers are all there")
	for at, verdict := range p.data.Trials.Verdict {
		if verdict == 'f' || at%50 == 0 {
			require.Contains(t, p.trials, at)
		}
	}
	require.Greater(t, len(p.trials), 24, "and what else there is room for")

	p, _ = pageOfHandle(t, h, Options{TranscriptBytes: 1})
	require.Empty(t, p.trials)
}

// The trials of chunks are encoded as encoding/json encodes them.
func TestHTMLEncodesTrials(t *testing.T) {
	t.Parallel()
	text := "<script>&\u2028\u2029\xff\"\\\n"
	c := new(chunker)
	for at, view := range []*TrialView{
		{Trial: &record.Trial{TaskID: "a"}},
		{
			Trial: &record.Trial{
				TaskID: text, Output: text, Graders: []record.Grade{{Name: text, Details: map[string]any{text: text}}},
				Transcript: []record.Entry{{Type: record.EntryToolCall, Text: text, Tool: &record.ToolCall{Arguments: json.RawMessage(`{"<": "\u2028"}`)}}},
				Attempts:   []record.Attempt{{Output: text}},
			},
			Files: []TrialFile{{Path: text, Text: &text}}, Incomplete: text, Cut: 7,
		},
	} {
		want, err := json.Marshal(struct {
			At int `json:"at"`
			*TrialView
		}{at, view})
		require.NoError(t, err)
		got, err := c.encode(at, view)
		require.NoError(t, err)
		require.Equal(t, string(want), string(got))
	}
}

// Compressing several chunks at once changes nothing, also where the room ends within them.
func TestHTMLChunksAtOnce(t *testing.T) {
	t.Parallel()
	chance := rand.New(rand.NewPCG(3, 4))
	var list []*record.Trial
	for i := range 24 {
		text := noise(chance, 60_000)
		if i%3 == 0 {
			text = strings.Repeat("dull ", 12_000)
		}
		list = append(list, &record.Trial{Output: text})
	}
	h := hold(list)
	d, err := gatherHTML(h, Options{})
	require.NoError(t, err)
	write := func(room int64, atOnce int) string {
		var b bytes.Buffer
		c := &chunker{out: bufio.NewWriter(&b), room: room, atOnce: atOnce}
		defer c.wait()
		require.NoError(t, d.chunk(c, h, nil, func(int) bool { return true }))
		return b.String()
	}
	sizes := map[int]bool{}
	for _, room := range []int64{1, 100_000, 400_000, 700_000, 50_000_000} {
		want := write(room, 1)
		sizes[len(want)] = true
		require.True(t, want == write(room, 4), "%d bytes", room)
	}
	require.Len(t, sizes, 5, "the room matters")
}

// noise returns text that compresses badly.
func noise(chance *rand.Rand, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(' ' + chance.IntN(90))
	}
	return string(b)
}

// Long texts are cut at a character, very long transcripts in the middle, and the report counts
// the missing part.
func TestHTMLClips(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("日本", 100_000)
	entries := make([]record.Entry, 5000)
	for i := range entries {
		entries[i] = record.Entry{Type: record.EntryMessage, Role: "assistant", Text: fmt.Sprintf("entry %d %s", i, long[:300])}
	}
	arguments, err := json.Marshal(map[string]string{"text": long})
	require.NoError(t, err)
	entries[1] = record.Entry{Type: record.EntryToolCall, Tool: &record.ToolCall{Name: "write", Arguments: arguments, Result: arguments}}
	entries[2] = record.Entry{Type: record.EntryPlan, Plan: []record.PlanStep{{Text: long}}}
	entries[3] = record.Entry{Type: record.EntryPermission, Permission: &record.Permission{Title: long, Reason: "why"}}
	h := hold([]*record.Trial{{
		Output: long, Prompt: "short", Transcript: entries,
		Graders:  []record.Grade{{Name: "g", Feedback: long, Details: map[string]string{"all": long}}},
		Attempts: []record.Attempt{{Output: long, Transcript: entries[:3]}},
	}})
	p, file := pageOfHandle(t, h, Options{})
	require.Less(t, len(file), 2<<20)
	trial := p.trial(t, "task-1", 1)
	require.Equal(t, "short", trial.Prompt)
	require.True(t, utf8.ValidString(trial.Output))
	require.True(t, strings.HasPrefix(long, trial.Output))
	require.NotEmpty(t, trial.Output)
	require.LessOrEqual(t, len(trial.Output), maxHTMLText)
	require.Len(t, trial.Transcript, maxHTMLEntries+1)
	gap := trial.Transcript[maxHTMLEntries/2]
	require.Equal(t, record.EntryDropped, gap.Type)
	require.Equal(t, "3000 entries are not in this report", gap.Text)
	require.True(t, strings.HasPrefix(trial.Transcript[maxHTMLEntries].Text, "entry 4999"))
	var shortened string
	require.NoError(t, json.Unmarshal(trial.Transcript[1].Tool.Arguments, &shortened), "a shortened value is a text")
	require.True(t, strings.HasPrefix(shortened, `{"text":"日本`))
	require.Greater(t, trial.Cut, int64(3*len(long)))
}

// The report lists files with their changes, and with a reason if it cannot show them.
func TestHTMLFiles(t *testing.T) {
	t.Parallel()
	w, err := journal.NewStore(t.TempDir()).Create("files", []byte("{}"))
	require.NoError(t, err)
	t.Cleanup(func() { w.Close() })
	blob := func(text string) *record.Blob {
		b, err := w.Blobs().Put([]byte(text))
		require.NoError(t, err)
		return &b
	}
	snap := &record.Snapshot{
		Incomplete: "the workspace contains more than 3 files",
		Entries: []record.SnapshotEntry{
			{Path: "added.txt", Type: "file", Blob: blob("new\n")},
			{Path: "binary", Type: "file", Blob: blob("\x00\xff")},
			{Path: "changed.txt", Type: "file", Blob: blob("one\nthree\n"), Given: record.GivenChanged, Before: blob("one\ntwo\n")},
			{Path: "dir", Type: "dir"},
			{Path: "gone", Type: "file", Blob: &record.Blob{Hash: "00", Size: 3, At: 1 << 40, Length: 9}},
			{Path: "large", Type: "file", Blob: blob(strings.Repeat("x", maxHTMLFile+1))},
			{Path: "link", Type: "link", Link: "added.txt"},
			{Path: "modules", Type: "dir", Omitted: "directories with this name are not recorded"},
			{Path: "same.txt", Type: "file", Blob: blob("same"), Given: record.GivenSame},
			{Path: "was-file", Type: "link", Link: "x", Given: record.GivenChanged, Before: blob("text\n")},
		},
		Removed: []record.SnapshotEntry{
			{Path: "removed.txt", Type: "file", Given: record.GivenChanged, Before: blob("gone\n")},
			{Path: "unknown.txt", Type: "file", Given: record.GivenChanged},
		},
	}
	h := hold([]*record.Trial{{Workspace: snap}})
	h.run = w.Run()
	p, _ := pageOfHandle(t, h, Options{})
	text := func(s string) *string { return &s }
	size := func(n int64) *int64 { return &n }
	want := []TrialFile{
		{Path: "changed.txt", State: "changed", Size: size(10), Diff: text("@@ -1,2 +1,2 @@\n one\n-two\n+three\n")},
		{Path: "was-file", State: "changed", Type: "link", Link: "x", Diff: text("@@ -1,1 +0,0 @@\n-text\n")},
		{Path: "added.txt", State: "added", Size: size(4), Text: text("new\n")},
		{Path: "binary", State: "added", Size: size(2), Note: "not a text"},
		{Path: "gone", State: "added", Size: size(3), Note: "its content no longer exists"},
		{Path: "large", State: "added", Size: size(maxHTMLFile + 1), Note: "too large to show here"},
		{Path: "link", State: "added", Type: "link", Link: "added.txt"},
		{Path: "modules", State: "added", Type: "dir", Note: "directories with this name are not recorded"},
		{Path: "removed.txt", State: "removed", Diff: text("@@ -1,1 +0,0 @@\n-gone\n")},
		{Path: "unknown.txt", State: "removed", Note: "its earlier content was not kept"},
		{Path: "same.txt", State: "same", Size: size(4)},
	}
	if diff := cmp.Diff(want, p.trial(t, "task-1", 1).Files); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	require.Equal(t, snap.Incomplete, p.trial(t, "task-1", 1).Incomplete)
}

// The page shows the recorded name of the baseline's side.
func TestHTMLNamesArm(t *testing.T) {
	t.Parallel()
	c := hold([]*record.Trial{{}})
	p, _ := pageOfHandle(t, c, Options{})
	require.NotContains(t, p.data.Run, "arm")
	c.Rec.Baseline = &record.BaselineRef{Against: &record.Revision{Name: "v1"}}
	p, _ = pageOfHandle(t, c, Options{})
	require.Equal(t, "with skills at v1", p.data.Run["arm"])
}

// A comparison shows the earlier results of tasks and trials, and which tasks are new or gone.
func TestHTMLAgainst(t *testing.T) {
	t.Parallel()
	failed := &record.Trial{Verdict: record.Failed}
	now := hold([]*record.Trial{{}, {}, {}}, []*record.Trial{{}})
	before := hold([]*record.Trial{failed, {Verdict: record.Errored}}, []*record.Trial{{}}, []*record.Trial{{}})
	before.Ref("task-2").ID, before.Ref("task-3").ID = "old", "older"
	rate := 0.0
	before.Ended[before.Index("task-1")] = &record.Task{Verdict: record.Failed, Trials: record.TrialCounts{Rate: record.Rate{PassRate: &rate}}}
	p, _ := pageOfHandle(t, now, Options{Against: before})
	require.Equal(t, "fe  ", p.data.Trials.Was)
	require.Equal(t, map[string]any{"verdict": "failed", "rate": 0.0, "score": nil}, p.task(t, "task-1")["was"])
	require.Equal(t, map[string]any{"new": true, "rate": nil, "score": nil}, p.task(t, "task-2")["was"])
	require.Equal(t, []any{"old", "older"}, p.data.Run["against"].(map[string]any)["gone"])

	p, _ = pageOfHandle(t, now, Options{})
	require.Empty(t, p.data.Trials.Was)
	require.NotContains(t, p.task(t, "task-1"), "was")
}

// A report is also possible for a run with little data, and absurdly large numbers do not break
// it.
func TestHTMLOfOddRuns(t *testing.T) {
	t.Parallel()
	p, _ := pageOfHandle(t, hold(), Options{})
	require.Empty(t, p.data.Tasks)

	h := hold([]*record.Trial{}, []*record.Trial{{Verdict: "unheard of", DurationMS: -1}}, []*record.Trial{})
	h.Now.Status = record.StatusInterrupted
	score := 1e-300
	second := h.Index("task-2")
	h.Done[second] = append(h.Done[second], &record.Trial{TrialNum: 7, Verdict: record.Passed, Score: &score,
		Usage:    &record.Usage{TotalTokens: 1<<63 - 1, CostUSD: 1e308},
		Attempts: []record.Attempt{{Usage: &record.Usage{TotalTokens: 1<<63 - 1, CostUSD: 1e308}}}})
	h.Ended[second] = &record.Task{Verdict: record.Passed, DurationMS: stats.SpreadOf([]float64{3}), PassK: stats.Curve(300, 200, 100)}
	p, _ = pageOfHandle(t, h, Options{})
	require.Equal(t, "?p", p.data.Trials.Verdict)
	require.Equal(t, []int{1, 7}, p.data.Trials.Num)
	require.Equal(t, []any{0.0, 2.0, 0.0}, []any{p.task(t, "task-1")["ended"], p.task(t, "task-2")["ended"], p.task(t, "task-3")["ended"]})
	require.Len(t, p.task(t, "task-2")["passK"], 8)
	require.Len(t, p.trials, 2)
}

// conclude gives a summary an undecided baseline whose interval excludes 0, and a judge who prefers
// the first output.
func conclude(s *record.Summary) {
	b := s.Baseline
	b.Outcome, b.P, b.Needed = record.OutcomeUndecided, 0.3, &record.Needed{Trials: 14, More: 12}
	b.ClassCounts = record.ClassCounts{Undecided: 1}
	b.Tasks[0].Class, b.Tasks[0].PassRate.Interval = record.Undecided, &record.Interval{Low: 0.1, High: 0.9}
	s.JudgePositions = []record.JudgePosition{{Judge: "j-1", First: 9, Second: 1, Compared: 10, P: 0.021}}
}

// The page omitted the decision on a baseline, the explanation of an interval that excludes 0
// beside "undecided", and half of the sentence about a judge.
func TestHTMLStatesConclusions(t *testing.T) {
	t.Parallel()
	c := reporttest.CannedRun()
	conclude(c.Now.Summary)
	p, _ := pageOfHandle(t, c, Options{})
	require.Equal(t, []any{
		"On these tasks, it is undecided whether the skills help (p 0.300); 12 more trials of each task would " +
			"show such a difference in 4 of 5 runs",
		compare.NoContradiction,
	}, p.data.Run["baseline"])
	require.Equal(t, []any{report.PositionText(&c.Now.Summary.JudgePositions[0])}, p.data.Run["judgePositions"])

	c.Now.Summary.Baseline.Tasks[0].PassRate.Interval = nil
	p, _ = pageOfHandle(t, c, Options{})
	require.Len(t, p.data.Run["baseline"], 1)
}

func TestRanges(t *testing.T) {
	t.Parallel()
	for want, list := range map[string][]int{"": nil, "4": {4}, "0-2": {0, 1, 2}, "0,2-3,9": {0, 2, 3, 9}} {
		require.Equal(t, want, ranges(list))
	}
}

// No text of an agent changes the elements of the page, and reading a text back returns
// the original.
func FuzzHTML(f *testing.F) {
	for _, s := range []string{
		"", "plain", "</script><script>alert(1)</script>", "<!--<script>", "\u2028\u2029\x00\x1b[2J", "\xff\xfe",
		"]]>", "&lt;&quot;", "日本\u202e",
	} {
		f.Add(s, "id")
		f.Add("text", s)
	}
	f.Fuzz(func(t *testing.T, text, id string) {
		h := hold([]*record.Trial{{Output: text, Prompt: text, Verdict: record.Failed, Error: text,
			Transcript: []record.Entry{{Type: record.EntryMessage, Text: text}},
			Graders:    []record.Grade{{Name: text, Feedback: text, Details: text}}}})
		ref := h.Ref("task-1")
		ref.ID, ref.Name, h.Rec.Suite.Name, h.Now.Error = id, text, text, text
		p, _ := pageOfHandle(t, h, Options{})
		require.Equal(t, htmlAssets().start, p.script)
		require.Equal(t, 1, p.chunks)
		want := strings.ToValidUTF8(text, "\ufffd")
		if len(text) <= maxHTMLText/8 && utf8.ValidString(text) {
			require.Equal(t, want, p.trials[0].Output)
			require.Equal(t, want, p.trials[0].Transcript[0].Text)
			require.Equal(t, want, p.data.Tasks[0]["name"])
		}
	})
}
