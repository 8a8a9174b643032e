package replay

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"waza/eval/jsonwalk"
	"waza/runner/journal"
	"waza/runner/record"
)

// resultHead is a whole result without its tasks.
type resultHead struct {
	RunID     string          `json:"runId"`
	Status    record.Status   `json:"status"`
	Error     string          `json:"error,omitempty"`
	Suite     record.SuiteRef `json:"suite"`
	StartedAt time.Time       `json:"startedAt"`
	EndedAt   *time.Time      `json:"endedAt"`
	AmendedAt *time.Time      `json:"amendedAt,omitempty"`
	Summary   *record.Summary `json:"summary"`
	Config    record.Config   `json:"config"`
	Sandbox   *record.Sandbox `json:"sandbox,omitempty"`
	Damage    *record.Damage  `json:"damage,omitempty"`
	// Imported is nil for runs that waza executed.
	Imported *record.Imported `json:"imported,omitempty"`
	// end describes the journal when result.json was written.
	end journal.ResultEnd
	// Stored reports whether some trials refer to contents beside the journal. Clients never see
	// it.
	Stored bool `json:"stored,omitempty"`
}

// taskHead is a task of a result without its trials.
type taskHead struct {
	record.TaskRef
	*record.Task
}

// ResultOptions configure how a whole result is written.
type ResultOptions struct {
	Damage *record.Damage
	// Stored keeps references of trials unresolved, as in result.json.
	Stored bool
}

// WriteResult writes a whole result as one line of JSON. It does not load the trials into
// memory, but copies their bytes from the journal.
func WriteResult(w io.Writer, run *journal.Run, rec *record.Run, st *State, o ResultOptions) error {
	r := &resultWriter{out: bufio.NewWriterSize(w, 64<<10), rec: rec, st: st}
	head := resultHead{
		RunID: rec.RunID, Status: st.Progress.Status, Error: st.Progress.Error, Suite: rec.Suite,
		StartedAt: st.Progress.StartedAt, EndedAt: st.Progress.EndedAt, AmendedAt: st.Progress.AmendedAt,
		Summary: st.Progress.Summary, Config: rec.Config, Sandbox: rec.Sandbox.After(st.Progress.Summary), Damage: o.Damage, Imported: rec.Imported, Stored: o.Stored && st.stored(),
	}
	if err := writeOpen(r.out, head, "tasks"); err != nil {
		return err
	}
	err := visitPlaces(run, st, func(f *Trials, raw []byte, trial *[]byte) (err error) {
		if *trial = raw; !o.Stored {
			*trial, err = f.whole(raw)
		}
		return err
	}, r.trial)
	if err == nil {
		err = r.upTo(len(rec.Tasks))
	}
	if err != nil {
		return err
	}
	if r.tasks > 0 {
		r.out.WriteString("]}")
	}
	r.out.WriteString("]}\n")
	return r.out.Flush()
}

// A resultWriter writes the tasks of a result in their order.
type resultWriter struct {
	out   *bufio.Writer
	rec   *record.Run
	st    *State
	tasks int  // number of tasks whose list of trials was opened
	comma bool // the list has a trial
}

// trial writes a trial of a task.
func (r *resultWriter) trial(task int, trial *[]byte) error {
	if err := r.upTo(task + 1); err != nil {
		return err
	}
	if r.comma {
		r.out.WriteByte(',')
	}
	r.comma = true
	_, err := r.out.Write(*trial)
	return err
}

// upTo closes the list of trials of the last task, and writes the next tasks up to that number of
// tasks. The list of the last of them stays open.
func (r *resultWriter) upTo(tasks int) error {
	for ; r.tasks < tasks; r.tasks++ {
		if r.tasks > 0 {
			r.out.WriteString("]},")
		}
		t := r.rec.Tasks[r.tasks]
		if c := r.st.Criteria; c != nil && r.tasks < len(c.Thresholds) {
			t.PassThreshold = &c.Thresholds[r.tasks]
		}
		if err := writeOpen(r.out, taskHead{t, r.st.Tasks[r.tasks].Result}, "trials"); err != nil {
			return err
		}
		r.comma = false
	}
	return nil
}

// copyResult copies result.json, and adds later damage of the journal.
func copyResult(w io.Writer, result io.Reader, damage *record.Damage) error {
	if damage != nil {
		note, err := json.Marshal(damage)
		if err != nil {
			return err
		}
		brace := make([]byte, 1)
		if _, err := io.ReadFull(result, brace); err != nil {
			return fmt.Errorf("result.json: %w", err)
		}
		if _, err := fmt.Fprintf(w, `{"damage":%s,`, note); err != nil {
			return err
		}
	}
	_, err := io.Copy(w, result)
	return err
}

// writeOpen writes an object except its last member, an array, which it leaves open.
func writeOpen(out *bufio.Writer, object any, array string) error {
	b, err := json.Marshal(object)
	if err != nil {
		return err
	}
	out.Write(b[:len(b)-1])
	_, err = fmt.Fprintf(out, ",%q:[", array)
	return err
}

// errTasks ends the reading of a head.
var errTasks = errors.New("the head ends here")

// readSummary reads the head of a result without its tasks, however large they are.
func readSummary(f io.Reader) (*resultHead, error) {
	dec := json.NewDecoder(f)
	fields := map[string]json.RawMessage{}
	err := jsonwalk.Object(dec, func(name string) error {
		if name == "tasks" {
			return errTasks
		}
		var raw json.RawMessage
		err := dec.Decode(&raw)
		fields[name] = raw
		return err
	})
	if err != nil && !errors.Is(err, errTasks) {
		return nil, err
	}
	b, err := json.Marshal(fields)
	if err != nil {
		return nil, err
	}
	head := new(resultHead)
	return head, json.Unmarshal(b, head)
}
