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

// maxCases limits the tasks of a configuration, because prompts and variables multiply tests.
const maxCases = 10_000

// translator translates one configuration.
type translator struct {
	*dialect.Translation
	*budget
	root      *yaml.Node
	suite     dialect.Map
	ids       map[string]bool // of the tasks of the group until now
	warned    map[string]bool
	parsed    map[string]*decode.Source
	env       map[string]string
	standard  part // defaultTest
	filesDeep int
	tasks     int

	groups    []group  // at least one
	group              // the one whose cases are translated
	elsewhere []string // APIs that a provider asks at an address of its own

	pending map[*yaml.Node]*errNotRun // tests in place of those of a program

	answers  map[string]bool // variables that are answers to tests (storeOutputAs)
	followed map[string]bool // conversations with a test
}

func translate(t *dialect.Translation) {
	tr := &translator{
		Translation: t, budget: &budget{maxExpanded}, root: decode.Follow(t.Source.Root), suite: dialect.NewMap(t.Source.Root),
		ids: map[string]bool{}, warned: map[string]bool{}, parsed: map[string]*decode.Source{}, env: map[string]string{}, pending: map[*yaml.Node]*errNotRun{},
		answers: map[string]bool{},
	}
	tr.merge(t.Source)
	for _, p := range dialect.Pairs(decode.Lookup(tr.root, "env")) {
		tr.env[p.Key.Value] = dialect.TextOf(p.Value)
	}
	tr.head()
	t.Suite = tr.suite.Node
	if t.HeadOnly {
		return
	}
	tr.topKeys()
	tr.addTasks()
}

// merge replaces the merge keys of a file.
func (tr *translator) merge(src *decode.Source) {
	if !mergeKeys(src.Root) {
		tr.cannotAt(part{src.Root, src}, "merge keys that add more than %d keys to maps", maxMerged)
	}
}

// knownKeys are those of a configuration that the translation handles, or that change no verdict.
var knownKeys = []string{
	"$schema", "description", "providers", "targets", "prompts", "tests", "defaultTest", "assertionTemplates", "env",
	"evaluateOptions", "commandLineOptions", "tags", "metadata", "author", "outputPath", "sharing", "derivedMetrics",
	"writeLatestResults", "envPath", "nunjucksFilters", "tracing",
}

// idleKeys are those that change no verdict and have no effect, with what to do instead.
var idleKeys = map[string]string{
	"outputPath": "see --output", "sharing": "", "derivedMetrics": "", "writeLatestResults": "", "tracing": "",
	"envPath": "set its variables yourself", "nunjucksFilters": "cases that use such a filter end in an error",
	"commandLineOptions": "use the flags of waza run",
}

// decisiveKeys are those that waza cannot honor and that change cases or verdicts, with the reason.
var decisiveKeys = map[string]string{
	"redteam": "redteam: waza generates no attacks", "scenarios": "the key scenarios", "extensions": "the key extensions",
}

// topKeys reports the keys of the file that have no effect, or that waza cannot honor. promptfoo ignores keys that it does
// not know, such as those with anchors.
func (tr *translator) topKeys() {
	root := part{tr.root, tr.Source}
	tr.idle(root, "", idleKeys)
	for _, pair := range dialect.Pairs(tr.root) {
		key, at := pair.Key.Value, part{pair.Key, tr.Source}
		reason, decisive := decisiveKeys[key]
		tests := decode.Follow(decode.Lookup(tr.root, "tests"))
		switch {
		case key == "redteam" && tests != nil && !lacksValue(tests): // as promptfoo eval, which runs the tests
			tr.warn(at, "redteam has no effect: waza generates no attacks, and runs the tests of the file")
		case decisive && !lacksValue(pair.Value):
			tr.cannotAt(at, "%s", reason)
		case !decisive && !slices.Contains(knownKeys, key) && !strings.HasPrefix(key, "x-") && !hasAnchor(pair.Value):
			tr.warn(at, "%s has no effect: promptfoo has no such key", text.Clip(key, 60))
		}
	}
}

// lacksValue reports whether a node is null, an empty list or an empty map.
func lacksValue(n *yaml.Node) bool {
	return decode.IsNull(n) || n.Kind != yaml.ScalarNode && len(n.Content) == 0
}

