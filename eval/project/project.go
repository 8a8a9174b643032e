// Package project reads .waza.yaml: the directories of a repository, and defaults for its suites
// and commands. Call [Find] for the file that applies to a directory.
//
// Keys are in camel case, like in other tools that read the file. Each key also has a spelling
// in snake case.
package project

import (
	"errors"
	"io/fs"
	"path/filepath"

	"waza/eval/decode"
	"waza/eval/files"
	"waza/eval/surroundings"

	"gopkg.in/yaml.v3"
)

// Name is the name of the file.
const Name = ".waza.yaml"

// MaxLevelsUp is how many directories above a file are searched for its suite and its project,
// unless the root of its repository ends the search before.
const MaxLevelsUp = 10

// A Project is a .waza.yaml. It is immutable and safe for concurrent use. The comments of its
// tagged fields are the reference documentation of the file: the JSON Schema and the docs are
// generated from them.
type Project struct {
	// File is its absolute path; paths in it are relative to its directory.
	File string `yaml:"-"`

	// Directories of skills, suites and results.
	Paths Paths `yaml:"paths"`
	// Defaults for the config of suites.
	Defaults Defaults `yaml:"defaults"`
	// Agents by name, for suites with `agent: NAME`. A built-in name changes that agent.
	Agents map[string]Agent `yaml:"agents"`
	// Names of suite files and task files.
	Files Files `yaml:"files"`
	// Reuse of trials of earlier runs.
	Cache Cache `yaml:"cache"`
	// Limits for the tokens of skills and documents.
	Tokens Tokens `yaml:"tokens"`
	// Settings for improving skills.
	Dev Dev `yaml:"dev"`
	// Dashboard settings of other tools; they have no effect in waza.
	Server Server `yaml:"server"`
	// Settings for all graders.
	Graders Graders `yaml:"graders"`
	// Upload settings of other tools; they have no effect in waza.
	Storage map[string]any `yaml:"storage"`
	// Registries of other tools; they have no effect in waza.
	Registries any `yaml:"registries"`

	src  *decode.Source
	root *yaml.Node
}

// Paths are directories, relative to the project's. Empty means absent.
type Paths struct {
	// Directory of the skills. Agents get all skills in it if a suite has no skill_directories.
	Skills string `yaml:"skills"`
	// Directory of the suites, one directory per skill.
	Evals string `yaml:"evals"`
	// Directory where every run writes its results.json, like --output-dir. The value results/ has no
	// effect, because other tools write it into every file.
	Results string `yaml:"results"`
}

// usualResults is the value of paths.results that other tools write into every new file. It has
// no effect.
const usualResults = "results"

// ResultsDir returns paths.results as written if it requests that results are written, else "".
// It can lead out of the project.
func (p *Project) ResultsDir() string {
	if p == nil || p.Paths.Results == "" || filepath.Clean(p.Paths.Results) == usualResults {
		return ""
	}
	return p.Paths.Results
}

// Dir returns the directory of the project.
func (p *Project) Dir() string { return filepath.Dir(p.File) }

// An Agent describes how to start an agent that uses the Agent Client Protocol over its standard
// streams, and the agent's properties. Absent values come from the preset.
type Agent struct {
	// Built-in agent that provides defaults for this one; none when absent.
	Preset string `yaml:"preset"`
	// Program to start; a list can include arguments.
	Command []string `yaml:"command" path:"words"`
	// Arguments after those in command.
	Args []string `yaml:"args" path:"words"`
	// Environment variables of the agent.
	Env map[string]string `yaml:"env" path:"maybe"`
	// Directory in which the agent starts; a temporary one when absent. Sessions still work in the trial's workspace.
	Cwd string `yaml:"cwd" path:"maybe"`
	// Directory of the workspace where the agent looks for skills.
	Skills string `yaml:"skills"`
	// File of the workspace from which the agent reads instructions.
	Instructions string `yaml:"instructions"`
	// Environment variable that chooses the model.
	ModelEnv string `yaml:"model_env"`
	// Arguments that choose the model; waza replaces {model} by its name.
	ModelArgs []string `yaml:"model_args" path:"words"`
	// Command that installs the agent, for messages.
	Install string `yaml:"install"`
	// Command for logging in, for messages.
	Login string `yaml:"login"`
}

