package compare

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"waza/eval/files"
	"waza/eval/jsonwalk"
	"waza/eval/text"
	"waza/runner/importing"
	"waza/runner/importing/source"
	"waza/runner/record"
	"waza/runner/replay"
)

// A ResultFileError means that a file cannot be compared.
type ResultFileError struct {
	Path string
	// Line counts from 1; 0 means the file as a whole.
	Line int
	Err  error
	// Suites names the suites if the file holds results of several.
	Suites []string
	// Hint suggests what to do; it can be empty.
	Hint string
}

func (e *ResultFileError) Error() string {
	return source.Place(e.Path, e.Line) + ": " + e.Err.Error()
}

func (e *ResultFileError) Unwrap() error { return e.Err }

// FromFile returns a result that waza run --output or --json wrote as a source. If the file
// holds several results, suite selects one by the suite's name or file. The error is a
// [*ResultFileError].
//
// A results.json of microsoft/waza, or of the format results, holds one result.
func FromFile(path, suite string) (Source, error) {
	if importing.Recognizes(path) {
		return fromResults(path, suite)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, &ResultFileError{Path: path, Err: files.WithoutPath(err)}
	}
	defer f.Close()
	return FromReader(f, path, suite)
}

// FromReader is [FromFile] for the text of results of waza. path names it in errors.
func FromReader(r io.Reader, path, suite string) (Source, error) {
	sides, err := readResults(r)
	if err != nil {
		return nil, &ResultFileError{Path: path, Err: err}
	}
	var found []*side
	var names []string
	for _, s := range sides {
		s.head.File = path
		if ref := s.head.Suite; suite == "" || suite == ref.Name || suite == ref.Path {
			found = append(found, s)
		}
		names = append(names, s.head.Suite.Name)
	}
	switch {
	case len(found) == 1:
		return fileSource{found[0]}, nil
	case len(found) == 0:
		return nil, &ResultFileError{Path: path, Err: fmt.Errorf("contains no result of the suite %q", suite), Suites: names}
	}
	return nil, &ResultFileError{Path: path, Err: fmt.Errorf("contains %d results, of %s", len(found), text.Names(names)), Suites: names}
}

// fromResults returns a results.json as a source.
func fromResults(path, suite string) (Source, error) {
	f, err := importing.Open(path)
	if bad, ok := errors.AsType[*source.Error](err); ok {
		return nil, &ResultFileError{Path: path, Line: bad.Line, Err: bad.Inside(), Hint: bad.Hint}
	}
	if err != nil {
		return nil, &ResultFileError{Path: path, Err: err}
	}
	if suite != "" && suite != f.Run.Suite.Name {
		return nil, &ResultFileError{Path: path, Err: fmt.Errorf("contains no result of the suite %q", suite), Suites: []string{f.Run.Suite.Name}}
	}
	s := newSide(f.Run, nil)
	s.head.File, s.head.Status = path, f.Status
	s.head.Name = cmp.Or(f.Run.Imported.EvalID, s.head.Name)
	for i, res := range f.Tasks {
		s.setVerdict(i, res)
	}
	err = f.Read(func(task int, t *record.Trial) error {
		s.add(task, comparedOf(t))
		return nil
	})
	if err != nil {
		return nil, &ResultFileError{Path: path, Err: err}
	}
	return fileSource{s.finish()}, nil
}

type fileSource struct{ s *side }

func (f fileSource) side(*reading) *side { return f.s }

// A fileResult is the head of a result in a file.
type fileResult struct {
	RunID     string          `json:"runId"`
	Status    record.Status   `json:"status"`
	Error     string          `json:"error"`
	Suite     record.SuiteRef `json:"suite"`
	StartedAt time.Time       `json:"startedAt"`
	AmendedAt *time.Time      `json:"amendedAt"`
	Damage    *record.Damage  `json:"damage"`
	Config    record.Config   `json:"config"`
	Sandbox   *record.Sandbox `json:"sandbox"`
	Tasks     []fileTask      `json:"-"`
}

type fileTask struct {
	record.TaskRef
	Verdict record.Verdict     `json:"verdict"`
	Decided *record.Decided    `json:"decided"`
	Tools   *record.ToolScores `json:"tools"`
	trials  []comparedTrial
	fault   error // the first fault of a trial
}

// readResults reads results, one JSON document each. It omits refused suites, and returns an
// error if there is nothing else.
func readResults(r io.Reader) ([]*side, error) {
	dec := json.NewDecoder(r)
	var sides []*side
	var refused string
	for {
		res, err := decodeResult(dec)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("result %d: %w", len(sides)+1, plainJSON(err))
		}
		if res.RunID == "" && res.Error != "" {
			refused = res.Error
			continue
		}
		s, err := res.side()
		if err != nil {
			return nil, fmt.Errorf("result %d: %w", len(sides)+1, err)
		}
		sides = append(sides, s)
	}
	switch {
	case len(sides) > 0:
		return sides, nil
	case refused != "":
		return nil, fmt.Errorf("contains no result because the suite was not run: %s", refused)
	}
	return nil, errors.New("contains no result")
}

