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
	"google":     {"openai", "https://generativelanguage.googleapis.com/v1beta/openai", "GOOGLE_API_KEY"},
	"xai":        {"openai", "https://api.x.ai/v1", "XAI_API_KEY"},
	"cerebras":   {"openai", "https://api.cerebras.ai/v1", "CEREBRAS_API_KEY"},
	"perplexity": {"openai", "https://api.perplexity.ai", "PERPLEXITY_API_KEY"},
	"github":     {"openai", "https://models.github.ai/inference", "GITHUB_TOKEN"},

	"azure":       {"openai", azureAddress, "AZURE_API_KEY"},
	"azureopenai": {"openai", azureAddress, "AZURE_API_KEY"},
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
	isParsed   bool // its answers have a JSON schema, and promptfoo parses them
	service    string
	id         string
	cell       string         // its name, if cells have names
	caller     map[string]any // as programs of prompts and variables see it
	response   part           // transformResponse
	requested  []string       // variables that its requests name
	env        *yaml.Node
	render     *renderer // of texts with variables of the environment
	idle       []string  // keys of its config that have no effect
	// hasSteps means that it can report the steps of an agent.
	hasSteps bool
	// hasMetadata means that its answers can have metadata.
	hasMetadata bool
	// usesContext means that it gets the variables of a test, which are the context of its task.
	usesContext bool
	reads       []string                                   // paths that its program uses besides files below the suite's directory
	besides     func(file string) (below, others []string) // returns what a program uses
}

// parameters are the keys of a provider's config that APIs have under the same name, and those with
// another name.
var parameters = map[string]string{
	"temperature": "temperature", "max_tokens": "max_tokens", "max_completion_tokens": "max_completion_tokens", "top_p": "top_p",
	"top_k": "top_k", "seed": "seed", "stop": "stop", "frequency_penalty": "frequency_penalty", "presence_penalty": "presence_penalty",
	"reasoning_effort": "reasoning_effort", "response_format": "response_format", "thinking": "thinking", "num_predict": "max_tokens",
	"verbosity": "verbosity", "max_output_tokens": "max_completion_tokens",
}

// ofGoogle are the keys of the config of google, and of generationConfig in it, that its API for clients of OpenAI has.
var ofGoogle = map[string]string{"maxOutputTokens": "max_tokens", "topP": "top_p", "stopSequences": "stop"}

// agentProviders are the ids of providers that are agents, with the agent of waza that does the same.
var agentProviders = map[string]string{
	"anthropic:claude-agent-sdk": "claude-code", "anthropic:claude-code": "claude-code", "openai:codex-sdk": "codex", "openai:codex": "codex",
	"openai:codex-app-server": "codex", "opencode:sdk": "opencode", "opencode": "opencode",
}

// An agentError reports an agent of waza in place of a model.
type agentError struct{ name string }

func (e *agentError) Error() string { return "it is an agent, not a model" }

// withoutEffect are keys of a provider's config that change no verdict.
var withoutEffect = []string{
	"organization", "apiKeyRequired", "showThinking", "cost", "inputCost", "outputCost", "timeout", "timeoutMs", "maxRetries", "maxConcurrency",
	"delay", "stream", "cache", "debug", "keep_alive", "store",
}

// decisiveSettings are keys of a provider's config that change answers and that waza cannot honor. promptfoo ignores keys that it
// does not know.
var decisiveSettings = strings.Fields(`tools tool_choice toolChoice toolConfig functions function_call functionToolCallbacks functionCallbacks mcp
	modalities audio audio_format instructions conversation previous_response_id prompt background include truncation text
	safetySettings systemInstruction system_instruction responseSchema response_schema responseMimeType cachedContent contextCache
	extra_body beta effort logit_bias logprobs top_logprobs dataSources data_sources assistantId prefill plugins provider
	models route transforms grammar format think num_ctx headers headers_file skills working_dir sandbox_mode`)

// passedOn are keys of the config of single services that promptfoo sends, and that their APIs have under the same name.
var passedOn = map[string][]string{
	"perplexity": strings.Fields(`search_domain_filter search_recency_filter search_after_date_filter search_before_date_filter web_search_options
		return_related_questions return_images`),
	"xai":     {"search_parameters"},
	"mistral": {"safe_prompt", "random_seed"},
}

