package httpapi

import (
	"maps"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"waza/eval"
	"waza/eval/decode"
	"waza/eval/template"
	"waza/eval/text"
)

// Options are the keys of a suite's config for the executor http. Their texts can contain {{prompt}},
// {{system_prompt}} for the instruction files and the system prompt of the task, {{context.NAME}} for a value of the task's inputs.context, {{env.NAME}} for an environment variable,
// and the template variables of the suite.
type Options struct {
	// Address of the API. Values of variables in it are escaped, except those of the environment.
	URL string `yaml:"url" jsonschema:"required"`
	// Method of the requests; POST when there is a body, else GET.
	Method string `yaml:"method" json:",omitempty"`
	// Headers of the requests. Keys do not belong in a file: write {{env.NAME}} for the value of an environment
	// variable.
	Headers map[string]string `yaml:"headers" json:",omitempty"`
	// Parameters that are added to the query of the address.
	Query map[string]string `yaml:"query" json:",omitempty"`
	// Body of the requests: a map or a list, which is sent as JSON, or a text. In a text that is JSON, values are
	// escaped, too; also in one that only their values make JSON, such as `{"n": {{context.n}}}`. A text in it that is nothing but a variable becomes the map or list that the variable's value is
	// in JSON.
	Body any `yaml:"body" json:",omitempty"`
	// Path to the answer in a response that is JSON, by keys and indexes: choices.0.message.content. When absent, the
	// answer is the whole body of the response.
	Answer string `yaml:"answer" json:",omitempty"`
	// Take the body of any response as the answer, except of those with the status 429. When absent, a status other than
	// 200 to 299 is an error.
	AnyStatus bool `yaml:"any_status" json:",omitempty"`
}

// secretHeaders are parts of the names of headers that contain keys.
var secretHeaders = []string{"authorization", "api-key", "apikey", "token", "secret", "cookie"}

func check(c *eval.Check, o *Options) {
	if u, err := url.Parse(o.URL); !strings.Contains(o.URL, "{{") && o.URL != "" &&
		(err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		c.Errorf(decode.At("url"), decode.CodeInvalidValue, "url must be an http or https URL, such as http://127.0.0.1:8080/chat")
	} else if err == nil && u.User != nil {
		c.Errorf(decode.At("url"), decode.CodeInvalidValue,
			"url must not contain a password, because keys do not belong in a file; use a header with {{env.NAME}}")
	}
	if o.Method != "" && !methodName().MatchString(o.Method) {
		c.Errorf(decode.At("method"), decode.CodeInvalidValue, "method must be a word such as POST, got %q", text.Clip(o.Method, 40))
	}
	for _, name := range slices.Sorted(maps.Keys(o.Headers)) {
		value := o.Headers[name]
		if !httpguts.ValidHeaderFieldName(name) {
			c.Errorf(decode.At("headers", name), decode.CodeInvalidValue, "%q is no name of a header", text.Clip(name, 40))
		}
		isSecret := slices.ContainsFunc(secretHeaders, func(part string) bool { return strings.Contains(strings.ToLower(name), part) })
		if isSecret && value != "" && !strings.Contains(value, "{{") {
			c.Warnf(decode.At("headers", name), decode.CodeInvalidValue,
				"headers.%s: keys do not belong in a file, and records contain it; put it into an environment variable, and write {{env.NAME}}", name)
		}
	}
}

var methodName = text.Pattern(`^[A-Za-z]{1,20}$`)

// variables returns the environment variables that the texts use.
func (o *Options) variables() []string {
	var names []string
	for _, expr := range o.expressions() {
		if name, ok := strings.CutPrefix(expr, "env."); ok {
			names = append(names, name)
		}
	}
	return names
}

// expressions returns the sorted expressions between double braces in the texts.
func (o *Options) expressions() []string {
	var list []string
	add := func(s string) string {
		for expr := range template.Variables(s) {
			list = append(list, expr)
		}
		return s
	}
	add(o.URL)
	for _, texts := range []map[string]string{o.Headers, o.Query} {
		for _, s := range texts {
			add(s)
		}
	}
	template.ExpandTexts(o.Body, add)
	slices.Sort(list)
	return slices.Compact(list)
}
