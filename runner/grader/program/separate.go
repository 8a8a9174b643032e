package program

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"waza/eval"
	"waza/eval/decode"
	"waza/eval/surroundings"
	"waza/eval/text"
	"waza/runner/executor"
	"waza/runner/grader"
	"waza/runner/proc"
	"waza/runner/record"
	"waza/runner/sandbox"
)

// A SeparateVerifier is a verifier with a sandbox of its own.
type SeparateVerifier struct {
	// Image of the verifier, or Dockerfile of it, in the form of config.sandbox. Only for the mode
	// container. It contains /tests/test.sh. Without an image, the verifier runs in a new container of the
	// task's image, and finds tests in /tests.
	surroundings.SandboxImage `yaml:",inline"`
	// Folder where test.sh starts; the work folder of the image when absent, or / without an image.
	Workdir string `yaml:"workdir" json:",omitempty"`
	// Files and folders of the agent's sandbox that the verifier finds at the same paths. One that does not
	// exist is left out.
	Artifacts []Artifact `yaml:"artifacts" json:",omitempty"`
}

// An Artifact is a file or a folder of the agent's sandbox.
type Artifact struct {
	// Absolute path.
	Source string `yaml:"source" jsonschema:"required"`
	// Files and folders in it that are left out, as with tar --exclude: *.tmp, .git, [ab].log. An artifact that
	// is itself listed is not left out.
	Exclude []string `yaml:"exclude" json:",omitempty"`
}

// A CollectCommand is a command that prepares artifacts.
type CollectCommand struct {
	// Command of the shell, which starts in the work folder. Its exit code does not matter.
	Command string `yaml:"command" jsonschema:"required"`
	// Maximum number of seconds that the command can take; 60 when absent.
	Timeout float64 `yaml:"timeout" jsonschema:"exclusiveMinimum=0"`
}

// SetDefaults sets the limit of a command of Harbor.
func (c *CollectCommand) SetDefaults() { c.Timeout = 60 }

// maxArtifacts limits the artifacts, and the commands, of a grader.
const maxArtifacts = 100

// Images returns the images that the grader needs besides that of its task.
func (o *RewardOptions) Images() []surroundings.SandboxImage {
	if o.Separate == nil || o.Separate.SandboxImage == (surroundings.SandboxImage{}) {
		return nil
	}
	return []surroundings.SandboxImage{o.Separate.SandboxImage}
}

// hasOwnTests reports whether the image of a separate verifier contains its tests.
func (o *RewardOptions) hasOwnTests() bool { return len(o.Images()) > 0 }

func (o *RewardOptions) checkSeparate(c *eval.Check) {
	if len(o.Collect) > maxArtifacts {
		c.Errorf(decode.At("collect"), decode.CodeTooLarge, "collect has %d commands; the limit is %d", len(o.Collect), maxArtifacts)
	}
	for i, command := range o.Collect {
		if strings.TrimSpace(command.Command) == "" {
			c.Errorf(decode.At("collect", i, "command"), decode.CodeMissingField, "collect[%d].command is empty", i)
		}
	}
	if o.Separate == nil {
		return
	}
	o.Separate.CheckImage(c.Suite().Dir, func(string) {}, func(below decode.Path, severity decode.Severity, code decode.Code, format string, args ...any) {
		at := append(decode.At("separate"), below...)
		c.Errorf(at, code, "separate: "+strings.TrimPrefix(format, "sandbox."), args...)
	})
	if o.Separate.Workdir != "" && !path.IsAbs(o.Separate.Workdir) {
		c.Errorf(decode.At("separate", "workdir"), decode.CodeInvalidValue, "separate.workdir must be an absolute path, got %q", text.Clip(o.Separate.Workdir, 80))
	}
	if len(o.Separate.Artifacts) > maxArtifacts {
		c.Errorf(decode.At("separate", "artifacts"), decode.CodeTooLarge, "separate.artifacts has %d entries; the limit is %d", len(o.Separate.Artifacts), maxArtifacts)
	}
	for i, a := range o.Separate.Artifacts {
		if dir := path.Dir(path.Clean(a.Source)); !path.IsAbs(a.Source) || slices.Contains(strings.Split(a.Source, "/"), "..") || dir == "/" && path.Ext(a.Source) != "" || path.Clean(a.Source) == "/" {
			c.Errorf(decode.At("separate", "artifacts", i, "source"), decode.CodeInvalidValue,
				"separate.artifacts[%d].source must be an absolute path below a directory, got %q", i, text.Clip(a.Source, 80))
		} else if ofVerifier(path.Clean(a.Source)) {
			c.Errorf(decode.At("separate", "artifacts", i, "source"), decode.CodeInvalidValue,
				"separate.artifacts[%d].source must not be in %s or %s, which belong to the verifier, got %q", i, testsInside, logsInside, text.Clip(a.Source, 80))
		}
	}
}

