package eval

import (
	"waza/eval/decode"
	"waza/eval/files"
	"waza/eval/project"
)

// Project is a .waza.yaml, see package project.
type Project = project.Project

// ProjectAgent is an agent that a .waza.yaml describes.
type ProjectAgent = project.Agent

// FindProject reads the nearest .waza.yaml at or above a directory, see [project.Find].
func FindProject(dir string) (*Project, decode.Diagnostics, error) {
	return project.Find(dir, files.View{})
}

func (l *loader) projectOf() *Project {
	return project.Read(l.suite.Dir, project.Reading{
		Read:     func(path string) ([]byte, error) { return l.readNear(path, maxYAMLBytes) },
		Parse:    l.parse,
		Shown:    l.display,
		Findings: &l.Findings,
	})
}

// applyDefaults puts the project's defaults into c, before the suite's own values are decoded. dir is
// the suite's directory.
func applyDefaults(p *Project, dir string, c *Config) {
	if p == nil {
		return
	}
	d := p.Defaults
	set(&c.Executor, d.Engine)
	set(&c.TrialsPerTask, d.Trials)
	set(&c.Model, d.Model)
	set(&c.JudgeModel, d.JudgeModel)
	set(&c.Judge.Agent, d.JudgeAgent)
	set(&c.TimeoutSeconds, d.Timeout)
	set(&c.Parallel, d.Parallel)
	set(&c.Workers, d.Workers)
	set(&c.Verbose, d.Verbose)
	set(&c.Sandbox, projectSandbox(p, dir))
}

// defaultAgent returns the project's default agent if the suite gets it: if nobody chose an executor
// or an agent.
func (l *loader) defaultAgent() string {
	p := l.suite.Project
	if p == nil || p.Defaults.Agent == nil || p.Defaults.Engine != nil || l.options.Executor != "" || l.options.Agent != "" {
		return ""
	}
	config := decode.Lookup(l.src.Root, "config")
	for _, key := range []string{"executor", "engine", agentKey, "matrix"} {
		if decode.Lookup(config, key) != nil {
			return ""
		}
	}
	return *p.Defaults.Agent
}

func set[T any](to *T, from *T) {
	if from != nil {
		*to = *from
	}
}
