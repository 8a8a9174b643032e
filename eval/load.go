// Package eval reads suites: eval.yaml, and the task files, datasets, fixtures and skills that
// it refers to. Call [Load] for one suite; package discover finds the suites below a directory.
// Package eval starts no process and uses no network.
//
// The faults of a suite are not Go errors but a list of [decode.Diagnostics], each with its
// place, a stable [decode.Code] and a suggestion if a similar value exists. A suite without
// findings of severity [decode.Error] can be run.
//
// Package eval has no list of executors and graders: the program describes them in a
// [Vocabulary]. Each [Kind] declares its options and checks them.
package eval

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/dialect"
	"waza/eval/discover"
	"waza/eval/fields"
	"waza/eval/files"
	"waza/eval/reach"
)

// Options control how Load reads suites. The zero value skips all checks that need a vocabulary.
type Options struct {
	// Vocabulary lists the known executors and graders. Nil accepts any name and skips the
	// checks of their options.
	Vocabulary *Vocabulary
	// Executor replaces the suite's config.executor, so that Load checks its options. Empty
	// means config.executor.
	Executor string
	// Recorded means that Executor and Agent are those of a recorded run, and nobody asked for them. A suite of
	// another tool keeps its providers.
	Recorded bool
	// Agent replaces the suite's config.agent. Empty means config.agent. With an executor that
	// drives no agent, Load reports an error.
	Agent string
	// JudgeModel and JudgeAgent replace the suite's config.judge_model and config.judge.agent.
	// Empty means the values of the suite.
	JudgeModel, JudgeAgent string
	// Sandbox changes keys of the suite's config.sandbox: a mode or a map, see
	// [surroundings.Sandbox.Override]. Empty means none.
	Sandbox string
	// ExactTools sets the suite's config.exact_tools.
	ExactTools bool
	// ContextDir replaces every task's fixture directory. Empty means none.
	ContextDir string
	// Baseline also does each task without its skills, even if the suite does not ask for it.
	Baseline bool
	// NoSkills keeps all skills from agents, even if the suite gives them some.
	NoSkills bool
	// UpdateSnapshots allows graders to replace their snapshots. It affects graders whose
	// options have the method UpdatesSnapshots.
	UpdateSnapshots bool
	// PassReward replaces the least reward to pass of graders whose options have the method
	// SetPassReward. Nil means those of the suite.
	PassReward *float64
	// Params are the values of parameters, such as ${KEY} in suites of Vally, by their names. Load warns about those
	// that the suite does not have.
	Params map[string]string
	// SecretParams are the names of parameters whose values are secrets, besides those that are secret by their names.
	SecretParams []string
	// Results are the results of programs that return parts of the suite, by the keys of their calls. Load
	// starts no program: the suite returns the calls whose results it lacks, see [Suite.Calls].
	Results map[string]dialect.Result
	// View contains the unsaved files of an editor. Only a change of a path that Load passes to
	// Accessed can change the result of Load. Load makes all calls before it returns, and can
	// repeat paths.
	files.View
}

// Load reads the suite file at path and everything it refers to. If path is a directory, it must
// contain exactly one suite.
//
// The suite is as complete as the files allow. It is nil when the file is not a YAML map, and it
// must not be run when the diagnostics contain errors. The error is a [*NotFoundError], an
// [*AmbiguousError] or the reason why the file cannot be read; all other faults are diagnostics.
// Time and memory are bounded for any content.
func Load(path string, o Options) (*Suite, decode.Diagnostics, error) {
	path, err := discover.Find(path, o.View)
	if err != nil {
		return nil, nil, err
	}
	return load(path, o, true)
}

// load is like [Load] for a file. withOwner also searches the suite of a file that is only a part
// of a suite. The search loads other files without it, because each could search the suite of the
// other one.
func load(path string, o Options, withOwner bool) (*Suite, decode.Diagnostics, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	l := newLoader(abs, filepath.Dir(path), o)
	other := notSuite{l}
	if other.reportOtherFile(abs) {
		return nil, l.Diagnostics(), nil
	}
	data, err := l.readFile(abs, maxYAMLBytes)
	if refused(err) {
		l.reportUnreadable(abs, nil, nil, err)
		return nil, l.Diagnostics(), nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %s", path, files.Reason(err))
	}
	src := l.parse(abs, data)
	if src.Root == nil {
		return nil, l.Diagnostics(), nil
	}
	if translated, ok := l.translate(src); translated != nil {
		src = translated
	} else if !ok {
		return nil, l.Diagnostics(), nil
	}
	if root := decode.Follow(src.Root); root.Kind != yaml.MappingNode {
		l.Reportf(src, root, decode.Error, decode.CodeWrongType,
			"a suite must be a map of keys such as name, config and tasks, got %s", decode.Describe(root))
		return nil, l.Diagnostics(), nil
	}
	if withOwner && l.suite.Format == "" && other.reportPart(src) {
		return nil, l.Diagnostics(), nil
	}
	l.load(src)
	return l.suite, l.Diagnostics(), nil
}

