package promptfoo

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/dialect"
	"waza/eval/text"
)

// A service is a model API that waza can ask.
type service struct {
	executor, url, keyEnv string
}

// services are the APIs by the prefix of a provider's id.
var services = map[string]service{
	"openai":     {executor: "openai"},
	"anthropic":  {executor: "anthropic"},
	"openrouter": {"openai", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"},
	"ollama":     {"openai", "http://localhost:11434/v1", "OLLAMA_API_KEY"},
	"groq":       {"openai", "https://api.groq.com/openai/v1", "GROQ_API_KEY"},
	"deepseek":   {"openai", "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"},
	"mistral":    {"openai", "https://api.mistral.ai/v1", "MISTRAL_API_KEY"},
	"togetherai": {"openai", "https://api.together.xyz/v1", "TOGETHER_API_KEY"},
}

// kinds are the parts of a provider's id between the service and the model. Others, such as
// embeddings, are no chats.
var kinds = []string{"chat", "messages", "responses", "completion"}

// A provider is one that does trials.
type provider struct {
	at         *yaml.Node
	label      string
	settings   dialect.Map // as a cell has them
	params     map[string]any
	transforms []part
	prompts    part // those that it gets; all if it lists none
	isHTTP     bool
	id         string
	response   part     // transformResponse
	requested  []string // variables that its requests name
	env        *yaml.Node
	words      []string // of the command that asks it, if it is a file
	// hasSteps means that it can report the steps of an agent.
	hasSteps bool
	// usesContext means that it gets the variables of a test, which are the context of its task.
	usesContext bool
}

// parameters are the keys of a provider's config that APIs have under the same name, and those with
// another name.
var parameters = map[string]string{
	"temperature": "temperature", "max_tokens": "max_tokens", "max_completion_tokens": "max_completion_tokens", "top_p": "top_p",
	"top_k": "top_k", "seed": "seed", "stop": "stop", "frequency_penalty": "frequency_penalty", "presence_penalty": "presence_penalty",
	"reasoning_effort": "reasoning_effort", "response_format": "response_format", "thinking": "thinking", "num_predict": "max_tokens",
}

// withoutEffect are keys of a provider's config that change no verdict.
var withoutEffect = []string{"organization", "apiKeyRequired", "showThinking", "cost"}

// settings returns the model and the settings of a provider with this id and config.
func (p *provider) read(id string, config part) error {
	name, model, _ := strings.Cut(id, ":")
	s, known := services[name]
	if kind, rest, ok := strings.Cut(model, ":"); ok && slices.Contains(kinds, kind) {
		model = rest
	}
	if name == "openai" && model == "" || name == "anthropic" && model == "" {
		return fmt.Errorf("it names no model: write %s:MODEL", name)
	}
	if !known || model == "" || strings.Contains(model, ":") && name != "openrouter" && name != "ollama" {
		return errors.New("waza has no such model API")
	}
	p.settings = dialect.NewMap(p.at)
	p.params = map[string]any{}
	p.settings.Set("executor", dialect.Scalar(p.at, s.executor))
	p.settings.Set("model", dialect.Scalar(p.at, model))
	if s.url != "" {
		p.settings.Set("base_url", dialect.Scalar(p.at, s.url))
		p.settings.Set("api_key_env", dialect.Scalar(p.at, s.keyEnv))
	}
	for _, pair := range dialect.Pairs(config.Node) {
		if err := p.setting(pair); err != nil {
			return err
		}
	}
	return nil
}

// setting adds a key of the config of a provider.
func (p *provider) setting(pair decode.Pair) error {
	key := pair.Key.Value
	value, err := valueOf(pair.Value)
	if err != nil {
		return err
	}
	switch {
	case parameters[key] != "":
		p.params[parameters[key]] = value
	case key == "apiBaseUrl" || key == "baseUrl" || key == "base_url":
		p.settings.Set("base_url", dialect.Scalar(p.at, textOf(value)))
	case key == "apiKeyEnvar":
		p.settings.Set("api_key_env", dialect.Scalar(p.at, textOf(value)))
	case key == "apiHost":
		p.settings.Set("base_url", dialect.Scalar(p.at, "https://"+textOf(value)+"/v1"))
	case key == "apiKey":
		name, ok := strings.CutPrefix(strings.Trim(textOf(value), "{} "), "env.")
		if !ok {
			return fmt.Errorf("the key apiKey: put the key into an environment variable, and write apiKeyEnvar with its name")
		}
		p.settings.Set("api_key_env", dialect.Scalar(p.at, name))
	case key == "systemPrompt" || key == "system_prompt":
		p.settings.Set("system_prompt", dialect.Scalar(p.at, textOf(value)))
	case key == "passthrough":
		extra, _ := value.(map[string]any)
		maps.Copy(p.params, extra)
	case slices.Contains(withoutEffect, key):
	default:
		return fmt.Errorf("the key config.%s", text.Clip(key, 60))
	}
	return nil
}

// programArguments are those that promptfoo appends to a program: the prompt, the options and the context.
const programArguments = ` "$WAZA_PROMPT" '{}' "${WAZA_CONTEXT:-{\}}"`

// program reads a provider that is a program or that echoes the prompt.
func (p *provider) program(id string) bool {
	command, isProgram := strings.CutPrefix(id, "exec:")
	switch {
	case isProgram:
		p.label = firstOf(p.label, id)
		p.settings = dialect.NewMap(p.at)
		p.settings.Set("executor", dialect.Scalar(p.at, "command"))
		p.settings.Set("command", dialect.Scalar(p.at, strings.TrimSpace(command)+programArguments))
		p.settings.Set("prompt_as", dialect.Scalar(p.at, "env"))
		p.hasSteps, p.usesContext = true, true
	case id == "echo":
		p.settings = dialect.NewMap(p.at)
		p.settings.Set("executor", dialect.Scalar(p.at, "command"))
		p.settings.Set("command", dialect.Scalar(p.at, "cat"))
		p.settings.Set("no_steps", dialect.Scalar(p.at, true))
	default:
		return false
	}
	p.settings.Set("model", dialect.Scalar(p.at, path.Base(strings.Fields(id + " x")[0])))
	return true
}

// providers returns the providers of the configuration; none if waza cannot ask all of them.
func (tr *translator) providers() (providers []provider) {
	n := decode.Follow(decode.Lookup(tr.root, "providers"))
	if n == nil {
		n = decode.Follow(decode.Lookup(tr.root, "targets"))
	}
	items := dialect.Items(n)
	if decode.IsText(n) {
		items = []*yaml.Node{n}
	}
	if len(items) == 0 {
		tr.cannot(n, "a file without providers")
	}
	all := true
	for i, item := range items {
		p, ok := tr.provider(item, i)
		all = all && ok
		providers = append(providers, p)
	}
	if !all {
		return nil
	}
	return providers
}

// providerKeys are the keys of a provider that the translation handles.
var providerKeys = []string{"id", "label", "config", "prompts", "transform", "delay", "inputs"}

func (tr *translator) provider(n *yaml.Node, number int) (p provider, ok bool) {
	id, config := dialect.TextOf(n), part{nil, tr.Source}
	p = provider{at: n, prompts: part{nil, tr.Source}, env: decode.Follow(decode.Lookup(tr.root, "env"))}
	if n != nil && n.Kind == yaml.MappingNode {
		if decode.Lookup(n, "id") == nil && len(n.Content) == 2 { // an older form: id to settings
			id, n = n.Content[0].Value, decode.Follow(n.Content[1])
		} else {
			id = dialect.TextOf(decode.Lookup(n, "id"))
		}
		own := part{n, tr.Source}
		tr.refuse(own, fmt.Sprintf("providers[%d].", number), providerKeys)
		p.label, p.prompts, config = own.get("label").text(), own.get("prompts"), own.get("config")
		for _, key := range []string{"transform"} {
			if t := own.get(key); t.Node != nil {
				p.transforms = append(p.transforms, t)
			}
		}
		if delay := own.get("delay"); delay.Node != nil {
			tr.warn(delay, "delay has no effect: waza waits when a provider is too busy")
		}
	}
	p.id = id
	caller := map[string]any{"id": id}
	if p.label != "" {
		caller["label"] = p.label
	}
	tr.callers = append(tr.callers, caller)
	if p.program(id) {
		if config.Node != nil && len(dialect.Pairs(config.Node)) > 0 {
			tr.warn(config, "the config of the provider %q has no effect", text.Clip(id, 60))
		}
		return p, true
	}
	read := p.read
	if isHTTP(id) {
		read = p.readHTTP
	} else if isCode(id) || strings.HasPrefix(id, "python:") {
		read = p.readFile
	}
	if err := read(id, config); err != nil {
		tr.warn(part{n, tr.Source}, "the provider %q: %v; waza runs the file with another one: --agent NAME, or --executor NAME --model NAME",
			text.Clip(id, 80), err)
		return p, false
	}
	return p, true
}

// chatForm is the form in which providers get prompts that are chats.
type chatForm int

const (
	// chatsAsMessages is the form of models: a system prompt, earlier messages, and the message of the user.
	chatsAsMessages chatForm = iota
	// chatsAsText is the form of programs and HTTP APIs, which get the JSON.
	chatsAsText
	// chatsInPart is that of echo, which is often in place of an agent: without earlier messages, as models, else as
	// programs.
	chatsInPart
)

// chatsOf returns the form in which some providers get chats. If one of them is a model, all get messages.
func chatsOf(providers []*yaml.Node) chatForm {
	form := chatsInPart
	for _, n := range providers {
		id := dialect.TextOf(n)
		if n.Kind == yaml.MappingNode {
			id = dialect.TextOf(decode.Lookup(n, "id"))
		}
		service, _, _ := strings.Cut(id, ":")
		switch _, isModel := services[service]; {
		case isModel:
			return chatsAsMessages
		case id != "echo":
			form = chatsAsText
		}
	}
	return form
}

// setProviders sets who does the trials: the executor and its model, or a cell for each provider.
func (tr *translator) setProviders(config dialect.Map) {
	providers := tr.providers()
	if len(providers) == 0 {
		return
	}
	params := providers[0].params
	if len(providers) == 1 {
		for _, pair := range dialect.Pairs(providers[0].settings.Node) {
			if pair.Key.Value == "model" && slices.Contains([]string{"command", "http"}, providers[0].settings.Get("executor").Value) {
				continue
			}
			config.Set(pair.Key.Value, pair.Value)
		}
		if words := providers[0].words; len(words) > 0 {
			config.Set("command", dialect.Texts(providers[0].at, words...))
		}
	} else {
		params = tr.setCells(config, providers)
	}
	if len(params) > 0 {
		config.Set("params", nodeOf(providers[0].at, params))
	}
	tr.chosenBy, tr.providerTransforms = providers[0].prompts, providers[0].transforms
	tr.isHTTP, tr.response = providers[0].isHTTP, providers[0].response
	for _, p := range providers {
		if p.settings.Get("base_url") != nil {
			tr.elsewhere = append(tr.elsewhere, p.settings.Get("executor").Value)
		}
	}
	var nodes []*yaml.Node
	for _, p := range providers {
		nodes = append(nodes, dialect.Scalar(nil, p.id))
	}
	tr.chats = chatsOf(nodes)
	tr.stepless = !slices.ContainsFunc(providers, func(p provider) bool { return p.hasSteps })
	for _, p := range providers {
		tr.requested = append(tr.requested, p.requested...)
	}
	tr.usesContext = slices.ContainsFunc(providers, func(p provider) bool { return p.usesContext })
	for _, p := range providers[1:] {
		if len(p.prompts.items()) > 0 || len(tr.chosenBy.items()) > 0 {
			tr.cannot(p.at, "prompts of one provider among several: all of them get all prompts")
		}
		if !p.sameTransforms(&providers[0]) {
			tr.cannot(p.at, "the transform of one provider among several: give all of them the same, and write a file for HTTP APIs")
		}
	}
}

// setCells sets a cell for each provider. It returns the parameters of APIs that all of them have, if
// these are not simple.
func (tr *translator) setCells(config dialect.Map, providers []provider) map[string]any {
	cells := dialect.List(providers[0].at)
	shared := map[string]any{}
	for _, p := range providers {
		cell := tr.simpleSettings(p, config, providers)
		for _, name := range slices.Sorted(maps.Keys(p.params)) {
			switch value := p.params[name].(type) {
			case string, bool, int, float64:
				cell.Set(name, nodeOf(p.at, value))
			default:
				if !slices.ContainsFunc(providers, func(other provider) bool { return textOf(other.params[name]) != textOf(value) }) {
					shared[name] = value
					continue
				}
				tr.cannot(p.at, "the key config.%s, which other providers lack", text.Clip(name, 60))
			}
		}
		cells.Content = append(cells.Content, cell.Node)
	}
	config.Set("cells", cells)
	return shared
}

// simpleSettings returns the settings of a provider that a cell can have. Maps and lists, which all providers
// must have, become settings of the suite.
func (tr *translator) simpleSettings(p provider, config dialect.Map, providers []provider) dialect.Map {
	cell := dialect.NewMap(p.at)
	for _, pair := range dialect.Pairs(p.settings.Node) {
		key := pair.Key.Value
		switch {
		case pair.Value.Kind == yaml.ScalarNode:
			cell.Set(key, pair.Value)
		case slices.ContainsFunc(providers, func(other provider) bool { return jsonOf(other.settings.Get(key)) != jsonOf(pair.Value) }):
			tr.cannot(p.at, "%s of one provider among several: give all of them the same, or write a file for each", key)
		default:
			config.Set(key, pair.Value)
		}
	}
	return cell
}

// judgeOf sets the judge that a provider means.
func (tr *translator) judgeOf(config dialect.Map, at *yaml.Node, n part) error {
	p := &provider{at: at}
	id, settings := n.text(), part{nil, n.src}
	if n.Kind == yaml.MappingNode {
		if text := n.get("text"); text.Node != nil { // by the kind of question
			return tr.judgeOf(config, at, text)
		}
		id, settings = n.get("id").text(), n.get("config")
	}
	if err := p.read(id, settings); err != nil {
		return fmt.Errorf("the provider %q: %w", text.Clip(id, 80), err)
	}
	if p.settings.Get("system_prompt") != nil {
		return fmt.Errorf("the key config.systemPrompt")
	}
	setEndpoint(config, p)
	tr.ownAddress(config, at)
	if len(p.params) > 0 {
		config.Set("params", nodeOf(at, p.params))
	}
	return nil
}
