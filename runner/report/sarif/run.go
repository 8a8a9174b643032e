package sarif

import (
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"waza/eval/text"
	"waza/runner/record"
	"waza/runner/report"
)

// mostNotifications is the most errors in a file.
const mostNotifications = 100

// The rules of a run, by their index.
const (
	ruleFailed = iota
	ruleTimeout
	ruleSuspicious
)

func runRules() []sarifRule {
	help := func(id, doc string) sarifRule {
		r := rule(id, doc, "error")
		r.Help = sarifText{Text: doc}
		return r
	}
	suspicious := help("suspicious-pass", "A trial passed, and the agent made a move that a forger would make. Look at the trial.")
	suspicious.Configuration.Level = "warning"
	return []sarifRule{
		ruleSuspicious: suspicious,
		ruleFailed:     help("trial-failed", "The agent did not do the task: a grader did not pass."),
		ruleTimeout:    help("trial-timeout", "The agent did not do the task in time."),
	}
}

// Write writes trials that failed or timed out as results at the files of their tasks. Errors do
// not concern the task, so they are notifications of the run.
func Write(w io.Writer, h record.Handle) error {
	progress, err := h.Progress()
	if err != nil {
		return err
	}
	rec := h.Record()
	dir := filepath.Dir(rec.Suite.Path)
	s := newSARIF(w, dir)
	if err := s.open("waza-run/"+clean(rec.Suite.Name)+"/", runRules()); err != nil {
		return err
	}
	errs := notifications{}
	if progress.Status != record.StatusCompleted {
		errs.add("the run did not complete: its status is "+string(progress.Status)+report.After(": ", progress.Error), s.suitePlace(rec, dir))
	}
	if _, err := h.Results(); err != nil { // so that damage and trials need no further reading
		return err
	}
	damage, err := h.Damage()
	if err != nil {
		return err
	}
	switch {
	case damage.Damaged():
		errs.add("the record of the run is damaged: "+damage.String(), s.suitePlace(rec, dir))
	case damage != nil:
		errs.add("the record of the run cannot be verified: "+damage.Unverifiable, s.suitePlace(rec, dir))
	}
	err = h.Outcomes(func(task int, t *record.Trial, _ int64) error {
		ref := rec.Tasks[task]
		if t.Verdict == record.Passed {
			if lines := report.SuspicionTexts(t); lines != nil {
				return s.result(s.trial(ruleSuspicious, ref, t, strings.Join(lines, "\n"), s.taskPlace(rec, ref, dir)))
			}
			return nil
		}
		line, text := report.Explain(t, rec.RunID)
		switch {
		case t.Verdict == record.Errored:
			errs.add(fmt.Sprintf("task %s, trial %d: %s", ref.ID, t.TrialNum, line), s.taskPlace(rec, ref, dir))
		case ref.Role == record.RoleBaseline:
		case t.Verdict == record.Failed:
			return s.result(s.trial(ruleFailed, ref, t, text, s.taskPlace(rec, ref, dir)))
		case t.Verdict == record.TimedOut:
			return s.result(s.trial(ruleTimeout, ref, t, text, s.taskPlace(rec, ref, dir)))
		}
		return nil
	})
	if err != nil {
		return err
	}
	in := sarifInvocation{
		Successful: progress.Status == record.StatusCompleted && errs.total == 0,
		Start:      sarifTime(progress.StartedAt), Notifications: append(errs.all(), s.omitted()...),
	}
	if progress.EndedAt != nil {
		in.End = sarifTime(*progress.EndedAt)
	}
	if rec.Sandbox != nil {
		in.Properties = &sarifRunFacts{Sandbox: clean(rec.Sandbox.After(progress.Summary).String())}
	}
	return s.close(in)
}

func sarifTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}

func (s *sarif) suitePlace(rec *record.Run, dir string) sarifPlace {
	return s.firstLine(s.place(rec.Suite.Path, dir))
}

// taskPlace returns the file of a task; its line is unknown.
func (s *sarif) taskPlace(rec *record.Run, t record.TaskRef, dir string) sarifPlace {
	if t.File == "" {
		return s.suitePlace(rec, dir)
	}
	return s.firstLine(s.place(filepath.FromSlash(t.File), dir))
}

func (s *sarif) firstLine(p sarifPlace) sarifPlace {
	p.Physical.Region = &sarifRegion{StartLine: 1}
	return p
}

func (s *sarif) trial(index int, ref record.TaskRef, t *record.Trial, text string, place sarifPlace) sarifResult {
	id, level := runRules()[index].ID, "error"
	if ref.Role == record.RoleTrigger || index == ruleSuspicious {
		level = "warning" // counts only in a metric, or not at all
	}
	return sarifResult{
		RuleID: id, RuleIndex: index, Level: level, Locations: []sarifPlace{place},
		Message:      message(fmt.Sprintf("task %s, trial %d: %s", ref.ID, t.TrialNum, text)),
		Fingerprints: fingerprint(id, place.Physical.Artifact.URI, ref.ID, strconv.Itoa(t.TrialNum)),
		Properties:   &sarifTrialFacts{Task: clean(ref.ID), Trial: t.TrialNum, Score: t.Score},
	}
}

// notifications collects errors of a run, up to a limit.
type notifications struct {
	list  []sarifNotification
	total int
}

func (n *notifications) add(text string, place sarifPlace) {
	if n.total++; n.total <= mostNotifications {
		n.list = append(n.list, sarifNotification{Level: "error", Message: message(text), Locations: []sarifPlace{place}})
	}
}

func (n *notifications) all() []sarifNotification {
	if more := n.total - len(n.list); more > 0 {
		n.list = append(n.list, sarifNotification{
			Level: "error", Message: sarifText{Text: "and " + text.Count(more, "more error", "more errors")},
		})
	}
	return n.list
}