// hasAnchor reports whether other parts of a file use a node.
func hasAnchor(n *yaml.Node) bool {
	return n.Anchor != "" || slices.ContainsFunc(n.Content, hasAnchor)
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
	tr.setProviders(config)
	if options := decode.Follow(decode.Lookup(tr.root, "evaluateOptions")); options != nil {
		config.Set("trials_per_task", decode.Follow(decode.Lookup(options, "repeat")))
		if workers := decode.Follow(decode.Lookup(options, "maxConcurrency")); workers != nil {
			config.Set("parallel", dialect.Scalar(workers, true))
			config.Set("workers", workers)
		}
		p := part{options, tr.Source}
		tr.idle(p, "evaluateOptions.", map[string]string{
			"delay": "waza waits when a provider is too busy", "cache": "see --no-cache", "generateSuggestions": "", "timeoutMs": "see --timeout",
			"maxEvalTimeMs": "see --timeout",
		})
		tr.ignore(p, "evaluateOptions.", []string{
			"repeat", "maxConcurrency", "showProgressBar", "delay", "cache", "generateSuggestions", "timeoutMs", "maxEvalTimeMs",
		})
	}
	if config.Len() > 0 {
		tr.suite.Set("config", config.Node)
	}
}

// cannot reports a part of the configuration that waza cannot translate.
func (tr *translator) cannot(at *yaml.Node, format string, args ...any) {
	tr.cannotAt(part{at, tr.Source}, format, args...)
}

func (tr *translator) cannotAt(at part, format string, args ...any) {
	tr.once(at, decode.Error, "waza cannot translate "+format, args...)
}

// warn reports something that stops no run.
func (tr *translator) warn(at part, format string, args ...any) {
	tr.once(at, decode.Warning, format, args...)
}

// once reports a finding unless it has the place and the message of an earlier one: prompts and
// variables multiply the uses of a node.
func (tr *translator) once(at part, severity decode.Severity, format string, args ...any) {
	key := fmt.Sprintf("%s\x00%s", at.src.Name, fmt.Sprintf(format, args...))
	if at.Node != nil {
		key += fmt.Sprintf("\x00%d:%d", at.Line, at.Column)
	}
	if !tr.warned[key] {
		tr.warned[key] = true
		code := decode.CodeInvalidValue
		if severity == decode.Info { // the part does not exist yet
			code = decode.CodeUnavailable
		}
		tr.Reportf(at.src, at.Node, severity, code, format, args...)
	}
}

// inError ends the reason why a case cannot be run.
func inError(reason string) string { return reason + "; trials of its cases end in an error" }

// refuse reports the keys of a map that are not known. Each can change a verdict.
func (tr *translator) refuse(p part, prefix string, known []string) {
	for _, pair := range dialect.Pairs(p.Node) {
		at := part{pair.Key, p.src}
		switch {
		case slices.Contains(known, pair.Key.Value) || strings.HasPrefix(pair.Key.Value, "x-"):
		default:
			tr.cannotAt(at, "the key %s%s", prefix, text.Clip(pair.Key.Value, 60))
		}
	}
}

// ignore warns about the keys of a map that promptfoo does not know and ignores.
func (tr *translator) ignore(p part, prefix string, known []string) {
	for _, pair := range dialect.Pairs(p.Node) {
		if !slices.Contains(known, pair.Key.Value) && !strings.HasPrefix(pair.Key.Value, "x-") {
			tr.warn(part{pair.Key, p.src}, "%s%s has no effect: promptfoo has no such key", prefix, text.Clip(pair.Key.Value, 60))
		}
	}
}

// idle reports the keys of a map that have no effect.
func (tr *translator) idle(p part, prefix string, keys map[string]string) {
	for _, pair := range dialect.Pairs(p.Node) {
		if instead, ok := keys[pair.Key.Value]; ok {
			tr.warn(part{pair.Key, p.src}, "%s", strings.TrimSuffix(prefix+pair.Key.Value+" has no effect: "+instead, ": "))
		}
	}
}

// unique returns an id that no other task has: the id itself, or with a number.
func (tr *translator) unique(id string) string { return uniqueIn(tr.ids, id) }

// uniqueIn returns a name that is not taken, and takes it: the name itself, or with a number.
func uniqueIn(taken map[string]bool, name string) string {
	found := name
	for n := 2; taken[found]; n++ {
		found = fmt.Sprintf("%s-%d", name, n)
	}
	taken[found] = true
	return found
}

// firstOf returns the first text that is not empty.
func firstOf(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}