// notPassedOn are keys of the config of single services that change answers and that waza cannot honor: the API for clients of OpenAI does not
// have them, they change the form of answers, or only some versions of promptfoo send them.
var notPassedOn = map[string][]string{
	"mistral":    {"n", "prediction"},
	"anthropic":  {"output_format", "extra_headers"},
	"groq":       {"reasoning_format", "include_reasoning", "compound_custom", "search_settings"},
	"xai":        {"agent_tools"},
	"openrouter": {"min_p", "top_a", "repetition_penalty", "preset", "include_reasoning"},
	"google": strings.Fields(`thinkingConfig topK presencePenalty frequencyPenalty candidateCount responseModalities response_mime_type
		speechConfig mediaResolution responseLogprobs imageConfig response_format`),
	"ollama": strings.Fields(`repeat_penalty repeat_last_n mirostat mirostat_eta mirostat_tau min_p tfs_z typical_p penalize_newline num_keep
		system template raw response_format`),
}

// unparsed are the services whose answers promptfoo does not parse, whatever their form is.
var unparsed = []string{"mistral", "google", "ollama"}

// endpointSettings are other keys of a provider's config that the translation handles.
var endpointSettings = strings.Fields(`apiBaseUrl baseUrl base_url apiHost apiKey apiKeyEnvar apiVersion deployment_name deploymentName reasoning
	systemPrompt system_prompt passthrough generationConfig model`)

// isProviderSetting reports whether a key of the config of some provider changes its answers.
func isProviderSetting(key string) bool {
	ofService := func(keys map[string][]string) bool {
		return slices.ContainsFunc(slices.Collect(maps.Values(keys)), func(list []string) bool { return slices.Contains(list, key) })
	}
	return parameters[key] != "" || ofGoogle[key] != "" || slices.Contains(decisiveSettings, key) || slices.Contains(endpointSettings, key) ||
		ofService(passedOn) || ofService(notPassedOn)
}

// settings returns the model and the settings of a provider with this id and config.
func (p *provider) read(id string, config part) error {
	name, model, _ := strings.Cut(id, ":")
	if agent := agentProviders[id]; agent != "" {
		return &agentError{agent}
	}
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
	p.service = name
	p.settings.Set("executor", dialect.Scalar(p.at, s.executor))
	p.settings.Set("model", dialect.Scalar(p.at, model))
	if s.url != "" {
		p.settings.Set("base_url", dialect.Scalar(p.at, s.url))
		p.settings.Set("api_key_env", dialect.Scalar(p.at, s.keyEnv))
	}
	if s.url == azureAddress {
		var err error
		if config, err = p.azure(model, config); err != nil {
			return err
		}
	}
	if name == "google" {
		config = p.google(config)
	}
	for _, pair := range dialect.Pairs(config.Node) {
		if err := p.setting(pair); err != nil {
			return err
		}
	}
	p.dropUnsupported(model)
	return nil
}

// google sets the variable with the key, and returns the config with the keys of generationConfig.
func (p *provider) google(config part) part {
	if _, given := p.render.lookup("GOOGLE_API_KEY"); !given {
		if _, other := p.render.lookup("GEMINI_API_KEY"); other {
			p.settings.Set("api_key_env", dialect.Scalar(p.at, "GEMINI_API_KEY"))
		}
	}
	flat := dialect.NewMap(p.at)
	var add func(n *yaml.Node)
	add = func(n *yaml.Node) {
		for _, pair := range dialect.Pairs(n) {
			switch key := pair.Key.Value; {
			case key == "generationConfig" && n == config.Node:
				add(decode.Follow(pair.Value))
			case ofGoogle[key] != "":
				flat.Set(ofGoogle[key], pair.Value)
			default:
				flat.Set(key, pair.Value)
			}
		}
	}
	add(config.Node)
	return part{flat.Node, config.src}
}

// reasoningModel matches models of OpenAI that take neither a temperature nor max_tokens.
var reasoningModel = text.Pattern(`^(?:openai/)?(?:o\d|gpt-5)`)

