package report

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"waza/runner/record"
	"waza/runner/report/reporttest"
)

// A node is an element of an XML document.
type node struct {
	name     string
	attrs    map[string]string
	children []*node
	text     string
}

func (n *node) all(name string) []*node {
	var list []*node
	for _, c := range n.children {
		if c.name == name {
			list = append(list, c)
		}
	}
	return list
}

// parseXML parses a document as strictly as encoding/xml.
func parseXML(t *testing.T, doc string) *node {
	t.Helper()
	require.True(t, utf8.ValidString(doc))
	dec := xml.NewDecoder(strings.NewReader(doc))
	root := &node{}
	stack := []*node{root}
	for {
		tok, err := dec.Token()
		if errors.Is(err, io.EOF) {
			require.Len(t, stack, 1)
			require.Len(t, root.children, 1)
			return root.children[0]
		}
		require.NoError(t, err)
		top := stack[len(stack)-1]
		switch tok := tok.(type) {
		case xml.StartElement:
			n := &node{name: tok.Name.Local, attrs: map[string]string{}}
			for _, a := range tok.Attr {
				require.NotContains(t, n.attrs, a.Name.Local, "given twice")
				n.attrs[a.Name.Local] = a.Value
			}
			top.children = append(top.children, n)
			stack = append(stack, n)
		case xml.EndElement:
			stack = stack[:len(stack)-1]
		case xml.CharData:
			top.text += string(tok)
		}
	}
}

// junitRules holds the rules of JUnit XML in the strictest schema in use (Jenkins' xUnit,
// junit-10.xsd), and further requirements of readers.
var junitRules = map[string]struct {
	children string // allowed elements
	required string // attributes
	optional string
}{
	"testsuites": {"testsuite", "name", "time tests failures errors disabled"},
	"testsuite":  {"properties testcase system-out system-err", "name tests failures errors skipped time timestamp", "hostname id package"},
	"properties": {"property", "", ""},
	"property":   {"", "name value", ""},
	"testcase":   {"skipped error failure system-out system-err", "name classname time", ""},
	"failure":    {"", "type message", ""},
	"error":      {"", "type message", ""},
	"skipped":    {"", "", "type message"},
	"system-out": {"", "", ""},
}

var attributeRules = map[string]*regexp.Regexp{
	"time":      regexp.MustCompile(`^\d+\.\d{3}$`),
	"timestamp": regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$`),
	"tests":     regexp.MustCompile(`^\d+$`), "failures": regexp.MustCompile(`^\d+$`),
	"errors": regexp.MustCompile(`^\d+$`), "skipped": regexp.MustCompile(`^\d+$`),
}

func checkJUnit(t *testing.T, n *node) {
	t.Helper()
	rule, known := junitRules[n.name]
	require.True(t, known, "element %s", n.name)
	for name, value := range n.attrs {
		require.Contains(t, strings.Fields(rule.required+" "+rule.optional), name, n.name)
		if re := attributeRules[name]; re != nil {
			require.Regexp(t, re, value)
		}
	}
	for name := range strings.FieldsSeq(rule.required) {
		require.Contains(t, n.attrs, name, n.name)
	}
	for _, c := range n.children {
		require.Contains(t, strings.Fields(rule.children), c.name, n.name)
		checkJUnit(t, c)
	}
	if rule.children != "" {
		require.Empty(t, strings.TrimSpace(n.text), n.name)
	}
}

// junitOf parses the JUnit file of a run and checks it against the rules.
func junitOf(t *testing.T, doc string) *node {
	t.Helper()
	root := parseXML(t, doc)
	require.Equal(t, "testsuites", root.name)
	checkJUnit(t, root)
	seen := map[string]bool{}
	for _, suite := range root.all("testsuite") {
		count := map[string]int{}
		for _, c := range suite.all("testcase") {
			count["tests"]++
			outcomes := 0
			for element, attr := range map[string]string{"failure": "failures", "error": "errors", "skipped": "skipped"} {
				count[attr] += len(c.all(element))
				outcomes += len(c.all(element))
			}
			require.LessOrEqual(t, outcomes, 1)
			name := c.attrs["classname"] + "\x00" + c.attrs["name"]
			require.False(t, seen[name], "%q occurs twice", name)
			seen[name] = true
		}
		for _, attr := range []string{"tests", "failures", "errors", "skipped"} {
			require.Equal(t, strconv.Itoa(count[attr]), suite.attrs[attr], "%s of %s", attr, suite.attrs["name"])
		}
	}
	return root
}

func TestJUnitGolden(t *testing.T) {
	t.Parallel()
	c := reporttest.CannedRun()
	doc := reporttest.Written(t, WriteJUnit, c)
	junitOf(t, doc)
	reporttest.Golden(t, "junit.xml", doc)
	c.Now.Status, c.Now.Error, c.Now.Summary = record.StatusFailed, "executor acp: no such program", nil
	doc = reporttest.Written(t, WriteJUnit, c)
	junitOf(t, doc)
	require.Contains(t, doc, `<testcase classname="demo &amp; co.run" name="run" time="0.000">`)
	require.Contains(t, doc, `<error type="error" message="the run did not complete: its status is `+
		`failed">executor acp: no such program</error>`)
}

