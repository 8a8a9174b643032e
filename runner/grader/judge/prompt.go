package judge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"waza/eval"
	"waza/eval/decode"
	"waza/runner/executor"
	"waza/runner/grader"
	"waza/runner/provider"
	"waza/runner/record"
)

// Prompt asks judges: see [judgeGrader].
var Prompt = func() grader.Kind {
	k := grader.KindOf(eval.Kind{
		Name:    "prompt",
		Aliases: []string{"llm", "llm_comparison"},
		Summary: "Asks a judge model for its verdict on the trial, or combines the verdicts of several judges.",
		Options: func() any { return promptDefaults() },
		Judges: func() any {
			o := promptDefaults()
			o.Prompt = GeneralRubric
			return o
		},
	}, checkPrompt, newPrompt)
	k.Preflight = preflightPrompt
	k.Needs = func(spec *eval.Grader, env *grader.Env) []record.Need {
		if o, ok := spec.Options.(*PromptOptions); ok {
			return o.needs(env)
		}
		return nil
	}
	return k
}()

// GeneralRubric is the rubric for tasks without a prompt grader in suites of the kind judge.
const GeneralRubric = `Is the output a correct and complete answer to the task? Judge what it says, and what of ` +
	`the task it leaves out: 1 is correct and complete, 0.5 has a serious error or lacks an important part, 0 is ` +
	`wrong or no answer. It passes if a person who asked could use it as it is.`

// IsGeneral reports whether a grader has the rubric that suites of the kind judge give to tasks
// without a prompt grader.
func IsGeneral(spec *eval.Grader) bool {
	o, ok := spec.Options.(*PromptOptions)
	return ok && o.Prompt == GeneralRubric
}

func promptDefaults() *PromptOptions {
	return &PromptOptions{Mode: modeIndependent, Aggregate: byMajority, Answer: answerTool}
}

// The values of options of the prompt grader.
const (
	modeIndependent = "independent"
	modePairwise    = "pairwise"
	byMajority      = "majority"
	byMean          = "mean"
	answerTool      = "tool"
	answerSchema    = "json_schema"
)

// PromptOptions holds the options of the prompt grader.
type PromptOptions struct {
	// Criteria of the judge. Can use template variables.
	Prompt string `yaml:"prompt"`
	// Statements that the judge marks one by one, with evidence: texts, or maps with text, label and
	// absent. The judge also sees the files that the agent left. In doubt, a statement fails. The score
	// is the share of statements that pass; the grader passes if all do. Reference can describe a good
	// result, and prompt and rubric add to the judge's instructions.
	Statements []Statement `yaml:"statements" json:",omitempty"`
	// Like prompt, but a text, the path of a file with the text, or the name of a built-in
	// rubric: groundedness, helpfulness, instruction-following, refusal-correctness,
	// tool-use-appropriateness.
	Rubric string `yaml:"rubric" jsonschema_extras:"x-refers=suite-file" path:"maybe"`
	// Model of the judge; config.judge_model when absent, else config.model.
	Model string `yaml:"model"`
	// Agent that judges, instead of a model that waza asks itself: `judge: {agent: copilot}`.
	// config.judge when absent. The agent uses model, or config.judge_model, if one is set.
	Judge eval.JudgeChoice `yaml:"judge" json:",omitzero"`
	// Models of several judges, instead of model. Each can name its API:
	// anthropic:claude-sonnet-4-5.
	Judges []string `yaml:"judges"`
	// How several judges reach a verdict: by majority, or by the mean of their scores.
	Aggregate string `yaml:"aggregate" jsonschema:"enum=majority,enum=mean"`
	// API of the judges: openai or anthropic; when absent, the executor's API, or the API that
	// the model's name implies.
	Provider string `yaml:"provider" jsonschema:"enum=openai,enum=anthropic"`
	// Where the judges are served, instead of the endpoint in config.
	provider.Endpoint `yaml:",inline"`
	// Parameters of the API, by its own names: temperature, max_tokens, …
	Params map[string]any `yaml:"params"`
	// How much the judge should reason; config.judge_reasoning_effort when absent.
	ReasoningEffort string `yaml:"reasoning_effort" json:",omitempty" jsonschema:"enum=low,enum=medium,enum=high,enum=xhigh,enum=max"`
	// How the judge answers: by calling a tool, or as structured output.
	Answer string `yaml:"answer" jsonschema:"enum=tool,enum=json_schema"`
	// Show the judge the agent's whole session instead of a digest.
	ContinueSession bool `yaml:"continue_session"`
	// How the judge compares: independent, or pairwise with the baseline, in both
	// orders.
	Mode string `yaml:"mode" jsonschema:"enum=independent,enum=pairwise"`
	// Minimum score, 0 to 1, that passes; when absent the judge decides, and in pairwise a tie
	// passes.
	Threshold *float64 `yaml:"threshold" jsonschema:"minimum=0,maximum=1"`
	// Also require, beside the threshold, that the judge passes the work. With the mean of several
	// judges, more than half of them must pass it. Not for pairwise.
	VerdictCounts bool `yaml:"verdict_counts" json:",omitempty"`
	// Text to compare the output with. In pairwise it replaces the baseline.
	Reference string `yaml:"reference"`
	// Files of the workspace to show the judge.
	Files []string `yaml:"files"`
	// Show the judge the files that the agent left in its workspace, as with statements. Not for pairwise.
	ShowFiles bool `yaml:"show_files" json:",omitempty"`

	eval.Beside `yaml:"-"`
}

