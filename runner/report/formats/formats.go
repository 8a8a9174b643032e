// Package formats lists the formats in which waza can write a run, see [Formats], and writes
// files in them. Call [Find] with a name, then [WriteFile], or [WriteFolder] for a format of
// several files.
package formats

import (
	"io"

	"waza/runner"
	"waza/runner/record"
	"waza/runner/report"
	"waza/runner/report/atif"
	"waza/runner/report/page"
	"waza/runner/report/plugineval"
	"waza/runner/report/results"
	"waza/runner/report/sarif"
	"waza/runner/report/skillcreator"
	"waza/runner/report/spreadsheet"
	"waza/runner/report/vally"
)

// A Format is a form of a run for people or programs.
type Format struct {
	// Name selects the format.
	Name string
	// File is the default name of the file, or of the folder.
	File string
	// Doc describes the format in one sentence for help texts and documents.
	Doc string
	// Write writes the present state of the run, even if the run was interrupted and has no
	// result. It holds few trials at a time in memory. It is nil for a folder.
	Write func(w io.Writer, h record.Handle) error
	// WriteFiles is like Write, for a format of several files: it writes each with create. It is nil for
	// a single file.
	WriteFiles func(create report.Create, h record.Handle) error
	// Iteration is empty if a folder belongs to one run. Otherwise each run has a folder of its own in
	// it, and the name of that is Iteration and the next free number.
	Iteration string
}

// IsFolder reports whether the format has several files, and is written to a folder.
func (f Format) IsFolder() bool { return f.WriteFiles != nil }

// Copies reports whether the format copies files of the record, if they are good, and does not look at
// tasks and trials.
func (f Format) Copies() bool { return f.Name == "json" || f.Name == Archive }

// Formats returns all formats, in the order of the reference document. The caller owns the
// slice.
func Formats() []Format {
	return []Format{
		{
			Name: "junit", File: "junit.xml", Write: report.WriteJUnit,
			Doc: "JUnit XML for CI: a testsuite per task, a testcase per trial. Each run has one in its directory.",
		},
		{
			Name: "html", File: "report.html", Write: page.Write,
			Doc: "One self-contained HTML file for people: tables, charts, transcripts and changed files.",
		},
		{
			Name: "markdown", File: "summary.md", Write: report.WriteMarkdown,
			Doc: "A summary for a step on GitHub, 1 MiB at most: a table of tasks, and folded reasons of those that did not pass.",
		},
		{
			Name: "comment", File: "comment.md", Write: report.WriteComment,
			Doc: "The same summary for a comment on a pull request, 64 KiB at most.",
		},
		{
			Name: "csv", File: "trials.csv", Write: spreadsheet.Write,
			Doc: "A row per trial, for spreadsheets and data frames (RFC 4180, UTF-8).",
		},
		{
			Name: "results", File: "results.json", Write: results.Write,
			Doc: "JSON in the form of other tools that run these suites.",
		},
		{Name: "sarif", File: "waza.sarif", Write: sarif.Write, Doc: "SARIF 2.1.0 for code scanning: failed trials, at the task's file."},
		{
			Name: "json", File: "result.json", Write: writeJSON,
			Doc: "The whole run, including transcripts, as one line of JSON.",
		},
		{
			Name: "vally", File: "results.jsonl", Write: vally.Write,
			Doc: "The results.jsonl of microsoft/vally: a record per trial, and the summary as the last one.",
		},
		{
			Name: "plugin-eval", File: "aggregate-result.json", Write: plugineval.Write,
			Doc: "The aggregate-result.json of claude plugin eval: runs, scores and differences of each case.",
		},
		{
			Name: "atif", File: "trajectories", WriteFiles: atif.Write,
			Doc: "A directory with the transcripts as trajectories of Harbor (ATIF 1.7), a file per trial.",
		},
		{
			Name: "skill-creator", File: "skill-workspace", WriteFiles: skillcreator.Write, Iteration: "iteration-",
			Doc: "A directory with the workspace of skill-creator: each run adds an iteration with gradings, outputs and a benchmark.",
		},
	}
}

// Always returns the reports that each run writes to its directory, for [runner.Options]:
// junit.xml, so that CI finds it without configuration.
func Always() []runner.ReportFile {
	return []runner.ReportFile{{File: "junit.xml", Write: report.WriteJUnit}}
}

func writeJSON(w io.Writer, h record.Handle) error { return h.WriteResult(report.JSONWriter(w)) }
