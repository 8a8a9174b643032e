package vally

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/dialect"
	"waza/eval/text"
)

// translator translates one file.
type translator struct {
	*dialect.Translation
	root     *yaml.Node
	suite    dialect.Map
	config   dialect.Map
	settings runSettings
	project  project
	scoring  scoring
	arms     *arms           // of the run
	variant  *variant        // of an experiment; nil without one
	prefix   string          // of the ids of tasks
	ids      map[string]bool // of the tasks until now
	types    map[string]bool // of the graders until now
	warned   map[string]bool // keys that were reported
}

func newTranslator(t *dialect.Translation, all *arms) *translator {
	return &translator{
		Translation: t, root: withParameters(t.Params, t.Source.Root), suite: dialect.NewMap(t.Source.Root), config: dialect.NewMap(nil),
		arms: all, ids: map[string]bool{}, types: map[string]bool{}, warned: map[string]bool{},
	}
}

// topKeys are the keys of a file that have a meaning in waza, or none that affects a verdict.
var topKeys = []string{
	"name", "description", "version", "type", "tags", "environment", "config", "defaults", "stimuli", "scoring", "metadata",
	"agent_environment", "grading_environment", "artifacts", "$schema",
}

func translateSuite(t *dialect.Translation) {
	tr := newTranslator(t, &arms{})
	tr.translateHead()
	tr.settings = tr.readSettings()
	tr.setConfig()
	if t.HeadOnly {
		tr.setHeadExecutor()
		tr.finish(nil)
		return
	}
	tasks := tr.tasks()
	if tasks != nil {
		tr.arms.setConfig(tr.config)
	}
	tr.finish(tasks)
}

// artifactsHint says how to get artifacts.
const artifactsHint = "artifacts has no effect; waza keeps the workspace with --keep-workspace"

// finish hands over the suite. Its settings, some of which tasks decide, precede its tasks.
func (tr *translator) finish(tasks *yaml.Node) {
	if tr.config.Len() > 0 {
		tr.suite.Set("config", tr.config.Node)
	}
	tr.suite.Set("tasks", tasks)
	tr.Translation.Suite = tr.suite.Node
}

// tasks translates the stimuli; nil after it reported that the file has none.
func (tr *translator) tasks() *yaml.Node {
	tr.warnUnknown(tr.root, topKeys, "a suite")
	if n := decode.Lookup(tr.root, "artifacts"); n != nil {
		tr.warnOnce("artifacts", n, decode.CodeNoEffect, artifactsHint)
	}
	tr.project, tr.scoring = tr.findProject(), tr.readScoring()
	list := decode.Follow(decode.Lookup(tr.root, "stimuli"))
	if len(dialect.Items(list)) == 0 {
		tr.Reportf(tr.Source, list, decode.Error, decode.CodeWrongType, "stimuli must be a list with at least one stimulus")
		return nil
	}
	tasks := dialect.List(list)
	for i, n := range dialect.Items(list) {
		if n == nil || n.Kind != yaml.MappingNode {
			tr.Reportf(tr.Source, n, decode.Error, decode.CodeWrongType, "stimuli[%d] must be a map with a prompt, got %s", i, describe(n))
			continue
		}
		s := &stimulus{translator: tr, node: n, number: i + 1}
		tasks.Content = append(tasks.Content, s.translate())
	}
	tr.warnUnusedWeights()
	return tasks
}

// translateHead sets the name of the suite.
func (tr *translator) translateHead() {
	name := decode.Follow(decode.Lookup(tr.root, "name"))
	tr.suite.Set("name", dialect.Scalar(name, tr.nameOf()))
	for _, key := range []string{"description", "version"} {
		if n := decode.Follow(decode.Lookup(tr.root, key)); dialect.TextOf(n) != "" {
			tr.suite.Set(key, dialect.Scalar(n, n.Value))
		}
	}
	tr.suite.Set("literal", dialect.Scalar(nil, true))
}

// nameOf returns the name in the file, or that of the file.
func (tr *translator) nameOf() string {
	if name := dialect.TextOf(decode.Lookup(tr.root, "name")); name != "" {
		return name
	}
	return nameOfFile(tr.Source.Path)
}

// nameOfFile returns the name of a suite without one: that of its file, else of its directory.
func nameOfFile(file string) string {
	base := filepath.Base(file)
	name := strings.TrimSuffix(strings.TrimSuffix(base, path.Ext(base)), ".eval")
	if name == "eval" {
		return filepath.Base(filepath.Dir(file))
	}
	return name
}

// warnUnknown reports keys of a map that have no effect, each once in the file.
func (tr *translator) warnUnknown(n *yaml.Node, known []string, of string) {
	for _, p := range dialect.Pairs(n) {
		if key := p.Key.Value; !slices.Contains(known, key) {
			tr.warnOnce(of+"."+key, p.Key, decode.CodeUnknownKey, "key %q of %s is unknown in Vally and has no effect", text.Clip(key, 60), of)
		}
	}
}

// warnOnce reports a part without effect, once in the file.
func (tr *translator) warnOnce(what string, at *yaml.Node, code decode.Code, format string, args ...any) {
	if tr.warned[what] {
		return
	}
	tr.warned[what] = true
	tr.Reportf(tr.Source, at, decode.Warning, code, format, args...)
}

// fault reports a value that a suite cannot have.
func (tr *translator) fault(at *yaml.Node, format string, args ...any) {
	tr.Reportf(tr.Source, at, decode.Error, decode.CodeInvalidValue, format, args...)
}

// durationOf returns a duration with a unit, such as 2m or 30000ms.
func durationOf(n *yaml.Node) (time.Duration, error) {
	value := dialect.TextOf(n)
	d, err := time.ParseDuration(value)
	if err != nil || d <= 0 || value == "0" {
		return 0, fmt.Errorf("must be a duration with a unit, such as 90s or 5m, got %s", describe(n))
	}
	return d, nil
}

// milliseconds returns a limit in milliseconds, at least 1, because 0 means no limit.
func milliseconds(at *yaml.Node, d time.Duration) *yaml.Node {
	return dialect.Scalar(at, max(1, int(d.Milliseconds())))
}

// describe describes a value for a message.
func describe(n *yaml.Node) string {
	if n == nil {
		return "nothing"
	}
	return decode.Describe(n)
}
