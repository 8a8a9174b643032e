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
)

// Prompt asks judges: see [judgeGrader].
var Prompt = func() grader.Kind {
	k := grader.KindOf(eval.Kind{
		Name:    "prompt",
		Aliases: []string{"llm", "llm_comparison"},
		Summary: "Asks a judge model for its verdict on the trial, or several for a common one.",
		Options: func() any { return promptDefaults() },
		Judges: func() any {
			o := promptDefaults()
			o.Prompt = GeneralRubric
			return o
		},
	}, checkPrompt, newPrompt)
	k.Preflight = preflightPrompt
	return k
}()

// GeneralRubric is what judges go by for tasks without a prompt grader, in suites of the
// kind judge.
const GeneralRubric = `Is the output a correct and complete answer to the task? Judge what it says, and what of the task it leaves out: 1 is correct and complete, 0.5 has a serious error or lacks an important part, 0 is wrong or no answer. It passes if a person who asked could use it as it is.`

// IsGeneral reports whether a grader is the one that suites of the kind judge give to
// tasks without a prompt grader.
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

// PromptOptions are the options of the prompt grader.
type PromptOptions struct {
	// What the judge is to look for. May use template variables.
	Prompt string `yaml:"prompt"`
	// The same as prompt: a text, or the path of a file with it.
	Rubric string `yaml:"rubric" jsonschema_extras:"x-refers=suite-file"`
	// Model of the judge; config.judge_model when absent, else config.model.
	Model string `yaml:"model"`
	// Models of several judges, in place of model. Each may name its API: anthropic:claude-sonnet-4-5.
	Judges []string `yaml:"judges"`
	// How several judges come to a verdict: by majority, or by the mean of their scores.
	Aggregate string `yaml:"aggregate" jsonschema:"enum=majority,enum=mean"`
	// API of the judges: openai or anthropic; when absent that of the executor, or what the model's name says.
	Provider string `yaml:"provider" jsonschema:"enum=openai,enum=anthropic"`
	// Where the judges are served, in place of what config says.
	provider.Endpoint `yaml:",inline"`
	// Parameters of the API, as it names them: temperature, max_tokens, …
	Params map[string]any `yaml:"params"`
	// How the judge answers: by calling a tool, or as structured output.
	Answer string `yaml:"answer" jsonschema:"enum=tool,enum=json_schema"`
	// Let the judge see the agent's whole session, and not only a digest of it.
	ContinueSession bool `yaml:"continue_session"`
	// How the judge compares: independent, or pairwise with the run without skills, in both orders.
	Mode string `yaml:"mode" jsonschema:"enum=independent,enum=pairwise"`
	// Least score, 0 to 1, that passes; when absent the judge decides, and in pairwise a tie passes.
	Threshold *float64 `yaml:"threshold" jsonschema:"minimum=0,maximum=1"`
	// Text that a good output is compared with. In pairwise it stands in for the run without skills.
	Reference string `yaml:"reference"`
	// Files of the workspace that the judge is to see.
	Files []string `yaml:"files"`

	eval.Beside `yaml:"-"`
}

// Refers names the rubric, if it is a file.
func (o *PromptOptions) Refers(suite *eval.Suite, _ *eval.Task) []string {
	if abs, ok := rubricFile(o, suite); ok {
		return []string{abs}
	}
	return nil
}

func checkPrompt(c *eval.Check, o *PromptOptions) {
	if strings.TrimSpace(o.Prompt+o.Rubric+o.Reference) == "" {
		c.Errorf(decode.At(), decode.CodeChecksNothing, "nothing to judge: give prompt or rubric")
	}
	if abs, ok := rubricFile(o, c.Suite()); ok {
		c.Allows(decode.At("rubric"), abs)
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
		c.Warnf(decode.At("model"), decode.CodeNoEffect, "model has no effect beside judges")
	}
	if o.Aggregate == byMajority && len(o.Judges) > 0 && len(o.Judges)%2 == 0 && c.Has(decode.At("aggregate")) {
		c.Infof(decode.At("judges"), decode.CodeNoEffect, "an even number of judges may not come to a majority; the trial fails then")
	}
}

// endpointer is what the options of executors that ask models have.
type endpointer interface {
	ProviderEndpoint() provider.Endpoint
}

// judge is one model that judges.
type judge struct {
	model  string
	client provider.Client
	source judgeSource
	fault  error // why it cannot be asked
}

// judgeSource is which API serves a judge, and where.
type judgeSource struct {
	API, BaseURL, APIVersion, Model string
}

// judgeModels are the models that judge; empty when none is named.
func judgeModels(o *PromptOptions, env *grader.Env) []string {
	if len(o.Judges) > 0 {
		return o.Judges
	}
	if m := cmp.Or(o.Model, env.Suite.Config.JudgeModel, env.Model, env.Suite.Config.Model); m != "" {
		return []string{m}
	}
	return nil
}

// NamesJudge reports whether the options name the model, so that config need not.
func (o *PromptOptions) NamesJudge() bool { return o.Model != "" || len(o.Judges) > 0 }

// NamesNoJudge reports whether a grader asks a model and leaves it to config which.
func NamesNoJudge(spec *eval.Grader) bool {
	o, ok := spec.Options.(*PromptOptions)
	return ok && !o.NamesJudge()
}

