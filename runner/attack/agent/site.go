package agent

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"waza/eval/files"
	"waza/eval/reach"
)

const (
	// argument is the first argument of a process that is an agent; its name is the second.
	argument = "attack-agent"
	// briefVariable contains the [brief] of a forger as JSON, scriptVariable the text of a solution.
	briefVariable  = "WAZA_ATTACK_BRIEF"
	scriptVariable = "WAZA_ATTACK_SCRIPT"
)

// Main lets this program be an agent of an attack. Every program that runs attacks, such as waza,
// calls Main at the very start of main, before it reads its arguments. A test binary calls it in
// TestMain. In a process that was started as an agent, Main does a trial and does not return. In any
// other process it returns at once, so that nobody starts a forger by mistake.
func Main() {
	if len(os.Args) == 3 && os.Args[1] == argument && os.Getenv(briefVariable)+os.Getenv(scriptVariable) != "" {
		os.Exit(play(os.Args[2], os.Stdin, os.Stdout, os.Stderr))
	}
}

// A brief is what a forger knows about its suite, like an agent that looked
// around. It contains no expectation of a grader other than names of tools.
type brief struct {
	// Suite is the suite's directory. State and Temp are those of [Places].
	Suite string `json:"suite"`
	State string `json:"state"`
	Temp  string `json:"temp"`
	// Run is the id of the run.
	Run string `json:"run"`
	// Calls and Skills are those that graders seem to want.
	Calls  []call   `json:"calls,omitempty"`
	Skills []string `json:"skills,omitempty"`
}

// call is a tool call that a grader seems to want.
type call struct {
	Tool      string         `json:"tool"`
	Arguments map[string]any `json:"arguments,omitempty"`
}

// site is the place of an agent: its workspace, its streams and its brief.
type site struct {
	brief
	prompt string
	dir    string // the workspace
	out    *bufio.Writer
	code   int // exit code
}

// maxPrompt limits the prompt that an agent reads, in bytes.
const maxPrompt = 16 << 20

// play lets an agent do a trial and returns the exit code of its process.
func play(name string, stdin io.Reader, stdout, stderr io.Writer) int {
	a, ok := Find(name)
	if name == daemonName {
		a, ok = Attacker{act: (*site).haunt}, true
	}
	if !ok || a.act == nil {
		fmt.Fprintf(stderr, "%s: unknown agent %q\n", argument, name)
		return 2
	}
	s := &site{out: bufio.NewWriter(stdout)}
	if text := os.Getenv(briefVariable); text != "" {
		if err := json.Unmarshal([]byte(text), &s.brief); err != nil {
			fmt.Fprintf(stderr, "%s: %s: %v\n", argument, briefVariable, err)
			return 2
		}
	}
	prompt, err := io.ReadAll(io.LimitReader(stdin, maxPrompt))
	if err != nil {
		fmt.Fprintf(stderr, "%s: %v\n", argument, err)
		return 2
	}
	s.prompt = string(prompt)
	if s.dir, err = os.Getwd(); err != nil {
		fmt.Fprintf(stderr, "%s: %v\n", argument, err)
		return 2
	}
	if !a.Solves && !reach.Within(s.Temp, s.dir) {
		fmt.Fprintf(stderr, "%s: %s is not a workspace of an attack\n", argument, s.dir)
		return 2
	}
	a.act(s)
	if err := s.out.Flush(); err != nil {
		return 1
	}
	return s.code
}

// say writes a line of the answer.
func (s *site) say(format string, args ...any) { fmt.Fprintf(s.out, format+"\n", args...) }

// put writes a file of the workspace by its relative path, in place of an earlier one. A forger
// ignores errors: it does what it can.
func (s *site) put(name, text string, mode fs.FileMode) {
	s.write(filepath.Join(s.dir, filepath.FromSlash(name)), text, mode)
}

// write writes a file of the workspace or of Temp by its absolute path, in place of an earlier one.
// Links do not lead it to other places, which belong to the user.
func (s *site) write(path, text string, mode fs.FileMode) {
	base := s.Temp
	if reach.Within(s.dir, path) {
		base = s.dir
	}
	name, err := filepath.Rel(base, path)
	if err != nil || !filepath.IsLocal(name) {
		return
	}
	root, err := os.OpenRoot(base)
	if err != nil {
		return
	}
	defer root.Close()
	if root.MkdirAll(filepath.Dir(name), 0o755) != nil {
		return
	}
	if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return
	}
	if root.WriteFile(name, []byte(text), mode) == nil {
		_ = root.Chmod(name, mode)
	}
}

// maxVisited limits the files and directories that a forger looks at below one directory.
const maxVisited = 5000

// visit calls do for each regular file below a directory, without following links, at most
// maxVisited. It skips repositories and installed packages.
func visit(dir string, do func(path string, size int64)) {
	seen := 0
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // unreadable directories are skipped
		}
		if seen++; seen > maxVisited {
			return fs.SkipAll
		}
		if d.IsDir() {
			if name := d.Name(); path != dir && (name == ".git" || name == "node_modules") {
				return fs.SkipDir
			}
			return nil
		}
		if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
			do(path, info.Size())
		}
		return nil
	})
}

// maxRead limits a file that a forger reads, in bytes.
const maxRead = 256 << 10

// read returns the text of a file; empty if it is binary, too large or unreadable.
func read(path string) string {
	data, err := files.Read(path, maxRead)
	if err != nil || strings.ContainsRune(string(data), 0) {
		return ""
	}
	return string(data)
}

// solve starts the script of a solution and passes its streams and its exit code on.
func (s *site) solve() {
	script := os.Getenv(scriptVariable)
	if err := s.run(script); err != nil {
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			s.code = max(1, exit.ExitCode())
			return
		}
		fmt.Fprintf(os.Stderr, "solution: %v\n", err)
		s.code = 1
	}
}

// run starts a script in the workspace, with the prompt on its standard input. Its standard output
// is the answer.
func (s *site) run(script string) error {
	dir, err := os.MkdirTemp("", "waza-solution-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "solution")
	if err := os.WriteFile(file, []byte(script), 0o700); err != nil {
		return err
	}
	cmd := exec.Command("sh", file)
	if strings.HasPrefix(script, "#!") {
		cmd = exec.Command(file)
	}
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = s.dir, strings.NewReader(s.prompt), s.out, os.Stderr
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, scriptVariable+"=") && !strings.HasPrefix(v, briefVariable+"=") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	if events := os.NewFile(3, "events"); events != nil {
		if _, err := events.Stat(); err == nil {
			cmd.ExtraFiles = []*os.File{events}
		}
	}
	return cmd.Run()
}