// Refers returns the path of the rubric, if it is a file.
func (o *PromptOptions) Refers(suite *eval.Suite, _ *eval.Task) []string {
	if abs, ok := o.rubricFile(suite); ok {
		return []string{abs}
	}
	return nil
}

func checkPrompt(c *eval.Check, o *PromptOptions) {
	if strings.TrimSpace(o.Prompt+o.Rubric+o.Reference) == "" && len(o.Statements) == 0 {
		c.Errorf(decode.At(), decode.CodeChecksNothing, "nothing to judge: give prompt, rubric or statements")
	}
	o.checkStatements(c)
	o.checkRubric(c)
	o.checkSight(c)
	switch {
	case o.VerdictCounts && o.Mode == modePairwise:
		c.Errorf(decode.At("verdict_counts"), decode.CodeInvalidValue, "verdict_counts needs the mode independent: a comparison has no verdict beside its winner")
	case o.VerdictCounts && o.Threshold == nil:
		c.Warnf(decode.At("verdict_counts"), decode.CodeNoEffect, "verdict_counts has no effect because there is no threshold")
	}
	o.Endpoint.Check(c)
	for i, f := range o.Files {
		grader.CheckLocal(c, decode.At("files", i), f)
	}
	for i, m := range o.Judges {
		if strings.TrimSpace(m) == "" {
			c.Errorf(decode.At("judges", i), decode.CodeInvalidValue, "judges[%d] is empty", i)
		}
	}
	if o.Model != "" && len(o.Judges) > 0 {
		c.Warnf(decode.At("model"), decode.CodeNoEffect, "model has no effect because judges is set")
	}
	if o.Aggregate == byMajority && len(o.Judges) > 0 && len(o.Judges)%2 == 0 && c.Has(decode.At("aggregate")) {
		c.Infof(decode.At("judges"), decode.CodeNoEffect, "an even number of judges may not reach a majority; the trial fails then")
	}
}

// checkSight reports where a judge does not see the same data as a judge of microsoft/waza, for
// prompts written for the latter.
func (o *PromptOptions) checkSight(c *eval.Check) {
	if o.Mode == modePairwise || !mentionsGrades(o.Prompt+o.Rubric) {
		return
	}
	switch {
	case !o.ContinueSession:
		c.Infof(decode.At(), decode.CodeOtherMeaning,
			"the judge sees the task, the output and a digest of the session; a judge of microsoft/waza sees only the "+
				"prompt, unless continue_session is true")
	case len(o.Files) == 0:
		c.Warnf(decode.At("continue_session"), decode.CodeOtherMeaning,
			"continue_session shows the judge the whole recorded session, but not the workspace; a judge of "+
				"microsoft/waza continues the session in the workspace: list the files that the judge must see under files")
	}
}

// An endpointer is implemented by the options of executors that ask models.
type endpointer interface {
	ProviderEndpoint() provider.Endpoint
}

// A judge is one model or agent that judges.
type judge struct {
	model  string
	client provider.Client
	// agent is the name of the judging agent, empty for models. agentModel is the model that the
	// agent should use, empty for the agent's default.
	agent, agentModel string
	source            judgeSource
	fault             error // why it cannot be asked
}

// A judgeSource identifies what serves a judge: an API with its address, or an agent.
type judgeSource struct {
	API, BaseURL, APIVersion, Model string
	Agent                           string `json:",omitempty"`
}

// agent returns the name of the judging agent, or "" if models judge.
func (o *PromptOptions) agent(env *grader.Env) string {
	return cmp.Or(o.Judge.Agent, env.Suite.Config.Judge.Agent)
}

// agentJudges returns the judges when an agent judges: one for each named model, or one with the
// agent's default model.
func (o *PromptOptions) agentJudges(env *grader.Env, name string) []judge {
	models := o.Judges
	if len(models) == 0 {
		models = []string{cmp.Or(o.Model, env.Suite.Config.JudgeModel)}
	}
	judges := make([]judge, len(models))
	for i, m := range models {
		title := name
		if m != "" {
			title += ":" + m
		}
		judges[i] = judge{model: title, agent: name, agentModel: m, source: judgeSource{Agent: name, Model: m}}
	}
	return judges
}

