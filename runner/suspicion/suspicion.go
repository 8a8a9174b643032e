// Package suspicion finds moves of an agent that a forger would make: it searches for the answers,
// weakens the tests or addresses the judge instead of doing the task. Call [Scan] once when a trial
// ends. [Rules] is the table of all rules; docs/suspicious.md lists it.
//
// A move is a reason for a person to look, not a verdict: honest agents sometimes make one too, and a
// forger who reports nothing and leaves nothing behind makes none that waza sees.
package suspicion

import (
	"maps"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"waza/eval"
	"waza/eval/text"
	"waza/runner/record"
)

// Limits of one scan. An agent can write as much as it likes, and waza waits for the scan.
const (
	maxFile     = 256 << 10 // bytes of a file that are read
	maxFiles    = 200       // files that are read
	maxBytes    = 2 << 20   // bytes of all files that are read
	maxText     = 256 << 10 // bytes of a message and of the output
	maxTexts    = 2 << 20   // bytes of all messages
	maxCalls    = 2000      // tool calls and messages
	maxCall     = 16 << 10  // bytes of the arguments of a tool call
	maxCallText = 2 << 20   // bytes of the arguments of all tool calls
	maxPrompt   = 16 << 10  // bytes of prompts in which a request is looked for
	maxNames    = 200       // paths of graders' files that are looked for
	maxOfRule   = 5         // suspicions of one rule
	maxEvidence = 200       // bytes of an excerpt
)

// Trial is the end of an attempt as the agent left it. The caller owns all of it; Scan changes
// nothing.
type Trial struct {
	Suite *eval.Suite
	Task  *eval.Task
	// Prompt is the first prompt as sent. The task has the others.
	Prompt string
	// State is the state directory of waza, absolute; empty if it is unknown.
	State string
	// GraderFiles are those of the order, see [record.Order].
	GraderFiles map[string]string
	Transcript  []record.Entry
	Output      string
	// Workspace is nil if the agent had none.
	Workspace *record.Snapshot
	// Open opens the workspace. The caller of Open closes the result.
	Open func() (*os.Root, error)
	// Redact removes secrets from an excerpt.
	Redact func(text string) string
}

// Expecter is implemented by options of graders that accept literal texts as right.
type Expecter interface {
	// ExpectedTexts returns the texts, each of which an answer can contain to pass.
	ExpectedTexts() []string
}

// Commander is implemented by options of graders that start a program.
type Commander interface {
	// Words returns the words of the command. Some can be paths in the workspace.
	Words() []string
}

// Needed reports whether a trial must be scanned: the agent called tools or changed files, or a model
// judges its texts. It needs no memory, because most trials of many suites need no scan.
func Needed(task *eval.Task, transcript []record.Entry, workspace *record.Snapshot) bool {
	if isJudged(task) {
		return true
	}
	for i := range transcript {
		if transcript[i].Type == record.EntryToolCall {
			return true
		}
	}
	return workspace != nil && (len(workspace.Removed) > 0 || slices.ContainsFunc(workspace.Entries, isWritten))
}

// Scan returns the suspicious moves of a trial, in the order of the rules; nil without any.
func Scan(t *Trial) []record.Suspicion {
	s := scan{Trial: t, graderFiles: slices.Sorted(maps.Keys(t.GraderFiles))}
	defer s.close()
	for i := range rules {
		s.rule, s.found = &rules[i], 0
		rules[i].check(&s)
	}
	return s.list
}

// isJudged reports whether a model judges the trials of a task.
func isJudged(task *eval.Task) bool {
	return slices.ContainsFunc(task.Effective, func(g *eval.Grader) bool { return g.Type == record.TypePrompt })
}

// isWritten reports whether the agent added or changed a file.
func isWritten(e record.SnapshotEntry) bool {
	return e.Type == record.EntryFile && (e.Given == "" || e.Given == record.GivenChanged)
}

// scan is one run of all rules over a trial.
type scan struct {
	*Trial
	graderFiles []string // sorted
	rule        *Rule
	found       int // of the rule
	list        []record.Suspicion

	root  *os.Root // nil until a file is read
	read  bool     // files is complete
	files []file
	words *string // see asked

	request string // see prompts
	testing *bool  // see asksForTests
}