// decodeResult reads the next result, one trial at a time, because transcripts can be large. It
// returns io.EOF if there are no more results.
func decodeResult(dec *json.Decoder) (*fileResult, error) {
	res := new(fileResult)
	err := jsonwalk.Split(dec, "tasks", func() error { return res.decodeTasks(dec) }, res)
	return res, err
}

func (r *fileResult) decodeTasks(dec *json.Decoder) error {
	r.Tasks = []fileTask{}
	err := jsonwalk.Array(dec, func() error {
		var t fileTask
		err := jsonwalk.Split(dec, "trials", func() error { return t.decodeTrials(dec) }, &t)
		r.Tasks = append(r.Tasks, t)
		return err
	})
	var typ *json.UnmarshalTypeError
	if errors.As(err, &typ) && typ.Type == nil && typ.Field == "" { // not an array
		typ.Field = "tasks"
	}
	return err
}

func (t *fileTask) decodeTrials(dec *json.Decoder) error {
	var raw json.RawMessage // its memory is used again
	err := jsonwalk.Array(dec, func() error {
		if err := dec.Decode(&raw); err != nil {
			return err
		}
		var lean replay.LeanTrial
		if err := lean.Lift(raw); err != nil {
			return err
		}
		if err := checkTrial(&lean.Trial); err != nil && t.fault == nil {
			t.fault = fmt.Errorf("trial %d: %w", len(t.trials)+1, err)
		}
		t.trials = append(t.trials, comparedOf(&lean.Trial))
		return nil
	})
	if typ, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		if typ.Value == "<nil>" && typ.Type == nil { // null is an empty array
			return nil
		}
		typ.Field = strings.TrimSuffix("trials."+typ.Field, ".")
	}
	return err
}

// plainJSON describes a fault in JSON without terms of Go.
func plainJSON(err error) error {
	if typ, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("%s has an unexpected value: %s", cmp.Or(memberOf(typ), "the document"), typ.Value)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || strings.HasPrefix(err.Error(), "unexpected end") {
		return errors.New("unexpected end of file")
	}
	return fmt.Errorf("not JSON: %s", strings.TrimPrefix(err.Error(), "json: "))
}

// memberOf returns the path of a member without the names of embedded Go types, which start with
// an upper case letter.
func memberOf(e *json.UnmarshalTypeError) string {
	parts := slices.DeleteFunc(strings.Split(e.Field, "."), func(s string) bool { return s != "" && s[0] >= 'A' && s[0] <= 'Z' })
	return strings.Join(parts, ".")
}

// side converts the result, and checks the values, which a person may have edited.
func (r *fileResult) side() (*side, error) {
	if r.RunID == "" || r.Tasks == nil {
		return nil, errors.New("not the result of a run: it has no runId or no tasks")
	}
	if r.Status == "" {
		r.Status = record.StatusCompleted
	} else if !r.Status.Known() {
		return nil, fmt.Errorf("unknown status %q", r.Status)
	}
	rec := &record.Run{RunID: r.RunID, CreatedAt: r.StartedAt, Suite: r.Suite, Config: r.Config, Sandbox: r.Sandbox}
	for _, t := range r.Tasks {
		rec.Tasks = append(rec.Tasks, t.TaskRef)
	}
	s := newSide(rec, nil)
	s.amended, s.head.Status, s.head.Damage = r.AmendedAt != nil, r.Status, r.Damage.OrNil()
	seen := map[string]bool{}
	for i := range r.Tasks {
		t := &r.Tasks[i]
		if t.ID == "" || seen[t.ID] {
			return nil, fmt.Errorf("task %d must have a unique id, got %q", i+1, t.ID)
		}
		seen[t.ID] = true
		if t.Verdict != "" {
			s.setVerdict(i, &record.Task{Verdict: t.Verdict, Decided: t.Decided, Tools: t.Tools})
		}
		if t.fault != nil {
			return nil, fmt.Errorf("task %s: %w", t.ID, t.fault)
		}
		for _, trial := range t.trials {
			s.add(i, trial)
		}
		t.trials = nil
	}
	return s.finish(), nil
}

func checkTrial(t *record.Trial) error {
	switch {
	case !t.Verdict.Known():
		return fmt.Errorf("unknown verdict %q", t.Verdict)
	case t.Score != nil && (*t.Score < 0 || *t.Score > 1):
		return fmt.Errorf("the score must be between 0 and 1, got %g", *t.Score)
	case t.DurationMS < 0:
		return fmt.Errorf("the duration must not be negative, got %d ms", t.DurationMS)
	case t.Usage != nil && (t.Usage.Total() < 0 || t.Usage.CostUSD < 0):
		return errors.New("the usage must not be negative")
	case t.Spent != nil && t.Spent.Agent != nil && (t.Spent.Agent.Total() < 0 || t.Spent.Agent.CostUSD < 0):
		return errors.New("the spent usage must not be negative")
	}
	return nil
}
