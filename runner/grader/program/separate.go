package program

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
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
	// container. It contains /tests/test.sh. Without an image, the verifier finds tests in /tests.
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
	// Files and folders in it that are left out, as with tar --exclude: *.tmp, .git.
	Exclude []string `yaml:"exclude" json:",omitempty"`
}

// A CollectCommand is a command that prepares artifacts.
type CollectCommand struct {
	// Command of the shell, which starts in the work folder. Its exit code does not matter.
	Command string `yaml:"command" jsonschema:"required"`
	// Maximum number of seconds that the command can take.
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
		}
	}
}

// outside is the folder of the verifier's workspace with its artifacts, by their absolute paths.
const outside = ".outside"

// gradeSeparate runs the verifier in a sandbox that contains only the artifacts.
func (g *rewardGrader) gradeSeparate(ctx context.Context, s *grader.Subject, workspace string) (grader.Score, error) {
	image := g.options.Separate.SandboxImage
	if len(g.options.Images()) > 0 && !g.inContainer() {
		return grader.Score{}, executor.Permanent(fmt.Errorf("the verifier has an image of its own, and the sandbox here is %q; use the mode container of config.sandbox",
			g.env.Sandboxes.Tier()))
	}
	if err := g.env.Sandboxes.Prepare(ctx, image); err != nil { // it was prepared before the limits of the trial counted
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
	box, err := g.newBox(s)
	if err != nil {
		return grader.Score{}, err
	}
	defer os.RemoveAll(box.dir)
	at := g.beside(box, fresh, own)
	at.start = "/"
	if g.options.hasOwnTests() {
		at.elsewhere, at.write, at.start = map[string]string{logsInside: box.logs}, []string{box.own, box.logs}, ""
		at.dir = "" // else that of the image
	}
	at.start = cmp.Or(g.options.Separate.Workdir, at.start)
	said, err := g.run(ctx, s, box, at)
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
// the paths at which it finds them. reason is set if the agent broke its sandbox, so that nothing starts there.
func (g *rewardGrader) collect(ctx context.Context, s *grader.Subject, workspace, fresh string, own *surroundings.TaskSandbox) (copied []CopiedArtifact, reason string, err error) {
	box, err := g.emptyBox(s)
	if err != nil {
		return nil, "", err
	}
	defer os.RemoveAll(box.dir)
	artifacts := outermost(g.options.Separate.Artifacts)
	script := g.collectScript(box, artifacts)
	if err := box.writeOwn(preludeFile, script); err != nil {
		return nil, "", err
	}
	at := g.beside(box, workspace, s.Task.Sandbox)
	at.elsewhere, at.write = nil, []string{box.own, box.logs}
	at.network = s.Task.Sandbox.Network
	said, err := g.run(ctx, s, box, at)
	switch {
	case errors.Is(err, sandbox.ErrMeddled):
		return nil, err.Error(), nil
	case g.inContainer() && ctx.Err() == nil && !box.started() && g.isChanged(ctx, s, workspace):
		return nil, "no program starts in the container as the agent left it, and one starts in a new container" + colon(err), nil
	case err != nil:
		return nil, "", fmt.Errorf("the artifacts of the agent: %w", err)
	case !box.started():
		return nil, "", fmt.Errorf("the artifacts of the agent cannot be copied: %s", lastWords(said, &proc.Tail{Max: programOutput}))
	}
	for i, a := range artifacts {
		one, err := place(filepath.Join(box.logs, fmt.Sprint(i)), fresh, a, own)
		if err != nil {
			return nil, "", fmt.Errorf("the artifact %s: %w", a.Source, err)
		}
		copied = append(copied, one)
	}
	return copied, "", nil
}

// colon returns the text of an error after a colon; empty for nil.
func colon(err error) string {
	if err == nil {
		return ""
	}
	return ": " + err.Error()
}

// outermost returns artifacts that are in no other one, with clean paths, in the order of their paths.
func outermost(artifacts []Artifact) (list []Artifact) {
	sorted := slices.Clone(artifacts)
	for i := range sorted {
		sorted[i].Source = path.Clean(sorted[i].Source)
	}
	slices.SortStableFunc(sorted, func(a, b Artifact) int { return cmp.Compare(a.Source, b.Source) })
	for _, a := range sorted {
		if !slices.ContainsFunc(list, func(outer Artifact) bool {
			return a.Source == outer.Source || strings.HasPrefix(a.Source, outer.Source+"/")
		}) {
			list = append(list, a)
		}
	}
	return list
}

// collectScript returns the script that runs in the sandbox of the agent: the commands, and a copy of each
// artifact to the directory logs of the box, under its number.
func (g *rewardGrader) collectScript(box rewardBox, artifacts []Artifact) string {
	var b strings.Builder
	b.WriteString(`cd "$1" || { echo "the folder $1 does not exist in the sandbox" >"$WAZA_LACKING"; exit 1; }` + "\n")
	b.WriteString(": >\"$WAZA_STARTED\"\n")
	b.WriteString(g.collectCommands())
	for i, a := range artifacts {
		from, to := quoted(a.Source), quoted(filepath.Join(box.logs, fmt.Sprint(i)))
		fmt.Fprintf(&b, "[ ! -e %s ] || cp -RHp %s %s\n", from, from, to)
	}
	b.WriteString("exit 0\n")
	return b.String()
}

// collectCommands returns the lines of a script that run the commands, each with its limit if the sandbox has
// the program timeout.
func (g *rewardGrader) collectCommands() string {
	var b strings.Builder
	for i, c := range g.options.Collect {
		limit := cmp.Or(c.Timeout, 60)
		fmt.Fprintf(&b, "if command -v timeout >/dev/null; then limit='timeout %v'; else limit=; fi\n", limit)
		fmt.Fprintf(&b, "(exec $limit /bin/sh -c %s) || echo \"the collect command %d ended with exit code $?\"\n", quoted(c.Command), i+1)
	}
	return b.String()
}

// quoted quotes a text for sh.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// A CopiedArtifact is an artifact that a verifier got.
type CopiedArtifact struct {
	Source string `json:"source"`
	// Files is the number of its files; 0 if it does not exist.
	Files int   `json:"files"`
	Bytes int64 `json:"bytes"`
}

// place moves a copy of an artifact to its place in the workspace of a verifier, without the parts that it excludes.
func place(from, fresh string, a Artifact, own *surroundings.TaskSandbox) (CopiedArtifact, error) {
	one := CopiedArtifact{Source: a.Source}
	info, err := os.Lstat(from)
	if errors.Is(err, fs.ErrNotExist) {
		return one, nil
	}
	if err != nil {
		return one, err
	}
	dir := a.Source
	if !info.IsDir() {
		dir = path.Dir(a.Source)
		one.Files, one.Bytes = 1, info.Size()
	} else if one.Files, one.Bytes, err = exclude(from, a.Exclude); err != nil {
		return one, err
	}
	to := filepath.Join(fresh, outside, filepath.FromSlash(a.Source))
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return one, err
	}
	if !covered(own.Paths, dir) {
		own.Paths[dir] = outside + dir
	}
	return one, move(from, to, filepath.Dir(fresh))
}

// move moves a file or a directory to a path that does not exist. Both are in a directory.
func move(from, to, in string) error {
	root, err := os.OpenRoot(in)
	if err != nil {
		return err
	}
	defer root.Close()
	if from, err = filepath.Rel(in, from); err != nil {
		return err
	}
	if to, err = filepath.Rel(in, to); err != nil {
		return err
	}
	return root.Rename(from, to)
}

// covered reports whether a directory is below one of some paths.
func covered(paths map[string]string, dir string) bool {
	for target := range paths {
		if dir == target || strings.HasPrefix(dir, target+"/") {
			return true
		}
	}
	return false
}

// exclude removes the files and folders of a directory that match patterns, and counts the other files. A
// program of the agent can have made links in it, which are not followed.
func exclude(dir string, patterns []string) (count int, size int64, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return 0, 0, err
	}
	defer root.Close()
	var rules []*regexp.Regexp
	for _, p := range patterns {
		rules = append(rules, tarPattern(p))
	}
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name != "." && slices.ContainsFunc(rules, func(r *regexp.Regexp) bool { return r.MatchString(name) }) {
			if err := root.RemoveAll(name); err != nil || !d.IsDir() {
				return err
			}
			return fs.SkipDir
		}
		if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
			count, size = count+1, size+info.Size()
		}
		return nil
	})
	return count, size, err
}

