package program

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"waza/eval"
	"waza/eval/decode"
	"waza/eval/files"
	"waza/eval/surroundings"
	"waza/eval/text"
	"waza/runner/executor"
	"waza/runner/grader"
	"waza/runner/proc"
	"waza/runner/record"
	"waza/runner/sandbox"
)

// Reward runs the verifier of a Harbor task.
var Reward = grader.KindOf(eval.Kind{
	Name: "reward",
	Summary: "Runs test.sh of a folder that the agent cannot see, and reads the reward that it writes to /logs/verifier. " +
		"The score is the reward, at most 1.",
	Options: func() any {
		return &RewardOptions{PassReward: 1, Timeout: 600, Network: surroundings.Network{Open: true}}
	},
}, checkReward, newReward)

// RewardOptions holds the options of the reward grader.
type RewardOptions struct {
	// Folders whose files the verifier finds in /tests, relative to the suite. Files of later folders
	// replace those of earlier ones. One of them contains test.sh, which runs after the agent, in the
	// sandbox, with the workspace as its current directory. It writes one number to
	// /logs/verifier/reward.txt, or a JSON object of numbers to /logs/verifier/reward.json, which has
	// precedence. Its exit code does not matter. No reward, or one that is not a number, is an error.
	Tests []string `yaml:"tests" jsonschema_extras:"x-refers=suite-directory" path:"maybe"`
	// Folder of the sandbox where test.sh starts, one of sandbox.paths of the task; the workspace when
	// absent.
	Workdir string `yaml:"workdir"`
	// Combines the rewards that the checkpoints of the trial gave, and runs no test.sh: mean is the mean
	// of each reward, 0 where a verifier gave another one only, final the rewards of the last checkpoint.
	Combine string `yaml:"combine" jsonschema:"enum=mean,enum=final"`
	// Least reward to pass. Of several rewards, the one named reward counts, else the least.
	PassReward float64 `yaml:"pass_reward"`
	// Least rewards to pass by name, in place of pass_reward. A reward that was not given does not pass.
	PassRewards map[string]float64 `yaml:"pass_rewards"`
	// Gives the verifier a sandbox of its own, in which it finds only artifacts of the agent.
	Separate *SeparateVerifier `yaml:"separate" json:",omitempty"`
	// Commands that run in the sandbox of the agent after it, before test.sh, or before the artifacts of a
	// separate verifier are copied.
	Collect []CollectCommand `yaml:"collect" json:",omitempty"`
	// Environment variables of the verifier. ${NAME} is the value of a variable of the machine,
	// ${NAME:-TEXT} that or TEXT if it is not set.
	Env map[string]string `yaml:"env"`
	// Hosts that the verifier can connect to, in the form of config.sandbox.network.
	Network surroundings.Network `yaml:"network"`
	// Maximum number of seconds that the verifier can take. More is an error.
	Timeout float64 `yaml:"timeout" jsonschema:"exclusiveMinimum=0"`
}

// Limits of the files of a verifier and of its reward.
const (
	maxTestFiles   = 5_000
	maxTestBytes   = 256 << 20
	maxRewardBytes = 1 << 20
)

// SetPassReward replaces the least reward to pass. Least rewards by name remain.
func (o *RewardOptions) SetPassReward(least float64) { o.PassReward = least }

// Refers returns the files of the folders.
func (o *RewardOptions) Refers(suite *eval.Suite, _ *eval.Task) []string {
	var list []string
	for _, dir := range o.Tests {
		list = append(list, slices.Collect(maps.Values(testsIn(suite.Path(dir))))...)
	}
	return list
}

// testsIn returns the files below a folder of tests, as absolute paths by their relative ones with
// slashes.
func testsIn(dir string) map[string]string {
	found := map[string]string{}
	_ = fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil // it cannot be read
		case d.IsDir() && d.Name() == "__pycache__":
			return fs.SkipDir
		case d.Type().IsRegular():
			found[name] = filepath.Join(dir, filepath.FromSlash(name))
		}
		if len(found) > maxTestFiles {
			return fs.SkipAll
		}
		return nil
	})
	return found
}

