// Package command is the executor that runs any program as the agent. The program gets the
// prompt on standard input, as an argument or in the environment. Its standard output is the
// answer. It can report events as JSON lines on file descriptor 3. See [Kind].
package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"waza/eval"
	"waza/eval/decode"
	"waza/eval/files"
	"waza/eval/jsonwalk"
	"waza/runner/executor"
	"waza/runner/proc"
	"waza/runner/record"
	"waza/runner/sandbox"
)

// Kind is the command executor.
var Kind = executor.Kind{
	Kind: eval.Kind{
		Name:    "command",
		Summary: "Runs any program as the agent, in the trial's workspace. An exit code other than 0 is an error.",
		Options: func() any { return &Options{PromptAs: Stdin} },
		Check:   func(c *eval.Check, o any) { check(c, o.(*Options)) },
		Params:  eval.ParamsInEnvironment,

		TakesSkills: true,
	},
	Capabilities: func(s executor.Settings) executor.Capabilities {
		o, ok := s.Options.(*Options)
		silent := ok && o.NoSteps
		return executor.Capabilities{Skills: !silent, Stepless: silent} // skills are reported by the program
	},
	Open:      open,
	Programs:  true,
	Streams:   true,
	Contained: true,
	Preflight: preflight,
	Needs:     needs,
}

// reportGrace is how long the side channel is still read when an escaped process holds its other
// end. It is long because on a busy machine the reader may not have run yet.
const reportGrace = 2 * time.Second

// maxStderr is the number of bytes kept of a program's standard error for messages.
const maxStderr = 16 << 10

type command struct {
	options   *Options
	suite     *eval.Suite
	args      []string
	files     []string // of the suite that the command names
	sandboxes *sandbox.Sandboxes
}

func open(_ context.Context, s executor.Settings) (executor.Executor, error) {
	o := s.Options.(*Options)
	if len(o.Command.Args) == 0 {
		return nil, errors.New("config.command is empty; set it to the program to run")
	}
	return &command{
		options: o, suite: s.Suite, args: resolve(o.Command, s.Suite.Dir), sandboxes: s.Sandboxes,
		files: append(o.Refers(s.Suite, nil), named(o.Command, s.Suite.Dir)...),
	}, nil
}

// resolve makes the names of files next to the suite absolute, because the program runs in the
// workspace.
func resolve(c Line, dir string) []string {
	args := make([]string, len(c.Args))
	for i, arg := range c.Args {
		args[i] = arg
		if c.Shell || arg == "" || strings.HasPrefix(arg, "-") || filepath.IsAbs(arg) {
			continue
		}
		abs := filepath.Join(dir, arg)
		if st, err := os.Stat(abs); err == nil && st.Mode().IsRegular() {
			args[i] = abs
		}
	}
	if !c.Shell {
		return args
	}
	script := args[0]
	for _, word := range slices.Backward(scriptWords(script)) {
		if abs, ok := inScript(script[word.start:word.end], dir); ok {
			script = script[:word.start] + "'" + strings.ReplaceAll(abs, "'", `'\''`) + "'" + script[word.end:]
		}
	}
	return []string{"sh", "-c", script}
}

// A span is a part of a text, from start to before end.
type span struct{ start, end int }

// scriptWords returns the words of a shell script that can be files next to the suite: the program, if it has
// a slash, as in shells, and the script of an interpreter. Other words can be files of the workspace.
func scriptWords(script string) []span {
	var words []span
	var texts []string
	for word := range strings.FieldsSeq(script) {
		if strings.ContainsAny(word, "\\'\"`$*?[]{}()<>|&;=#!~") {
			break
		}
		start := strings.Index(script[last(words):], word) + last(words)
		words, texts = append(words, span{start, start + len(word)}), append(texts, word)
	}
	var found []span
	if len(words) > 0 && strings.Contains(texts[0], "/") {
		found = append(found, words[0])
	}
	if i := files.ScriptIndex(texts); i > 0 {
		found = append(found, words[i])
	}
	return found
}

// last returns the end of the last word.
func last(words []span) int {
	if len(words) == 0 {
		return 0
	}
	return words[len(words)-1].end
}

// inScript returns the absolute path of a regular file next to the suite that a word of a script names.
func inScript(word, dir string) (abs string, ok bool) {
	if filepath.IsAbs(word) {
		return "", false
	}
	abs = filepath.Join(dir, word)
	st, err := os.Stat(abs)
	return abs, err == nil && st.Mode().IsRegular()
}

// named returns the files next to the suite that the arguments of a command name. They can be above
// the suite's directory.
func named(c Line, dir string) []string {
	var files []string
	if c.Shell {
		for _, word := range scriptWords(c.Args[0]) {
			if abs, ok := inScript(c.Args[0][word.start:word.end], dir); ok {
				files = append(files, abs)
			}
		}
		return files
	}
	for i, arg := range resolve(c, dir) {
		if arg != c.Args[i] {
			files = append(files, arg)
		}
	}
	return files
}

