// Package sarif writes findings in suites, and failed trials, as SARIF 2.1.0 for code scanning.
// Call [Diagnostics] for the findings of a suite and [Write] for a run.
package sarif

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/url"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"waza/eval/decode"
	"waza/eval/files"
	"waza/eval/text"
	"waza/runner/report"
)

// mostSARIFResults is the most results of a file: GitHub shows no more.
const mostSARIFResults = 5_000

// mostSARIFText is the most bytes of a message.
const mostSARIFText = 2_000

// Diagnostics writes findings about suites as SARIF 2.1.0, with a rule for each code. Relative
// paths of files start at dir, an absolute path. In the document they start at the root of the
// repository that contains dir, or at dir.
func Diagnostics(w io.Writer, ds decode.Diagnostics, dir string) error {
	s := newSARIF(w, dir)
	rules, index := diagnosticRules()
	if err := s.open("waza-validate/", rules); err != nil {
		return err
	}
	for _, d := range ds {
		at, known := index[d.Code]
		if !known { // unknown code: SARIF requires a rule
			at = index[decode.CodeInvalidValue]
		}
		if err := s.result(s.diagnostic(d, rules[at].ID, at, dir)); err != nil {
			return err
		}
	}
	return s.close(sarifInvocation{Successful: true, Notifications: s.omitted()})
}

func diagnosticRules() ([]sarifRule, map[decode.Code]int) {
	var rules []sarifRule
	index := map[decode.Code]int{}
	for i, c := range decode.Codes() {
		index[c.Code] = i
		rules = append(rules, rule(string(c.Code), c.Doc, "warning"))
	}
	return rules, index
}

func rule(id, doc, level string) sarifRule {
	text := sarifText{Text: doc}
	help := sarifText{Text: doc + " docs/diagnostics.md lists all findings.", Markdown: doc + "\n\n`docs/diagnostics.md` lists all findings."}
	return sarifRule{
		ID: id, ShortDescription: text, FullDescription: text, Help: help,
		Configuration: sarifConfiguration{level}, Properties: sarifRuleTags{[]string{"waza"}},
	}
}

// sarif writes a document with one run, one result at a time.
type sarif struct {
	out     *bufio.Writer
	root    string // absolute
	written int
	dropped int
}

func newSARIF(w io.Writer, dir string) *sarif {
	s := &sarif{out: bufio.NewWriterSize(report.JSONWriter(w), 64<<10), root: dir}
	if root := files.RepositoryRoot(dir); root != "" {
		s.root = root
	}
	return s
}

// open writes the document up to its results.
func (s *sarif) open(id string, rules []sarifRule) error {
	run := sarifRun{
		Tool: sarifTool{sarifDriver{Name: "waza", Rules: rules}}, AutomationDetails: sarifAutomation{id},
		ColumnKind: "unicodeCodePoints",
	}
	if filepath.IsAbs(s.root) {
		run.OriginalURIBaseIDs = map[string]sarifLocation{sarifRoot: {URI: strings.TrimSuffix(fileURI(s.root), "/") + "/"}}
	}
	b, err := json.Marshal(sarifLog{Schema: sarifSchema, Version: sarifVersion, Runs: []sarifRun{run}})
	if err != nil {
		return err
	}
	s.out.Write(b[:len(b)-len("}]}")])
	_, err = s.out.WriteString(`,"results":[`)
	return err
}

func (s *sarif) result(r sarifResult) error {
	if s.written == mostSARIFResults {
		s.dropped++
		return nil
	}
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if s.written++; s.written > 1 {
		s.out.WriteByte(',')
	}
	s.out.WriteByte('\n')
	_, err = s.out.Write(b)
	return err
}

// omitted returns a notification about omitted results.
func (s *sarif) omitted() []sarifNotification {
	if s.dropped == 0 {
		return nil
	}
	text := text.Count(s.dropped, "more result is", "more results are") + " not written: readers show no more"
	return []sarifNotification{{Level: "warning", Message: sarifText{Text: text}}}
}

func (s *sarif) close(in sarifInvocation) error {
	b, err := json.Marshal([]sarifInvocation{in})
	if err != nil {
		return err
	}
	s.out.WriteString(`],"invocations":`)
	s.out.Write(b)
	s.out.WriteString("}]}\n")
	return s.out.Flush()
}

func (s *sarif) diagnostic(d decode.Diagnostic, ruleID string, at int, dir string) sarifResult {
	place := s.place(filepath.FromSlash(d.File), dir)
	region := &sarifRegion{StartLine: max(1, d.Line)}
	if d.Line > 0 {
		region.StartColumn = max(0, d.Column)
		if d.EndColumn > d.Column {
			region.EndColumn = d.EndColumn
		}
	}
	place.Physical.Region = region
	r := sarifResult{
		RuleID: ruleID, RuleIndex: at, Level: sarifLevel(d.Severity), Message: message(d.Message), Locations: []sarifPlace{place},
		Fingerprints: fingerprint(ruleID, place.Physical.Artifact.URI, d.Message),
	}
	if d.Suggestion == "" {
		return r
	}
	r.Message = message(d.Message + "; did you mean " + d.Suggestion + "?")
	if region.StartColumn > 0 && region.EndColumn > 0 {
		r.Fixes = []sarifFix{{
			Description: sarifText{Text: "Write " + clean(d.Suggestion) + "."},
			Changes:     []sarifChange{{place.Physical.Artifact, []sarifReplacement{{*region, sarifText{Text: d.Suggestion}}}}},
		}}
	}
	return r
}

func sarifLevel(s decode.Severity) string {
	switch s {
	case decode.Error:
		return "error"
	case decode.Warning:
		return "warning"
	}
	return "note"
}

// message returns a message with a foreign text. Readers interpret brackets as links, so they
// are escaped.
func message(text string) sarifText {
	text = strings.NewReplacer("[", `\[`, "]", `\]`).Replace(clean(report.Cut(text, mostSARIFText)))
	if strings.TrimSpace(text) == "" {
		text = "no reason given"
	}
	return sarifText{Text: text}
}

// clean makes each line of a text safe to show.
func clean(s string) string {
	if !strings.ContainsFunc(s, report.IsUnsafe) && utf8.ValidString(s) {
		return s
	}
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		lines[i] = report.Clean(line)
	}
	return strings.Join(lines, "\n")
}

// place returns the path of a file from the root of the repository, or the whole URI if the file
// is outside of it. file is relative to dir unless it is absolute.
func (s *sarif) place(file, dir string) sarifPlace {
	if !filepath.IsAbs(file) {
		file = filepath.Join(dir, file)
	}
	rel, err := filepath.Rel(s.root, file)
	if err != nil || !filepath.IsLocal(rel) {
		return sarifPlace{sarifPhysical{Artifact: sarifLocation{URI: fileURI(file)}}}
	}
	uri := url.URL{Path: strings.ToValidUTF8(filepath.ToSlash(rel), "�")}
	return sarifPlace{sarifPhysical{Artifact: sarifLocation{URI: uri.String(), URIBaseID: sarifRoot}}}
}

func fileURI(path string) string {
	return (&url.URL{Scheme: "file", Path: strings.ToValidUTF8(filepath.ToSlash(path), "�")}).String()
}

// fingerprint identifies a result, even after lines have moved.
func fingerprint(parts ...string) map[string]string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return map[string]string{"waza/v1": hex.EncodeToString(sum[:16])}
}