func checkReward(c *eval.Check, o *RewardOptions) {
	if math.IsNaN(o.PassReward) || math.IsInf(o.PassReward, 0) {
		c.Errorf(decode.At("pass_reward"), decode.CodeInvalidValue, "pass_reward must be a number")
	}
	for _, name := range slices.Sorted(maps.Keys(o.PassRewards)) {
		if least := o.PassRewards[name]; math.IsNaN(least) || math.IsInf(least, 0) {
			c.Errorf(decode.At("pass_rewards", name), decode.CodeInvalidValue, "pass_rewards.%s must be a number", text.Clip(name, 80))
		}
	}
	switch {
	case o.Combine != "" && len(o.Tests) > 0:
		c.Errorf(decode.At("combine"), decode.CodeInvalidValue, "a grader has tests or combine, not both")
		return
	case o.Combine != "":
		return
	case len(o.Tests) == 0 && !o.hasOwnTests():
		c.Errorf(decode.At(), decode.CodeChecksNothing, "nothing to run: give tests, the folder of test.sh")
		return
	}
	script, missing := false, false
	for i, dir := range o.Tests {
		at := decode.At("tests", i)
		abs := c.Suite().Path(dir)
		switch found := testsIn(abs); {
		case c.Suite().Allows(abs) != nil:
			missing = true
			c.Errorf(at, decode.CodeEscapingPath, "%s: %s is %s", at, text.Clip(dir, 80), c.Suite().Allows(abs))
		case !files.IsDir(abs):
			missing = true
			c.Errorf(at, decode.CodeMissingFile, "%s: no such folder: %s", at, text.Clip(dir, 80))
		case len(found) > maxTestFiles:
			c.Errorf(at, decode.CodeTooLarge, "%s: more than %d files in %s", at, maxTestFiles, text.Clip(dir, 80))
		default:
			script = script || found[testScript] != ""
		}
	}
	o.checkSeparate(c)
	if !script && !missing && !o.hasOwnTests() {
		c.Errorf(decode.At("tests"), decode.CodeMissingFile, "no folder of tests contains %s", testScript)
	}
	if o.Workdir != "" && !path.IsAbs(o.Workdir) {
		c.Errorf(decode.At("workdir"), decode.CodeInvalidValue, "workdir must be an absolute path, got %q", text.Clip(o.Workdir, 80))
	}
}

func newReward(o *RewardOptions, env *grader.Env) (grader.Grader, error) {
	return &rewardGrader{options: o, env: env}, nil
}

type rewardGrader struct {
	options *RewardOptions
	env     *grader.Env
}

// testScript is the verifier, in the folder of tests.
const testScript = "test.sh"

// The paths of the verifier in its sandbox.
const (
	testsInside  = "/tests"
	logsInside   = "/logs/verifier"
	rewardText   = "reward.txt"
	rewardJSON   = "reward.json"
	stdoutInLogs = "test-stdout.txt"
)

func (g *rewardGrader) Grade(ctx context.Context, s *grader.Subject) (grader.Score, error) {
	if g.options.Combine != "" {
		return g.options.combine(s.Reached)
	}
	if s.Dir == nil {
		return grader.Score{}, errors.New("the executor has no workspace")
	}
	if err := s.MissingAt(""); err != nil { // test.sh can read any file
		return grader.Score{}, err
	}
	if err := g.checkTier(s); err != nil {
		return grader.Score{}, err
	}
	workspace, err := s.Dir()
	if err != nil {
		return grader.Score{}, fmt.Errorf("workspace: %w", err)
	}
	if g.options.Separate != nil {
		return g.gradeSeparate(ctx, s, workspace)
	}
	box, err := g.newBox(s)
	if err != nil {
		return grader.Score{}, err
	}
	defer os.RemoveAll(box.dir)
	said, err := g.run(ctx, s, box, g.beside(box, workspace, s.Task.Sandbox))
	if errors.Is(err, sandbox.ErrMeddled) { // an error would not count
		return grader.Score{Feedback: err.Error()}, nil
	}
	if g.inContainer() && ctx.Err() == nil && !box.started() && g.isChanged(ctx, s, workspace) {
		reason := "the verifier does not start in the container as the agent left it, and starts in a new one"
		if err != nil {
			reason += ": " + err.Error()
		}
		return grader.Score{Feedback: reason}, nil
	}
	if err != nil {
		return grader.Score{}, err
	}
	return g.scoreOf(box, said)
}

// scoreOf returns the score of the reward that a verifier wrote.
func (g *rewardGrader) scoreOf(box rewardBox, said *proc.Tail) (grader.Score, error) {
	rewards, err := readRewards(box.logs)
	if err != nil {
		return grader.Score{}, fmt.Errorf("%w: %s", err, lastWords(said, &proc.Tail{Max: programOutput}))
	}
	return g.options.score(rewards, lastWords(said, &proc.Tail{Max: programOutput})), nil
}

