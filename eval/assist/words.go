package assist

import (
	"fmt"
	"slices"
	"strings"

	"waza/eval"
	"waza/eval/decode"
)

// typeWords describes the type of a value in a few words: `text`, `list of text`.
func typeWords(views []view) string {
	var words []string
	for _, v := range views {
		if w := v.words(); w != "" && !slices.Contains(words, w) {
			words = append(words, w)
		}
	}
	if len(words) == 0 {
		return "any value"
	}
	return strings.Join(words, " or ")
}

func (v view) words() string {
	switch {
	case len(v.allowed()) > 0 && len(v.Enum) == 0:
		return "true or false"
	case len(v.Enum) > 0 || v.Type.has("string"):
		return "text"
	case v.isList():
		if v.Items == nil || v.Items.Ref != "" || len(v.Items.AnyOf) > 0 {
			return "list"
		}
		return "list of " + view{schema: v.Items}.words()
	case v.isObject():
		return "map"
	case len(v.Type) > 0:
		return v.Type[0]
	}
	return ""
}

// words describe the keys and values of a document in Markdown.
type words struct {
	vocabulary *eval.Vocabulary // nil if only names are known
	tree       shaped
}

func (w words) key(views []view) string {
	var parts, said []string
	for _, v := range views {
		if d := strings.Join(strings.Fields(v.description), " "); d != "" && !slices.Contains(said, d) {
			said = append(said, d)
			parts = append(parts, escape(d))
		}
	}
	if len(views) > 0 {
		if facts := w.facts(views[0]); facts != "" {
			parts = append(parts, facts)
		}
	}
	return strings.Join(parts, "\n\n")
}

// facts returns the default and the limits of a value.
func (w words) facts(v view) string {
	var out []string
	if kinds, _ := w.kinds(v); kinds != nil {
		names := make([]string, len(kinds))
		for i, k := range kinds {
			names[i] = k.Name
		}
		out = append(out, "One of "+codes(names)+".")
	} else if len(v.Enum) > 0 {
		out = append(out, "One of "+codes(v.allowed())+".")
	}
	switch {
	case v.Minimum != nil && v.Maximum != nil:
		out = append(out, fmt.Sprintf("Between %v and %v.", *v.Minimum, *v.Maximum))
	case v.Minimum != nil && *v.Minimum != 0:
		out = append(out, fmt.Sprintf("At least %v.", *v.Minimum))
	case v.ExclusiveMinimum != nil:
		out = append(out, fmt.Sprintf("More than %v.", *v.ExclusiveMinimum))
	}
	if v.fallback != nil {
		out = append(out, "Default: "+inCode(fmt.Sprint(v.fallback))+".")
	}
	return strings.Join(out, " ")
}

func (w words) kind(k eval.Kind) string {
	text := escape(strings.Join(strings.Fields(k.Summary), " "))
	if keys := w.optionNames(k); len(keys) > 0 {
		text += "\n\nOptions: " + codes(keys) + "."
	}
	if len(k.Aliases) > 0 {
		text += "\n\nAlso " + codes(k.Aliases) + "."
	}
	return text
}

// optionNames returns the options of a kind, except deprecated ones. Only the schema of graders
// marks these.
func (w words) optionNames(k eval.Kind) []string {
	if k.Options == nil {
		return nil
	}
	keys := decode.Keys(k.Options())
	grader := &node{kind: mapping}
	grader.add(&pair{key: &node{raw: "type"}, value: &node{raw: k.Name}})
	for _, shape := range w.tree.property(w.tree.expand(w.tree.schema.Defs["Grader"], grader), "config", nil) {
		keys = slices.DeleteFunc(keys, func(key string) bool {
			s := shape.Properties.get(key)
			return s != nil && s.Deprecated
		})
	}
	return keys
}

// kinds returns the graders or executors in a list of allowed values.
func (w words) kinds(v view) ([]eval.Kind, string) {
	if w.vocabulary == nil || len(v.Enum) == 0 {
		return nil, ""
	}
	for _, of := range []struct {
		kinds []eval.Kind
		word  string
	}{{w.vocabulary.Graders, "grader"}, {w.vocabulary.Executors, "executor"}} {
		if len(of.kinds) > 0 && !slices.ContainsFunc(of.kinds, func(k eval.Kind) bool { return !slices.Contains(v.Enum, any(k.Name)) }) {
			return of.kinds, of.word
		}
	}
	return nil, ""
}

func codes(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = inCode(w)
	}
	return strings.Join(out, ", ")
}

// inCode returns a text as code in Markdown, for any content.
func inCode(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if !strings.Contains(text, "`") {
		return "`" + text + "`"
	}
	return "`` " + strings.ReplaceAll(text, "``", "` `") + " ``"
}

func escape(text string) string { return escaper.Replace(text) }

var escaper = strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "<", `\<`, "[", `\[`)