// judgeEndpoint is which API serves a judge, and where. What the grader does not
// say, it takes from the executor in use, if that asks a model itself, else from
// what config says of where models are served.
func judgeEndpoint(o *PromptOptions, env *grader.Env, model string) (provider.API, provider.Endpoint, string) {
	endpoint, fallback := o.Endpoint, provider.API(o.Provider)
	used := cmp.Or(env.Executor, env.Suite.Config.Executor)
	api, name := provider.ForModel(model, fallback)
	if fallback == "" && name == model { // neither the grader nor the model names an API
		if e, ok := env.Suite.ExecutorOptions[used].(endpointer); ok && o.BaseURL == "" && servesJudge(provider.API(used), e.ProviderEndpoint(), api) {
			api = provider.API(used)
		}
	}
	if e, ok := env.Suite.ExecutorOptions[string(api)].(endpointer); ok && endpoint.BaseURL == "" && (string(api) == used || !asksModels(used)) {
		of := e.ProviderEndpoint()
		endpoint.BaseURL = of.BaseURL
		endpoint.APIVersion = cmp.Or(endpoint.APIVersion, of.APIVersion)
		if endpoint.APIKeyEnv == "" && len(endpoint.APIKeyCommand) == 0 {
			endpoint.APIKeyEnv, endpoint.APIKeyCommand = of.APIKeyEnv, of.APIKeyCommand
		}
	}
	return api, endpoint, name
}

// asksModels reports whether an executor is one that asks a model itself.
func asksModels(name string) bool {
	return name == string(provider.OpenAI) || name == string(provider.Anthropic)
}

// servesJudge reports whether the executor's API is to be asked for a model that
// by its name is by's: at an address of its own it may serve any.
func servesJudge(used provider.API, e provider.Endpoint, by provider.API) bool {
	return used == by || e.BaseURL != ""
}

var errNoJudge = errors.New("no model is named to judge: set model or judges, or config.judge_model")

func newPrompt(o *PromptOptions, env *grader.Env) (grader.Grader, error) {
	rubric, err := rubricText(o, env)
	if err != nil {
		return nil, err
	}
	models := judgeModels(o, env)
	if len(models) == 0 {
		return nil, errNoJudge
	}
	g := &judgeGrader{options: o, rubric: rubric, redact: env.Clients().Redactor()}
	for _, m := range models {
		api, endpoint, name := judgeEndpoint(o, env, m)
		client, err := env.Clients().Client(context.Background(), api, endpoint, name)
		if err != nil && !env.Recorded {
			return nil, executor.ProviderFault(err)
		}
		g.judges = append(g.judges, judge{m, client, judgeSource{string(api), endpoint.BaseURL, endpoint.APIVersion, name}, err})
	}
	return g, nil
}

// rubricText is what the judge is to look for: prompt, then rubric, which may be
// a file.
func rubricText(o *PromptOptions, env *grader.Env) (string, error) {
	rubric := o.Rubric
	if abs, ok := rubricFile(o, env.Suite); ok {
		data, err := env.Suite.ReadFile(abs, grader.MaxFileBytes)
		if err != nil {
			return "", fmt.Errorf("rubric: %s: %w", strings.TrimSpace(rubric), err)
		}
		rubric = string(data)
	}
	parts := slices.DeleteFunc([]string{o.Prompt, rubric}, func(s string) bool { return strings.TrimSpace(s) == "" })
	return strings.Join(parts, "\n\n"), nil
}

// rubricFile is the file that a rubric names, if it names one.
func rubricFile(o *PromptOptions, suite *eval.Suite) (abs string, ok bool) {
	name := strings.TrimSpace(o.Rubric)
	if name == "" || len(name) >= 300 || strings.ContainsAny(name, "\n") {
		return "", false
	}
	abs, _, ok = o.Resolve(suite, name)
	return abs, ok
}

// Endpoints are where models are served by what config says of the executors,
// for graders without an address of their own; nil for a grader that asks none.
func Endpoints(g *eval.Grader, suite *eval.Suite) map[string]provider.Endpoint {
	if _, asks := g.Options.(*PromptOptions); !asks {
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

func preflightPrompt(_ context.Context, specs []*eval.Grader, env *grader.Env) []grader.Finding {
	var findings []grader.Finding
	for _, spec := range specs {
		if o, ok := spec.Options.(*PromptOptions); ok && len(judgeModels(o, env)) == 0 {
			findings = append(findings, grader.Finding{
				Grader: spec, Severity: decode.Warning, Code: decode.CodeUnavailable,
				Message: errNoJudge.Error() + "; trials it applies to end in error",
			})
		}
	}
	return findings
}

// ComparesWithBaseline reports whether a grader of a suite looks at what the
// baseline left, so that the baseline must come first.
func ComparesWithBaseline(spec *eval.Grader) bool {
	o, ok := spec.Options.(*PromptOptions)
	return ok && o.comparesWithBaseline()
}

func (o *PromptOptions) comparesWithBaseline() bool {
	return o.Mode == modePairwise && o.Reference == ""
}

// SkillsOnly holds for pairwise judges without a reference, who compare with the baseline.
func (o *PromptOptions) SkillsOnly() bool { return o.comparesWithBaseline() }
