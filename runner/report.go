package runner

import (
	"fmt"
	"io"

	"waza/runner/journal"
	"waza/runner/record"
)

// ReportFile is a file that waza writes for each run beside its result.
type ReportFile struct {
	// File is the file name in the run's directory.
	File string
	// Write writes the report. It is called when a run has ended, however it ended, and each
	// time its record was amended. Only callers that wait for [Run.Done] wait for it. If it
	// fails, the file keeps its previous content.
	Write func(w io.Writer, h record.Handle) error
}

// writeReports writes all reports of a run. A failed report does not fail the run.
func (r *Runner) writeReports(log *journal.Writer, h record.Handle) {
	for _, rep := range r.reports {
		err := log.WriteReport(rep.File, func(w io.Writer) error { return rep.write(w, h) })
		if err != nil {
			r.log.Warn("cannot write report", "run", h.ID(), "file", rep.File, "error", err)
		}
	}
}

func (r *Runner) reportFiles() []string {
	names := make([]string, len(r.reports))
	for i, rep := range r.reports {
		names[i] = rep.File
	}
	return names
}

func (rep ReportFile) write(w io.Writer, h record.Handle) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return rep.Write(w, h)
}
