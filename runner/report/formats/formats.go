// Package formats lists the formats in which waza can write a run, see [Formats], and writes
// files in them. Call [Find] with a name, then [WriteFile].
package formats

import (
	"io"

	"waza/runner"
	"waza/runner/record"
	"waza/runner/report"
	"waza/runner/report/page"
	"waza/runner/report/results"
	"waza/runner/report/sarif"
	"waza/runner/report/spreadsheet"
)

// A Format is a form of a run for people or programs.
type Format struct {
	// Name selects the format.
	Name string
	// File is the default file name.
	File string
	// Doc describes the format in one sentence for help texts and documents.
	Doc string
	// Write writes the present state of the run, even if the run was interrupted and has no
	// result. It holds few trials at a time in memory.
	Write func(w io.Writer, h record.Handle) error
}

// Copies reports whether the format copies files of the record, if they are good, and does not look at
// tasks and trials.
func (f Format) Copies() bool { return f.Name == "json" || f.Name == Archive }

// Formats returns all formats, in the order of the reference document. The caller owns the
// slice.
func Formats() []Format {
	return []Format{
		{
			"junit", "junit.xml",
			"JUnit XML for CI: a testsuite per task, a testcase per trial. Each run has one in its directory.",
			report.WriteJUnit,
		},
		{"html", "report.html", "One self-contained HTML file for people: tables, charts, transcripts and changed files.", page.Write},
		{
			"markdown", "summary.md",
			"A summary for a step on GitHub, 1 MiB at most: a table of tasks, and folded reasons of those that did not pass.",
			report.WriteMarkdown,
		},
		{"comment", "comment.md", "The same summary for a comment on a pull request, 64 KiB at most.", report.WriteComment},
		{"csv", "trials.csv", "A row per trial, for spreadsheets and data frames (RFC 4180, UTF-8).", spreadsheet.Write},
		{"results", "results.json", "JSON in the form of other tools that run these suites.", results.Write},
		{"sarif", "waza.sarif", "SARIF 2.1.0 for code scanning: failed trials, at the files of their tasks.", sarif.Write},
		{"json", "result.json", "The whole run, including transcripts, as one line of JSON.", writeJSON},
	}
}

// Always returns the reports that each run writes to its directory, for [runner.Options]:
// junit.xml, so that CI finds it without configuration.
func Always() []runner.ReportFile {
	return []runner.ReportFile{{File: "junit.xml", Write: report.WriteJUnit}}
}

func writeJSON(w io.Writer, h record.Handle) error { return h.WriteResult(report.JSONWriter(w)) }
