package eval

import (
	"maps"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"waza/eval/discover"

	"waza/eval/decode"
	"waza/eval/files"
	"waza/eval/text"

	"gopkg.in/yaml.v3"
)

var schemaVersionForm = text.Pattern(`^(\d+)\.(\d+)$`)

// suiteCheck looks at the settings of a suite, and after its tasks are loaded at
// what they do together.
type suiteCheck struct{ *loader }

// settings looks for faults of the suite's own settings, and puts defaults in
// place of values that mean them.
func (l suiteCheck) settings() {
	s := l.suite
	l.schemaVersion()
	if dir := l.options.ContextDir; dir != "" && !files.IsDir(dir) {
		if abs, err := filepath.Abs(dir); err == nil {
			l.looked(abs)
		}
		l.Reportf(l.src, nil, decode.Error, decode.CodeMissingFile, "no such fixture directory: %s", dir)
	}
	if s.Config.TimeoutSeconds == 0 {
		s.Config.TimeoutSeconds = 300
	}
	l.workers()
	l.stopping()
	l.environment()
	l.windows()
	s.Config.MaxAttempts = max(s.Config.MaxAttempts, 1)
	for i := range s.Metrics.List {
		l.metric(i)
	}
	seen := map[string]bool{}
	for i, m := range s.Metrics.List {
		if seen[m.Name] && m.Name != "" {
			l.at(decode.Warning, decode.CodeNoEffect, []any{"metrics", i, "name"}, "metric %q stands twice; the first counts", m.Name)
		}
		seen[m.Name] = true
	}
	for _, h := range []struct {
		key  string
		list []Hook
	}{{"before_run", s.Hooks.BeforeRun}, {"after_run", s.Hooks.AfterRun}, {"before_task", s.Hooks.BeforeTask}, {"after_task", s.Hooks.AfterTask}} {
		for i, hook := range h.list {
			l.hook(h.key, i, hook)
		}
	}
	l.inputNames()
	if s.Range != nil && s.TasksFrom == "" {
		l.at(decode.Warning, decode.CodeNoEffect, []any{"range"}, "range has no effect without tasks_from")
	}
	for i, f := range s.Config.InstructionFiles {
		path, tried, ok := s.Resolve(f)
		l.looked(tried...)
		if !ok {
			path, ok = l.inContextDir(f)
		}
		s.Instructions = append(s.Instructions, InstructionFile{Name: f, Path: path})
		if err := s.Allows(path); ok && err != nil {
			l.at(decode.Error, decode.CodeEscapingPath, []any{"config", "instruction_files", i}, "%s is %s", l.display(path), err)
		}
		if !ok {
			l.at(decode.Warning, decode.CodeMissingFile, []any{"config", "instruction_files", i}, "no such file: %s (tried %s)", f, l.displayAll(tried))
		}
	}
}

// workers reports a number of workers for trials that run one at a time all
// the same. Who writes parallel: false knows.
func (l suiteCheck) workers() {
	config := decode.Lookup(l.src.Root, "config")
	key, n := decode.LookupPair(config, "workers")
	if n == nil {
		key, n = decode.LookupPair(config, "max_workers")
	}
	parallel := decode.Lookup(config, "parallel")
	defaults := ProjectDefaults{}
	if p := l.suite.Project; p != nil {
		defaults = p.Defaults
	}
	l.suite.Unpaced = n == nil && defaults.Workers == nil && (l.suite.Config.Parallel || parallel == nil && defaults.Parallel == nil)
	switch c := l.suite.Config; {
	case c.Parallel || c.Workers < 0 || c.Workers == 1 || parallel != nil:
	case n != nil && decode.Follow(n).Tag != "!!null":
		l.Reportf(l.src, key, decode.Warning, decode.CodeNoEffect, "%q has no effect without parallel: true: trials run one at a time", key.Value)
	}
}

// windows checks config.context_windows.
func (l suiteCheck) windows() {
	for _, model := range slices.Sorted(maps.Keys(l.suite.Config.ContextWindows)) {
		if n := l.suite.Config.ContextWindows[model]; n <= 0 {
			l.at(decode.Error, decode.CodeInvalidValue, decode.At("config", "context_windows", model), "config.context_windows: the window of %q must be at least 1 token, got %d", text.Clip(model, 60), n)
		}
	}
}

// stopping tells of stopping that stops nothing.
func (l suiteCheck) stopping() {
	c := l.suite.Config
	switch {
	case c.Stopping.Confidence == 0:
	case l.suite.Baseline:
		l.at(decode.Warning, decode.CodeNoEffect, decode.At("config", "stopping"), "stopping has no effect on tasks that are compared with a baseline: all their trials are done, for how large the difference is takes both sides")
	case c.TrialsPerTask == 1:
		l.at(decode.Info, decode.CodeNoEffect, decode.At("config", "stopping"), "stopping has no effect with one trial per task; --trials gives more for one run")
	}
}

// at reports a finding at a place of the suite file.
func (l *loader) at(severity decode.Severity, code decode.Code, path decode.Path, format string, args ...any) {
	l.Reportf(l.src, decode.Place(l.src.Root, path...), severity, code, format, args...)
}

func (l *loader) displayAll(paths []string) string {
	shown := make([]string, len(paths))
	for i, p := range paths {
		shown[i] = l.display(p)
	}
	return strings.Join(shown, ", ")
}

