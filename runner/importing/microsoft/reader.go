package microsoft

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"reflect"
	"strconv"
	"strings"

	"waza/eval/jsonwalk"
	"waza/runner/importing/source"
	"waza/runner/record"
)

// A reader goes through a document once. Without known it gathers the parts of the document.
// With known it passes the runs to visit as trials.
type reader struct {
	dec   *json.Decoder
	visit source.Visit
	known *document // result of an earlier reader
	doc   *document
	// hashes are the hashes of runs, of runs of the baseline, and of trigger tests, which do not
	// depend on the order of members of the document. They are nil if nothing should be hashed.
	hashes *[3]hash.Hash
	runs   int
	where  []string // the member being read
	// offsets are the start offsets of the parts of where; each is behind the preceding value.
	offsets []int64
}

func newReader(from io.Reader, visit source.Visit) *reader {
	return &reader{dec: json.NewDecoder(from), visit: visit, doc: &document{}}
}

// A visitError is an error of visit.
type visitError struct{ err error }

func (e *visitError) Error() string { return e.err.Error() }

// member returns the path of the member being read.
func (r *reader) member() string { return strings.TrimPrefix(strings.Join(r.where, ""), ".") }

// in reads a part; after an error its name and offset stay in where and offsets.
func (r *reader) in(part string, read func() error) error {
	r.where, r.offsets = append(r.where, part), append(r.offsets, r.dec.InputOffset())
	err := read()
	if err == nil {
		n := len(r.where) - 1
		r.where, r.offsets = r.where[:n], r.offsets[:n]
	}
	return err
}

// array reads an array, or null.
func (r *reader) array(next func() error) error {
	return r.orNull(func() error { return jsonwalk.Array(r.dec, next) })
}

func (r *reader) read() error {
	if err := r.document(r.doc, r.known); err != nil {
		return err
	}
	if _, err := r.dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than one JSON document")
	}
	return nil
}

// document reads a document into d, or only the runs of a known document.
func (r *reader) document(d, known *document) error {
	fields := map[string]json.RawMessage{}
	seen := map[string]bool{}
	err := jsonwalk.Object(r.dec, func(name string) error {
		if seen[name] {
			return fmt.Errorf("duplicate member %q", name)
		}
		seen[name] = true
		return r.in("."+name, func() error {
			switch name {
			case "tasks":
				return r.tasks(d, known)
			case "trigger_results":
				return r.triggers(d, known)
			case "baseline_outcome":
				return r.baseline(d, known)
			}
			var raw json.RawMessage
			err := r.dec.Decode(&raw)
			if isHead[name] {
				fields[name] = raw
			}
			return err
		})
	})
	if err != nil {
		return r.foreign(err, seen, nil)
	}
	if !seen["tasks"] || !seen["eval_id"] && !seen["eval_name"] && !seen["summary"] {
		return r.foreign(errors.New("no results: eval_id, eval_name, summary or tasks are missing"), seen, fields)
	}
	b, err := json.Marshal(fields)
	if err == nil {
		err = json.Unmarshal(b, &d.head)
	}
	if err != nil {
		return err
	}
	return d.check()
}

// isHead holds the members of [head].
var isHead = map[string]bool{
	"schemaVersion": true, "eval_id": true, "skill": true, "eval_name": true, "timestamp": true, "config": true, "summary": true,
	"metrics": true, "metadata": true, "skills": true, "overall": true, "type": true, "task_id": true,
}

func (r *reader) baseline(d, known *document) error {
	d.baseline = &document{}
	var of *document
	if known != nil {
		of = known.baseline
	}
	none := true
	err := r.orNull(func() error {
		err := r.document(d.baseline, of)
		none = err != nil
		return err
	})
	if err != nil {
		return err
	}
	if none {
		d.baseline = nil
		return nil
	}
	if d.baseline.baseline != nil {
		return errors.New("a baseline cannot have a baseline")
	}
	return nil
}

// orNull reads an object or array, or null.
func (r *reader) orNull(read func() error) error {
	depth := len(r.where)
	err := read()
	if typ, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && typ.Type == nil && typ.Value == "<nil>" && len(r.where) == depth {
		return nil
	}
	return err
}

func (r *reader) tasks(d, known *document) error {
	ids := map[string]bool{}
	i := 0
	return jsonwalk.Array(r.dec, func() error {
		if i >= source.MaxTasks {
			return fmt.Errorf("has more than %d tasks", source.MaxTasks)
		}
		var of *task
		if known != nil {
			if i >= len(known.tasks) {
				return source.ErrChanged
			}
			of = known.tasks[i]
		}
		t := &task{}
		err := r.in("["+strconv.Itoa(i)+"]", func() error {
			if err := jsonwalk.Split(r.dec, "runs", func() error { return r.taskRuns(t, of, known) }, t); err != nil {
				return err
			}
			if err := t.check(); err != nil {
				return err
			}
			if ids[t.TestID] {
				return fmt.Errorf("test_id %q is not unique", t.TestID)
			}
			ids[t.TestID] = true
			if of != nil && of.index >= 0 && len(of.numbers) == 0 {
				return r.deliver(of.index, of.noTrial())
			}
			return nil
		})
		d.tasks = append(d.tasks, t)
		i++
		return err
	})
}