// dropUnsupported removes the parameters that promptfoo does not send to a model of OpenAI: of two limits of tokens the one that the
// model does not know, and the temperature of models that reason.
func (p *provider) dropUnsupported(model string) {
	if p.settings.Get("executor").Value != "openai" {
		return
	}
	var dropped []string
	reasons := reasoningModel().MatchString(model)
	switch {
	case reasons:
		dropped = []string{"max_tokens", "temperature"}
	case p.params["max_tokens"] != nil:
		dropped = []string{"max_completion_tokens"}
	}
	for _, key := range dropped {
		if p.params[key] != nil {
			delete(p.params, key)
			p.idle = append(p.idle, key)
		}
	}
}

// azureAddress is in the place of the address of a deployment.
const azureAddress = "azure"

// azureVersion is the version of the API that promptfoo uses if a provider names none.
const azureVersion = "2024-12-14-preview"

var deploymentName = text.Pattern(`^[\w.-]+$`)

// azure sets the address of a deployment at Azure, and returns the other keys of the config.
func (p *provider) azure(deployment string, config part) (rest part, err error) {
	others := dialect.NewMap(p.at)
	host, version := "{{env.AZURE_API_HOST}}", azureVersion
	if _, given := p.render.lookup("AZURE_API_HOST"); !given {
		host = "{{env.AZURE_OPENAI_API_HOST}}"
	}
	for _, pair := range dialect.Pairs(config.Node) {
		switch pair.Key.Value {
		case "apiHost":
			host = dialect.TextOf(pair.Value)
		case "apiVersion":
			version = dialect.TextOf(pair.Value)
		case "apiBaseUrl":
			host = dialect.TextOf(pair.Value)
		case "deployment_name", "deploymentName":
			deployment = dialect.TextOf(pair.Value)
		default:
			others.Set(pair.Key.Value, pair.Value)
		}
	}
	if host, err = p.inserted(host); err != nil {
		return rest, err
	}
	if host = strings.TrimRight(host, "/"); host == "" {
		return rest, errors.New("it names no host: write config.apiHost, or set $AZURE_API_HOST")
	}
	if !deploymentName().MatchString(deployment) {
		return rest, fmt.Errorf("names of deployments consist of letters, digits, '.', '_' and '-', got %q", text.Clip(deployment, 60))
	}
	if !strings.Contains(host, "://") {
		host = "https://" + host
	}
	p.settings.Set("base_url", dialect.Scalar(p.at, host+"/openai/deployments/"+deployment))
	p.settings.Set("api_version", dialect.Scalar(p.at, version))
	return part{others.Node, config.src}, nil
}