// Defaults apply to keys that are absent in a suite's config. Nil means absent.
type Defaults struct {
	// Executor of suites that name none.
	Engine *string `yaml:"engine" alias:"executor"`
	// Agent of suites that name neither an executor nor an agent, like waza run --agent. It has no
	// effect together with engine.
	Agent *string `yaml:"agent" jsonschema_extras:"x-refers=agent"`
	// Number of trials of each task in suites that set none.
	Trials *int `yaml:"trials" alias:"trials_per_task" jsonschema:"minimum=1"`
	// Model of suites that name none.
	Model *string `yaml:"model"`
	// Model for graders that ask a judge, if neither they nor their suite name one.
	JudgeModel *string `yaml:"judgeModel" alias:"judge_model"`
	// Agent that judges in place of a model, like config.judge.agent of a suite.
	JudgeAgent *string `yaml:"judgeAgent" alias:"judge_agent"`
	// Time limit of one attempt at a trial in seconds.
	Timeout *float64 `yaml:"timeout" alias:"timeout_seconds" jsonschema:"minimum=0"`
	// Run trials at the same time, on shared workers; otherwise one trial runs at a time.
	Parallel *bool `yaml:"parallel"`
	// Number of trials that run at once when parallel; 0 means one per processor.
	Workers *int `yaml:"workers" jsonschema:"minimum=0"`
	// Sandbox around the programs of trials, like config.sandbox of a suite; a mode or a map. Paths are
	// relative to the directory of this file. A suite changes single keys.
	Sandbox *surroundings.Sandbox `yaml:"sandbox"`
	// Print all events of a run.
	Verbose *bool `yaml:"verbose"`
	// No effect: the record of every run contains its events.
	SessionLog *bool `yaml:"sessionLog" alias:"session_log"`
}

// Files are names of files. Empty means absent.
type Files struct {
	// Name of suite files, in addition to eval.yaml and similar names.
	EvalFile string `yaml:"evalFile" alias:"eval_file"`
	// Pattern of task files, relative to the suite, for suites that name no tasks.
	TaskGlob string `yaml:"taskGlob" alias:"task_glob"`
	// Suffix of task files that waza new writes; .yaml when absent.
	TaskFileSuffix string `yaml:"taskFileSuffix" alias:"task_file_suffix"`
}

// Cache controls whether trials of earlier runs are reused.
type Cache struct {
	// Reuse unchanged trials of earlier runs, like waza run --cache.
	Enabled bool `yaml:"enabled"`
	// No effect: waza reuses trials from the records of earlier runs.
	Dir string `yaml:"dir"`
}

// Tokens are limits for the tokens of Markdown files. Zero means absent.
type Tokens struct {
	// Number of tokens of a SKILL.md that causes a warning.
	WarningThreshold int `yaml:"warningThreshold" alias:"warning_threshold" jsonschema:"minimum=0"`
	// Limit for files that no pattern matches.
	FallbackLimit int `yaml:"fallbackLimit" alias:"fallback_limit" jsonschema:"minimum=0"`
	// Limits for files.
	Limits *TokenLimits `yaml:"limits"`
}

// TokenLimits are maximum numbers of tokens for files.
type TokenLimits struct {
	// Limits by pattern; the most specific pattern counts.
	Defaults map[string]int `yaml:"defaults"`
	// Limits by path; they override patterns.
	Overrides map[string]int `yaml:"overrides"`
}

// Dev controls how skills are improved. Zero means absent.
type Dev struct {
	// Model that proposes changes.
	Model string `yaml:"model"`
	// Required level of readiness.
	Target string `yaml:"target"`
	// Maximum number of changes to try.
	MaxIterations int `yaml:"maxIterations" alias:"max_iterations" jsonschema:"minimum=0"`
}

