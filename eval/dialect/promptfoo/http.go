package promptfoo

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/dialect"
	"waza/eval/jsonwalk"
	"waza/eval/template"
	"waza/eval/text"
)

// httpKeys are the keys of the config of a provider that is an HTTP API, and those that change no verdict.
var (
	httpKeys     = []string{"url", "method", "headers", "body", "queryParams", "transformResponse", "responseParser", "validateStatus"}
	httpIdleKeys = []string{"maxRetries", "tokenEstimation", "timeoutMs", "useHttps"}
	// httpDecisiveKeys change requests or outputs, and waza cannot honor them.
	httpDecisiveKeys = strings.Fields(`request transformRequest requestTransform session sessionParser sessionSource stateful signatureAuth auth tls
		multipart transformToolsFormat tools tool_choice`)
)

// isHTTP reports whether the id of a provider is an address, or says that config has one, such as https:NAME.
func isHTTP(id string) bool {
	return id == "http" || id == "https" || strings.HasPrefix(id, "http:") || strings.HasPrefix(id, "https:")
}

// readHTTP reads a provider that is an HTTP API.
func (p *provider) readHTTP(id string, config part) error {
	p.settings = dialect.NewMap(p.at)
	p.settings.Set("executor", dialect.Scalar(p.at, "http"))
	for _, pair := range dialect.Pairs(config.Node) {
		switch key := pair.Key.Value; {
		case slices.Contains(httpIdleKeys, key) || slices.Contains(httpKeys, key):
		case slices.Contains(httpDecisiveKeys, key):
			return fmt.Errorf("the key config.%s", text.Clip(key, 60))
		default:
			p.idle = append(p.idle, text.Clip(key, 60))
		}
	}
	address := firstOf(config.get("url").text(), id)
	for _, t := range []struct {
		key    string
		source *yaml.Node
	}{
		{"url", dialect.Scalar(p.at, address)},
		{"method", config.get("method").Node},
		{"headers", config.get("headers").Node},
		{"query", config.get("queryParams").Node},
		{"body", config.get("body").Node},
	} {
		if decode.IsNull(t.source) || t.source == nil {
			continue
		}
		value, err := valueOf(t.source)
		if err == nil {
			value, err = p.requestTexts(value)
		}
		if err != nil {
			return fmt.Errorf("config.%s: %w", t.key, err)
		}
		p.settings.Set(t.key, nodeOf(p.at, value))
	}
	if !strings.Contains(address, "://") && !strings.Contains(address, "{{") {
		return errors.New("it has no config.url")
	}
	switch status := strings.Join(strings.Fields(config.get("validateStatus").text()), " "); status {
	case "":
		p.settings.Set("any_status", dialect.Scalar(p.at, true))
	case "status >= 200 && status < 300", "status < 300 && status >= 200":
	default:
		return errors.New("config.validateStatus: waza has no such rule; it accepts any status, or status >= 200 && status < 300")
	}
	if !webAddress().MatchString(address) && !strings.HasPrefix(strings.TrimSpace(address), "{{") {
		return fmt.Errorf("config.url must be an http or https address, got %q", text.Clip(address, 60))
	}
	_, rest, _ := strings.Cut(address, "://")
	host, _, _ := strings.Cut(rest, "/")
	if !strings.Contains(id, "://") && strings.Contains(id, ":") {
		host = id // which is a name
	}
	p.label = text.Clip(firstOf(p.label, host, "http"), 60)
	p.response = firstPart(config.get("transformResponse"), config.get("responseParser"))
	p.isHTTP, p.usesContext = true, true
	return nil
}

// requestTexts returns a value of a request with variables as the executor http has them: the prompt, those
// of the environment, and the others in the context of the task.
func (p *provider) requestTexts(value any) (any, error) {
	switch v := value.(type) {
	case string:
		return p.requestText(v)
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			var err error
			if list[i], err = p.requestTexts(item); err != nil {
				return nil, err
			}
		}
		return list, nil
	case map[string]any:
		m := map[string]any{}
		for _, key := range slices.Sorted(maps.Keys(v)) { // variables and faults are reported in this order
			var err error
			if m[key], err = p.requestTexts(v[key]); err != nil {
				return nil, err
			}
		}
		return m, nil
	}
	return value, nil
}

var (
	requestVariable = text.Pattern(`\{\{-?\s*([^{}]*?)\s*-?\}\}`)
	plainVariable   = text.Pattern(`^[\pL_$][\pL\pN_$-]*(?:\.[\pL_$][\pL\pN_$-]*)*$`)
	dumped          = text.Pattern(`\s*\|\s*(?:dump|tojson|safe)$`)
)

