package eval

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/template"
)

// textCheck checks the template variables in the texts of a task, and how long the texts are with
// their values.
type textCheck struct {
	*taskCheck
	fixtures *fixtureCheck // for {{fixture:FILE}}
}

// check checks the variables of the task's prompts, and the lengths of the expanded
// prompts and files.
func (c textCheck) check() {
	in := &c.task.Inputs
	if in.PromptFile != "" {
		c.fixtures.setTexts(in.Prompt, c.inputPath("prompt_file"))
		file := c.promptPath()
		c.checkTemplate(decode.NewSource(file, c.loader.display(file), in.Prompt), nil, in.Prompt)
	} else {
		c.fixtures.setTexts(in.Prompt, c.inputPath("prompt"))
		c.checkTemplate(c.src, decode.Place(c.node, c.inputPath("prompt")...), in.Prompt)
	}
	c.checkTexts(in.Tool, c.inputPath("tool"))
	c.checkTexts(in.URL, c.inputPath("url"))
	if in.Responder != nil {
		c.checkTexts(in.Responder.Instructions, c.inputPath("responder", "instructions"))
	}
	c.checkTexts(in.Input, c.inputPath("input"))
	for i, p := range in.FollowUpPrompts {
		c.fixtures.setTexts(p, c.inputPath("follow_up_prompts", i))
		c.checkTemplate(c.src, decode.Place(c.node, c.inputPath("follow_up_prompts", i)...), p)
	}
	for i, f := range in.Files {
		if f.Content != nil {
			c.checkLength(c.src, decode.Place(c.node, c.inputPath("files", i, "content")...), *f.Content)
		}
	}
}

// checkTexts checks the variables of all texts in a value at a place in the task.
func (c textCheck) checkTexts(value any, at decode.Path) {
	switch v := value.(type) {
	case string:
		c.checkTemplate(c.src, decode.Place(c.node, at...), v)
	case []any:
		for i, one := range v {
			c.checkTexts(one, append(at[:len(at):len(at)], i))
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			c.checkTexts(v[key], append(at[:len(at):len(at)], key))
		}
	}
}

// checkTemplate reports the unknown variables of a text. The text is at a node, or is the whole src
// when the node is nil.
func (c textCheck) checkTemplate(src *decode.Source, at *yaml.Node, text string) {
	if !strings.Contains(text, "{{") {
		return
	}
	c.checkLength(src, at, text)
	params := c.loader.suite.Config.Matrix.names()
	written, exprs := c.task.unknownVariables(text, params)
	for i, expr := range exprs {
		d := src.Diagnostic(at, decode.Warning, decode.CodeUnknownVariable, fmt.Sprintf("unknown variable %q; the text is sent unchanged", expr))
		if near := decode.Nearest(strings.TrimPrefix(expr, "."), c.task.variableNames(params)); near != "" {
			d.Suggestion = "{{" + near + "}}"
		}
		src.Locate(&d, at, written[i])
		c.loader.Report(d)
	}
}

// checkLength reports a text that is too long when expanded.
func (c textCheck) checkLength(src *decode.Source, at *yaml.Node, text string) {
	if !c.task.fits(text) {
		c.loader.Reportf(src, at, decode.Error, decode.CodeTooLarge, "%s", &template.TooLongError{Text: text, Limit: MaxExpandedBytes})
	}
}
