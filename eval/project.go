package eval

import (
	"errors"
	"io/fs"
	"path/filepath"
	"reflect"

	"waza/eval/decode"
	"waza/eval/discover"
	"waza/eval/files"

	"gopkg.in/yaml.v3"
)

// Project is a .waza.yaml: where a repository keeps things, and what its suites
// mean when they say nothing.
type Project struct {
	// File is its absolute path; paths in it are relative to its directory.
	File string `yaml:"-"`

	// Where skills, suites and results are.
	Paths ProjectPaths `yaml:"paths"`
	// What a suite's config means when it says nothing.
	Defaults ProjectDefaults `yaml:"defaults"`
	// Agents by name, for suites that say `agent: NAME`. A built-in name changes that agent.
	Agents map[string]ProjectAgent `yaml:"agents"`

	src  *decode.Source
	root *yaml.Node
}

// ProjectPaths are directories, relative to the project's.
type ProjectPaths struct {
	Skills  string `yaml:"skills"`
	Evals   string `yaml:"evals"`
	Results string `yaml:"results"`
}

// ProjectAgent says how to start an agent that speaks the Agent Client Protocol
// over its standard streams, and what to know of it. What is absent is taken
// from the preset.
type ProjectAgent struct {
	// Built-in agent that this one is a variant of; none when absent.
	Preset string `yaml:"preset"`
	// Program to start, with arguments if given as a list.
	Command []string `yaml:"command"`
	// Arguments after those of command.
	Args []string `yaml:"args"`
	// Environment variables of the agent.
	Env map[string]string `yaml:"env"`
	// Directory the agent is started in; a temporary one when absent. Sessions work in the trial's workspace all the same.
	Cwd string `yaml:"cwd"`
	// Directory of the workspace in which the agent looks for skills.
	Skills string `yaml:"skills"`
	// File of the workspace in which the agent reads instructions.
	Instructions string `yaml:"instructions"`
	// Environment variable that chooses the model.
	ModelEnv string `yaml:"model_env"`
	// Arguments that choose the model; {model} stands for its name.
	ModelArgs []string `yaml:"model_args"`
	// What to type to install the agent, for messages.
	Install string `yaml:"install"`
	// What to type to log in, for messages.
	Login string `yaml:"login"`
}

// ProjectDefaults stand beneath a suite's config. Nil means not given.
type ProjectDefaults struct {
	Engine     *string  `yaml:"engine" alias:"executor"`
	Model      *string  `yaml:"model"`
	JudgeModel *string  `yaml:"judgeModel" alias:"judge_model"`
	Timeout    *float64 `yaml:"timeout" alias:"timeout_seconds" jsonschema:"minimum=0"`
	Parallel   *bool    `yaml:"parallel"`
	Workers    *int     `yaml:"workers" jsonschema:"minimum=0"`
	Verbose    *bool    `yaml:"verbose"`
}

// projectFile is the name of the file; other sections of it are for other
// commands than those that read suites.
const projectFile = ".waza.yaml"

var otherProjectSections = map[string]bool{
	"cache": true, "server": true, "dev": true, "tokens": true, "graders": true, "storage": true, "registries": true,
}

// otherProjectDefaults are known to the field and of no use here.
var otherProjectDefaults = map[string]bool{"sessionLog": true, "model_reasoning_effort": true}

// projectLoader loads the .waza.yaml of a suite.
type projectLoader struct{ *loader }

// load finds the nearest .waza.yaml at or above the suite, up to the root of
// its repository, or at most ten levels where there is none.
func (l projectLoader) load() *Project {
	root := files.RepositoryRoot(l.suite.Dir)
	dir := l.suite.Dir
	for range discover.MaxLevelsUp {
		if p, found := l.projectAt(filepath.Join(dir, projectFile)); found {
			return p
		}
		up := filepath.Dir(dir)
		if dir == root || up == dir {
			break
		}
		dir = up
	}
	return nil
}

func (l projectLoader) projectAt(path string) (p *Project, found bool) {
	data, err := l.readNear(path, maxYAMLBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false
	}
	if err != nil {
		l.unreadable(path, nil, nil, err)
		return nil, true
	}
	p = &Project{File: path, src: l.parse(path, data)}
	p.root = p.src.Root
	if p.root == nil {
		return nil, true
	}
	d := l.decoder(p.src)
	root, alias, ok := d.Enter(p.root)
	if !ok {
		return nil, true
	}
	defer d.Leave(alias)
	d.Structure(root, reflect.ValueOf(p).Elem(), func(pair decode.Pair) bool { return otherProjectSections[pair.Key.Value] })
	return p, true
}

// DecodeShape leaves out the defaults that mean nothing here.
func (pd *ProjectDefaults) DecodeShape(d *decode.Decoder, n *yaml.Node) {
	d.Structure(n, reflect.ValueOf(pd).Elem(), func(p decode.Pair) bool { return otherProjectDefaults[p.Key.Value] })
}

// apply puts the project's defaults into c, before the suite's own values.
func (pd *ProjectDefaults) apply(c *Config) {
	set(&c.Executor, pd.Engine)
	set(&c.Model, pd.Model)
	set(&c.JudgeModel, pd.JudgeModel)
	set(&c.TimeoutSeconds, pd.Timeout)
	set(&c.Parallel, pd.Parallel)
	set(&c.Workers, pd.Workers)
	set(&c.Verbose, pd.Verbose)
}

func set[T any](to *T, from *T) {
	if from != nil {
		*to = *from
	}
}
