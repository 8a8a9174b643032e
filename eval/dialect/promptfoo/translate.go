package promptfoo

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/dialect"
	"waza/eval/text"
)

// maxCases limits the tasks of a configuration, because prompts multiply tests.
const maxCases = 10_000

// translator translates one configuration.
type translator struct {
	*dialect.Translation
	root  *yaml.Node
	suite dialect.Map
	ids   map[string]bool // of the tasks until now
}

func translate(t *dialect.Translation) {
	tr := &translator{Translation: t, root: decode.Follow(t.Source.Root), suite: dialect.NewMap(t.Source.Root), ids: map[string]bool{}}
	tr.head()
	t.Suite = tr.suite.Node
	if t.HeadOnly {
		return
	}
	tr.refuse(tr.root, "", []string{
		"$schema", "description", "providers", "targets", "prompts", "tests", "evaluateOptions", "outputPath", "sharing", "tags", "metadata",
	})
	if tests := tr.tests(); len(tests) > 0 {
		tr.suite.Set("tasks", dialect.List(tr.root, tests...))
	}
}

// head sets the name and the settings of the suite.
func (tr *translator) head() {
	name := decode.Follow(decode.Lookup(tr.root, "description"))
	tr.suite.Set("name", dialect.Scalar(name, dialect.TextOf(name)))
	if dialect.TextOf(name) == "" {
		tr.suite.Set("name", dialect.Scalar(nil, filepath.Base(filepath.Dir(tr.Source.Path))))
	}
	// promptfoo inserts values into texts once, so braces of a value stay.
	tr.suite.Set("literal", dialect.Scalar(nil, true))
	config := dialect.NewMap(tr.root)
	tr.provider(config)
	if options := decode.Follow(decode.Lookup(tr.root, "evaluateOptions")); options != nil {
		config.Set("trials_per_task", decode.Follow(decode.Lookup(options, "repeat")))
		config.Set("workers", decode.Follow(decode.Lookup(options, "maxConcurrency")))
		tr.refuse(options, "evaluateOptions.", []string{"repeat", "maxConcurrency", "showProgressBar"})
	}
	if config.Len() > 0 {
		tr.suite.Set("config", config.Node)
	}
}

// provider sets the executor and its model.
func (tr *translator) provider(config dialect.Map) {
	n := decode.Follow(decode.Lookup(tr.root, "providers"))
	if n == nil {
		n = decode.Follow(decode.Lookup(tr.root, "targets"))
	}
	items := dialect.Items(n)
	if decode.IsText(n) {
		items = []*yaml.Node{n}
	}
	if len(items) != 1 {
		tr.cannot(n, "%d providers: name one in the file, and the others with --model", len(items))
		return
	}
	at := items[0]
	if at.Kind == yaml.MappingNode {
		tr.refuse(at, "providers[0].", []string{"id", "label"})
		at = decode.Follow(decode.Lookup(at, "id"))
	}
	id := dialect.TextOf(at)
	service, model, _ := strings.Cut(id, ":")
	for _, kind := range []string{"chat:", "messages:"} {
		model = strings.TrimPrefix(model, kind)
	}
	if service != "openai" && service != "anthropic" || model == "" || strings.Contains(model, ":") {
		tr.cannot(at, "the provider %q: use openai:MODEL or anthropic:messages:MODEL", text.Clip(id, 80))
		return
	}
	config.Set("executor", dialect.Scalar(at, service))
	config.Set("model", dialect.Scalar(at, model))
}

// cannot reports a part that waza cannot translate.
func (tr *translator) cannot(at *yaml.Node, format string, args ...any) {
	tr.Reportf(tr.Source, at, decode.Error, decode.CodeInvalidValue, "waza cannot translate "+format, args...)
}

// refuse reports the keys of a map that are not known. Each can change a verdict.
func (tr *translator) refuse(n *yaml.Node, prefix string, known []string) {
	for _, p := range dialect.Pairs(n) {
		switch {
		case slices.Contains(known, p.Key.Value) || strings.HasPrefix(p.Key.Value, "x-"):
		case p.Key.Value == "redteam":
			tr.cannot(p.Key, "redteam: waza generates no attacks")
		default:
			tr.cannot(p.Key, "the key %s%s", prefix, text.Clip(p.Key.Value, 60))
		}
	}
}