// outside is the folder of the verifier's workspace with its artifacts, by their absolute paths.
const outside = ".outside"

// gradeSeparate runs the verifier in a sandbox that contains only the artifacts.
func (g *rewardGrader) gradeSeparate(ctx context.Context, s *grader.Subject, workspace string) (grader.Score, error) {
	image := g.options.Separate.SandboxImage
	if g.options.hasOwnTests() && !g.inContainer() {
		return grader.Score{}, executor.Permanent(fmt.Errorf("the verifier has an image of its own, and the sandbox here is %q; use the mode container of config.sandbox",
			g.env.Sandboxes.Tier()))
	}
	if !g.options.hasOwnTests() {
		image = s.Task.Sandbox.SandboxImage
	}
	if err := g.env.Sandboxes.Prepare(ctx, image); err != nil { // it was prepared before the limits of the trial counted
		return grader.Score{}, err
	}
	if _, err := g.ownEnviron(); err != nil {
		return grader.Score{}, err
	}
	fresh, err := g.tempDir(s, "waza-separate-*")
	if err != nil {
		return grader.Score{}, err
	}
	defer os.RemoveAll(fresh)
	defer g.env.Sandboxes.Forget(fresh)
	own := surroundings.TaskSandbox{SandboxImage: image, Paths: map[string]string{}}
	copied, reason, err := g.collect(ctx, s, workspace, fresh, &own)
	if reason != "" || err != nil {
		return grader.Score{Feedback: reason}, err
	}
	if err := g.addWorkdir(fresh, &own); err != nil {
		return grader.Score{}, err
	}
	box, err := g.newBox(s)
	if err != nil {
		return grader.Score{}, err
	}
	defer os.RemoveAll(box.dir)
	said, err := g.run(ctx, s, box, g.apart(box, fresh, own))
	if ctx.Err() == nil && !box.started() && g.startsWithout(ctx, s, own) {
		return grader.Score{Feedback: "the verifier does not start with the artifacts of the agent, and starts without them" + colon(err)}, nil
	}
	if err != nil {
		return grader.Score{}, err
	}
	score, err := g.scoreOf(box, said)
	if details, ok := score.Details.(RewardDetails); ok {
		details.Artifacts = copied
		score.Details = details
	}
	return score, err
}

// apart returns the surroundings of a separate verifier.
func (g *rewardGrader) apart(box rewardBox, fresh string, own surroundings.TaskSandbox) surrounding {
	at := g.beside(box, fresh, own)
	at.start, at.limit = "/", seconds(g.options.Timeout)
	if g.options.hasOwnTests() {
		at.elsewhere, at.write, at.start = map[string]string{logsInside: box.logs}, []string{box.own, box.logs}, ""
		at.dir = "" // else that of the image
	}
	at.start = cmp.Or(g.options.Separate.Workdir, at.start)
	return at
}

// addWorkdir makes the folder where a separate verifier starts, which an agent without artifacts did not make.
func (g *rewardGrader) addWorkdir(fresh string, own *surroundings.TaskSandbox) error {
	dir := path.Clean(g.options.Separate.Workdir)
	if !path.IsAbs(dir) || surroundings.IsReserved(dir) || ofVerifier(dir) {
		return nil
	}
	root, err := os.OpenRoot(fresh)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := makeDirs(root, outside+dir); err != nil {
		return err
	}
	if !covered(own.Paths, dir) {
		own.Paths[dir] = outside + dir
	}
	return nil
}

// startsWithout reports whether a separate verifier starts without artifacts.
func (g *rewardGrader) startsWithout(ctx context.Context, s *grader.Subject, own surroundings.TaskSandbox) bool {
	own.Paths = map[string]string{}
	fresh, err := g.tempDir(s, "waza-new-*")
	if err != nil {
		return false
	}
	defer os.RemoveAll(fresh)
	defer g.env.Sandboxes.Forget(fresh)
	if err := g.addWorkdir(fresh, &own); err != nil {
		return false
	}
	return g.starts(ctx, s, func(box rewardBox) surrounding { return g.apart(box, fresh, own) })
}