func newLoader(abs, shownDir string, o Options) *loader {
	suite := &Suite{Places: reach.At(abs)}
	if o.ContextDir != "" {
		suite.Fixtures, _ = filepath.Abs(o.ContextDir) // fails only without a current directory
	}
	l := &loader{reader: reader{o.View, suite.Places, shownDir}, options: o, suite: suite}
	l.skills = &skillLoader{loader: l, found: map[string][]SkillIn{}}
	return l
}

// load fills in the suite from its parsed file.
func (l *loader) load(src *decode.Source) {
	s := l.suite
	l.src, s.src = src, src
	if discover.IsWorkflow(decode.Follow(src.Root)) {
		l.Reportf(src, decode.Place(src.Root, "jobs"), decode.Error, decode.CodeOtherDialect, "this is a workflow of GitHub Actions, not a suite")
		l.Quietly(func() { l.decodeSuite() })
		return
	}
	if tool, at := discover.OtherTool(src.Root); tool != "" {
		l.Reportf(src, at, decode.Error, decode.CodeOtherDialect,
			"this suite is for %s, which uses the same file name; waza cannot read it", tool)
		l.Quietly(func() { l.decodeSuite() })
		return
	}
	s.Project = l.projectOf()
	l.decodeSuite()
	s.Config.JudgeModel = cmp.Or(l.options.JudgeModel, s.Config.JudgeModel)
	s.Config.ExactTools = l.options.ExactTools || s.Config.ExactTools
	s.Config.Judge.Agent = cmp.Or(l.options.JudgeAgent, s.Config.Judge.Agent)
	l.changeSandbox()
	s.Baseline = s.Baseline || l.options.Baseline
	executors := l.executors()
	matrix := &matrixLoader{executorLoader: executors}
	suiteCheck{l}.checkSettings()
	matrix.check()
	executors.load()
	s.Graders = graderLoader{l}.load(s.Graders, nil)
	agents := agentLoader{l.skills}
	l.skills.agent = agents.load()
	s.Graders = append(s.Graders, agents.graders(l.skills.agent)...)
	before := l.Errors()
	l.loadTasks()
	matrix.combine()
	graderLoader{l}.reportUnnamed()
	kindCheck{l}.check()
	s.Triggers = triggerLoader{l}.load()
	suiteCheck{l}.checkSandbox()
	metricCheck{l}.checkThresholds()
	skillCheck{l.skills}.check()
	s.skills = l.skills.all()
	suiteCheck{l}.checkQuestion()
	if len(s.Tasks) == 0 && s.Triggers == nil && l.Errors() == before {
		l.Reportf(src, decode.Place(src.Root, "tasks"), decode.Error, decode.CodeNoTasks, "the suite has no task to run")
	}
}

func (l *loader) decodeSuite() {
	s := l.suite
	s.Kind = ToolEval
	s.Config.SetDefaults()
	if s.Format != "" {
		s.Config.Executor = "" // see checkAgent
	}
	applyDefaults(s.Project, s.Dir, &s.Config)
	d := l.decoder(l.src)
	root, alias, ok := d.Enter(l.src.Root)
	if !ok {
		return
	}
	defer d.Leave(alias)
	d.Structure(root, s, func(p decode.Pair) bool {
		if p.Key.Value != "tasks" && p.Key.Value != "trigger_tests" {
			d.UnknownKey(p.Key, reflect.TypeFor[Suite](), fields.Field{Name: "tasks"}, fields.Field{Name: "trigger_tests"})
		}
		return true
	})
}

// reportUnreadable reports a file that cannot be read. The finding is at the place that names the
// file, or in the file itself when src is nil.
func (l *loader) reportUnreadable(path string, src *decode.Source, at *yaml.Node, err error) {
	l.Findings.Unreadable(l.display(path), src, at, err)
}

// refused reports whether err means that a file exists but must not be read.
func refused(err error) bool {
	return errors.Is(err, files.ErrTooLarge) || errors.Is(err, files.ErrNotRegular) || errors.Is(err, decode.ErrNotText)
}

// Task returns the task with that id, or nil.
func (s *Suite) Task(id string) *Task {
	for _, t := range s.Tasks {
		if t.ID == id {
			return t
		}
	}
	return nil
}