// readRewards reads what a verifier wrote to a directory of this machine. Code of the agent can have
// written there, too, so no link is followed. Harbor's rule: a reward.json wins, even if it cannot be
// read; no reward is an error and not 0 (src/harbor/verifier/verifier.py).
func readRewards(logs string) (map[string]float64, error) {
	for _, f := range []struct {
		name  string
		parse func([]byte) (map[string]float64, error)
	}{{rewardJSON, parseRewardJSON}, {rewardText, parseRewardText}} {
		if _, err := os.Lstat(filepath.Join(logs, f.name)); err != nil {
			continue
		}
		data, err := files.ReadNamed(logs, "the verifier's directory", filepath.Join(logs, f.name), maxRewardBytes)
		if err != nil {
			return nil, fmt.Errorf("%s/%s: %s", logsInside, f.name, files.Reason(err))
		}
		rewards, err := f.parse(data)
		if err != nil {
			return nil, fmt.Errorf("%s/%s: %w", logsInside, f.name, err)
		}
		return rewards, nil
	}
	return nil, fmt.Errorf("the verifier wrote neither %s/%s nor %s", logsInside, rewardText, rewardJSON)
}

func parseRewardText(data []byte) (map[string]float64, error) {
	word := strings.TrimSpace(string(data))
	if word == "" {
		return nil, errors.New("the file is empty, expected one number")
	}
	reward, err := strconv.ParseFloat(word, 64)
	if err != nil || math.IsNaN(reward) || math.IsInf(reward, 0) {
		return nil, fmt.Errorf("expected one number, got %q", text.Clip(word, 80))
	}
	return map[string]float64{rewardName: reward}, nil
}

func parseRewardJSON(data []byte) (map[string]float64, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, errors.New("the file is empty, expected a JSON object of numbers")
	}
	var values map[string]*float64
	if err := json.Unmarshal(data, &values); err != nil {
		return nil, fmt.Errorf("expected a JSON object of numbers: %w", err)
	}
	if len(values) == 0 {
		return nil, errors.New("the object has no reward")
	}
	rewards := map[string]float64{}
	for name, value := range values {
		if value == nil {
			return nil, fmt.Errorf("the reward %q is null, expected a number", text.Clip(name, 80))
		}
		rewards[name] = *value
	}
	return rewards, nil
}

// A rewardBox are the directories of one verifier on this machine. They are new for each trial, so
// nothing in them comes from the agent.
type rewardBox struct {
	dir                        string // contains the others
	tests, logs, own, programs string
	script                     string // the text of test.sh
}

// The files of own.
const (
	preludeFile = "start.sh"
	lackingFile = "lacking" // what the verifier lacks
	startedFile = "started" // in a container: the shell that starts the verifier works
)

// emptyBox makes the directories. The caller removes dir.
func (g *rewardGrader) emptyBox(s *grader.Subject) (box rewardBox, err error) {
	if box.dir, err = g.tempDir(s, "waza-verifier-*"); err != nil {
		return box, err
	}
	box.tests, box.logs = filepath.Join(box.dir, "tests"), filepath.Join(box.dir, "logs")
	box.own, box.programs = filepath.Join(box.dir, "own"), filepath.Join(box.dir, "programs")
	for _, dir := range []string{box.tests, box.logs, box.own, box.programs} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			os.RemoveAll(box.dir)
			return box, err
		}
	}
	return box, nil
}

// writeOwn writes a script of waza.
func (b *rewardBox) writeOwn(name, script string) error {
	return os.WriteFile(filepath.Join(b.own, name), []byte(script), 0o700)
}

// newBox makes the directories, with the planned content of the tests. The caller removes dir.
func (g *rewardGrader) newBox(s *grader.Subject) (box rewardBox, err error) {
	if box, err = g.emptyBox(s); err != nil {
		return box, err
	}
	defer func() {
		if err != nil {
			os.RemoveAll(box.dir)
		}
	}()
	if g.options.hasOwnTests() {
		return box, box.writeOwn(preludeFile, separatePrelude)
	}
	if err := g.copyTests(s, box.tests); err != nil {
		return box, fmt.Errorf("copies of the tests: %w", err)
	}
	script, err := os.ReadFile(filepath.Join(box.tests, testScript))
	if err != nil {
		return box, fmt.Errorf("no folder of tests contains %s", testScript)
	}
	box.script = string(script)
	for name, content := range standIns {
		if err := os.WriteFile(filepath.Join(box.programs, name), []byte(content), 0o700); err != nil {
			return box, err
		}
	}
	commands := ""
	if g.options.Separate == nil {
		commands = g.collectCommands()
	}
	if g.inContainer() {
		return box, box.writeOwn(preludeFile, containerProbe+commands+startTests)
	}
	return box, box.writeOwn(preludeFile, prelude+commands+startTests)
}

