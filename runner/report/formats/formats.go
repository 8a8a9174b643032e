// Package formats lists the formats in which a run can be written, each a line of [Formats], and writes files of them.
// Call [Find] with a name, then [WriteFile].
package formats

import (
	"io"

	"waza/runner"
	"waza/runner/record"
	"waza/runner/report"
	"waza/runner/report/page"
	"waza/runner/report/results"
	"waza/runner/report/sarif"
)

// Format is a way to write down a run for people or programs.
type Format struct {
	// Name is what one asks for it by.
	Name string
	// File is the name of the file it is written to when none is given.
	File string
	// Doc is one sentence for help texts and documents.
	Doc string
	// Write writes the run as far as it has come, also one that was interrupted
	// and has no result. Trials pass through memory one at a time.
	Write func(w io.Writer, h record.Handle) error
}

// Formats returns all formats, in the order of the reference document. The caller
// owns the slice.
func Formats() []Format {
	return []Format{
		{"junit", "junit.xml", "JUnit XML for CI: a testsuite per task, a testcase per trial; each run has one in its directory.", report.WriteJUnit},
		{"html", "report.html", "One HTML file that needs nothing else, for people: tables, charts, transcripts and what files have changed.", page.Write},
		{"markdown", "summary.md", "A summary for a step on GitHub, 1 MiB at most: a table of tasks, and folded up why some did not pass.", report.WriteMarkdown},
		{"comment", "comment.md", "The same for a comment on a pull request, 64 KiB at most.", report.WriteComment},
		{"csv", "trials.csv", "A row per trial, for spreadsheets and data frames (RFC 4180, UTF-8).", report.WriteCSV},
		{"results", "results.json", "JSON as other tools write and read it that run these suites.", results.Write},
		{"sarif", "waza.sarif", "SARIF 2.1.0 for code scanning: trials that failed, at the files of their tasks.", sarif.Write},
		{"json", "result.json", "All that is known of the run, transcripts included, as one line of JSON.", writeJSON},
	}
}

// Always returns the reports that each run has in its directory, for
// [runner.Options]: junit.xml, so that CI finds it also where nobody asked for it.
func Always() []runner.Report {
	return []runner.Report{{File: "junit.xml", Write: report.WriteJUnit}}
}

func writeJSON(w io.Writer, h record.Handle) error { return h.WriteResult(report.JSONWriter(w)) }