// tarPattern returns the expression of a pattern of tar --exclude: it matches a path, or the end of one after
// a slash, and its wildcards match slashes, too.
func tarPattern(glob string) *regexp.Regexp {
	var b strings.Builder
	for _, r := range strings.TrimSuffix(strings.TrimPrefix(glob, "./"), "/") {
		switch r {
		case '*':
			b.WriteString(".*")
		case '?':
			b.WriteString(".")
		default:
			b.WriteString(regexp.QuoteMeta(string(r)))
		}
	}
	return regexp.MustCompile("(?s)^(?:.*/)?" + b.String() + "$")
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
}

// beside returns the surroundings of a verifier that finds a workspace, its tests and its directory of logs.
func (g *rewardGrader) beside(box rewardBox, workspace string, task surroundings.TaskSandbox) surrounding {
	return surrounding{
		workspace: workspace, dir: box.own, start: cmp.Or(g.options.Workdir, workspace), task: task, network: &g.options.Network,
		elsewhere: map[string]string{testsInside: box.tests, logsInside: box.logs},
		write:     []string{box.own, box.tests, box.logs},
	}
}

// separatePrelude starts a verifier whose tests are in its image.
const separatePrelude = `if [ -n "$1" ]; then cd "$1" || { echo "the folder $1 does not exist in the image of the verifier" >"$WAZA_LACKING"; exit 1; }; fi
: >"$WAZA_STARTED"
[ -f /tests/test.sh ] || { echo "the image of the verifier contains no /tests/test.sh" >"$WAZA_LACKING"; exit 1; }
chmod +x /tests/test.sh 2>/dev/null
[ -x /tests/test.sh ] && exec /tests/test.sh
command -v bash >/dev/null && exec bash /tests/test.sh
exec sh /tests/test.sh
`

// limitOf returns the limit of the verifier and of the commands before it.
func (g *rewardGrader) limitOf() time.Duration {
	seconds := g.options.Timeout
	for _, c := range g.options.Collect {
		seconds += cmp.Or(c.Timeout, 60)
	}
	return time.Duration(seconds * float64(time.Second))
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
