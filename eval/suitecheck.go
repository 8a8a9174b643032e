package eval

import (
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"waza/eval/decode"
	"waza/eval/discover"
	"waza/eval/files"
	"waza/eval/project"
	"waza/eval/surroundings"
	"waza/eval/text"
)

var schemaVersionForm = text.Pattern(`^(\d+)\.(\d+)$`)

// suiteCheck checks the settings of a suite. [metricCheck] checks its metrics, and [kindCheck] the
// rules of its kind.
type suiteCheck struct{ *loader }

// checkSettings looks for faults in the suite's own settings, and replaces values that mean a
// default.
func (l suiteCheck) checkSettings() {
	s := l.suite
	l.checkSchemaVersion()
	if dir := l.options.ContextDir; dir != "" && !files.IsDir(dir) {
		if abs, err := filepath.Abs(dir); err == nil {
			l.dependsOn(abs)
		}
		l.Reportf(l.src, nil, decode.Error, decode.CodeMissingFile, "no such fixture directory: %s", dir)
	}
	if s.Config.TimeoutSeconds == 0 {
		s.Config.TimeoutSeconds = 300
	}
	l.checkWorkers()
	l.checkEffort()
	l.checkPromptOptions()
	l.checkFleet()
	l.suite.MCPMocks = l.loader.loadMocks(l.src, l.src.Root, l.suite.MCPMocks)
	l.checkStopping()
	l.checkDecide()
	l.checkEnvironment()
	l.checkWindows()
	s.Config.MaxAttempts = max(s.Config.MaxAttempts, 1)
	metricCheck(l).checkList()
	for _, h := range []struct {
		key  string
		list []surroundings.Hook
	}{
		{"before_run", s.Hooks.BeforeRun}, {"after_run", s.Hooks.AfterRun}, {"before_task", s.Hooks.BeforeTask},
		{"after_task", s.Hooks.AfterTask},
	} {
		for i, hook := range h.list {
			l.checkHook(h.key, i, hook)
		}
	}
	l.checkInputNames()
	if s.Range != nil && s.TasksFrom == "" {
		l.reportAt(decode.Warning, decode.CodeNoEffect, []any{"range"}, "range has no effect without tasks_from")
	}
	for i, f := range s.Config.InstructionFiles {
		path, tried, ok := s.Resolve(f, "")
		l.dependsOn(tried...)
		if !ok {
			path, ok = l.inContextDir(f)
		}
		s.Instructions = append(s.Instructions, InstructionFile{Name: f, Path: path})
		if err := s.Allows(path); ok && err != nil {
			l.reportAt(decode.Error, decode.CodeEscapingPath, []any{"config", "instruction_files", i}, "%s is %s", l.display(path), err)
		}
		if !ok {
			l.reportAt(decode.Warning, decode.CodeMissingFile, []any{"config", "instruction_files", i},
				"no such file: %s (tried %s)", f, l.displayAll(tried))
		}
	}
}

// checkWorkers reports a number of workers when trials run one at a time anyway. It accepts an
// explicit parallel: false.
func (l suiteCheck) checkWorkers() {
	config := decode.Lookup(l.src.Root, "config")
	key, n := decode.LookupPair(config, "workers")
	if n == nil {
		key, n = decode.LookupPair(config, "max_workers")
	}
	parallel := decode.Lookup(config, "parallel")
	defaults := project.Defaults{}
	if p := l.suite.Project; p != nil {
		defaults = p.Defaults
	}
	l.suite.Unpaced = n == nil && defaults.Workers == nil && (l.suite.Config.Parallel || parallel == nil && defaults.Parallel == nil)
	switch c := l.suite.Config; {
	case c.Parallel || c.Workers < 0 || c.Workers == 1 || parallel != nil:
	case n != nil && decode.Follow(n).Tag != "!!null":
		l.Reportf(l.src, key, decode.Warning, decode.CodeNoEffect,
			"%q has no effect without `parallel: true`: trials run one at a time", key.Value)
	}
}

// checkEffort reports a reasoning effort that no executor takes.
func (l suiteCheck) checkEffort() {
	if without, takers := l.executors().withoutKind(func(k Kind) bool { return k.TakesEffort }); without != "" &&
		l.suite.Config.ReasoningEffort != "" {
		l.reportAt(decode.Warning, decode.CodeNoEffect, decode.At("config", "reasoning_effort"),
			"reasoning_effort has no effect with executor %s; executors that take it: %s", without, takers)
	}
}

// checkPromptOptions reports a system prompt and tools of config that no executor takes.
func (l suiteCheck) checkPromptOptions() {
	config := decode.Follow(decode.Lookup(decode.Follow(l.src.Root), "config"))
	for _, key := range []string{"system_prompt", "tools"} {
		takes := func(k Kind) bool { return k.Options != nil && decode.TakesKey(k.Options(), key) }
		if without, takers := l.executors().withoutKind(takes); without != "" && takers != "" && decode.Lookup(config, key) != nil {
			l.reportAt(decode.Warning, decode.CodeNoEffect, decode.At("config", key),
				"%s has no effect with executor %s; executors that take it: %s", key, without, takers)
		}
	}
}

func (l suiteCheck) checkWindows() {
	for _, model := range slices.Sorted(maps.Keys(l.suite.Config.ContextWindows)) {
		if n := l.suite.Config.ContextWindows[model]; n <= 0 {
			l.reportAt(decode.Error, decode.CodeInvalidValue, decode.At("config", "context_windows", model),
				"config.context_windows: the window of %q must be at least 1 token, got %d", text.Clip(model, 60), n)
		}
	}
}