// models returns the models that judge; the result is empty if none is named.
func (o *PromptOptions) models(env *grader.Env) []string {
	if len(o.Judges) > 0 {
		return o.Judges
	}
	if m := cmp.Or(o.Model, env.Suite.Config.JudgeModel, env.Model, env.Suite.Config.Model); m != "" {
		return []string{m}
	}
	return nil
}

// NamesJudge reports whether the options name the judge, so that config need not.
func (o *PromptOptions) NamesJudge() bool {
	return o.Model != "" || len(o.Judges) > 0 || o.Judge.Agent != ""
}

// NamesNoJudge reports whether a grader asks a judge that only config names.
func NamesNoJudge(spec *eval.Grader) bool {
	o, ok := spec.Options.(*PromptOptions)
	return ok && !o.NamesJudge()
}

// endpoint returns the API, the endpoint and the model name of a judge. Settings missing in
// the grader come from the executor in use, if that asks a model itself. Otherwise they come
// from the endpoints in config.
func (o *PromptOptions) endpoint(env *grader.Env, model string) (provider.API, provider.Endpoint, string) {
	endpoint, fallback := o.Endpoint, provider.API(o.Provider)
	used := cmp.Or(env.Executor, env.Suite.Config.Executor)
	api, name := provider.ForModel(model, fallback)
	if fallback == "" && name == model { // neither the grader nor the model names an API
		if e, ok := env.Suite.ExecutorOptions[used].(endpointer); ok && o.BaseURL == "" &&
			servesJudge(provider.API(used), e.ProviderEndpoint(), api) {
			api = provider.API(used)
		}
	}
	return api, inherited(env, api, endpoint), name
}

// inherited returns the endpoint of a grader that asks an API. If it has no address, that of the executor with
// this API counts, unless another executor that asks models is in use.
func inherited(env *grader.Env, api provider.API, endpoint provider.Endpoint) provider.Endpoint {
	used := cmp.Or(env.Executor, env.Suite.Config.Executor)
	e, ok := env.Suite.ExecutorOptions[string(api)].(endpointer)
	if !ok || endpoint.BaseURL != "" || string(api) != used && asksModels(used) {
		return endpoint
	}
	of := e.ProviderEndpoint()
	endpoint.BaseURL = of.BaseURL
	endpoint.APIVersion = cmp.Or(endpoint.APIVersion, of.APIVersion)
	if endpoint.APIKeyEnv == "" && len(endpoint.APIKeyCommand) == 0 {
		endpoint.APIKeyEnv, endpoint.APIKeyCommand = of.APIKeyEnv, of.APIKeyCommand
	}
	return endpoint
}

// asksModels reports whether an executor asks a model itself.
func asksModels(name string) bool {
	return name == string(provider.OpenAI) || name == string(provider.Anthropic)
}

// servesJudge reports whether the executor's API serves a model whose name implies the API by.
// An executor with a custom address can serve any model.
func servesJudge(used provider.API, e provider.Endpoint, by provider.API) bool {
	return used == by || e.BaseURL != ""
}

var errNoJudge = errors.New("no judge model is set: set model or judges, or config.judge_model, or use --judge-model")

func newPrompt(o *PromptOptions, env *grader.Env) (grader.Grader, error) {
	rubric, err := o.newRubric(env)
	if err != nil {
		return nil, err
	}
	g := &judgeGrader{options: o, rubric: rubric, redact: env.Clients().Redactor(), env: env}
	if g.judges, err = o.newJudges(env); err != nil {
		return nil, err
	}
	if g.judges[0].agent != "" && o.Answer != answerTool {
		tools := *o
		tools.Answer = answerTool
		g.options = &tools
	}
	return g, nil
}

// newJudges returns the judges of a grader, at least one. If a judge cannot be asked, newJudges
// returns an error. In recorded runs it sets the judge's fault instead, because the judge may
// not be needed.
func (o *PromptOptions) newJudges(env *grader.Env) ([]judge, error) {
	if name := o.agent(env); name != "" {
		judges := o.agentJudges(env, name)
		err := checkAgent(env, name)
		for i := range judges {
			judges[i].fault = err
		}
		if err != nil && !env.Recorded {
			return nil, err
		}
		return judges, nil
	}
	models := o.models(env)
	if len(models) == 0 {
		return nil, errNoJudge
	}
	var judges []judge
	for _, m := range models {
		api, endpoint, name := o.endpoint(env, m)
		client, err := env.Clients().Client(context.Background(), api, endpoint, name)
		client = provider.WithEffort(client, cmp.Or(o.ReasoningEffort, env.Suite.Config.JudgeReasoningEffort))
		if err != nil {
			err = noJudge(err)
		}
		if err != nil && !env.Recorded {
			return nil, err
		}
		judges = append(judges, judge{
			model: m, client: client,
			source: judgeSource{API: string(api), BaseURL: endpoint.BaseURL, APIVersion: endpoint.APIVersion, Model: name},
			fault:  err,
		})
	}
	return judges, nil
}