// Refers returns the files of the suite to which the command refers.
func (o *Options) Refers(suite *eval.Suite, _ *eval.Task) []string {
	return suite.Mentioned("", o.Command.Args...)
}

func preflight(_ context.Context, s executor.Settings) []executor.Finding {
	o := s.Options.(*Options)
	if len(o.Command.Args) == 0 {
		return nil
	}
	name := programOf(o.Command, s.Suite.Dir)
	env := os.Environ()
	if p, ok := o.Env["PATH"]; ok {
		env = append(env, "PATH="+p)
	}
	if _, err := proc.LookPath(name, env); name != "" && err != nil && !s.Suite.Config.Sandbox.InImage() {
		also := ""
		if !filepath.IsAbs(name) {
			also = ", nor is it in the suite's directory"
		}
		return []executor.Finding{{
			Severity: decode.Warning, Code: decode.CodeUnavailable,
			Message: fmt.Sprintf("config.command: %v%s; every trial will end in error; install the program or correct its name", err, also),
		}}
	}
	if o.Command.Shell {
		return nil
	}
	if i, tried := executor.MissingScript(s.Suite, o.Command.Args, beside(s.Suite.Dir)); i > 0 {
		return []executor.Finding{{
			Severity: decode.Warning, Code: decode.CodeMissingFile,
			Message: fmt.Sprintf("config.command: no such file: %s (tried %s); every trial will end in error unless the workspace contains it",
				o.Command.Args[i], strings.Join(tried, ", ")),
		}}
	}
	return nil
}

// needs returns what preflight looks for. If the suite sets PATH, or programs are those of an image, it
// returns nothing, because the PATH of other machines is unknown.
func needs(s executor.Settings) []record.Need {
	o := s.Options.(*Options)
	if _, ok := o.Env["PATH"]; ok || len(o.Command.Args) == 0 || s.Suite.Config.Sandbox.InImage() {
		return nil
	}
	program := programOf(o.Command, s.Suite.Dir)
	list := executor.ProgramNeeds(program, !o.Command.Shell && program != o.Command.Args[0])
	if o.Command.Shell {
		list = append(list, executor.ProgramNeeds("sh", false)...)
	}
	return list
}

// programOf returns the program that a command starts, or "" if only the shell can determine it.
// The first word of a shell command is the program if it is an absolute path without special
// characters of the shell.
func programOf(c Line, dir string) string {
	if !c.Shell {
		return resolve(c, dir)[0]
	}
	script := strings.TrimSpace(c.Args[len(c.Args)-1])
	word, _, _ := strings.Cut(script, " ")
	if !filepath.IsAbs(word) || strings.ContainsAny(word, "\\'\"`$*?[]{}()<>|&;=#!~\t\n") {
		return ""
	}
	return word
}

// beside returns a function that finds files like resolve does.
func beside(dir string) func(rel string) (abs string, tried []string, ok bool) {
	return func(rel string) (string, []string, bool) {
		if !filepath.IsAbs(rel) {
			rel = filepath.Join(dir, rel)
		}
		st, err := os.Stat(rel)
		return rel, []string{rel}, err == nil && st.Mode().IsRegular()
	}
}

func (c *command) Close() error { return nil }

// Execute runs the program once for the prompt and once for each follow-up, in the same
// workspace. The last answer is the output.
func (c *command) Execute(ctx context.Context, t *executor.Trial) (executor.Outcome, error) {
	dir, err := t.Dir()
	if err != nil {
		return executor.Outcome{}, err
	}
	instructions, err := executor.Instructions(c.suite, t.Task)
	if err != nil {
		return executor.Outcome{}, err
	}
	if len(instructions) > maxInstructions {
		return executor.Outcome{}, executor.Permanent(fmt.Errorf("the instructions have %d bytes; a variable of a program can have %d",
			len(instructions), maxInstructions))
	}
	var out executor.Outcome
	err = t.Converse(ctx, func(ctx context.Context, num int, prompt string) (executor.Outcome, error) {
		t.Transcript.Message("user", prompt)
		err := c.turn(ctx, t, message{dir, instructions, prompt, num}, &out)
		return out, err
	})
	return out, err
}

// maxInstructions limits the instructions and the context of a program, in bytes. Linux limits a variable of the
// environment to 128 KiB.
const maxInstructions = 96 << 10

// A message is what the program gets in one turn.
type message struct {
	dir          string // the workspace
	instructions string
	prompt       string
	turn         int
}

