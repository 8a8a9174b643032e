package record

import (
	"fmt"
	"strings"
)

// Damage says which parts of a run's record are not as they were written.
type Damage struct {
	// Events is how many events the journal lost, at least. A trial that was in one
	// has not ended, as far as anyone can tell, unless result.json has it.
	Events int64 `json:"events"`
	// Parts is how many parts of the journal are damaged, Bytes how much that is. They
	// are 0 where lines are missing.
	Parts int64 `json:"parts"`
	Bytes int64 `json:"bytes"`
	// Line and Offset, in bytes, are where the first part is; Error says what is
	// wrong with it.
	Line   int64  `json:"line,omitempty"`
	Offset int64  `json:"offset,omitempty"`
	Error  string `json:"error,omitempty"`
	// Ends: the end of the journal is missing.
	Ends bool `json:"ends,omitempty"`
	// Files are the files beside the journal that are damaged.
	Files []DamagedFile `json:"files,omitempty"`
}

// DamagedFile is a file of a run's record that is not as it was written.
type DamagedFile struct {
	// File is run.json or result.json.
	File  string `json:"file"`
	Error string `json:"error"`
	// Restored: what the file held was read from the journal.
	Restored bool `json:"restored"`
}

func (f DamagedFile) String() string {
	if f.Restored {
		return fmt.Sprintf("%s is damaged: %s; the journal has what it held", f.File, f.Error)
	}
	return fmt.Sprintf("%s is damaged: %s; what it held is lost", f.File, f.Error)
}

func (d *Damage) String() string {
	var list []string
	for _, f := range d.Files {
		list = append(list, f.String())
	}
	if d.Events > 0 || d.Parts > 0 {
		list = append(list, d.ofJournal())
	}
	return strings.Join(list, "; ")
}

func (d *Damage) ofJournal() string {
	lost := "no event is lost"
	if d.Events > 0 {
		lost = fmt.Sprintf("events lost: %d", d.Events)
	}
	switch {
	case d.Parts == 0 && d.Ends:
		return "the end of the journal is missing; " + lost
	case d.Parts == 0:
		return "lines of the journal are missing; " + lost
	case d.Parts == 1:
		return fmt.Sprintf("the journal is damaged at line %d (byte %d, %d bytes): %s; %s", d.Line, d.Offset, d.Bytes, d.Error, lost)
	}
	return fmt.Sprintf("the journal is damaged at %d places, first at line %d (byte %d): %s; %s", d.Parts, d.Line, d.Offset, d.Error, lost)
}

// OrNil returns nil for no damage.
func (d *Damage) OrNil() *Damage {
	if d.Events == 0 && d.Parts == 0 && len(d.Files) == 0 {
		return nil
	}
	return d
}
