// Package source is the contract between package importing and the formats of results that it
// reads, with the parts that several formats need. A format is a folder beside this one, and a line
// of the list in package importing.
package source

import (
	"waza/runner/record"
)

// A Format reads the results of one tool.
type Format struct {
	// Name identifies the format in records: inspect.
	Name string
	// Recognizes reports whether a file looks like results of the tool. It need not be valid.
	Recognizes func(*Head) bool
	// Open reads and checks the whole file. The error is an [*Error].
	Open func(path string) (*Results, error)
}

// Visit gets a trial and the index of its task in the run. It owns the trial.
type Visit func(task int, t *record.Trial) error

// Results are the results in a file that was read once and is valid. They hold no transcripts, and
// no open file.
type Results struct {
	// Run is the request for the run, as stated in the file. It has no id. Its time is zero if
	// the file has none.
	Run *record.Run
	// Sum is a hash of everything in the file.
	Sum []byte
	// Status is the final status of the run.
	Status record.Status
	// DurationMS is the duration of the run; 0 if the file does not state it.
	DurationMS int64
	// Notes lists the omitted parts of the file, with reasons.
	Notes []string
	// Read visits all trials in the order of the run's tasks. An error of visit ends the
	// reading and is returned unchanged; any other is an [*Error].
	Read func(visit Visit) error
}
