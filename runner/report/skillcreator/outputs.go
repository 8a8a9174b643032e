package skillcreator

import (
	"encoding/json"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"waza/runner/record"
	"waza/runner/report"
)

// The names of files that the format uses in the folder of outputs.
const (
	metricsFile  = "metrics.json"
	responseFile = "response.md"
)

// outputs writes the transcript, the final answer, the files that the agent left, and their metrics.
func (w *writer) outputs(dir string, t *record.Trial) (metrics, error) {
	m := metricsOf(t.Transcript)
	text := transcript(t)
	m.TranscriptChars = utf8.RuneCountInString(text)
	if err := w.text(path.Join(dir, "transcript.md"), text); err != nil {
		return m, err
	}
	out := path.Join(dir, "outputs")
	if t.Output != "" {
		m.OutputChars += utf8.RuneCountInString(t.Output)
		if err := w.text(path.Join(out, responseFile), t.Output); err != nil {
			return m, err
		}
	}
	if t.Workspace != nil {
		if err := w.files(out, t.Workspace.Entries, &m); err != nil {
			return m, err
		}
	}
	return m, w.document(path.Join(out, metricsFile), m)
}

func (w *writer) text(name, text string) error {
	return w.create(name, func(out io.Writer) error {
		_, err := io.WriteString(out, text)
		return err
	})
}

// files copies the files that the agent added or changed, as far as the record has their contents.
func (w *writer) files(dir string, entries []record.SnapshotEntry, m *metrics) error {
	names := newTree(metricsFile, responseFile)
	for i := range entries {
		e := &entries[i]
		added := e.Given == ""
		if e.Type != record.EntryFile || e.Blob == nil || !added && e.Given != record.GivenChanged || isInstalled(e.Path) {
			continue
		}
		data, err := w.blobs.Get(*e.Blob)
		if err != nil {
			w.note(fmt.Sprintf("%s/%s is missing: the record no longer has its content", dir, e.Path))
			continue
		}
		name := names.add(e.Path)
		if added {
			m.FilesCreated = append(m.FilesCreated, name)
		}
		m.OutputChars += utf8.RuneCount(data)
		if err := w.text(path.Join(dir, name), string(data)); err != nil {
			return err
		}
	}
	return nil
}

// isInstalled reports whether a file belongs to a repository or to an installed package.
func isInstalled(name string) bool {
	return slices.ContainsFunc(strings.Split(name, "/"), func(part string) bool { return part == ".git" || part == "node_modules" })
}

// A tree gives files below a folder paths that are safe and different on all file systems.
type tree struct {
	names   report.Names
	folders map[string]*folder
}

// A folder is the place of a folder of the agent.
type folder struct {
	name string
	tree *tree
}

func newTree(taken ...string) *tree {
	t := &tree{folders: map[string]*folder{}}
	for _, name := range taken {
		t.names.Add(name)
	}
	return t
}

// add returns the path of a file.
func (t *tree) add(file string) string {
	first, rest, below := strings.Cut(file, "/")
	switch {
	case !below:
		return t.names.Add(safe(first))
	case t.folders[first] == nil:
		t.folders[first] = &folder{t.names.Add(safe(first)), newTree()}
	}
	f := t.folders[first]
	return path.Join(f.name, f.tree.add(rest))
}

// mostOutputName is the size in bytes up to which names of files stay as they are.
const mostOutputName = 100

// safe returns a name without characters that a file system does not allow.
func safe(name string) string {
	if len(name) > mostOutputName || name == "" || strings.HasPrefix(name, "..") || name == "." || !utf8.ValidString(name) ||
		strings.ContainsAny(name, `/\:*?"<>|`) || strings.ContainsFunc(name, report.IsUnsafe) || strings.TrimRight(name, ". ") != name {
		return report.FileName(name, "file")
	}
	return name
}

// metricsOf counts what happened in a trial.
func metricsOf(entries []record.Entry) metrics {
	m := metrics{ToolCalls: map[string]int{}, FilesCreated: []string{}}
	for i := range entries {
		switch e := &entries[i]; {
		case e.Type == record.EntryError:
			m.Errors++
		case e.Type == record.EntryMessage && e.Role != "user":
			m.TotalSteps++
		case e.Type == record.EntryToolCall && e.Tool != nil:
			m.TotalSteps++
			m.TotalToolCalls++
			m.ToolCalls[e.Tool.Name]++
			if e.Tool.Status == "failed" {
				m.Errors++
			}
		}
	}
	return m
}

// transcript returns what happened in a trial as Markdown.
func transcript(t *record.Trial) string {
	var b strings.Builder
	section := func(title, text string) {
		fmt.Fprintf(&b, "## %s\n\n", title)
		if text != "" {
			b.WriteString(report.CodeBlock(text) + "\n")
		}
	}
	section("Eval Prompt", t.Prompt)
	for i := range t.Transcript {
		e := &t.Transcript[i]
		switch title := fmt.Sprintf("Step %d: %s", i+1, strings.ReplaceAll(string(e.Type), "_", " ")); {
		case e.Type == record.EntryMessage:
			section(title+" of the "+report.Clean(e.Role), e.Text)
		case e.Tool != nil:
			section(title, callText(e.Tool))
		case e.Permission != nil:
			section(title, fmt.Sprintf("%s\nallowed: %v\n%s", e.Permission.Title, e.Permission.Allowed, e.Permission.Reason))
		case len(e.Plan) > 0:
			section(title, planText(e.Plan))
		default:
			section(title, e.Text)
		}
	}
	section("Verdict", reasonOf(t))
	return b.String()
}

func callText(c *record.ToolCall) string {
	lines := c.Name
	if c.Status != "" {
		lines += " (" + c.Status + ")"
	}
	for _, part := range []json.RawMessage{c.Arguments, c.Result} {
		if len(part) > 0 {
			lines += "\n" + record.PlainText(part)
		}
	}
	return lines
}

// plain returns a JSON text as it is, and other JSON as JSON.
func planText(steps []record.PlanStep) string {
	lines := make([]string, len(steps))
	for i, s := range steps {
		lines[i] = fmt.Sprintf("- %s (%s)", s.Text, s.Status)
	}
	return strings.Join(lines, "\n")
}
