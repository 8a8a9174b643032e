package journal

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"waza/eval/files"
)

// WriteReport writes a file beside the journal, completely or not at all. The content can be
// created again, so it is not synced to disk. The name must differ from all other files of the
// run.
func (w *Writer) WriteReport(name string, write func(io.Writer) error) error {
	if err := checkReportName(name); err != nil {
		return err
	}
	return files.WriteWhole(filepath.Join(w.run.dir, name), write, nil)
}

func checkReportName(name string) error {
	switch {
	case name == "" || name != filepath.Base(name) || strings.HasPrefix(name, "."):
		return fmt.Errorf("report %q: not usable as a file name", name)
	case name == runFile || name == journalFile || name == resultFile || name == blobFile || name == amendFile:
		return fmt.Errorf("report %q: the record has a file of that name", name)
	}
	return nil
}
