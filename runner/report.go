package runner

import (
	"fmt"
	"io"

	"waza/runner/journal"
	"waza/runner/record"
)

// Report is a file that each run has beside its result, whatever became of it.
type Report struct {
	// File is its name in the run's directory.
	File string
	// Write writes it. It is called when a run has ended and each time its record
	// was amended; what it costs delays nobody but those who wait for [Run.Done].
	// When it fails the file stays as it was.
	Write func(w io.Writer, h record.Handle) error
}

// writeReports writes all reports of a run. That one fails is no failure of the run.
func (r *Runner) writeReports(log *journal.Writer, h record.Handle) {
	for _, rep := range r.reports {
		err := log.WriteReport(rep.File, func(w io.Writer) error { return rep.write(w, h) })
		if err != nil {
			r.log.Warn("report not written", "run", h.ID(), "file", rep.File, "error", err)
		}
	}
}

func reportFiles(r *Runner) []string {
	names := make([]string, len(r.reports))
	for i, rep := range r.reports {
		names[i] = rep.File
	}
	return names
}

func (rep Report) write(w io.Writer, h record.Handle) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return rep.Write(w, h)
}
