package report

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"waza/eval/text"
	"waza/runner/figure"
	"waza/runner/record"
)

//
// A JUnit file contains a testsuite for each task of the run with a testcase for each trial, and
// one more testsuite about the run as a whole:
//
//	<testsuites name="demo">
//	  <testsuite name="demo.greet"> properties
//	    <testcase classname="demo.greet" name="greet (trial 1)"/>
//	    <testcase …><failure type="failed" message="polite: …">…</failure><system-out>…</system-out></testcase>
//	  </testsuite>
//	  <testsuite name="demo.run"> metrics with a threshold, the answer of a run that decides a
//	                              question, and the run if it did not complete
//
// Class and name identify the trial and are the same in each run; readers keep their history by
// them. The file uses only elements and attributes of the strictest schema in use (Jenkins'
// xUnit).

// mostTestcases is the most trials that get a testcase each. A larger run gets one testcase per
// task, because readers cannot show so many and each takes some 15 µs to write.
const mostTestcases = 10_000

const (
	mostOutput       = 8 << 10 // bytes of the output of a trial that did not pass
	mostPassedOutput = 1 << 10 // bytes of the output of a trial that passed
	mostFeedback     = 8 << 10 // bytes of graders' feedback on a trial
	mostMessage      = 300     // bytes of a message
	mostOfTask       = 4 << 20 // bytes of outputs and feedback of a task, which is built in memory
)

// WriteJUnit writes a run as JUnit XML.
func WriteJUnit(w io.Writer, h record.Handle) error {
	r, err := OfResults(h)
	if err != nil {
		return err
	}
	if r.Damage, err = h.Damage(); err != nil {
		return err
	}
	j := &junit{Report: r, out: bufio.NewWriterSize(w, 64<<10), seen: map[int]bool{}}
	j.open()
	planned := 0
	for _, t := range j.Record.Tasks {
		planned += t.Trials
	}
	if j.decides() && j.Summary != nil {
		planned -= j.Summary.TrialsSaved
	}
	if planned > mostTestcases {
		j.tasksAlone()
	} else if err := h.Outcomes(j.trial); err != nil {
		return err
	}
	j.upTo(len(j.Record.Tasks))
	j.run()
	j.out.WriteString("</testsuites>\n")
	return j.out.Flush()
}

// junit writes a file from its first line to its last. It holds one task at a time in memory.
type junit struct {
	*Report
	out *bufio.Writer

	task  int          // index of the current task
	cases bytes.Buffer // its testcases
	count caseCounts
	seen  map[int]bool // numbers of its trials with a testcase
	room  int          // bytes of free text left for it
}

// caseCounts holds a testsuite's counts of testcases.
type caseCounts struct {
	tests, failures, errors, skipped int
	milliseconds                     int64
}

func (c caseCounts) attributes() string {
	return fmt.Sprintf(` tests="%d" failures="%d" errors="%d" skipped="%d" time="%s"`, c.tests, c.failures,
		c.errors, c.skipped, seconds(c.milliseconds))
}

func seconds(ms int64) string { return strconv.FormatFloat(float64(max(0, ms))/1000, 'f', 3, 64) }

func (j *junit) open() {
	j.room = mostOfTask
	j.out.WriteString(`<?xml version="1.0" encoding="UTF-8"?>` + "\n<testsuites" + xmlAttr("name", j.Record.Suite.Name))
	if s := j.Summary; s != nil {
		j.out.WriteString(xmlAttr("time", seconds(s.DurationMS)))
	}
	j.out.WriteString(">\n")
}

// trial adds the next trial of the run, whose output has more bytes.
func (j *junit) trial(task int, t *record.Trial, more int64) error {
	j.upTo(task)
	j.seen[t.TrialNum] = true
	if j.decides() && t.Verdict == record.Skipped {
		return nil // the question did not need it
	}
	line, text := Explain(t, j.Record.RunID)
	most := mostOutput
	if t.Verdict == record.Passed {
		most = mostPassedOutput
	}
	j.testcase(testcase{
		name: j.trialName(t.TrialNum), verdict: t.Verdict, milliseconds: t.DurationMS, untimed: t.Untimed,
		message: line, text: Cut(text, mostFeedback), output: cutLong(t.Output, most, more),
	})
	return nil
}

func (j *junit) trialName(number int) string {
	return fmt.Sprintf("%s (trial %d)", j.Record.Tasks[j.task].ID, number)
}

// upTo writes the tasks before the given one that have no testcases yet.
func (j *junit) upTo(task int) {
	for ; j.task < task; j.task++ {
		j.endTask()
	}
}

// endTask writes the current task.
func (j *junit) endTask() {
	t, res := j.Record.Tasks[j.task], j.Tasks[j.task].Result
	if res == nil {
		j.unfinished()
	} else if res.Error != "" {
		j.testcase(testcase{name: t.ID + " (task)", verdict: record.Errored, message: firstLine(res.Error), text: Cut(res.Error, mostFeedback)})
	}
	j.suite(j.class(), j.properties(t, res))
}