// xmllint has a parser of its own.
func TestJUnitIsValidXML(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("xmllint"); err != nil {
		t.Skip("xmllint is not installed")
	}
	path := filepath.Join(t.TempDir(), "junit.xml")
	require.NoError(t, os.WriteFile(path, []byte(reporttest.Written(t, WriteJUnit, reporttest.CannedRun())), 0o600))
	out, err := exec.CommandContext(t.Context(), "xmllint", "--noout", path).CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// Each verdict has its element, and errors are never failures.
func TestJUnitVerdicts(t *testing.T) {
	t.Parallel()
	root := junitOf(t, reporttest.Written(t, WriteJUnit, reporttest.CannedRun()))
	got := map[string]string{}
	for _, suite := range root.all("testsuite") {
		for _, c := range suite.all("testcase") {
			outcome := "passed"
			for _, n := range c.children {
				if n.name != "system-out" {
					outcome = strings.TrimSpace(n.name + " " + n.attrs["type"])
				}
			}
			got[c.attrs["name"]] = outcome
		}
	}
	require.Equal(t, map[string]string{
		"ok#baseline (trial 1)": "passed", "ok#baseline (trial 2)": "skipped",
		"ok (trial 1)": "passed", "ok (trial 2)": "passed",
		"failed|<b>`x`</b> (trial 1)": "passed", "failed|<b>`x`</b> (trial 2)": "failure failed",
		"slow (trial 1)":   "failure timeout",
		"broken (trial 1)": "error error", "broken (trial 2)": "passed", "broken (task)": "error error",
		"waits (trial 1)": "skipped", "left out (trial 1)": "skipped", "cut short (trial 1)": "skipped",
		"should_trigger#1 (trial 1)": "skipped", "should_trigger#1 (trial 2)": "passed",
		"never ended (trial 1)": "passed", "never ended (trial 2)": "skipped", "never ended (trial 3)": "skipped",
		"metric task_completion": "failure failed", "metric behavior_quality": "passed", "metric trigger_accuracy": "skipped",
	}, got)
}

// A run of very many trials has a testcase per task.
func TestJUnitOfManyTrials(t *testing.T) {
	t.Parallel()
	c := reporttest.CannedRun()
	c.Ref("ok").Trials = mostTestcases
	c.Err = errors.New("the trials were looked at")
	doc := reporttest.Written(t, WriteJUnit, c)
	root := junitOf(t, doc)
	require.Len(t, root.all("testsuite"), len(c.Rec.Tasks)+1)
	for i, suite := range root.all("testsuite")[:len(c.Rec.Tasks)] {
		want := 1
		if c.Ended[i] != nil && c.Ended[i].Error != "" {
			want = 2
		}
		require.Len(t, suite.all("testcase"), want, suite.attrs["name"])
	}
	require.Contains(t, doc, `<failure type="failed" message="trials passed: 1/2">`)
	require.Contains(t, doc, `<skipped message="skipped: not finished"/>`)
}

// The texts of one task do not fill memory.
func TestJUnitIsBounded(t *testing.T) {
	t.Parallel()
	c := &reporttest.Canned{Rec: &record.Run{RunID: "r"}, Now: record.Progress{Status: record.StatusCompleted}}
	big := strings.Repeat("é<", 8<<10)
	var trials []*record.Trial
	for range 400 {
		tr := c.Graded(record.Failed, record.Grade{Name: "g", Type: "text", Weight: 1, Feedback: big})
		tr.Output = big
		trials = append(trials, tr)
	}
	c.AddTask("a", record.RoleTask, record.Failed, trials...)
	doc := reporttest.Written(t, WriteJUnit, c)
	require.Less(t, len(doc), mostOfTask+1<<20)
	require.Contains(t, doc, `tests="400" failures="400"`)
	require.Equal(t, 400, strings.Count(doc, "<failure "))
}

func FuzzXMLText(f *testing.F) {
	f.Add("a<b>&\"'\x00\x1b[31m]]>\r\n\t\xff\ufffe\uffff\U0001f600 end")
	f.Fuzz(func(t *testing.T, s string) {
		root := parseXML(t, fmt.Sprintf("<a%s>%s</a>", xmlAttr("v", s), xmlText(s)))
		if got := root.attrs["v"]; got != root.text {
			t.Fatalf("attribute %q, text %q", got, root.text)
		}
		if escapeXML(root.text, false) != xmlText(s) {
			t.Fatalf("%q is read as %q, which is written differently", s, root.text)
		}
		if utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !inXML(r) }) && root.text != s {
			t.Fatalf("%q is read as %q", s, root.text)
		}
	})
}
