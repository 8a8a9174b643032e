package record

import (
	"fmt"
	"strings"

	"waza/eval/files"
)

// Damage lists the parts of a run's record that are lost, corrupt, or not written by waza.
type Damage struct {
	// Events is the minimum number of events that the journal lost. A trial whose event is lost
	// counts as not ended, unless result.json contains it.
	Events int64 `json:"events"`
	// Parts is the number of corrupt parts of the journal and Bytes their total size. Both are 0
	// where lines are missing.
	Parts int64 `json:"parts"`
	Bytes int64 `json:"bytes"`
	// Line and Offset (in bytes) are the position of the first corrupt part. Error
	// describes the damage.
	Line   int64  `json:"line,omitempty"`
	Offset int64  `json:"offset,omitempty"`
	Error  string `json:"error,omitempty"`
	// Ends reports whether the end of the journal is missing.
	Ends bool `json:"ends,omitempty"`
	// Files lists the damaged files beside the journal.
	Files []DamagedFile `json:"files,omitempty"`
	// Unverifiable describes why nobody can verify that waza wrote all of the record, although
	// nothing shows the opposite; empty when waza wrote it. It alone is no damage: the verdicts
	// count, but gates refuse them like those of a damaged record.
	Unverifiable string `json:"unverifiable,omitempty"`
}

// DamagedFile is a missing or corrupt file of a run's record.
type DamagedFile struct {
	// File is run.json, result.json, files.gz, or [files.StateMarker] for the key of the state
	// directory.
	File  string `json:"file"`
	Error string `json:"error"`
	// Restored reports whether the content of the file was read from the journal.
	Restored bool `json:"restored"`
}

func (f DamagedFile) String() string {
	if f.File == files.StateMarker {
		return fmt.Sprintf("the record cannot be verified without %s: %s", f.File, f.Error)
	}
	if f.Restored {
		return fmt.Sprintf("%s is damaged: %s; its content was read from the journal", f.File, f.Error)
	}
	return fmt.Sprintf("%s is damaged: %s; its content is lost", f.File, f.Error)
}

func (d *Damage) String() string {
	var list []string
	for _, f := range d.Files {
		list = append(list, f.String())
	}
	if d.Events > 0 || d.Parts > 0 {
		list = append(list, d.journalText())
	}
	if d.Unverifiable != "" {
		list = append(list, "the record cannot be verified: "+d.Unverifiable)
	}
	return strings.Join(list, "; ")
}

func (d *Damage) journalText() string {
	lost := "no events lost"
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

// Damaged reports whether a part of the record is lost or corrupt. It is false for nil, and for a
// record that only cannot be verified.
func (d *Damage) Damaged() bool {
	return d != nil && (d.Events > 0 || d.Parts > 0 || len(d.Files) > 0)
}

// OrNil returns nil if d is nil or lists neither damage nor doubts.
func (d *Damage) OrNil() *Damage {
	if d == nil || !d.Damaged() && d.Unverifiable == "" {
		return nil
	}
	return d
}