// unfinished adds the trials of a task that never ended.
func (j *junit) unfinished() {
	t := j.Record.Tasks[j.task]
	if len(j.seen) == 0 && j.count.tests > 0 {
		return // one testcase represents the task
	}
	if j.decides() {
		return // most trials are not needed
	}
	for number := t.First; number < t.First+t.Trials; number++ {
		if !j.seen[number] {
			j.testcase(testcase{name: j.trialName(number), verdict: record.Skipped, message: "not finished"})
		}
	}
}

// tasksAlone adds one testcase per task, which represents all its trials.
func (j *junit) tasksAlone() {
	for i, t := range j.Record.Tasks {
		j.upTo(i)
		res := j.Tasks[i].Result
		if res == nil {
			j.testcase(testcase{name: t.ID, verdict: record.Skipped, message: "not finished"})
			continue
		}
		c := testcase{name: t.ID, verdict: res.Verdict, message: "trials passed: " + trials(res.Trials.Counts)}
		if d := res.DurationMS; d != nil {
			c.milliseconds = int64(d.Mean * float64(d.N))
		}
		for _, why := range res.Reasons {
			c.text += fmt.Sprintf("in %s: %s%s\n", text.Count(why.Trials, "trial", "trials"), prefix(why.Grader, ": "),
				Cut(strings.TrimSpace(why.Message), mostMessage))
		}
		j.testcase(c)
	}
}

// prefix returns a text followed by its separator, or nothing if the text is empty.
func prefix(s, separator string) string {
	if s == "" {
		return ""
	}
	return s + separator
}

// After returns a text preceded by its separator, or nothing if the text is empty.
func After(separator, s string) string {
	if s == "" {
		return ""
	}
	return separator + s
}

// A testcase holds what the file contains about a trial.
type testcase struct {
	name         string
	verdict      record.Verdict
	kind         string // type of a failure or an error; empty for the verdict
	milliseconds int64
	untimed      bool   // the time is unknown
	message      string // the reason of not passing, in one line
	text, output string
}

func (j *junit) testcase(c testcase) {
	j.count.tests++
	j.count.milliseconds += max(0, c.milliseconds)
	fmt.Fprintf(&j.cases, "    <testcase%s%s", xmlAttr("classname", j.class()), xmlAttr("name", c.name))
	if !c.untimed {
		fmt.Fprintf(&j.cases, " time=\"%s\"", seconds(c.milliseconds))
	}
	body := j.outcome(c)
	if output := j.take(c.output); output != "" {
		body += "      <system-out>" + output + "</system-out>\n"
	}
	if body == "" {
		j.cases.WriteString("/>\n")
		return
	}
	j.cases.WriteString(">\n" + body + "    </testcase>\n")
}

// outcome returns the element with the outcome of a testcase, or "" for a pass.
func (j *junit) outcome(c testcase) string {
	message := Cut(c.message, mostMessage)
	element, typ := "skipped", ""
	switch {
	case c.verdict == record.Passed:
		return ""
	case j.exempts(c.verdict):
		message = "not counted: " + string(c.verdict) + ": " + message
	case c.verdict == record.Errored:
		element, typ = "error", cmp.Or(c.kind, "error")
		j.count.errors++
	case c.verdict == record.Failed || c.verdict == record.TimedOut:
		element, typ = "failure", cmp.Or(c.kind, string(c.verdict))
		j.count.failures++
	default:
		message = strings.ReplaceAll(string(c.verdict), "_", " ") + ": " + message
	}
	if element == "skipped" {
		j.count.skipped++
		return "      <skipped" + xmlAttr("message", message) + "/>\n"
	}
	head := "      <" + element + xmlAttr("type", typ) + xmlAttr("message", message)
	if text := j.take(c.text); text != "" {
		return head + ">" + text + "</" + element + ">\n"
	}
	return head + "/>\n"
}

// exempts reports whether a verdict is not a failure of the suite: a baseline shows only what an
// agent cannot do without skills, and an answer to a trigger test counts only in a metric. In a run that
// decides a question, both sides can fail trials, and only the answer counts.
func (j *junit) exempts(v record.Verdict) bool {
	if j.task >= len(j.Record.Tasks) {
		return false
	}
	if j.decides() && (v == record.Failed || v == record.TimedOut || v == record.Errored) {
		return true
	}
	role := j.Record.Tasks[j.task].Role
	return role == record.RoleBaseline && (v == record.Failed || v == record.TimedOut) || role == record.RoleTrigger && v == record.Failed
}

// take returns as much of a text as fits into the rest of the task's room.
func (j *junit) take(s string) string {
	if s == "" || j.room <= 0 {
		return ""
	}
	text := xmlText(s)
	j.room -= len(text)
	return text
}

// class returns the class of the current testcases.
func (j *junit) class() string {
	id := "run"
	if j.task < len(j.Record.Tasks) {
		id = j.Record.Tasks[j.task].ID
	}
	return prefix(j.Record.Suite.Name, ".") + id
}

// A property of a testsuite.
type property struct{ name, value string }