// setting adds a key of the config of a provider.
func (p *provider) setting(pair decode.Pair) error {
	key := pair.Key.Value
	value, err := valueOf(pair.Value)
	if s, isText := value.(string); isText && key != "apiKey" {
		value, err = p.inserted(s)
	}
	if err != nil {
		return fmt.Errorf("config.%s: %w", text.Clip(key, 60), err)
	}
	format, isMap := value.(map[string]any)
	switch {
	case key == "response_format" && p.settings.Get("executor").Value == "anthropic":
		p.idle = append(p.idle, key)
	case slices.Contains(notPassedOn[p.service], key) && !lacksValue(pair.Value):
		return fmt.Errorf("the key config.%s", text.Clip(key, 60))
	case slices.Contains(passedOn[p.service], key):
		p.params[key] = value
	case key == "response_format" && !isMap && value != nil:
		return errors.New("the key config.response_format must be a map: waza reads no file in its place")
	case key == "response_format": // of passthrough, promptfoo does not parse answers
		p.isParsed = format["type"] == "json_schema" && !slices.Contains(unparsed, p.service)
		p.params[key] = value
	case parameters[key] != "":
		p.params[parameters[key]] = value
	case key == "apiBaseUrl" || key == "baseUrl" || key == "base_url":
		p.settings.Set("base_url", dialect.Scalar(p.at, textOf(value)))
	case key == "apiKeyEnvar":
		p.settings.Set("api_key_env", dialect.Scalar(p.at, textOf(value)))
	case key == "apiHost":
		p.settings.Set("base_url", dialect.Scalar(p.at, "https://"+textOf(value)+"/v1"))
	case key == "apiKey":
		if name, ok := strings.CutPrefix(strings.Trim(textOf(value), "{} "), "env."); ok {
			p.settings.Set("api_key_env", dialect.Scalar(p.at, name))
		} else {
			p.idle = append(p.idle, "apiKey: waza takes keys from environment variables; write apiKeyEnvar with the name of one")
		}
	case key == "reasoning":
		effort, _ := value.(map[string]any)
		if len(effort) != 1 || effort["effort"] == nil {
			return errors.New("the key config.reasoning: waza has only its effort")
		}
		p.params["reasoning_effort"] = effort["effort"]
	case (key == "systemPrompt" || key == "system_prompt") && p.settings.Get("executor").Value == "openai":
		p.idle = append(p.idle, key)
	case key == "systemPrompt" || key == "system_prompt":
		p.settings.Set("system_prompt", dialect.Scalar(p.at, textOf(value)))
	case key == "passthrough":
		extra, _ := value.(map[string]any)
		maps.Copy(p.params, extra)
	case slices.Contains(withoutEffect, key) || lacksValue(pair.Value):
	case slices.Contains(decisiveSettings, key), p.service == "perplexity" && key != "usage_tier": // some versions send all
		return fmt.Errorf("the key config.%s", text.Clip(key, 60))
	default:
		p.idle = append(p.idle, text.Clip(key, 60))
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
	p.label = firstOf(p.label, text.Clip(id, 60))
	return true
}

// providers returns the providers of the configuration. usable means that waza can ask all of them.
func (tr *translator) providers() (providers []provider, usable bool) {
	n := decode.Follow(decode.Lookup(tr.root, "providers"))
	if n == nil {
		n = decode.Follow(decode.Lookup(tr.root, "targets"))
	}
	items := tr.providerItems(part{n, tr.Source})
	if len(items) == 0 {
		tr.warn(part{n, tr.Source}, "the file has no providers; %s", runsWith)
	}
	usable = len(items) > 0
	for i, item := range items {
		p, ok := tr.provider(item, i)
		usable = usable && ok
		providers = append(providers, p)
	}
	return providers, usable
}

// A providerItem is a provider as a file describes it: a text or a map.
type providerItem struct {
	part
	at *yaml.Node // in the configuration
	// fault is the reason why its file cannot be read; nil if it can.
	fault error
}

// providerItems returns the items of a list of providers, and those of the files that it names.
func (tr *translator) providerItems(list part) (items []providerItem) {
	parts := list.items()
	if decode.IsText(list.Node) || list.Node != nil && list.Kind == yaml.MappingNode {
		parts = []part{list}
	}
	for _, p := range parts {
		ref := p.text()
		if !strings.HasPrefix(ref, filePrefix) || !slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(ref)) {
			items = append(items, providerItem{p, p.Node, nil})
			continue
		}
		src, err := tr.parse(tr.path(ref))
		if err != nil || src.Root == nil {
			items = append(items, providerItem{p, p.Node, firstError(err, fmt.Errorf("the file has faults"))})
			continue
		}
		root := part{decode.Follow(src.Root), src}
		inner := root.items()
		if root.Kind == yaml.MappingNode {
			inner = []part{root}
		}
		for _, one := range inner {
			items = append(items, providerItem{one, p.Node, nil})
		}
	}
	return items
}

// runsWith says what to do about providers that waza cannot ask.
const runsWith = "waza runs the file with another one: --agent NAME, or --executor NAME --model NAME"

// providerKeys are the keys of a provider that the translation handles.
var providerKeys = []string{"id", "label", "config", "prompts", "transform", "delay", "inputs", "env"}

