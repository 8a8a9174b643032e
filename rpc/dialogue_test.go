package rpc_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"waza/rpc"
)

var update = flag.Bool("update", false, "rewrite the server's lines of the dialogues in testdata")

// TestDialogues plays the two-sided dialogues of testdata/dialogues. Each is a txtar archive
// with the files of the suite and one named dialogue, which consists of the lines
//
//	> text       the client sends a line and waits for the reply, unless the line
//	             is a notification
//	>> text      the client sends a line and does not wait
//	await NAME   the client reads up to a notification of that method
//	move A B     renames a file of the suite
//	close        the client closes its input
//	< text       a line from the server, in order
//	# text       a comment
//
// The archive's comment can contain "transports: stdio", "token: TEXT", "agents: TEXT", "messenger:
// TEXT" or "browsers: TEXT". The last three use the servers of [directory], [desk] and
// [browsers]. Values that differ from run to run are written $DIR, $RUN1, $TIME and so on, and
// so is the long list of methods. With -update, the test rewrites the server's lines.
func TestDialogues(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("testdata", "dialogues", "*.txtar"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	schemas := loadSchemas(t)
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		archive := txtar.Parse(data)
		for name, connect := range transports {
			if only := setting(archive, "transports"); only != "" && only != name || *update && name != "stdio" && only == "" {
				continue
			}
			t.Run(filepath.Base(file)+"/"+name, func(t *testing.T) {
				t.Parallel()
				d := &dialogue{T: t, dir: write(t, string(data)), schemas: schemas}
				o := rpc.Options{Token: setting(archive, "token")}
				if setting(archive, "agents") != "" {
					o.Agents = &directory{}
				}
				if setting(archive, "messenger") != "" {
					o.Messenger = &desk{}
				}
				if setting(archive, "browsers") != "" {
					o.Browsers = browsers{}
				}
				d.client = connect(t, newServer(t, o))
				script := content(archive, "dialogue")
				got := d.play(script)
				if *update {
					rewrite(t, file, archive, got)
					return
				}
				if diff := cmp.Diff(strings.Split(script, "\n"), strings.Split(got, "\n")); diff != "" {
					t.Errorf("the dialogue differs (-want +got):\n%s", diff)
				}
			})
		}
	}
}

func setting(a *txtar.Archive, name string) string {
	for line := range strings.Lines(string(a.Comment)) {
		if value, ok := strings.CutPrefix(line, name+": "); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func content(a *txtar.Archive, name string) string {
	for _, f := range a.Files {
		if f.Name == name {
			return string(f.Data)
		}
	}
	return ""
}

func rewrite(t *testing.T, file string, a *txtar.Archive, dialogue string) {
	for i := range a.Files {
		if a.Files[i].Name == "dialogue" {
			a.Files[i].Data = []byte(dialogue)
		}
	}
	require.NoError(t, os.WriteFile(file, txtar.Format(a), 0o644))
}

type dialogue struct {
	*testing.T
	client  *client
	dir     string
	schemas *schemas
	runs    []string          // ids, in order of appearance
	methods map[string]string // method of each request, by id
	out     strings.Builder
}

// play plays the client's part of a script and returns the whole dialogue.
func (d *dialogue) play(script string) string {
	d.methods = map[string]string{}
	for line := range strings.Lines(script) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "<") {
			continue
		}
		d.out.WriteString(line + "\n")
		switch text := d.fill(line); {
		case strings.HasPrefix(text, ">> "):
			d.client.send(text[3:] + "\n")
		case strings.HasPrefix(text, "> "):
			d.client.send(text[2:] + "\n")
			d.hear(d.owed(text[2:]))
		case strings.HasPrefix(text, "await "):
			d.hear(func(m message) bool { return m.Method == text[6:] })
		case strings.HasPrefix(text, "move "):
			names := strings.Fields(text)
			require.Len(d, names, 3, "%s", line)
			require.NoError(d, os.Rename(filepath.Join(d.dir, names[1]), filepath.Join(d.dir, names[2])))
		case text == "close":
			require.NoError(d, d.client.w.Close())
		case text != "" && text[0] != '#':
			d.Fatalf("not a line of a dialogue: %s", line)
		}
	}
	d.client.w.Close() // it may have ended already
	for _, line := range d.client.rest() {
		d.heard(line)
	}
	return d.out.String()
}