func (c *command) turn(ctx context.Context, t *executor.Trial, m message, out *executor.Outcome) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	alive := firstEvent(executor.FirstEvent(c.suite, t.Task), cancel)
	defer alive()

	events, err := listen(t, alive)
	if err != nil {
		return err
	}
	stdout := &proc.Limited{Max: executor.MaxOutputBytes}
	stderr := &proc.Limited{Max: maxStderr}
	cmd := proc.Command{
		Args: c.args, Dir: filepath.Join(m.dir, filepath.FromSlash(t.Task.Inputs.Workdir)), Env: c.env(t, m),
		Stdout: &sign{w: stdout, alive: alive}, Stderr: &sign{w: stderr, alive: alive}, ExtraFiles: []*os.File{events.write},
	}
	switch c.options.PromptAs {
	case Argument:
		cmd.Args = append(append([]string(nil), c.args...), m.prompt)
		if c.options.Command.Shell {
			cmd.Args = []string{"sh", "-c", c.args[2] + ` "$1"`, "sh", m.prompt}
		}
	case Stdin:
		cmd.Stdin = strings.NewReader(m.prompt)
	}
	cmd.Sandbox = c.sandboxes.For(sandbox.View{
		Env: cmd.Env, Write: []string{m.dir}, Read: slices.Concat(c.files, t.Task.Skills), Task: t.Task.Sandbox, Workspace: m.dir,
		OnRefused: t.Transcript.AddRefused,
	})
	err = run(ctx, cmd, events)
	if events.usage != nil {
		sum := *events.usage
		if out.Usage != nil {
			sum = out.Usage.Add(sum)
		}
		out.Usage = &sum
	}
	out.Output, out.OutputDropped = strings.TrimRight(stdout.String(), "\n"), stdout.Dropped
	if out.Output != "" {
		t.Transcript.Message("assistant", out.Output)
	}
	if err == nil && events.fault != nil { // graders would find no metadata
		return events.fault
	}
	return c.fault(err, stderr)
}

// run starts the program, and waits for it and for its reports.
func run(ctx context.Context, cmd proc.Command, events *channel) error {
	p, err := proc.Start(ctx, cmd)
	events.write.Close()
	if err != nil {
		events.wait(0)
		if errno, ok := errors.AsType[syscall.Errno](err); ok && (errno.Temporary() || errno == syscall.ETXTBSY || errno == syscall.ENOMEM) {
			return err // temporarily too many processes or files
		}
		return executor.Permanent(err)
	}
	err = p.Wait()
	events.wait(reportGrace)
	return err
}

// fault converts the exit of the program to the error of the trial.
func (c *command) fault(err error, stderr *proc.Limited) error {
	var exit *proc.ExitError
	var limit *sandbox.LimitError
	if errors.As(err, &limit) {
		return &executor.FailedError{Reason: fmt.Sprintf("%s: %v", c.options.Command, limit)}
	}
	if !errors.As(err, &exit) {
		return err
	}
	msg := strings.TrimSpace(stderr.String())
	if msg == "" {
		return fmt.Errorf("%s: %w", c.options.Command, exit)
	}
	lines := strings.Split(msg, "\n")
	return fmt.Errorf("%s: %w: %s", c.options.Command, exit, strings.Join(lines[max(0, len(lines)-5):], "\n"))
}

func (c *command) env(t *executor.Trial, m message) []string {
	env := t.Env // full to its capacity, so append copies it
	for k, v := range c.options.Env {
		env = append(env, k+"="+v)
	}
	env = append(env,
		"WAZA_WORKSPACE_DIR="+m.dir,
		"WAZA_SUITE_DIR="+c.suite.Dir,
		"WAZA_SKILLS="+strings.Join(t.Task.Skills, string(os.PathListSeparator)),
		"WAZA_INSTRUCTIONS="+m.instructions,
		"WAZA_MODEL="+t.Model,
		"WAZA_TRIAL="+strconv.Itoa(t.Num),
		"WAZA_TURN="+strconv.Itoa(m.turn),
		"WAZA_EVENTS_FD=3",
	)
	if context := t.Task.Inputs.Context; context != nil {
		switch data, err := jsonwalk.Encode(jsonwalk.Plain(context)); {
		case err != nil:
			t.Logf("warning", "the program has no WAZA_CONTEXT: the context of the task is no JSON: %v", err)
		case len(data) <= maxInstructions:
			env = append(env, "WAZA_CONTEXT="+string(data))
		default:
			t.Logf("warning", "the program has no WAZA_CONTEXT: the context of the task is longer than %d KiB", maxInstructions>>10)
		}
	}
	if c.options.PromptAs == Env {
		env = append(env, "WAZA_PROMPT="+m.prompt)
	}
	return env
}

// firstEvent starts the timer of first_event_timeout_seconds. The returned function stops it. It
// is called at the first sign of life and at the end.
func firstEvent(limit time.Duration, cancel context.CancelCauseFunc) (alive func()) {
	if limit <= 0 {
		return func() {}
	}
	timer := time.AfterFunc(limit, func() {
		cancel(fmt.Errorf("%w: no sign of life within %s (first_event_timeout_seconds)", executor.ErrTimeout, limit))
	})
	return func() { timer.Stop() }
}

// sign is a writer that calls alive for each write.
type sign struct {
	w     io.Writer
	alive func()
	once  sync.Once
}

func (s *sign) Write(b []byte) (int, error) {
	s.once.Do(s.alive)
	return s.w.Write(b)
}