func (p *provider) requestText(s string) (_ string, err error) {
	switch {
	case strings.HasPrefix(s, filePrefix):
		return "", fmt.Errorf("waza reads no files for requests, such as %s", text.Clip(s, 60))
	case strings.Contains(s, "{%") || strings.Contains(s, "{#"):
		return "", errors.New("waza sends no templates with tags, only {{name}}")
	}
	replaced := requestVariable().ReplaceAllStringFunc(s, func(tag string) string {
		expression := requestVariable().FindStringSubmatch(tag)[1]
		if strings.TrimSpace(s) == tag { // a value alone is JSON if it is a map or list
			expression = dumped().ReplaceAllString(expression, "")
		}
		switch {
		case !plainVariable().MatchString(expression) && needsOnlyEnvironment(expression):
			value, fault := p.render.render(tag)
			if fault != nil {
				err = fault
			}
			return value
		case !plainVariable().MatchString(expression):
			err = fmt.Errorf("waza sends no templates such as %s, only {{name}}", text.Clip(tag, 60))
			return tag
		case expression == "prompt":
			return "{{prompt}}"
		case strings.HasPrefix(expression, "env."):
			name := strings.TrimPrefix(expression, "env.")
			if own := decode.Lookup(p.env, name); own != nil && !dialect.IsSecretVariable(name, dialect.TextOf(own)) {
				return dialect.TextOf(own)
			}
			return "{{" + expression + "}}"
		}
		if !slices.Contains(p.requested, expression) && len(p.requested) < maxRequested {
			p.requested = append(p.requested, expression)
		}
		return "{{context.vars." + expression + "}}"
	})
	return replaced, err
}

// maxRequested limits the variables of requests that get a value in tests without them.
const maxRequested = 100

// withRequested returns variables of a test with an empty text for each that requests name and the test lacks,
// because waza sends a name without a value as it is.
func (c *caseTranslator) withRequested(vars map[string]any) map[string]any {
	for _, path := range c.requested {
		keys := strings.Split(path, ".")
		if _, known := template.Lookup(vars, keys); known {
			continue
		}
		if !c.spend(len(vars) + 1) {
			break
		}
		c.warn(c.test, "{{%s}} in the request: the test has no such variable, so it is empty", text.Clip(path, 60))
		vars = withEmpty(vars, keys)
	}
	return vars
}

// withEmpty returns a copy of a map with an empty text at a path of keys. A value that is no map stays.
func withEmpty(m map[string]any, keys []string) map[string]any {
	m = maps.Clone(m)
	if m == nil {
		m = map[string]any{}
	}
	inner, isMap := m[keys[0]].(map[string]any)
	switch _, exists := m[keys[0]]; {
	case len(keys) == 1:
		m[keys[0]] = ""
	case isMap || !exists:
		m[keys[0]] = withEmpty(inner, keys[1:])
	}
	return m
}

// parsedResponse is the body of the function that makes the output of a response without transformResponse.
const parsedResponse = "try { return JSON.parse(output); } catch (e) { return output; }"

// ofResponse matches code that needs more of a response than its body.
var ofResponse = text.Pattern(`\bcontext\s*\??\.\s*response\b|\bprocess\b`)

// responseBody returns the body of the function that makes the output of the body of a response.
func (tr *translator) responseBody(code string) (body string, err error) {
	if strings.TrimSpace(code) == "" {
		return parsedResponse, nil
	}
	var inner string
	if strings.HasPrefix(code, filePrefix) {
		inner, err = tr.fileBody(code, "json, text, context")
	} else if inner = "return (" + strings.TrimRight(strings.TrimSpace(code), "; ") + "\n)"; checkBody(inner) != nil {
		inner = functionBody(code)
	}
	if err == nil {
		err = checkBody(inner)
	}
	if found := ofResponse().FindString(inner); found != "" && err == nil {
		err = fmt.Errorf("its code needs %s, which waza does not have", found)
	}
	if err != nil {
		return "", err
	}
	return `return (async () => {
let json = null;
try { json = JSON.parse(output); } catch (e) {}
let result = (function (json, text, context) {` + inner + `
})(json, output, {});
if (typeof result === "function") result = result(json, output, {});
result = await result;
if (result == null) throw new Error("transformResponse returned nothing");
return typeof result === "object" && "output" in result ? result.output : result;
})();`, nil
}

// jsonOf is the text of a value as JSON, to compare settings.
func jsonOf(n *yaml.Node) string {
	value, err := valueOf(n)
	if err != nil {
		return ""
	}
	data, _ := jsonwalk.Encode(value)
	return string(data)
}