// inContextDir finds a file in the suite's fixture directory.
func (l suiteCheck) inContextDir(rel string) (path string, ok bool) {
	dir := filepath.Join(l.suite.Dir, "fixtures")
	if l.options.ContextDir != "" {
		dir = l.options.ContextDir
	}
	path, err := filepath.Abs(filepath.Join(dir, filepath.FromSlash(rel)))
	l.looked(path)
	if err != nil || !files.IsRegular(path) {
		return "", false
	}
	return path, true
}

func (l suiteCheck) schemaVersion() {
	v := l.suite.SchemaVersion
	if v == "" {
		return
	}
	m := schemaVersionForm().FindStringSubmatch(v)
	switch {
	case m == nil:
		l.at(decode.Warning, decode.CodeSchemaVersion, decode.At("schemaVersion"), "schemaVersion must be MAJOR.MINOR, as in \"1.0\", not %q", text.Clip(v, 40))
	case m[1] != "1":
		l.at(decode.Warning, decode.CodeSchemaVersion, decode.At("schemaVersion"), "the suite asks for version %s of the format; waza reads version 1", v)
	}
}

func (l suiteCheck) metric(i int) {
	m := &l.suite.Metrics.List[i]
	if m.Weight <= 0 || math.IsNaN(m.Weight) {
		l.at(decode.Warning, decode.CodeNoEffect, l.metricPath(i, "weight"), "metric %q: a weight of %v counts as 1; use `enabled: false` to leave a metric out", m.Name, m.Weight)
		m.Weight = 1
	}
}

// metricPath leads to a key of the i-th metric in either shape of metrics.
func (l suiteCheck) metricPath(i int, key string) decode.Path {
	if n := decode.Follow(decode.Lookup(l.src.Root, "metrics")); n != nil && n.Kind == yaml.MappingNode {
		return decode.At("metrics", l.suite.Metrics.List[i].Name, key)
	}
	return decode.At("metrics", i, key)
}

func (l suiteCheck) hook(key string, i int, h Hook) {
	path := []any{"hooks", key, i}
	if strings.TrimSpace(h.Command) == "" {
		return // a missing command is reported where it is decoded
	}
	if h.WorkingDirectory != "" && !files.IsDir(l.fromSuite(h.WorkingDirectory)) && key == "before_run" && i == 0 {
		// Later hooks may run in directories that earlier ones make.
		l.at(decode.Warning, decode.CodeMissingFile, append(path, "working_directory"), "no such directory: %s", l.display(l.fromSuite(h.WorkingDirectory)))
	}
	for j, code := range h.ExitCodes {
		if code < 0 || code > 255 {
			l.at(decode.Error, decode.CodeInvalidValue, append(path, "exit_codes", j), "an exit code is between 0 and 255, not %d", code)
		}
	}
}

// fromSuite makes a path absolute that is relative to the suite's directory.
func (l *loader) fromSuite(path string) string {
	return l.suite.Path(path)
}

func (l suiteCheck) inputNames() {
	for name := range l.suite.Inputs {
		if !variableName().MatchString(name) {
			l.at(decode.Warning, decode.CodeInvalidValue, decode.At("inputs", name), "%q cannot be used as a template variable; names are letters, digits, '_' and '-'", text.Clip(name, 60))
		}
	}
}

// baseline tells of a comparison whose two sides are the same.
func (l suiteCheck) baseline() {
	s := l.suite
	if !s.Baseline || len(s.Tasks) == 0 || slices.ContainsFunc(s.Tasks, func(t *Task) bool { return len(t.Skills) > 0 }) {
		return
	}
	l.at(decode.Warning, decode.CodeNoEffect, decode.At("baseline"), "baseline compares nothing: no task is given a skill, so the agent works the same with and without")
}

// basicEnvironment are the variables that hardly any program works without, and those
// by which waza finds the processes that it has to end.
var basicEnvironment = []string{"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "TZ", "LANG", "LC_*", "TMPDIR", "WAZA_MARK_*"}

// Inherited returns those variables of an environment that the programs of a suite
// get: agents, graders and hooks. The result is environ itself where the suite says
// nothing of it.
func (c *Config) Inherited(environ []string) []string {
	if c.Environment == nil {
		return environ
	}
	var patterns []*regexp.Regexp
	for _, name := range slices.Concat(basicEnvironment, c.Environment) {
		if pattern, err := discover.CompileGlob(name); err == nil {
			patterns = append(patterns, pattern)
		}
	}
	var list []string
	for _, variable := range environ {
		name, _, _ := strings.Cut(variable, "=")
		if slices.ContainsFunc(patterns, func(p *regexp.Regexp) bool { return p.MatchString(name) }) {
			list = append(list, variable)
		}
	}
	return list
}

// environment reports what cannot be the name of a variable.
func (l suiteCheck) environment() {
	for i, name := range l.suite.Config.Environment {
		at := decode.At("config", "environment", i)
		_, err := discover.CompileGlob(name)
		switch {
		case err != nil:
			l.at(decode.Error, decode.CodeInvalidValue, at, "%q is no pattern: %s", name, err)
		case name == "":
			l.at(decode.Error, decode.CodeInvalidValue, at, "the name of a variable is empty")
		case strings.Contains(name, "="):
			l.at(decode.Error, decode.CodeInvalidValue, at, "%q is no name of a variable: list names here; a task's inputs.environment sets values", name)
		}
	}
}