// started reports whether the shell of a container came to the point where it starts the verifier.
func (b *rewardBox) started() bool {
	info, err := os.Lstat(filepath.Join(b.own, startedFile))
	return err == nil && info.Mode().IsRegular()
}

// probeTime limits the start of a shell in a container.
const probeTime = 2 * time.Minute

// isChanged reports whether no verifier starts in the container of the agent, although one starts in a new
// container of the same image. A fault of the engine that passes or that concerns all containers is not the agent's.
func (g *rewardGrader) isChanged(ctx context.Context, s *grader.Subject, workspace string) bool {
	return !g.starts(ctx, s, func(box rewardBox) surrounding { return g.beside(box, workspace, s.Task.Sandbox) }) && g.startsNew(ctx, s)
}

// startsNew reports whether a verifier starts in a new container of the image of the agent.
func (g *rewardGrader) startsNew(ctx context.Context, s *grader.Subject) bool {
	fresh, err := g.tempDir(s, "waza-new-*")
	if err != nil {
		return false
	}
	defer os.RemoveAll(fresh)
	defer g.env.Sandboxes.Forget(fresh)
	for _, dir := range s.Task.Sandbox.Paths {
		if err := os.MkdirAll(filepath.Join(fresh, filepath.FromSlash(dir)), 0o700); err != nil {
			return false
		}
	}
	return g.starts(ctx, s, func(box rewardBox) surrounding { return g.beside(box, fresh, s.Task.Sandbox) })
}

// starts reports whether a verifier starts in its surroundings. Its own script does not run, and programs there
// get nothing of it.
func (g *rewardGrader) starts(ctx context.Context, s *grader.Subject, in func(rewardBox) surrounding) bool {
	box, err := g.emptyBox(s)
	if err != nil {
		return false
	}
	defer os.RemoveAll(box.dir)
	if err := box.writeOwn(preludeFile, probe); err != nil {
		return false
	}
	at := in(box)
	at.ofAgent, at.limit = true, probeTime
	_, _ = g.run(ctx, s, box, at)
	return box.started()
}

// inContainer reports whether the verifier has the programs of an image, and can install others.
func (g *rewardGrader) inContainer() bool { return g.env.Sandboxes.Tier() == record.TierContainer }

// copyTests copies the folders of tests into one, with the content that the run was planned with.
func (g *rewardGrader) copyTests(s *grader.Subject, to string) error {
	contents, err := g.env.Planned.Contents(g.options, s.Task)
	if err != nil {
		return err
	}
	total := int64(0)
	for _, dir := range g.options.Tests {
		dir = g.env.Suite.Path(dir)
		found := testsIn(dir)
		for abs := range contents { // those that the agent deleted
			if rel, err := filepath.Rel(dir, abs); err == nil && filepath.IsLocal(rel) {
				found[filepath.ToSlash(rel)] = abs
			}
		}
		for name, abs := range found {
			planned, ok := contents[abs]
			if !ok && len(contents) > 0 {
				continue // written since
			}
			data := planned.Data
			if data == nil {
				if data, err = g.env.Suite.ReadFile(abs, maxTestBytes); err != nil {
					return err
				}
			}
			if total += int64(len(data)); total > maxTestBytes {
				return fmt.Errorf("the tests have more than %d MiB", maxTestBytes>>20)
			}
			at := filepath.Join(to, filepath.FromSlash(name))
			if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
				return err
			}
			mode := fs.FileMode(0o600)
			if planned.Executable || strings.HasSuffix(name, ".sh") { // Harbor makes test.sh executable
				mode = 0o700
			}
			if err := os.WriteFile(at, data, mode); err != nil {
				return err
			}
		}
	}
	return nil
}