// noJudge converts the error of a judge that cannot be asked. Only the trials whose graders need
// the judge end in an error; grading them later can succeed.
func noJudge(err error) error {
	if provider.KindOf(err) == provider.Refused {
		return executor.Permanent(fmt.Errorf("%w; or let an agent judge: --judge-agent copilot, or "+
			"config.judge.agent; waza grade judges the recorded trials",
			err))
	}
	return executor.ProviderFault(err)
}

func checkAgent(env *grader.Env, name string) error {
	if env.Agents == nil {
		return grader.ErrNoAgents
	}
	if err := env.Agents.Check(env.Suite, name); err != nil {
		return fmt.Errorf("judge: %w", err)
	}
	return nil
}

// newRubric returns what the judge should look for: prompt, then rubric.
func (o *PromptOptions) newRubric(env *grader.Env) (rubric, error) {
	r, err := o.loadRubric(env)
	if err != nil {
		return rubric{}, err
	}
	parts := slices.DeleteFunc([]string{o.Prompt, r.text}, func(s string) bool { return strings.TrimSpace(s) == "" })
	r.text = strings.Join(parts, "\n\n")
	return r, nil
}

// Endpoints returns the endpoints of models that config gives to executors, for graders without
// an address. It returns nil for a grader that asks no model.
func Endpoints(g *eval.Grader, suite *eval.Suite) map[string]provider.Endpoint {
	switch g.Options.(type) {
	case *PromptOptions, *SimilarOptions, *RelevanceOptions:
	default:
		return nil
	}
	endpoints := map[string]provider.Endpoint{}
	for name, options := range suite.ExecutorOptions {
		if e, ok := options.(endpointer); ok {
			of := e.ProviderEndpoint()
			endpoints[name] = provider.Endpoint{BaseURL: of.BaseURL, APIVersion: of.APIVersion}
		}
	}
	return endpoints
}

// preflightPrompt reports judges that cannot be asked on this machine. It reads keys from the
// environment, and runs no program that prints one.
func preflightPrompt(ctx context.Context, specs []*eval.Grader, env *grader.Env) []grader.Finding {
	var findings []grader.Finding
	for _, spec := range specs {
		o, ok := spec.Options.(*PromptOptions)
		if !ok {
			continue
		}
		if err := o.lacksJudge(ctx, env); err != nil {
			code := decode.CodeUnavailable
			if errors.Is(err, errNoJudge) {
				code = decode.CodeMissingField
			}
			findings = append(findings, grader.Finding{
				Grader: spec, Severity: decode.Warning, Code: code,
				Message: err.Error() + "; trials with this grader end in error",
			})
		}
	}
	return findings
}

// lacksJudge returns an error if a judge is known to be unavailable.
func (o *PromptOptions) lacksJudge(ctx context.Context, env *grader.Env) error {
	if name := o.agent(env); name != "" {
		return checkAgent(env, name)
	}
	models := o.models(env)
	if len(models) == 0 {
		return errNoJudge
	}
	for _, m := range models {
		api, endpoint, name := o.endpoint(env, m)
		if len(endpoint.APIKeyCommand) > 0 {
			continue
		}
		if _, err := env.Clients().Client(ctx, api, endpoint, name); provider.KindOf(err) == provider.Refused {
			return fmt.Errorf("judge %s: %w; or let an agent judge: --judge-agent copilot", m, err)
		}
	}
	return nil
}

// needs lists what lacksJudge looks for.
func (o *PromptOptions) needs(env *grader.Env) (list []record.Need) {
	if name := o.agent(env); name != "" {
		if env.Agents == nil {
			return nil
		}
		return env.Agents.Needs(env.Suite, name)
	}
	for _, m := range o.models(env) {
		api, endpoint, _ := o.endpoint(env, m)
		list = append(list, endpoint.Needs(api)...)
	}
	return list
}

// AskerNeeds lists what a machine needs for [NewAsker] to succeed.
func AskerNeeds(env *grader.Env, model string) []record.Need {
	return (&PromptOptions{Model: model}).needs(env)
}

// ComparesWithBaseline reports whether a suite's grader needs the results of the baseline, so
// that the baseline must run first.
func ComparesWithBaseline(spec *eval.Grader) bool {
	o, ok := spec.Options.(*PromptOptions)
	return ok && o.SkillsOnly()
}

// SkillsOnly reports whether the judges compare with the baseline: in pairwise mode without a
// reference.
func (o *PromptOptions) SkillsOnly() bool { return o.Mode == modePairwise && o.Reference == "" }