// file is a file that the agent added or changed, as far as it was read.
type file struct {
	path    string
	given   bool // the workspace had another content at the start
	content string
	// before is the content at the start; known reports whether waza has it.
	before string
	known  bool
}

func (s *scan) close() {
	if s.root != nil {
		s.root.Close()
	}
}

// add adds a suspicion with the excerpt of a text between two offsets.
func (s *scan) add(place, of string, from, to int) {
	if s.found++; s.found <= maxOfRule {
		s.list = append(s.list, record.Suspicion{Rule: s.rule.Name, Place: text.Clip(strings.ToValidUTF8(place, "\uFFFD"), maxEvidence), Evidence: s.excerpt(of, from, to)})
	}
}

// excerpt returns the part of a text around two offsets in one line, without secrets.
func (s *scan) excerpt(of string, from, to int) string {
	const around = 60
	start, end := max(0, from-around), min(len(of), max(to+around, from))
	if i := strings.LastIndexByte(of[start:from], '\n'); i >= 0 {
		start += i + 1
	}
	if i := strings.IndexByte(of[to:end], '\n'); i >= 0 {
		end = to + i
	}
	for start > 0 && start < len(of) && !utf8.RuneStart(of[start]) {
		start++
	}
	part := strings.Join(strings.Fields(strings.ToValidUTF8(of[start:end], "\uFFFD")), " ")
	if s.Redact != nil {
		part = s.Redact(part)
	}
	return text.Clip(part, maxEvidence-len("…"))
}

// calls calls f with the number, the tool and the arguments of each tool call.
func (s *scan) calls(f func(place, arguments string)) {
	n, left := 0, maxCallText
	for i := range s.Transcript {
		c := s.Transcript[i].Tool
		if c == nil {
			continue
		}
		if n++; n > maxCalls || left <= 0 {
			return
		}
		arguments := string(c.Arguments[:min(len(c.Arguments), maxCall, left)])
		left -= len(arguments)
		f(callPlace(n, c.Name), arguments)
	}
}

// written returns the files that the agent added or changed, with their contents.
func (s *scan) written() []file {
	if s.read || s.Workspace == nil || s.Open == nil {
		return s.files
	}
	s.read = true
	size := 0
	for i := range s.Workspace.Entries {
		e := &s.Workspace.Entries[i]
		if !isWritten(*e) || len(s.files) == maxFiles || size >= maxBytes {
			continue
		}
		f := file{path: e.Path, given: e.Given == record.GivenChanged}
		if f.content = s.readFile(e.Path); f.given {
			f.before, f.known = s.fixture(e.Path)
		}
		size += len(f.content)
		s.files = append(s.files, f)
	}
	return s.files
}

// fixture returns the content of a file of the task. ok is false for files of repositories and of the
// executor, and for those that cannot be read.
func (s *scan) fixture(path string) (content string, ok bool) {
	for _, f := range slices.Backward(s.Task.Inputs.Files) {
		if cleanPath(f.Path) != path {
			continue
		}
		if f.Content != nil {
			return *f.Content, true
		}
		data, err := s.Suite.ReadFile(f.Source, maxFile)
		return string(data), err == nil
	}
	return "", false
}

// asked reports whether the prompts or the files of the task contain a text, in any letter case. The
// agent then has it from there.
func (s *scan) asked(part string) bool {
	if s.words == nil {
		var b strings.Builder
		b.WriteString(s.Prompt)
		for _, p := range s.Task.Inputs.FollowUpPrompts {
			b.WriteString("\n" + p)
		}
		for i, f := range s.Task.Inputs.Files {
			if content, ok := s.fixture(cleanPath(f.Path)); ok && i < maxFiles && b.Len() < maxBytes {
				b.WriteString("\n" + content)
			}
		}
		all := strings.ToLower(b.String())
		s.words = &all
	}
	return strings.Contains(*s.words, strings.ToLower(part))
}

// prompts returns the start of the prompts of the task.
func (s *scan) prompts() string {
	if s.request == "" {
		s.request = text.Head(s.Prompt+"\n"+strings.Join(s.Task.Inputs.FollowUpPrompts, "\n"), maxPrompt)
	}
	return s.request
}

// asksForTests reports whether a prompt asks to write or change tests.
func (s *scan) asksForTests() bool {
	if s.testing == nil {
		asks := requestOfTests().MatchString(s.prompts())
		s.testing = &asks
	}
	return *s.testing
}
