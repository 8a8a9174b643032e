package eval

import (
	"maps"
	"os"
	"path/filepath"
	"slices"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/reach"
	"waza/eval/surroundings"
	"waza/eval/text"
)

// changeSandbox applies [Options.Sandbox].
func (l *loader) changeSandbox() {
	if l.options.Sandbox == "" {
		return
	}
	if err := l.suite.Config.Sandbox.Override(l.options.Sandbox); err != nil {
		l.Reportf(l.src, nil, decode.Error, decode.CodeInvalidValue, "the sandbox that replaces the suite's: %s", err)
	}
}

// projectSandbox returns the sandbox of .waza.yaml for a suite: its paths become relative to the
// suite's directory, so that they do not depend on the place of the repository.
func projectSandbox(p *Project, dir string) *surroundings.Sandbox {
	if p.Defaults.Sandbox == nil {
		return nil
	}
	s := *p.Defaults.Sandbox
	from := func(path string) string {
		if path == "" || surroundings.IsFixed(path) {
			return path
		}
		if rel, err := filepath.Rel(dir, filepath.Join(p.Dir(), filepath.FromSlash(path))); err == nil {
			return filepath.ToSlash(rel)
		}
		return path
	}
	all := func(paths []string) []string {
		var list []string
		for _, path := range paths {
			list = append(list, from(path))
		}
		return list
	}
	s.Read, s.Write, s.Dockerfile = all(s.Read), all(s.Write), from(s.Dockerfile)
	return &s
}

// checkSandbox looks for settings of the sandbox that have no effect, and for paths that open the
// suite to the agent.
func (l suiteCheck) checkSandbox() {
	s := &l.suite.Config.Sandbox
	at := func(keys ...any) decode.Path { return append(decode.At("config", "sandbox"), keys...) }
	if v := l.options.Vocabulary; v != nil && v.CheckHost != nil {
		for i, host := range s.Network.Hosts {
			if host == "" {
				continue // the decoder reported it
			}
			if err := v.CheckHost(host); err != nil {
				l.reportAt(decode.Error, decode.CodeInvalidValue, at("network", i), "config.sandbox.network[%d]: %s", i, err)
			}
		}
	}
	l.checkSandboxPaths("read", s.Read, "read")
	l.checkSandboxPaths("write", s.Write, "change")
	s.CheckImage(l.suite.Dir, func(path string) { l.dependsOn(path) },
		func(below decode.Path, severity decode.Severity, code decode.Code, format string, args ...any) {
			l.reportAt(severity, code, at(below...), "config."+format, args...)
		})
	if s.Mode == surroundings.SandboxContainer && s.SandboxImage == (surroundings.SandboxImage{}) && !l.allHaveImages() {
		l.reportAt(decode.Error, decode.CodeMissingField, at(),
			"the sandbox mode container needs config.sandbox.image or dockerfile, or an image of each task")
	}
	if l.options.Sandbox != "" { // trying another mode is not a fault
		return
	}
	if some, others := l.executors().remote(); some && !others && l.hasSetting(at()) && l.options.Vocabulary != nil {
		l.reportAt(decode.Warning, decode.CodeNoEffect, at(),
			"sandbox has no effect on agents with executor %s, because they run elsewhere", l.suite.Config.Executor)
	}
	for _, key := range []string{"network", "keys", "home", "read", "write", "limits"} {
		if s.Mode == surroundings.SandboxOff && l.hasSetting(at(key)) {
			l.reportAt(decode.Warning, decode.CodeNoEffect, at(key), "config.sandbox.%s has no effect with the mode off", key)
		}
	}
	for _, key := range []string{"image", "dockerfile"} {
		if s.Mode != surroundings.SandboxContainer && l.hasSetting(at(key)) {
			l.reportAt(decode.Warning, decode.CodeNoEffect, at(key),
				"config.sandbox.%s has no effect with the mode %s; it is for the mode container", key, s.Mode)
		}
	}
}

// placeOfSandbox returns the place of an entry of config.sandbox: in the suite, else in .waza.yaml.
// An entry of [Options.Sandbox] has the place of the nearest key.
func (l suiteCheck) placeOfSandbox(key string, i int) (*decode.Source, *yaml.Node) {
	if p := l.suite.Project; p != nil && !l.hasSetting(decode.At("config", "sandbox", key)) {
		return p.Place("defaults", "sandbox", key, i)
	}
	return l.src, decode.Place(l.src.Root, "config", "sandbox", key, i)
}

