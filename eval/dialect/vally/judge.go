package vally

import (
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/dialect"
	"waza/eval/text"
)

// defaultRubric is the rubric of a judge for a stimulus without one.
const defaultRubric = "Did the agent do what the task asks, completely and correctly?"

// scales say to a judge how Vally's scales become a score from 0 to 1.
var scales = map[string]string{
	"binary":     "Decide yes or no: the score is 1 if the criteria are met, else 0.",
	"scale_1_5":  "Rate how well the criteria are met from 1 (not at all) to 5 (completely). The score is (rating - 1) / 4.",
	"scale_1_10": "Rate how well the criteria are met from 1 (not at all) to 10 (completely). The score is (rating - 1) / 9.",
}

// prompt asks a judge. Without a prompt, the rubric of the stimulus has the criteria.
func (c *check) prompt() {
	c.kind = "prompt"
	c.config = c.judge()
	model := c.option("model")
	if model == nil {
		model = c.judgeSetting("judge_model")
	}
	c.config.Set("model", model)
}

// judge returns the options of a judge, without its model.
func (c *check) judge() dialect.Map {
	config := dialect.NewMap(c.node)
	at := c.option("prompt")
	criteria := dialect.TextOf(at)
	if criteria == "" {
		at, criteria = c.get("rubric"), c.rubric()
	}
	scoring := c.option("scoring")
	name := dialect.TextOf(scoring)
	if scoring == nil {
		name = "scale_1_5"
	}
	scale, known := scales[name]
	if !known {
		c.cannot(scoring, "has a scoring that waza does not know: %q", text.Clip(name, 40))
	}
	config.Set("prompt", dialect.Scalar(at, strings.TrimSpace(criteria)+"\n\n"+scale))
	config.Set("threshold", c.threshold())
	c.evidence(config)
	config.Set("reasoning_effort", c.judgeSetting("judge_reasoning_effort"))
	return config
}

// evidence reads the evidence that a judge sees. It always sees the trajectory.
func (c *check) evidence(config dialect.Map) {
	n := c.option("evidence")
	if n == nil {
		return
	}
	kinds := valuesOf(n)
	switch {
	case n.Kind == yaml.SequenceNode && len(n.Content) == 0:
		c.cannot(n, "needs at least one text in evidence, got an empty list")
	case len(kinds) == 0:
		c.cannot(n, "needs a list of texts as evidence, got %s", describe(n))
	}
	for _, kind := range kinds {
		switch kind {
		case "trajectory":
		case "diff", "repo":
			config.Set("show_files", dialect.Scalar(n, true))
		default:
			c.cannot(n, "has evidence that waza does not know: %q", text.Clip(kind, 40))
		}
	}
}

// threshold returns the least score that passes.
func (c *check) threshold() *yaml.Node {
	if n := c.option("threshold"); n != nil {
		return n
	}
	return dialect.Scalar(c.node, 0.5)
}

const groupKind = "group"

const majority = "majority"

// aggregations are the rules by which a panel combines its judges. The groups of waza have them, too.
var aggregations = []string{"mean", "median", "min", majority}

// panel asks several judges. A number of their scores decides or, with majority, more than half of them.
func (c *check) panel() {
	c.kind = groupKind
	models, how := c.texts("models"), c.option("aggregation")
	if models == nil {
		c.cannot(c.node, "needs a list of texts as models")
	}
	rule := dialect.TextOf(how)
	switch {
	case how == nil:
		rule = "mean"
	case !slices.Contains(aggregations, rule):
		c.cannot(how, "has an unknown aggregation, %s; waza knows %s", describe(how), strings.Join(aggregations, ", "))
	case rule != "mean":
		c.config.Set("aggregate", dialect.Scalar(how, rule))
	}
	members := dialect.List(c.node)
	for _, model := range dialect.Items(models) {
		config := c.judge()
		config.Set("model", model)
		members.Content = append(members.Content, named(model, c.unique(c.name()+" of "+model.Value), "prompt", config))
	}
	c.config.Set("graders", members)
	if rule != majority { // then the threshold decides how each judge votes
		c.config.Set("threshold", c.threshold())
	}
}

// judgeSetting returns a setting of the stimulus or, in an experiment, of its eval in its variant. Judges
// find those of a suite by themselves.
func (c *check) judgeSetting(key string) *yaml.Node {
	if own := decode.Follow(decode.Lookup(c.get("config"), key)); own != nil && !decode.IsNull(own) || c.variant == nil {
		return own
	}
	return c.settings.get(key)
}

// rubric returns the criteria of the stimulus.
func (c *check) rubric() string {
	n := c.filled(c.get("rubric"))
	if one := dialect.TextOf(n); one != "" {
		return one
	}
	var b strings.Builder
	for _, item := range dialect.Items(n) {
		criterion := dialect.TextOf(c.filled(item))
		if criterion == "" {
			c.cannot(item, "needs texts in rubric, got %s", describe(item))
			continue
		}
		b.WriteString("- " + strings.TrimSpace(criterion) + "\n")
	}
	if b.Len() == 0 {
		return defaultRubric
	}
	return b.String()
}