// Server is the dashboard of other tools.
type Server struct {
	// No effect: waza serve has its own configuration file.
	Port int `yaml:"port"`
	// No effect: the dashboard shows all recorded runs.
	ResultsDir string `yaml:"resultsDir" alias:"results_dir"`
}

// Graders are settings for all graders.
type Graders struct {
	// No effect: each program grader has its own timeout.
	ProgramTimeout float64 `yaml:"programTimeout" alias:"program_timeout" jsonschema:"minimum=0"`
}

// Reading contains the functions that [Read] uses. All fields are required.
type Reading struct {
	// Read returns the content of a file, or an error that wraps fs.ErrNotExist.
	Read func(path string) ([]byte, error)
	// Parse reads YAML, and reports to Findings.
	Parse func(path string, data []byte) *decode.Source
	// Shown returns a path as findings show it.
	Shown func(path string) string
	// Findings collects the faults of the file.
	Findings *decode.Findings
}

// Find reads the nearest .waza.yaml at or above a directory, up to the root of its repository, in
// at most [MaxLevelsUp] directories. It returns nil if there is no readable file.
// Findings name the file relative to the caller's dir. The error means that the current
// directory does not exist any more.
func Find(dir string, v files.View) (*Project, decode.Diagnostics, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, nil, err
	}
	var found decode.Findings
	shown := func(path string) string {
		if rel, err := filepath.Rel(abs, path); err == nil {
			path = filepath.Join(dir, rel)
		}
		return filepath.ToSlash(path)
	}
	p := Read(abs, Reading{
		Read: func(path string) ([]byte, error) {
			return v.Read(path, decode.MaxTextBytes, func(path string, limit int64) ([]byte, error) {
				root, name := files.RepositoryRoot(filepath.Dir(path)), "its repository"
				if root == "" {
					root, name = filepath.Dir(path), "its directory"
				}
				return files.ReadNamed(root, name, path, limit)
			})
		},
		Parse:    func(path string, data []byte) *decode.Source { return decode.Parse(path, shown(path), data, &found) },
		Shown:    shown,
		Findings: &found,
	})
	return p, found.Diagnostics(), nil
}

// Read is like [Find], but takes an absolute directory and the functions for reading files.
func Read(dir string, r Reading) *Project {
	for at := range files.Upwards(dir, MaxLevelsUp) {
		if p, found := r.readAt(filepath.Join(at, Name)); found {
			return p
		}
	}
	return nil
}

func (r Reading) readAt(path string) (p *Project, found bool) {
	data, err := r.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false
	}
	if err != nil {
		r.Findings.Unreadable(r.Shown(path), nil, nil, err)
		return nil, true
	}
	p = &Project{File: path, src: r.Parse(path, data)}
	p.root = p.src.Root
	if p.root == nil {
		return p, true
	}
	d := decode.NewDecoder(p.src, r.Findings)
	d.WithoutEffect = withoutEffect
	root, alias, ok := d.Enter(p.root)
	if !ok {
		return p, true
	}
	defer d.Leave(alias)
	d.Structure(root, p, nil)
	if root.Kind == yaml.MappingNode {
		reportIdle(d, root)
	}
	return p, true
}

// Place returns the place of a value in the file, for findings about it.
func (p *Project) Place(path ...any) (*decode.Source, *yaml.Node) {
	return p.src, decode.Place(p.root, path...)
}

// Root returns the directory of the project that a directory belongs to: the directory of the
// nearest .waza.yaml, else the root of the repository, else the directory itself. The search
// ends like that of [Find]. The result is absolute, without links.
func Root(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	for at := range files.Upwards(dir, MaxLevelsUp) {
		if files.IsRegular(filepath.Join(at, Name)) {
			return at, nil
		}
	}
	return files.RootOf(dir), nil
}