// tempDir makes a directory of the trial. The caller removes it.
func (g *rewardGrader) tempDir(s *grader.Subject, pattern string) (string, error) {
	if s.Temp != "" {
		if err := os.MkdirAll(s.Temp, 0o700); err != nil {
			return "", err
		}
	}
	return os.MkdirTemp(s.Temp, pattern)
}

// collect copies the artifacts from the sandbox of the agent to the workspace of the verifier, and sets
// the paths at which it finds them. Programs of the agent can run meanwhile: those that commands start, and in a
// container those of its image. reason is set if they, or the artifacts, made the copy fail.
func (g *rewardGrader) collect(ctx context.Context, s *grader.Subject, workspace, fresh string, own *surroundings.TaskSandbox) ([]CopiedArtifact, string, error) {
	for repeated := false; ; repeated = true {
		copied, reason, err := g.collectOnce(ctx, s, workspace, fresh, own)
		switch {
		case err == nil || ctx.Err() != nil || !g.inContainer():
			return copied, reason, err
		case !repeated: // perhaps a fault of the engine that passes
		case g.startsNew(ctx, s):
			return nil, "no artifacts can be copied from the container as the agent left it, and programs start in a new container" + colon(err), nil
		default:
			return nil, "", err
		}
	}
}

// collectOnce is a try of collect.
func (g *rewardGrader) collectOnce(ctx context.Context, s *grader.Subject, workspace, fresh string, own *surroundings.TaskSandbox) (copied []CopiedArtifact, reason string, err error) {
	box, err := g.emptyBox(s)
	if err != nil {
		return nil, "", err
	}
	defer os.RemoveAll(box.dir)
	artifacts := g.options.Separate.Artifacts
	order := placing(artifacts)
	if err := box.writeOwn(preludeFile, g.collectScript(box, artifacts, order)); err != nil {
		return nil, "", err
	}
	at := g.beside(box, workspace, s.Task.Sandbox)
	at.elsewhere, at.write = nil, []string{box.own, box.logs}
	at.network, at.ofAgent, at.what = s.Task.Sandbox.Network, true, "the copy of the artifacts, with the commands before it,"
	said, err := g.run(ctx, s, box, at)
	var limit *sandbox.LimitError
	var overrun *overrunError
	var exit *proc.ExitError
	switch {
	case errors.Is(err, sandbox.ErrMeddled):
		return nil, err.Error(), nil
	case errors.As(err, &limit), errors.Is(err, sandbox.ErrDisk), errors.As(err, &overrun):
		return nil, "the artifacts of the agent cannot be copied: " + err.Error(), nil
	case errors.As(err, &exit) && len(g.options.Collect) > 0:
		return nil, "the artifacts of the agent cannot be copied, because a program ended the copy: " + err.Error(), nil
	case err != nil:
		return nil, "", fmt.Errorf("the artifacts of the agent cannot be copied: %w", err)
	case !box.started() && (g.inContainer() || len(g.options.Collect) == 0): // else a command can have removed the mark
		return nil, "", fmt.Errorf("the artifacts of the agent cannot be copied: %s", lastWords(said, &proc.Tail{Max: programOutput}))
	}
	copied, err = placeAll(box.logs, fresh, artifacts, order, own)
	return copied, "", err
}

// colon returns the text of an error after a colon; empty for nil.
func colon(err error) string {
	if err == nil {
		return ""
	}
	return ": " + err.Error()
}

// collectScript returns the script that runs in the sandbox of the agent: the commands, and a copy of some
// artifacts to the directory logs of the box, under their numbers.
func (g *rewardGrader) collectScript(box rewardBox, artifacts []Artifact, numbers []int) string {
	var b strings.Builder
	b.WriteString("cd \"$1\" || cd /\n: >\"$WAZA_STARTED\"\n")
	b.WriteString(g.collectCommands())
	for _, i := range numbers {
		from, to := quoted(path.Clean(artifacts[i].Source)), quoted(filepath.Join(box.logs, fmt.Sprint(i)))
		fmt.Fprintf(&b, "[ ! -e %s ] || cp -RHp %s %s\n", from, from, to)
	}
	b.WriteString("exit 0\n")
	return b.String()
}