func (r *reader) taskRuns(t, of *task, known *document) error {
	var timeouts []int
	if of != nil {
		timeouts = known.Metadata.timeouts()[of.TestID]
	}
	part, i := hashRuns, 0
	if len(r.where) > 0 && r.where[0] == ".baseline_outcome" {
		part = hashBaseline
	}
	return r.in(".runs", func() error {
		return r.array(func() error {
			return r.in("["+strconv.Itoa(i)+"]", func() error {
				if r.runs++; r.runs > source.MaxTrials {
					return fmt.Errorf("the file has more than %d runs", source.MaxTrials)
				}
				var run run
				if err := r.decode(&run, part); err != nil {
					return err
				}
				if err := run.check(); err != nil {
					return err
				}
				t.count(&run)
				place := i
				i++
				switch {
				case of == nil:
					return nil
				case place >= len(of.numbers):
					return source.ErrChanged
				case of.index < 0:
					return nil
				}
				num := of.number(place)
				return r.deliver(of.index, run.trial(of.TestID, num, timeouts))
			})
		})
	})
}

// The hashes of a reader.
const (
	hashRuns = iota
	hashBaseline
	hashTriggers
)

// decode decodes the next value, and hashes its text.
func (r *reader) decode(v any, part int) error {
	var raw json.RawMessage
	if err := r.dec.Decode(&raw); err != nil {
		return err
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return err
	}
	if r.hashes != nil {
		return json.NewEncoder(r.hashes[part]).Encode(v)
	}
	return nil
}

func (r *reader) deliver(task int, t *record.Trial) error {
	if r.visit == nil {
		return nil
	}
	if err := r.visit(task, t); err != nil {
		return &visitError{err}
	}
	return nil
}

func (r *reader) triggers(d, known *document) error {
	i := 0
	return r.array(func() error {
		return r.in("["+strconv.Itoa(i)+"]", func() error {
			if i++; i > source.MaxTrials {
				return fmt.Errorf("has more than %d entries", source.MaxTrials)
			}
			var e triggerEntry
			if err := r.decode(&e, hashTriggers); err != nil {
				return err
			}
			if err := e.check(); err != nil {
				return err
			}
			t := d.trigger(&e)
			if known == nil {
				return nil
			}
			if len(d.triggers) > len(known.triggers) {
				return source.ErrChanged
			}
			of := known.triggers[len(d.triggers)-1]
			return r.deliver(of.index, e.trial(t.runs))
		})
	})
}

// trigger counts an entry as a further trial of the previous prompt, if the prompt is the same.
func (d *document) trigger(e *triggerEntry) *trigger {
	ref := record.TriggerRef{Prompt: e.Prompt, ShouldTrigger: e.ShouldTrigger.Value, Confidence: e.confidence()}
	if n := len(d.triggers); n > 0 && reflect.DeepEqual(d.triggers[n-1].TriggerRef, ref) {
		d.triggers[n-1].runs++
		return d.triggers[n-1]
	}
	t := &trigger{TriggerRef: ref, runs: 1}
	d.triggers = append(d.triggers, t)
	return t
}

// A foreignError means that a document is something other than results.
type foreignError struct {
	what, hint string
}

func (e *foreignError) Error() string { return e.what }

// foreign recognizes other files that the same tools write.
func (r *reader) foreign(err error, seen map[string]bool, fields map[string]json.RawMessage) error {
	if len(r.where) > 0 && seen["tasks"] {
		return err
	}
	switch {
	case seen["runId"] && seen["tasks"]:
		return &foreignError{"a result of waza, which needs no import", "waza compare accepts the file as it is"}
	case seen["timestamp"] && seen["type"] && seen["data"]:
		return &foreignError{
			"a session log: it has progress and scores, but neither runs nor outputs",
			"import the results.json of the same run, which waza run -o wrote",
		}
	case seen["skills"] && seen["overall"]:
		return &foreignError{
			"a summary of several skills without their tasks",
			"import the files that it lists: " + outputFiles(fields["skills"]),
		}
	case seen["task_id"] && seen["transcript"]:
		return &foreignError{
			"the transcript of one task without its runs and statistics",
			"import the results.json of the same run, which waza run -o wrote",
		}
	case len(seen) > 0 && !seen["tasks"] && fields != nil:
		return &foreignError{err.Error(), "waza run -o FILE.json of microsoft/waza writes one, and waza runs export --format results"}
	}
	return err
}

// outputFiles returns the files that a summary lists.
func outputFiles(skills json.RawMessage) string {
	var list []struct {
		Files []string `json:"output_files"`
	}
	if json.Unmarshal(skills, &list) != nil {
		return "output_files"
	}
	var names []string
	for _, s := range list {
		names = append(names, s.Files...)
	}
	if len(names) == 0 {
		return "output_files"
	}
	if len(names) > 20 {
		names = append(names[:20:20], "…")
	}
	return strings.Join(names, ", ")
}

// plain describes a fault in JSON without terms of Go.
func plain(err error) error {
	var typ *json.UnmarshalTypeError
	switch {
	case errors.As(err, &typ) && typ.Type == nil:
		return fmt.Errorf("got %s, expected an object or array", typ.Value)
	case errors.As(err, &typ):
		field := cmp.Or(typ.Field, "it")
		return fmt.Errorf("%s is a JSON %s: expected %s", field, typ.Value, jsonKind(typ))
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return errors.New("the file ends in the middle of the document")
	}
	return err
}

func jsonKind(e *json.UnmarshalTypeError) string {
	switch k := e.Type.Kind().String(); k {
	case "struct", "map":
		return "an object"
	case "slice":
		return "an array"
	case "bool":
		return "true or false"
	case "string":
		return "a text"
	case "int", "int64", "float64":
		return "a number"
	}
	return "something else"
}