// tests returns the tasks: one for each pair of a test and a prompt.
func (tr *translator) tests() (tasks []*yaml.Node) {
	prompts := tr.prompts()
	n := decode.Follow(decode.Lookup(tr.root, "tests"))
	if n != nil && n.Kind != yaml.SequenceNode {
		tr.cannot(n, "tests that are no list, got %s", decode.Describe(n))
		return nil
	}
	cases := dialect.Items(n)
	if len(cases)*len(prompts) > maxCases {
		tr.cannot(n, "more than %d cases", maxCases)
		return nil
	}
	for i, c := range cases {
		if c == nil || c.Kind != yaml.MappingNode {
			tr.cannot(c, "tests[%d]: a test must be a map, got %s", i, decode.Describe(c))
			continue
		}
		tr.refuse(c, fmt.Sprintf("tests[%d].", i), []string{"description", "vars", "assert", "metadata"})
		vars, ok := tr.vars(decode.Lookup(c, "vars"))
		if !ok {
			continue
		}
		graders := tr.assertions(decode.Lookup(c, "assert"), vars)
		for k, p := range prompts {
			task := dialect.NewMap(c)
			at := decode.Follow(decode.Lookup(c, "description"))
			id := dialect.TextOf(at)
			if id == "" {
				at, id = c, fmt.Sprint(i+1)
			}
			if len(prompts) > 1 {
				id += fmt.Sprintf(" [prompt %d]", k+1)
			}
			task.Set("id", dialect.Scalar(at, tr.unique(id)))
			if prompt, ok := tr.render(p, vars); ok {
				inputs := dialect.NewMap(p)
				inputs.Set("prompt", dialect.Scalar(p, prompt))
				task.Set("inputs", inputs.Node)
			}
			if len(graders) > 0 {
				task.Set("graders", dialect.List(c, graders...))
			}
			tasks = append(tasks, task.Node)
		}
	}
	return tasks
}

// unique returns an id that no other task has: the id itself, or with a number.
func (tr *translator) unique(id string) string {
	found := id
	for n := 2; tr.ids[found]; n++ {
		found = fmt.Sprintf("%s-%d", id, n)
	}
	tr.ids[found] = true
	return found
}

// prompts returns the prompts that are texts in the file.
func (tr *translator) prompts() (prompts []*yaml.Node) {
	n := decode.Follow(decode.Lookup(tr.root, "prompts"))
	items := dialect.Items(n)
	if decode.IsText(n) {
		items = []*yaml.Node{n}
	}
	for i, item := range items {
		if raw := decode.Follow(decode.Lookup(item, "raw")); decode.IsText(raw) {
			item = raw
		}
		if !decode.IsText(item) || strings.Contains(item.Value, "://") && !strings.Contains(item.Value, " ") {
			tr.cannot(item, "prompts[%d]: a prompt must be a text, or a map with raw", i)
			continue
		}
		prompts = append(prompts, item)
	}
	return prompts
}

// vars returns the variables of a test.
func (tr *translator) vars(n *yaml.Node) (map[string]string, bool) {
	vars, ok := map[string]string{}, true
	if n = decode.Follow(n); n != nil && n.Kind != yaml.MappingNode {
		tr.cannot(n, "vars: they must be a map, got %s", decode.Describe(n))
		return nil, false
	}
	for _, p := range dialect.Pairs(n) {
		if p.Value == nil || p.Value.Kind != yaml.ScalarNode || strings.HasPrefix(p.Value.Value, "file://") {
			tr.cannot(p.Value, "the variable %s: it must be a text or a number", text.Clip(p.Key.Value, 60))
			ok = false
			continue
		}
		vars[p.Key.Value] = p.Value.Value
	}
	return vars, ok
}

// render replaces {{name}} by variables. Other parts of the Nunjucks syntax are errors.
func (tr *translator) render(n *yaml.Node, vars map[string]string) (string, bool) {
	var b strings.Builder
	rest := n.Value
	for {
		before, after, found := strings.Cut(rest, "{{")
		if strings.Contains(before, "{%") || strings.Contains(before, "{#") {
			tr.cannot(n, "a template with tags or comments: only {{name}}")
			return "", false
		}
		b.WriteString(before)
		if !found {
			return b.String(), true
		}
		name, next, closed := strings.Cut(after, "}}")
		value, known := vars[strings.TrimSpace(name)]
		if !closed || !known {
			tr.cannot(n, "{{%s}}: the test has no such variable", text.Clip(name, 60))
			return "", false
		}
		b.WriteString(value)
		rest = next
	}
}
