package page

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/compare"
	"waza/runner/journal"
	"waza/runner/record"
	"waza/runner/record/recordtest"
	"waza/runner/report"
	"waza/runner/report/reporttest"
)

// A readPage is a parsed report.
type readPage struct {
	policy, title, style, script string
	data                         struct {
		Run    map[string]any   `json:"run"`
		Tasks  []map[string]any `json:"tasks"`
		Trials struct {
			Num          []int
			Verdict, Was string
			Score, Cost  []float64
			MS, Tokens   []int64
			Tries, Why   []int
			Whys         []string
		} `json:"trials"`
	}
	// trials holds the trials of the chunks, by their index in the columns.
	trials map[int]readTrial
	chunks int
	order  []int // of the trials in the file
}

type readTrial struct {
	At int
	record.Trial
	Files      []TrialFile
	Incomplete string
	Cut        int64
}

var (
	reTrials = regexp.MustCompile(`^ type="application/octet-stream" data-trials="([0-9,-]+)"$`)
)

func pageOfHandle(t testing.TB, h record.Handle, o Options) (readPage, []byte) {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, WriteWith(&b, h, o))
	return readHTML(t, b.Bytes()), b.Bytes()
}

// task returns the page's data of a task.
func (p *readPage) task(t testing.TB, id string) map[string]any {
	t.Helper()
	return *recordtest.One(t, "task", id, p.data.Tasks, func(task map[string]any) string { return task["id"].(string) })
}

// trial returns the chunks' data of a trial.
func (p *readPage) trial(t testing.TB, task string, num int) *readTrial {
	t.Helper()
	type key struct {
		task string
		num  int
	}
	return recordtest.One(t, "trial", key{task, num}, slices.Collect(maps.Values(p.trials)),
		func(trial readTrial) key { return key{trial.TaskID, trial.TrialNum} })
}

// readHTML parses a report like a browser: the content of a script element ends with the first
// end tag, even in a foreign text.
func readHTML(t testing.TB, file []byte) readPage {
	t.Helper()
	p := readPage{trials: map[int]readTrial{}}
	text := string(file)
	p.policy, _ = between(text, `http-equiv="Content-Security-Policy" content="`, `"`)
	p.title, _ = between(text, "<title>", "</title>")
	p.style, _ = between(text, "<style>", "</style>")
	rest := text
	for i := 0; strings.Contains(rest, "<script"); i++ {
		var element string
		element, rest = between(rest, "<script", "</script>")
		attributes, content, _ := strings.Cut(element, ">")
		switch i {
		case 0:
			require.Equal(t, ` type="application/json" id="run"`, attributes)
			dec := json.NewDecoder(strings.NewReader(content))
			require.NoError(t, dec.Decode(&p.data))
			_, err := dec.Token()
			require.ErrorIs(t, err, io.EOF)
			require.False(t, strings.Contains(content, "<"))
		case 1:
			require.Empty(t, attributes)
			p.script = content
		default:
			chunk := reTrials.FindStringSubmatch(attributes)
			require.NotNil(t, chunk, "a script that does not belong here: %q", attributes)
			p.readChunk(t, chunk[1], content)
		}
	}
	require.True(t, strings.HasSuffix(text, "</body>\n</html>\n"))
	return p
}

// between returns the text between two texts, and the rest after them.
func between(text, begin, end string) (inner, rest string) {
	_, text, _ = strings.Cut(text, begin)
	inner, rest, _ = strings.Cut(text, end)
	return inner, rest
}

func (p *readPage) readChunk(t testing.TB, named, packed string) {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(packed)
	require.NoError(t, err)
	z, err := gzip.NewReader(bytes.NewReader(b))
	require.NoError(t, err)
	var trials []readTrial
	require.NoError(t, json.NewDecoder(z).Decode(&trials))
	var want, got []int
	for _, r := range strings.Split(named, ",") {
		first, last, ok := strings.Cut(r, "-")
		from, err := strconv.Atoi(first)
		require.NoError(t, err)
		to := from
		if ok {
			to, err = strconv.Atoi(last)
			require.NoError(t, err)
		}
		for ; from <= to; from++ {
			want = append(want, from)
		}
	}
	for _, trial := range trials {
		got = append(got, trial.At)
		p.trials[trial.At] = trial
	}
	require.Equal(t, want, got)
	p.order = append(p.order, got...)
	p.chunks++
}

// A comparison has the sentences and tables that waza compare prints.
func TestAgainstSaysWhatTheTerminalSays(t *testing.T) {
	t.Parallel()
	r := newHTMLRunner(t)
	before, now := runSuite(t, r, "demo", record.Request{Model: "demo-0"}), runSuite(t, r, "demo", record.Request{})
	p, _ := pageOfHandle(t, now, Options{Against: before})

	c, err := compare.Compare(t.Context(), []compare.Source{compare.FromRun(before), compare.FromRun(now)}, compare.Options{})
	require.NoError(t, err)
	var terminal strings.Builder
	require.NoError(t, report.Comparison(&terminal, c, report.Options{}))
	against := p.data.Run["against"].(map[string]any)
	lines := 0
	for _, s := range against["sections"].([]any) {
		list, _ := s.(map[string]any)["lines"].([]any)
		for _, line := range list {
			lines++
			require.Contains(t, terminal.String(), line.(string)+"\n")
		}
	}
	require.Greater(t, lines, 2)
	require.Contains(t, terminal.String(), "Verdict: on ")
}

// A held is a canned run that can have files. Visitors of its trials own them.
type held struct {
	*reporttest.Canned
	run *journal.Run // nil: no files
}

func (h *held) Chosen(choose func(task, num int) bool, visit func(int, *record.Trial) error) error {
	return h.Trials(func(task int, t *record.Trial) error {
		if !choose(task, t.TrialNum) {
			return nil
		}
		return visit(task, t)
	})
}

func (h *held) Trials(visit func(int, *record.Trial) error) error {
	return h.Canned.Trials(func(task int, t *record.Trial) error {
		b, err := json.Marshal(t)
		if err != nil {
			return err
		}
		own := new(record.Trial)
		if err := json.Unmarshal(b, own); err != nil {
			return err
		}
		return visit(task, own)
	})
}

func (h *held) Blobs() (record.Blobs, error) {
	if h.run == nil {
		return h.Canned.Blobs()
	}
	return h.run.Blobs()
}

// hold returns a run with a task for each list of trials.
func hold(trials ...[]*record.Trial) *held {
	h := &held{Canned: &reporttest.Canned{
		Rec:  &record.Run{RunID: "held", Suite: record.SuiteRef{Name: "held"}},
		Now:  record.Progress{Status: record.StatusCompleted},
		Done: trials, Ended: make([]*record.Task, len(trials)),
	}}
	for i, list := range trials {
		id := fmt.Sprintf("task-%d", i+1)
		h.Rec.Tasks = append(h.Rec.Tasks, record.TaskRef{ID: id, Name: id, Trials: len(list), First: 1})
		for j, t := range list {
			t.TaskID, t.TrialNum = id, j+1
			if t.Verdict == "" {
				t.Verdict = record.Passed
			}
		}
	}
	return h
}