// run runs the verifier, or what comes before it. It returns the end of its output.
func (g *rewardGrader) run(ctx context.Context, s *grader.Subject, box rewardBox, at surrounding) (*proc.Tail, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, at.limit, executor.Permanent(&overrunError{at.what, at.limit}))
	defer cancel()
	said := &proc.Tail{Max: programOutput}
	environ, err := g.environ(s, box, at)
	if err != nil {
		return said, err
	}
	cmd := proc.Command{
		Args: []string{"/bin/sh", filepath.Join(box.own, preludeFile), at.start},
		Dir:  at.dir, Env: environ, Stdout: said, Stderr: said,
	}
	read := slices.Clone(s.Borrowed)
	if !g.inContainer() && !at.ofAgent {
		cmd.Args, read = append(cmd.Args, needsOf(box.script)...), append(read, box.programs)
	}
	own := at.task
	own.Network = at.network
	cmd.Sandbox = g.env.Sandboxes.For(sandbox.View{
		Env: environ, Read: read, Copy: []string{at.workspace}, Write: at.write,
		Task: own, Workspace: at.workspace, Elsewhere: at.elsewhere,
	})
	err = proc.Run(ctx, cmd)
	_ = os.WriteFile(filepath.Join(box.logs, stdoutInLogs), []byte(said.String()), 0o600) // for nobody but later readers of the directory
	var exit *proc.ExitError
	switch lacking := g.lacking(box); {
	case ctx.Err() != nil:
		return said, context.Cause(ctx)
	case lacking != "" && !at.ofAgent:
		return said, executor.Permanent(fmt.Errorf("the verifier cannot run here: %s", lacking))
	case errors.As(err, &exit) && exit.FromOutside():
		return said, fmt.Errorf("%s was %w: %s", at.what, exit, lastWords(said, &proc.Tail{Max: programOutput}))
	case err != nil && !errors.As(err, &exit):
		return said, err
	}
	return said, nil
}

// lacking returns what the verifier needs and this machine does not have; empty if it has all.
func (g *rewardGrader) lacking(box rewardBox) string {
	data, err := files.ReadNamed(box.own, "the verifier's directory", filepath.Join(box.own, lackingFile), 4<<10)
	if err != nil {
		return ""
	}
	first, _, _ := strings.Cut(strings.TrimSpace(string(data)), "\n")
	return text.Clip(first, 500)
}

// environ returns the environment of the verifier, or that of programs of the agent, which has nothing of the
// verifier except the mark that the shell works.
func (g *rewardGrader) environ(s *grader.Subject, box rewardBox, at surrounding) ([]string, error) {
	environ := s.Env
	if environ == nil {
		environ = os.Environ()
	}
	environ = append(slices.Clone(environ), "WAZA_STARTED="+filepath.Join(box.own, startedFile), "WAZA_WORKSPACE_DIR="+at.workspace)
	if at.ofAgent {
		return environ, nil
	}
	own, err := g.ownEnviron()
	if err != nil {
		return nil, err
	}
	environ = append(environ, own...)
	searched := ""
	for _, kv := range environ {
		if value, ok := strings.CutPrefix(kv, "PATH="); ok {
			searched = value
		}
	}
	return append(environ, "PATH="+searched+string(filepath.ListSeparator)+box.programs, "WAZA_STAND_INS="+box.programs,
		"WAZA_LACKING="+filepath.Join(box.own, lackingFile)), nil
}

// ownEnviron returns the variables of the option env.
func (g *rewardGrader) ownEnviron() (environ []string, err error) {
	for _, name := range slices.Sorted(maps.Keys(g.options.Env)) {
		value, err := surroundings.FromMachine(g.options.Env[name], os.LookupEnv)
		if err != nil {
			return nil, executor.Permanent(fmt.Errorf("env.%s: %w", name, err))
		}
		environ = append(environ, name+"="+value)
	}
	return environ, nil
}

// needs of scripts, by the texts that show them.
var (
	usesPytest = text.Pattern(`(?m)python3?\s+(?:-\w+\s+)*-m\s+pytest\b`)
	usesPython = text.Pattern(`(?m)(?:^|[\s;&|(])python3\b`)
	usesShell  = text.Pattern(`^#!\s*(?:/usr/bin/env\s+)?(?:\S*/)?([\w.-]+)`)
)

// needsOf returns the programs that a script needs, and module:pytest if it needs that.
func needsOf(script string) []string {
	var needs []string
	if m := usesShell().FindStringSubmatch(script); m != nil {
		needs = append(needs, m[1])
	}
	if usesPython().MatchString(script) {
		needs = append(needs, "python3")
	}
	if usesPytest().MatchString(script) && !strings.Contains(script, "install") {
		needs = append(needs, "module:pytest")
	}
	return needs
}