// collectCommands returns the lines of a script that run the commands, each with its limit if the sandbox has
// the program timeout. They do not get the variables of the verifier.
func (g *rewardGrader) collectCommands() string {
	var b strings.Builder
	for i, c := range g.options.Collect {
		limit := strconv.FormatFloat(cmp.Or(c.Timeout, 60), 'f', -1, 64)
		fmt.Fprintf(&b, "if command -v timeout >/dev/null; then limit='timeout -s KILL %s'; else limit=; fi\n", limit)
		fmt.Fprintf(&b, "(unset %s; exec $limit /bin/sh -c %s) || echo \"the collect command %d ended with exit code $?\"\n",
			strings.Join(g.ownNames(), " "), quoted(c.Command), i+1)
	}
	return b.String()
}

// ownNames returns the variables that only the verifier gets.
func (g *rewardGrader) ownNames() []string {
	names := []string{"WAZA_LACKING", "WAZA_STAND_INS", "WAZA_STARTED"}
	for _, name := range slices.Sorted(maps.Keys(g.options.Env)) {
		if usesName().MatchString(name) {
			names = append(names, name)
		}
	}
	return names
}

// usesName matches names of variables that shells know.
var usesName = text.Pattern(`^[A-Za-z_][A-Za-z0-9_]*$`)

// quoted quotes a text for sh.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// A CopiedArtifact is an artifact that a verifier got.
type CopiedArtifact struct {
	Source string `json:"source"`
	// Files is the number of its files; 0 if it does not exist.
	Files int   `json:"files"`
	Bytes int64 `json:"bytes"`
	// Lost is the reason why a copy of it could not be used.
	Lost string `json:"lost,omitempty"`
}

// A surrounding is where a verifier, or the commands that prepare it, run.
type surrounding struct {
	workspace string
	dir       string // of this machine, where the shell starts; empty means the work folder of the image
	start     string // the folder to which its script changes; empty means that of the shell
	task      surroundings.TaskSandbox
	network   *surroundings.Network
	elsewhere map[string]string
	write     []string
	// ofAgent means that programs of the agent can run there. They get nothing of the verifier, and the
	// verifier believes nothing that they report.
	ofAgent bool
	what    string        // that runs there, in messages
	limit   time.Duration // that it can take
}

// beside returns the surroundings of a verifier that finds a workspace, its tests and its directory of logs.
func (g *rewardGrader) beside(box rewardBox, workspace string, task surroundings.TaskSandbox) surrounding {
	return surrounding{
		workspace: workspace, dir: box.own, start: cmp.Or(g.options.Workdir, workspace), task: task, network: &g.options.Network,
		elsewhere: map[string]string{testsInside: box.tests, logsInside: box.logs},
		write:     []string{box.own, box.tests, box.logs}, what: "the verifier", limit: g.limitOf(),
	}
}

// separatePrelude starts a verifier whose tests are in its image.
const separatePrelude = `if [ -n "$1" ]; then cd "$1" || { echo "the folder $1 does not exist in the image of the verifier" >"$WAZA_LACKING"; exit 1; }; fi
: >"$WAZA_STARTED"
[ -f /tests/test.sh ] || { echo "the image of the verifier contains no /tests/test.sh" >"$WAZA_LACKING"; exit 1; }
unset WAZA_LACKING WAZA_STARTED
chmod +x /tests/test.sh 2>/dev/null
[ -x /tests/test.sh ] && exec /tests/test.sh
command -v bash >/dev/null && exec bash /tests/test.sh
exec sh /tests/test.sh
`

// limitOf returns the limit of the verifier and of the commands before it.
func (g *rewardGrader) limitOf() time.Duration {
	limit := g.options.Timeout
	for _, c := range g.options.Collect {
		limit += cmp.Or(c.Timeout, 60)
	}
	return seconds(limit)
}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }

// An overrunError reports that a program took longer than its limit.
type overrunError struct {
	what  string
	limit time.Duration
}

func (e *overrunError) Error() string {
	return fmt.Sprintf("%s ran longer than its timeout of %v", e.what, e.limit)
}

// checkTier returns the reason why no verifier can run in the sandboxes of the run.
func (g *rewardGrader) checkTier(s *grader.Subject) error {
	switch tier := g.env.Sandboxes.Tier(); {
	case tier == record.TierContainer && s.Missing != nil:
		return executor.Permanent(errors.New("the verifier needs the container of the agent, which is not in the record; run the task again"))
	case tier != record.TierNamespaces && tier != record.TierContainer:
		return executor.Permanent(fmt.Errorf("the verifier needs a sandbox of namespaces or a container, which shows it %s and %s, "+
			"and the sandbox here is %q; waza sandbox prints the reason and the remedy", testsInside, logsInside, tier))
	}
	return nil
}