// checkStopping reports a stopping rule that has no effect.
func (l suiteCheck) checkStopping() {
	c := l.suite.Config
	switch {
	case c.Stopping.Confidence == 0:
	case l.suite.Baseline:
		l.reportAt(decode.Warning, decode.CodeNoEffect, decode.At("config", "stopping"),
			"stopping has no effect on tasks with a baseline: the comparison needs all trials of both sides")
	case c.TrialsPerTask == 1:
		l.reportAt(decode.Info, decode.CodeNoEffect, decode.At("config", "stopping"),
			"stopping has no effect with one trial per task; use --trials to run more")
	}
}

// checkDecide reports a question that no run can decide.
func (l suiteCheck) checkDecide() {
	d := &l.suite.Config.Decide
	if d.BetterBy == 0 && len(d.Between) == 0 && d.Risk == 0 {
		return
	}
	report := func(key, format string, args ...any) {
		l.reportAt(decode.Error, decode.CodeInvalidValue, decode.At("config", "decide", key), "config.decide."+key+" "+format, args...)
	}
	if !(d.BetterBy > 0 && d.BetterBy <= 100) {
		report("better_by", "must be more than 0 and at most 100 points, got %v", d.BetterBy)
	}
	if !(d.Risk >= 0 && d.Risk < 0.5) {
		report("risk", "must be more than 0 and less than 0.5, got %v", d.Risk)
	}
	if n := len(d.Between); n != 0 && n != 2 {
		report("between", "must list two sides, got %d", n)
	}
}

// checkQuestion reports a question of config.decide that no run of the loaded suite can decide. Runs without
// skills ask none.
func (l suiteCheck) checkQuestion() {
	v := l.options.Vocabulary
	if l.suite.Config.Decide.BetterBy == 0 || l.Errors() > 0 || len(l.suite.Tasks) == 0 || v == nil || v.CheckDecide == nil ||
		l.options.NoSkills || l.options.UpdateSnapshots || l.options.Recorded {
		return
	}
	for _, d := range v.CheckDecide(l.suite) {
		l.Report(d)
	}
}

// inContextDir finds a file in the suite's fixture directory.
func (l suiteCheck) inContextDir(rel string) (path string, ok bool) {
	dir := filepath.Join(l.suite.Dir, "fixtures")
	if l.options.ContextDir != "" {
		dir = l.options.ContextDir
	}
	path, err := filepath.Abs(filepath.Join(dir, filepath.FromSlash(rel)))
	l.dependsOn(path)
	if err != nil || !files.IsRegular(path) {
		return "", false
	}
	return path, true
}

func (l suiteCheck) checkSchemaVersion() {
	v := l.suite.SchemaVersion
	if v == "" {
		return
	}
	m := schemaVersionForm().FindStringSubmatch(v)
	switch {
	case m == nil:
		l.reportAt(decode.Warning, decode.CodeSchemaVersion, decode.At("schemaVersion"),
			"schemaVersion must be MAJOR.MINOR, such as \"1.0\", got %q", text.Clip(v, 40))
	case m[1] != "1":
		l.reportAt(decode.Warning, decode.CodeSchemaVersion, decode.At("schemaVersion"),
			"schemaVersion %s is not supported; waza reads version 1", v)
	}
}

func (l suiteCheck) checkHook(key string, i int, h surroundings.Hook) {
	path := []any{"hooks", key, i}
	if strings.TrimSpace(h.Command) == "" {
		return // the decoder reports a missing command
	}
	if h.WorkingDirectory != "" && !files.IsDir(l.suite.Path(h.WorkingDirectory)) && key == "before_run" && i == 0 {
		// Later hooks can run in directories that earlier ones make.
		l.reportAt(decode.Warning, decode.CodeMissingFile, append(path, "working_directory"),
			"no such directory: %s", l.display(l.suite.Path(h.WorkingDirectory)))
	}
	for j, code := range h.ExitCodes {
		if code < 0 || code > 255 {
			l.reportAt(decode.Error, decode.CodeInvalidValue, append(path, "exit_codes", j), "exit code must be between 0 and 255, got %d", code)
		}
	}
}

func (l suiteCheck) checkInputNames() {
	for name := range l.suite.Inputs {
		if !variableName().MatchString(name) {
			l.reportAt(decode.Warning, decode.CodeInvalidValue, decode.At("inputs", name),
				"%q cannot be a template variable; names consist of letters, digits, '_' and '-'", text.Clip(name, 60))
		}
	}
}

// basicEnvironment lists the variables that almost every program needs, and those that help waza
// to find the processes that it must end.
var basicEnvironment = []string{"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "TZ", "LANG", "LC_*", "TMPDIR", "WAZA_MARK_*"}

// Inherited returns the variables of an environment that the programs of a suite get: agents,
// graders and hooks. Without config.environment, the result is environ itself.
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

// checkEnvironment reports texts that cannot be the name of a variable.
func (l suiteCheck) checkEnvironment() {
	for i, name := range l.suite.Config.Environment {
		at := decode.At("config", "environment", i)
		_, err := discover.CompileGlob(name)
		switch {
		case err != nil:
			l.reportAt(decode.Error, decode.CodeInvalidValue, at, "invalid pattern %q: %s", name, err)
		case name == "":
			l.reportAt(decode.Error, decode.CodeInvalidValue, at, "a variable name must not be empty")
		case strings.Contains(name, "="):
			l.reportAt(decode.Error, decode.CodeInvalidValue, at,
				"%q must be a variable name without a value; set values in a task's inputs.environment", name)
		}
	}
}