// owed returns a function that recognizes the reply to the client's line, or nil.
func (d *dialogue) owed(sent string) func(message) bool {
	var req struct {
		ID     json.RawMessage
		Method string
	}
	if err := json.Unmarshal([]byte(sent), &req); err != nil || req.Method == "" {
		return func(m message) bool { return m.Method == "" }
	}
	if req.ID == nil {
		return nil
	}
	d.methods[string(req.ID)] = req.Method
	return func(m message) bool { return m.Method == "" && string(m.ID) == string(req.ID) }
}

// hear reads lines up to a wanted one.
func (d *dialogue) hear(wanted func(message) bool) {
	for wanted != nil {
		line, ok := d.client.line()
		require.True(d, ok, "the output has ended; so far:\n%s", d.out.String())
		d.heard(line)
		var m message
		_ = json.Unmarshal([]byte(line), &m) // fails for a batch, which is then wanted as the zero message
		if wanted(m) {
			return
		}
	}
}

// heard records a line of the server, and checks that it has the form that rpc.discover
// documents.
func (d *dialogue) heard(line string) {
	d.schemas.check(d, line, d.methods)
	d.out.WriteString("< " + d.simplify(line) + "\n")
}

var (
	runID    = regexp.MustCompile(`\b\d{8}-\d{6}\.\d{3}-[a-z0-9]{10}\b`)
	times    = regexp.MustCompile(`"\d{4}-\d\d-\d\dT[0-9:.]+Z"`)
	duration = regexp.MustCompile(`"(duration|meanDuration|executor)Ms":(\d+(?:\.\d+)?|\{[^{}]*(\{[^{}]*\})?[^{}]*\})`)
	// conditions of the machine are those of slow trials, here or on a busy machine
	conditions = regexp.MustCompile(`,"conditions":\{[^{}]*(\{[^{}]*\})?[^{}]*\}`)
	bytesOf    = regexp.MustCompile(`"bytes":\d+`)
	offset     = regexp.MustCompile(`"atMs":\d+`)
	methods    = regexp.MustCompile(`"methods":\["eval\.run"[^\]]*\]`)
	hashes     = regexp.MustCompile(`"(hash|execution)":"[0-9a-f]{32}"`)
)

// simplify replaces values that differ from run to run.
func (d *dialogue) simplify(line string) string {
	line = strings.ReplaceAll(line, d.dir, "$DIR")
	line = runID.ReplaceAllStringFunc(line, d.nameRun)
	line = times.ReplaceAllString(line, `"$$TIME"`)
	line = duration.ReplaceAllString(line, `"${1}Ms":$$MS`)
	line = conditions.ReplaceAllString(line, "")
	line = bytesOf.ReplaceAllString(line, `"bytes":$$N`)
	line = offset.ReplaceAllString(line, `"atMs":$$MS`)
	line = methods.ReplaceAllString(line, `"methods":$$METHODS`)
	return hashes.ReplaceAllString(line, `"${1}":"$$HASH"`)
}

func (d *dialogue) nameRun(id string) string {
	for i, known := range d.runs {
		if known == id {
			return runName(i)
		}
	}
	d.runs = append(d.runs, id)
	return runName(len(d.runs) - 1)
}

func runName(i int) string { return "$RUN" + string(rune('1'+i)) }

// fill replaces the variables of a script.
func (d *dialogue) fill(line string) string {
	line = strings.ReplaceAll(line, "$DIR", d.dir)
	for i, id := range d.runs {
		line = strings.ReplaceAll(line, runName(i), id)
	}
	return line
}