func (tr *translator) provider(item providerItem, number int) (p provider, ok bool) {
	n, config := item.Node, part{nil, item.src}
	id := dialect.TextOf(n)
	p = provider{at: item.at, prompts: part{nil, item.src}, env: decode.Follow(decode.Lookup(tr.root, "env")), render: tr.ofEnvironment()}
	p.besides = func(file string) (below, others []string) { return tr.besides(tr.path(file)) }
	if n != nil && n.Kind == yaml.MappingNode {
		if decode.Lookup(n, "id") == nil && len(n.Content) == 2 { // an older form: id to settings
			id, n = n.Content[0].Value, decode.Follow(n.Content[1])
		} else {
			id = dialect.TextOf(decode.Lookup(n, "id"))
		}
		own := part{n, item.src}
		tr.ignore(own, fmt.Sprintf("providers[%d].", number), providerKeys)
		p.label, p.prompts, config = own.get("label").text(), own.get("prompts"), own.get("config")
		if t := own.get("transform"); t.Node != nil {
			p.transforms = append(p.transforms, t)
		}
		if delay := own.get("delay"); delay.Node != nil {
			tr.warn(delay, "delay has no effect: waza waits when a provider is too busy")
		}
	}
	at := part{n, item.src}
	if n == nil {
		at = part{item.at, tr.Source}
	}
	err := item.fault
	if own := at.get("env"); err == nil && own.Node != nil && !lacksValue(own.Node) {
		err = errors.New("the key env: set its variables yourself, or write them into env of the file")
	}
	var inserted string
	if err == nil {
		if inserted, err = p.inserted(id); err == nil {
			id = inserted
		}
	}
	p.id, p.caller = id, map[string]any{"id": id}
	if p.label != "" {
		p.caller["label"] = p.label
	}
	if err == nil && p.program(id) {
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
	if err == nil {
		err = read(id, config)
	}
	var agent *agentError
	switch {
	case errors.As(err, &agent):
		tr.warn(at, "the provider %q: %v; waza runs the file with --agent %s", text.Clip(id, 80), err, agent.name)
	case err != nil:
		tr.warn(at, "the provider %q: %v; %s", text.Clip(id, 80), err, runsWith)
	}
	for _, key := range p.idle {
		key, instead, _ := strings.Cut(key, ":")
		tr.warn(config, "%s", strings.TrimSuffix(fmt.Sprintf("config.%s of the provider %q has no effect:%s", key, text.Clip(id, 60), instead), ":"))
	}
	return p, err == nil
}

// ofEnvironment returns a renderer of texts that contain variables of the environment, and no others.
func (tr *translator) ofEnvironment() *renderer {
	return &renderer{env: tr.env, budget: tr.budget, unknown: func(string) {}}
}

// inserted returns a text of a provider with the variables of the environment in it.
func (p *provider) inserted(s string) (string, error) {
	if !ofEnvironment().MatchString(s) {
		return s, nil
	}
	for _, tag := range requestVariable().FindAllStringSubmatch(s, -1) {
		if !needsOnlyEnvironment(tag[1]) {
			return "", fmt.Errorf("waza inserts only variables of the environment, not %s", text.Clip(tag[0], 60))
		}
	}
	return p.render.render(s)
}

var (
	// ofEnvironment matches texts that contain variables of the environment.
	ofEnvironment = text.Pattern(`\{\{[^{}]*\benv\b`)
	// fixedPart matches the parts of an expression that name no other variables.
	fixedPart = text.Pattern(`'[^'\\]*'|"[^"\\]*"|\benv\.\w+|\b(?:or|and|not|if|else|default|true|false|none|null)\b|[\d\s|(),]`)
)

// needsOnlyEnvironment reports whether all variables in an expression are those of the environment.
func needsOnlyEnvironment(expression string) bool {
	return fixedPart().ReplaceAllString(expression, "") == ""
}

// A group are the providers that do the same cases: they get the same prompts, and make their outputs in the same way.
type group struct {
	cells              []string // the names of their cells; none if the providers of the file are one group
	chosenBy           part     // the prompts that they get
	providerTransforms []part
	isHTTP, isParsed   bool
	response           part     // transformResponse
	stepless           bool     // no provider reports steps
	hasMetadata        bool     // all providers can report metadata
	requested          []string // variables that their requests name
	usesContext        bool     // a provider gets the variables of tests
	callers            []any    // the providers, as programs of prompts and variables see them
	chats              chatForm // in which they get chats
	ids                []*yaml.Node
}

// does reports whether a provider does the cases of the group.
func (g *group) does(p *provider) bool {
	same := func(a, b part) bool { return a.text() == b.text() }
	return jsonOf(g.chosenBy.Node) == jsonOf(p.prompts.Node) && g.isHTTP == p.isHTTP && g.isParsed == p.isParsed && same(g.response, p.response) &&
		slices.EqualFunc(g.providerTransforms, p.transforms, same)
}

func (g *group) add(p *provider) {
	g.cells = append(g.cells, p.cell)
	g.stepless = g.stepless && !p.hasSteps
	g.hasMetadata = g.hasMetadata && p.hasMetadata
	g.usesContext = g.usesContext || p.usesContext
	g.callers = append(g.callers, p.caller)
	g.ids = append(g.ids, dialect.Scalar(nil, p.id))
	g.chats = chatsOf(g.ids)
	for _, name := range p.requested {
		if !slices.Contains(g.requested, name) {
			g.requested = append(g.requested, name)
		}
	}
}

// groupsOf returns the groups of providers, in the order of the file.
func groupsOf(providers []provider) (groups []group) {
	for i := range providers {
		p := &providers[i]
		at := slices.IndexFunc(groups, func(g group) bool { return g.does(p) })
		if at < 0 {
			at = len(groups)
			groups = append(groups, group{
				chosenBy: p.prompts, providerTransforms: p.transforms, isHTTP: p.isHTTP, isParsed: p.isParsed, response: p.response, stepless: true, hasMetadata: true,
			})
		}
		groups[at].add(p)
	}
	return groups
}

// replaced returns the group of an agent or executor that does the trials in place of the providers. It gets all
// prompts that some provider gets.
func (tr *translator) replaced(providers []provider) group {
	g := group{chosenBy: part{nil, tr.Source}, stepless: false}
	prompts := dialect.List(tr.root)
	for i := range providers {
		g.callers = append(g.callers, providers[i].caller)
		prompts.Content = append(prompts.Content, dialect.Items(providers[i].prompts.Node)...)
	}
	if !slices.ContainsFunc(providers, func(p provider) bool { return len(p.prompts.items()) == 0 }) {
		g.chosenBy.Node = prompts
	}
	return g
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
	var providers []provider
	var usable bool
	if isReplaced := tr.Chosen.Agent || tr.Chosen.Executor; isReplaced {
		tr.Quietly(func() { providers, usable = tr.providers() })
		tr.groups = []group{tr.replaced(providers)}
		if usable && !tr.Chosen.Agent {
			setModels(config, providers)
		}
		return
	}
	if providers, usable = tr.providers(); !usable {
		tr.groups = []group{tr.replaced(providers)} // waza needs an agent or executor for this file
		return
	}
	setReads(config, providers)
	if len(providers) == 1 {
		providers[0].configure(config)
	} else {
		setCells(config, providers)
	}
	for _, p := range providers {
		if p.settings.Get("base_url") != nil {
			tr.elsewhere = append(tr.elsewhere, p.settings.Get("executor").Value)
		}
	}
	if tr.groups = groupsOf(providers); len(tr.groups) == 1 {
		tr.groups[0].cells = nil
	}
}

// setReads lets the programs of providers read what they use, in a sandbox.
func setReads(config dialect.Map, providers []provider) {
	var reads []string
	for _, p := range providers {
		for _, name := range p.reads {
			if !slices.Contains(reads, name) {
				reads = append(reads, name)
			}
		}
	}
	if len(reads) > 0 {
		sandbox := dialect.NewMap(providers[0].at)
		sandbox.Set("read", dialect.Texts(providers[0].at, reads...))
		config.Set("sandbox", sandbox.Node)
	}
}

// setModels sets the models of providers whose executor the caller chose.
func setModels(config dialect.Map, providers []provider) {
	var models []string
	for _, p := range providers {
		if m := dialect.TextOf(p.settings.Get("model")); m != "" && !slices.Contains(models, m) {
			models = append(models, m)
		}
	}
	switch len(models) {
	case 0:
	case 1:
		config.Set("model", dialect.Scalar(providers[0].at, models[0]))
	default:
		config.Set("models", dialect.Texts(providers[0].at, models...))
	}
}

// configure sets the settings of the only provider of a file.
func (p *provider) configure(config dialect.Map) {
	for _, pair := range dialect.Pairs(p.settings.Node) {
		config.Set(pair.Key.Value, pair.Value)
	}
	if len(p.params) > 0 {
		config.Set("params", nodeOf(p.at, p.params))
	}
}

// setCells sets a cell for each provider. Cells have names if a provider has no model, or if they do different cases.
func setCells(config dialect.Map, providers []provider) {
	named := len(groupsOf(providers)) > 1 || slices.ContainsFunc(providers, func(p provider) bool { return p.settings.Get("model") == nil })
	cells, taken := dialect.List(providers[0].at), map[string]bool{}
	for i := range providers {
		p := &providers[i]
		cell, options := dialect.NewMap(p.at), dialect.NewMap(p.at)
		if named {
			p.cell = uniqueIn(taken, text.Clip(firstOf(p.label, dialect.TextOf(p.settings.Get("model")), "provider"), 60))
			cell.Set("name", dialect.Scalar(p.at, p.cell))
		}
		for _, pair := range dialect.Pairs(p.settings.Node) {
			if key := pair.Key.Value; key == "executor" || key == "model" {
				cell.Set(key, pair.Value)
			} else {
				options.Set(key, pair.Value)
			}
		}
		params := map[string]any{}
		for _, name := range slices.Sorted(maps.Keys(p.params)) {
			switch value := p.params[name].(type) {
			case string, bool, int, float64:
				if slices.Contains(shownParameters, name) {
					cell.Set(name, nodeOf(p.at, value))
					continue
				}
			}
			params[name] = p.params[name]
		}
		if len(params) > 0 {
			options.Set("params", nodeOf(p.at, params))
		}
		if options.Len() > 0 {
			cell.Set("options", options.Node)
		}
		cells.Content = append(cells.Content, cell.Node)
	}
	config.Set("cells", cells)
}

// shownParameters are those that are parameters of cells, so that names of cells contain them.
var shownParameters = []string{
	"temperature", "max_tokens", "max_completion_tokens", "top_p", "top_k", "frequency_penalty", "presence_penalty",
}

// judgeOf sets the judge that a provider means. One that the caller chose takes the place of a judge that waza cannot ask.
func (c *caseTranslator) judgeOf(config dialect.Map, at *yaml.Node, n part) error {
	if inner := n.get("text"); inner.Node != nil { // by the kind of question
		return c.judgeOf(config, at, inner)
	}
	if n.get("id").Node == nil && (n.get("embedding").Node != nil || n.get("classification").Node != nil) {
		return nil // it answers other kinds of questions
	}
	p := &provider{at: at, render: c.ofEnvironment()}
	id, settings := n.text(), part{nil, n.src}
	if n.Node != nil && n.Kind == yaml.MappingNode {
		id, settings = n.get("id").text(), n.get("config")
	}
	inserted, err := p.inserted(id)
	if err == nil {
		id = inserted
		err = p.read(id, settings)
	}
	if err == nil && p.settings.Get("system_prompt") != nil {
		err = fmt.Errorf("the key config.systemPrompt")
	}
	var agent *agentError
	switch {
	case err != nil && c.Chosen.Judge:
		c.warn(n, "the judge %q: %v; the chosen one judges in its place", text.Clip(id, 80), err)
		return nil
	case errors.As(err, &agent):
		return fmt.Errorf("the provider %q: %w; another one judges with --judge-agent %s, or --judge-model MODEL", text.Clip(id, 80), err, agent.name)
	case err != nil:
		return fmt.Errorf("the provider %q: %w; another one judges with --judge-model MODEL, or --judge-agent NAME", text.Clip(id, 80), err)
	}
	if p.params["response_format"] != nil {
		c.warn(n, "config.response_format of a judge has no effect: waza asks for a verdict in a form of its own")
		delete(p.params, "response_format")
	}
	setEndpoint(config, p)
	c.ownAddress(config, at)
	if len(p.params) > 0 {
		config.Set("params", nodeOf(at, p.params))
	}
	return nil
}
