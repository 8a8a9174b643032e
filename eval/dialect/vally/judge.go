package vally

import (
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
	c.config.Set("prompt", dialect.Scalar(at, strings.TrimSpace(criteria)+"\n\n"+scale))
	threshold := c.option("threshold")
	if threshold == nil {
		threshold = dialect.Scalar(c.node, 0.5)
	}
	c.config.Set("threshold", threshold)
	model := c.option("model")
	if model == nil {
		model = c.judgeSetting("judge_model")
	}
	c.config.Set("model", model)
	c.config.Set("reasoning_effort", c.judgeSetting("judge_reasoning_effort"))
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
	n := c.get("rubric")
	if one := dialect.TextOf(n); one != "" {
		return one
	}
	var b strings.Builder
	for _, item := range dialect.Items(n) {
		criterion := dialect.TextOf(item)
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
