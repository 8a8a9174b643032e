package replay

import (
	"bytes"
	"encoding/json"
	"errors"
	"hash/maphash"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"waza/eval/jsonwalk"
	"waza/runner/journal"
	"waza/runner/record"
)

// The journal is the record of a run. run.json and result.json repeat parts of it, so that they
// can be read quickly. Each of the three files shows whether it is damaged. All readers of a run
// use these rules:
//
//	run.json     damaged ─► use the record in run_start or run_resumed
//	result.json  damaged ─► create it again from the journal
//	journal      damaged ─► use the other lines, and the trials in result.json
//
// All damage is reported as [record.Damage], even when nothing is lost.

// ReadRecord reads run.json or, when it is damaged, the record in the journal. When both are
// lost, the record contains only what the run's id contains. broken describes the damage of
// run.json. The error is [record.ErrRunNotFound].
func ReadRecord(run *journal.Run) (rec *record.Run, broken *record.DamagedFile, err error) {
	b, err := run.Request()
	if err == nil {
		rec = new(record.Run)
		if err = json.Unmarshal(b, rec); err == nil {
			return rec, nil, nil
		}
	}
	if errors.Is(err, record.ErrRunNotFound) {
		return nil, nil, err
	}
	broken = &record.DamagedFile{File: "run.json", Error: FileFault(err)}
	id := filepath.Base(run.Dir())
	if rec, err = recordInJournal(run); err == nil && rec != nil {
		broken.Restored = true
		rec.RunID = id
		return rec, broken, nil
	}
	return &record.Run{RunID: id, CreatedAt: dateOf(id)}, broken, nil
}

// FileFault describes the damage of a file, without its name.
func FileFault(err error) string {
	var file *journal.FileError
	var path *os.PathError
	switch {
	case errors.As(err, &file):
		err = file.Err
	case errors.Is(err, os.ErrNotExist):
		return "missing file"
	case errors.As(err, &path):
		err = path.Err
	}
	return err.Error()
}

// recordInJournal returns the record of the last run session; nil when no remaining line
// contains it.
func recordInJournal(run *journal.Run) (rec *record.Run, err error) {
	r, err := run.Journal()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	for {
		line, _, _, err := r.NextUndamaged()
		if errors.Is(err, io.EOF) {
			return rec, nil
		}
		if err != nil {
			return nil, err
		}
		if !bytes.Contains(line, []byte(`"record":{`)) {
			continue
		}
		var e struct {
			Type   record.EventType `json:"type"`
			Record *record.Run      `json:"record"`
		}
		if json.Unmarshal(line, &e) == nil && e.Record != nil && (e.Type == record.RunStart || e.Type == record.RunResumed) {
			rec = e.Record
		}
	}
}

// dateOf returns the time at the start of an id; zero if it has none.
func dateOf(id string) time.Time {
	if i := strings.LastIndexByte(id, '-'); i > 0 {
		id = id[:i]
	}
	t, err := time.Parse(record.IDTime, id)
	if err != nil {
		return time.Time{}
	}
	return t
}

// readResultHead returns the head of result.json; nil when the file does not exist or is damaged.
// broken describes the damage. The error is [record.ErrRunNotFound].
func (r *RecordedRun) readResultHead() (head *resultHead, broken *record.DamagedFile, err error) {
	stamp := r.Run.ReadingStamp()
	if known := r.memory.recall(stamp).head; known != nil {
		head, broken = known.copied()
		return head, broken, nil
	}
	head, err = r.Head()
	switch {
	case errors.Is(err, record.ErrRunNotFound):
		return nil, nil, err
	case errors.Is(err, os.ErrNotExist):
		return nil, nil, nil
	case err != nil:
		broken = &record.DamagedFile{File: "result.json", Error: FileFault(err)}
	}
	known := &headRead{head, broken}
	r.memory.learn(stamp, func(k *knowledge) { k.head = known })
	head, broken = known.copied()
	return head, broken, nil
}

// Head reads all of result.json to verify it, and decodes its head.
func (r *RecordedRun) Head() (*resultHead, error) {
	f, err := r.Run.Result()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := f.Check(); err != nil {
		return nil, err
	}
	head, err := readSummary(f)
	if err != nil {
		return nil, err
	}
	head.end = f.ResultEnd
	return head, nil
}

// currentHead returns the head of result.json if the result is that of the run: nil if the file is
// missing, damaged or superseded.
func (r *RecordedRun) currentHead() (*resultHead, error) {
	head, _, err := r.readResultHead()
	if err != nil || head == nil {
		return nil, err
	}
	if old, err := r.superseded(head); err != nil || old {
		return nil, err
	}
	return head, nil
}