func (j *junit) properties(t record.TaskRef, res *record.Task) []property {
	list := append(j.common(), property{"model", j.Record.ModelOf(&t)}, property{"task", t.ID},
		property{"file", t.File}, property{"tags", strings.Join(t.Tags, ", ")})
	if t.Role != record.RoleTask {
		list = append(list, property{"role", string(t.Role)})
	}
	if res == nil {
		return list
	}
	list = append(list, property{"verdict", string(res.Verdict)})
	if res.Score != nil {
		list = append(list, property{"score", number(res.Score.Mean)})
	}
	if res.Trials.PassRate != nil {
		list = append(list, property{"pass_rate", number(*res.Trials.PassRate)})
	}
	if b := res.Trials.PassRateBounds; b != nil { // while trials wait for a person's score
		list = append(list, property{"pass_rate_low", number(b.Low)}, property{"pass_rate_high", number(b.High)})
	}
	if res.Flaky {
		list = append(list, property{"flaky", "true"})
	}
	if res.Suspicious > 0 {
		list = append(list, property{"suspicious_passes", strconv.Itoa(res.Suspicious)})
		for i := range res.Suspicions {
			list = append(list, property{"suspicion", Cut(suspicionText(&res.Suspicions[i]), mostMessage)})
		}
	}
	if res.SelfReported > 0 {
		list = append(list, property{"self_reported_passes", strconv.Itoa(res.SelfReported)})
	}
	return append(list, spentProperties(res.Usage)...)
}

// spentProperties returns the cost of all attempts, agents and judges.
func spentProperties(u *record.Usage) []property {
	if u == nil {
		return nil
	}
	list := []property{{"tokens", fmt.Sprint(u.Total())}}
	if u.CostUSD > 0 {
		list = append(list, property{"cost_usd", number(u.CostUSD)})
	}
	return list
}

// common returns the properties that all testsuites have.
func (j *junit) common() []property {
	c := &j.Record.Config
	list := []property{{"run", j.Record.RunID}, {"executor", c.Executor}, {"agent", c.Agent}}
	if s := j.Sandbox(); s != nil {
		list = append(list, property{"sandbox", s.String()})
	}
	return list
}

// number formats a number in full and always in the same way.
func number(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// suite writes the current testcases as a testsuite, and starts the next.
func (j *junit) suite(name string, properties []property) {
	j.out.WriteString("  <testsuite" + xmlAttr("name", name) + j.count.attributes() +
		xmlAttr("timestamp", j.StartedAt.UTC().Format(time.RFC3339)) + ">\n    <properties>\n")
	for _, p := range properties {
		if p.value != "" {
			j.out.WriteString("      <property" + xmlAttr("name", p.name) + xmlAttr("value", p.value) + "/>\n")
		}
	}
	j.out.WriteString("    </properties>\n")
	j.out.Write(j.cases.Bytes())
	j.out.WriteString("  </testsuite>\n")
	j.cases.Reset()
	clear(j.seen)
	j.count, j.room = caseCounts{}, mostOfTask
}

// run adds testcases for metrics under their threshold and for a run that did not complete.
// Without the latter, an incomplete run with no failures would look like a success.
func (j *junit) run() {
	if s := j.Summary; s != nil {
		for _, m := range s.Metrics {
			j.metric(m)
		}
		if s.Decision != nil && j.Status == record.StatusCompleted {
			j.decision(s.Decision)
		}
	}
	if status := j.Status; status != record.StatusCompleted {
		message := "the run did not complete: its status is " + string(status)
		text := cmp.Or(j.Error, "unfinished trials are marked as skipped")
		j.testcase(testcase{name: "run", verdict: record.Errored, message: message, text: Cut(text, mostFeedback)})
	}
	if j.Damage != nil {
		message := "the record of the run is damaged"
		if !j.Damage.Damaged() {
			message = "the record of the run cannot be verified"
		}
		j.testcase(testcase{name: "record", verdict: record.Errored, message: message, text: Cut(j.Damage.String(), mostFeedback)})
	}
	properties := append(j.common(), property{"status", string(j.Status)})
	if j.Damage != nil {
		properties = append(properties, property{"record", Cut(j.Damage.String(), mostFeedback)})
	}
	if s := j.Summary; s != nil {
		properties = append(properties, spentProperties(s.Usage)...)
		properties = append(properties, decisionProperties(s.Decision)...)
	}
	if j.count.tests > 0 || j.Damage != nil {
		j.suite(j.class(), properties)
	}
}

func (j *junit) metric(m record.MetricResult) {
	if m.Threshold <= 0 {
		return
	}
	c := testcase{name: "metric " + m.Name, verdict: record.Passed}
	switch {
	case m.Value == nil:
		c.verdict, c.message = record.Skipped, m.Note
	case m.Passed != nil && !*m.Passed:
		c.verdict = record.Failed
		c.message = fmt.Sprintf("%s is %s, expected at least %s", m.Name, figure.Score(*m.Value, m.Threshold), figure.Threshold(m.Threshold))
	}
	j.testcase(c)
}