// hasSetting reports whether the suite file sets a value.
func (l suiteCheck) hasSetting(at decode.Path) bool {
	n, depth := decode.Walk(l.src.Root, at)
	return depth == len(at) && !decode.IsNull(decode.Follow(n))
}

// allHaveImages reports whether each task of the suite has an image of its own.
func (l suiteCheck) allHaveImages() bool {
	return len(l.suite.Tasks) > 0 && l.suite.Triggers == nil &&
		!slices.ContainsFunc(l.suite.Tasks, func(t *Task) bool { return t.Sandbox.SandboxImage == surroundings.SandboxImage{} })
}

// checkSandboxPaths reports paths through which agents reach the suite or a file of tasks. verb is
// the effect on them.
func (l suiteCheck) checkSandboxPaths(key string, paths []string, verb string) {
	home, _ := os.UserHomeDir() // without one, ~ is in no directory of a suite
	for i, path := range paths {
		if path == "" {
			continue // the decoder reported it
		}
		abs := surroundings.Absolute(path, l.suite.Dir, home)
		for _, file := range slices.Sorted(maps.Keys(l.suite.taskFiles)) {
			if reach.Within(abs, file) {
				src, at := l.placeOfSandbox(key, i)
				l.Reportf(src, at, decode.Warning, decode.CodeExposed,
					"sandbox.%s: agents can %s %s, because it is in %s", key, verb, l.display(file), text.Clip(l.display(abs), 80))
				break
			}
		}
	}
}

// checkImage checks the task's own image.
func (c *taskCheck) checkImage() {
	t, l := c.task, c.loader
	t.Sandbox.CheckImage(l.suite.Dir, func(path string) { l.dependsOn(path) },
		func(below decode.Path, severity decode.Severity, code decode.Code, format string, args ...any) {
			c.reportf(severity, code, append(decode.At("sandbox"), below...), format, args...)
		})
	t.Sandbox.CheckPaths(l.suite.Config.Sandbox.Mode == surroundings.SandboxContainer, func(below decode.Path, severity decode.Severity, code decode.Code, format string, args ...any) {
		c.reportf(severity, code, append(decode.At("sandbox"), below...), format, args...)
	})
	c.checkTaskHosts()
	if s := l.suite.Config.Sandbox; t.Sandbox.ImageWorkdir && s.Mode != surroundings.SandboxContainer {
		c.reportf(decode.Error, decode.CodeInvalidValue, decode.At("sandbox", "image_workdir"),
			"sandbox.image_workdir needs the mode container of config.sandbox, got %s", s.Mode)
	}
	if s := l.suite.Config.Sandbox; s.Mode != surroundings.SandboxContainer && l.options.Sandbox == "" && t.Sandbox.SandboxImage != (surroundings.SandboxImage{}) {
		at := decode.At("sandbox", "image")
		if !c.has(at) {
			at = decode.At("sandbox", "dockerfile")
		}
		c.reportf(decode.Warning, decode.CodeNoEffect, at,
			"%s has no effect with the mode %s of config.sandbox; it is for the mode container", at, s.Mode)
	}
}

// checkTaskHosts checks the hosts of the task's own network.
func (c *taskCheck) checkTaskHosts() {
	v := c.loader.options.Vocabulary
	if c.task.Sandbox.Network == nil || v == nil || v.CheckHost == nil {
		return
	}
	for i, host := range c.task.Sandbox.Network.Hosts {
		if host == "" {
			continue // the decoder reported it
		}
		if err := v.CheckHost(host); err != nil {
			c.reportf(decode.Error, decode.CodeInvalidValue, decode.At("sandbox", "network", i), "sandbox.network[%d]: %s", i, err)
		}
	}
}

// RunsPrograms reports whether the setup or graders of the task run programs of the suite.
func (t *Task) RunsPrograms() bool {
	runs := func(list []*Grader) bool {
		return slices.ContainsFunc(list, func(g *Grader) bool { return g.Type == "program" || g.Type == "reward" })
	}
	return len(t.SetupCommands()) > 0 || runs(t.Effective) || slices.ContainsFunc(t.Inputs.Checkpoints, func(c Checkpoint) bool { return runs(c.Graders) })
}

// RunsPrograms reports whether hooks of tasks, or the setup or graders of some task, run programs of the suite.
func (s *Suite) RunsPrograms() bool {
	return len(s.Hooks.BeforeTask) > 0 || len(s.Hooks.AfterTask) > 0 || slices.ContainsFunc(s.Tasks, (*Task).RunsPrograms)
}