// superseded reports whether the journal was amended or resumed after the result, so that the
// result is not that of the run. This happens when a process dies before it replaces the result.
func (r *RecordedRun) superseded(head *resultHead) (bool, error) {
	if !head.end.Keyed {
		return false, nil
	}
	lines, err := r.Run.JournalFrom(head.end.Mark())
	if err != nil {
		return false, err
	}
	defer lines.Close()
	lines.Reuse()
	var l Lifter
	for {
		line, _, _, err := lines.NextUndamaged()
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if e, _, err := l.Lift(line); err == nil && (e.Type == record.RunGraded || e.Type == record.RunResumed) {
			return true, nil
		}
	}
}

// State returns the state of the run from all of its files. Trials and tasks that the journal
// lost come from result.json, if that is undamaged. The caller owns it.
func (r *RecordedRun) State() (*State, error) {
	stamp := r.Run.ReadingStamp()
	if known := r.memory.recall(stamp).state; known != nil {
		return known.clone(), nil
	}
	return r.readState(stamp)
}

// sharedState is like State, but nobody may change the state. Later calls return the same, without
// reading, until the record changes.
func (r *RecordedRun) sharedState() (*State, error) {
	stamp := r.Run.ReadingStamp()
	if known := r.memory.recall(stamp).state; known != nil {
		return known, nil
	}
	st, err := r.readState(stamp)
	if err == nil {
		r.memory.learn(stamp, func(k *knowledge) { k.state = st })
	}
	return st, err
}

// readState reads the record, whose stamp was stamp before.
func (r *RecordedRun) readState(stamp string) (st *State, err error) {
	c, head, _, err := r.readBoth(func(c *checker) (err error) {
		st, err = refold(r.Run, r.Rec, c)
		return err
	})
	if err != nil {
		return nil, err
	}
	st.adopt(head)
	if head != nil && head.EndedAt != nil && (st.lossy || head.end.Number > st.lines) {
		st.fill(r.Run)
	}
	progress := st.Progress
	r.memory.learn(stamp, func(k *knowledge) {
		k.progress = &progress
		if k.damage == nil {
			k.journal = c
		}
	})
	return st, nil
}

// fill adds trials and tasks that the state lacks from result.json, as far as it can be read.
func (s *State) fill(run *journal.Run) {
	f, err := run.Result()
	if err != nil {
		return
	}
	defer f.Close()
	_ = eachInResult(f, func(head *taskHead, trials map[int]Place) {
		task := s.index(&record.Event{TaskID: head.ID})
		if task < 0 {
			return
		}
		for num, at := range trials {
			key, ok := s.key(&record.Event{TaskID: head.ID, TrialNum: num})
			if ok && s.Tasks[key.Task].Trials[key.Trial].Size == 0 {
				s.Tasks[key.Task].own()[key.Trial] = at // the summary already counts it
			}
		}
		if s.Tasks[task].Result == nil && head.Task != nil && head.Verdict != "" {
			s.Tasks[task].Result = head.Task
		}
	})
}

// eachInResult visits the tasks of a result with the places of their trials, by number.
func eachInResult(r io.Reader, visit func(head *taskHead, trials map[int]Place)) error {
	dec := json.NewDecoder(r)
	return jsonwalk.Object(dec, func(key string) error {
		if key != "tasks" {
			var skip json.RawMessage
			return dec.Decode(&skip)
		}
		return jsonwalk.Array(dec, func() error {
			head, trials := new(taskHead), map[int]Place{}
			err := jsonwalk.Split(dec, "trials", func() error {
				return jsonwalk.Array(dec, func() error {
					num, at, err := placeInResult(dec)
					if _, known := trials[num]; !known {
						trials[num] = at
					}
					return err
				})
			}, head)
			if err != nil {
				return err
			}
			visit(head, trials)
			return nil
		})
	})
}

// placeInResult skips a trial and returns its number and place.
func placeInResult(dec *json.Decoder) (num int, at Place, err error) {
	var raw json.RawMessage
	if err := dec.Decode(&raw); err != nil {
		return 0, at, err
	}
	var head LeanTrial
	err = head.LiftHead(raw)
	at = Place{
		Off: dec.InputOffset() - int64(len(raw)), Size: int32(len(raw)), Verdict: CodeOf(head.Verdict),
		stored: bytes.HasPrefix(raw, []byte(storedHead)), inResult: true, sum: maphash.Bytes(placeSeed, raw),
	}
	return head.TrialNum, at, err
}
