package judge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"

	"waza/eval"
	"waza/eval/decode"
	"waza/runner/executor"
	"waza/runner/figure"
	"waza/runner/grader"
	"waza/runner/provider"
	"waza/runner/record"
)

// Similar compares the meaning of the output with that of reference texts: see [similarGrader].
var Similar = func() grader.Kind {
	k := grader.KindOf(eval.Kind{
		Name: "similar",
		Summary: "Compares the meaning of the output with that of reference texts, by the vectors that an embedding model makes of them. " +
			"The score is the similarity.",
		Options: func() any {
			return &SimilarOptions{Metric: metricCosine, Embedding: Embedding{Provider: string(provider.OpenAI)}, Threshold: 0.75}
		},
	}, checkSimilar, nil)
	k.New = func(spec *eval.Grader, env *grader.Env) (grader.Grader, error) {
		o, ok := spec.Options.(*SimilarOptions)
		if !ok {
			return nil, fmt.Errorf("options of type %s are missing", k.Name)
		}
		return newSimilar(o, spec.Negate, env)
	}
	k.Preflight = preflightSimilar
	k.Needs = func(spec *eval.Grader, env *grader.Env) []record.Need {
		o, ok := spec.Options.(*SimilarOptions)
		if !ok {
			return nil
		}
		return o.Embedding.needs(env)
	}
	return k
}()

// Embedding selects an embedding model.
type Embedding struct {
	// Embedding model, such as text-embedding-3-small.
	Model string `yaml:"model"`
	// API of the embedding model: openai, which many servers have, or ollama, by default at $OLLAMA_BASE_URL, else at port
	// 11434 of localhost.
	Provider string `yaml:"provider" jsonschema:"enum=openai,enum=ollama"`
	// Where the embedding model is served, instead of the endpoint in config.
	provider.Endpoint `yaml:",inline"`
}

// noEmbeddingModel is the reason why options select no embedding model.
const noEmbeddingModel = "model is missing, so that there is no embedding model: write model: text-embedding-3-small, or provider: ollama and model: nomic-embed-text"

// endpoint returns the API and the endpoint of the model.
func (o *Embedding) endpoint(env *grader.Env) (provider.API, provider.Endpoint) {
	api := provider.API(cmp.Or(o.Provider, string(provider.OpenAI)))
	return api, inherited(env, api, o.Endpoint)
}

// source identifies what serves the model.
func (o *Embedding) source(env *grader.Env) judgeSource {
	api, endpoint := o.endpoint(env)
	return judgeSource{API: string(api), BaseURL: endpoint.BaseURL, APIVersion: endpoint.APIVersion, Model: o.Model}
}

// open returns the model, or the reason why it cannot be asked.
func (o *Embedding) open(env *grader.Env) (provider.Embedder, error) {
	api, endpoint := o.endpoint(env)
	e, err := env.Clients().Embedder(context.Background(), api, endpoint, o.Model)
	if err != nil {
		return nil, noEmbedder(o.Model, err)
	}
	return e, nil
}

// unavailable returns an error if the model is known to be unavailable on this machine. It runs no program that prints
// a key.
func (o *Embedding) unavailable(ctx context.Context, env *grader.Env) error {
	api, endpoint := o.endpoint(env)
	if len(endpoint.APIKeyCommand) > 0 {
		return nil
	}
	if _, err := env.Clients().Embedder(ctx, api, endpoint, o.Model); provider.KindOf(err) == provider.Refused {
		return noEmbedder(o.Model, err)
	}
	return nil
}

func (o *Embedding) needs(env *grader.Env) []record.Need {
	api, endpoint := o.endpoint(env)
	return endpoint.Needs(api)
}

// unavailable returns the finding about a model that cannot be asked.
func unavailable(spec *eval.Grader, err error) grader.Finding {
	return grader.Finding{
		Grader: spec, Severity: decode.Warning, Code: decode.CodeUnavailable, Message: err.Error() + "; trials with this grader end in error",
	}
}

// The metrics of the similar grader.
const (
	metricCosine    = "cosine"
	metricDot       = "dot"
	metricEuclidean = "euclidean"
)

// SimilarOptions holds the options of the similar grader.
type SimilarOptions struct {
	// Reference texts. The first one that reaches the threshold counts, else the most similar one. Can use
	// template variables.
	References []string `yaml:"references" jsonschema:"required"`
	Embedding  `yaml:",inline"`
	// How vectors are compared: by the cosine of their angle, by their dot product, or by their euclidean distance. With a
	// distance, the score is 1/(1+distance).
	Metric string `yaml:"metric" jsonschema:"enum=cosine,enum=dot,enum=euclidean"`
	// Minimum similarity that passes; with euclidean the maximum distance. A negated grader passes at the threshold, too.
	Threshold float64 `yaml:"threshold"`
}

// maxReferences limits the reference texts, which are in one request.
const maxReferences = 200

func checkSimilar(c *eval.Check, o *SimilarOptions) {
	if len(o.References) == 0 {
		c.Errorf(decode.At(), decode.CodeChecksNothing, "nothing to compare with: give references")
	}
	if len(o.References) > maxReferences {
		c.Errorf(decode.At("references"), decode.CodeInvalidValue, "references must have at most %d texts, got %d", maxReferences, len(o.References))
	}
	for i, r := range o.References {
		if strings.TrimSpace(r) == "" {
			c.Errorf(decode.At("references", i), decode.CodeInvalidValue, "references[%d] is empty", i)
		}
	}
	if strings.TrimSpace(o.Model) == "" {
		c.Errorf(decode.At(), decode.CodeMissingField, "%s", noEmbeddingModel)
	}
	o.Endpoint.Check(c)
}

// preflightSimilar reports models that cannot be asked on this machine.
func preflightSimilar(ctx context.Context, specs []*eval.Grader, env *grader.Env) (findings []grader.Finding) {
	for _, spec := range specs {
		if o, ok := spec.Options.(*SimilarOptions); ok {
			if err := o.Embedding.unavailable(ctx, env); err != nil {
				findings = append(findings, unavailable(spec, err))
			}
		}
	}
	return findings
}

// noEmbedder converts the error of an embedding model that cannot be asked. Only the trials whose graders need it end
// in an error; grading them later can succeed.
func noEmbedder(model string, err error) error {
	if provider.KindOf(err) == provider.Refused {
		err = fmt.Errorf("%w; or name a model of this machine: provider: ollama, model: nomic-embed-text", err)
	}
	return executor.Permanent(fmt.Errorf("embedding model %s: %w", model, err))
}

func newSimilar(o *SimilarOptions, negated bool, env *grader.Env) (grader.Grader, error) {
	g := &similarGrader{SimilarOptions: o, negated: negated, source: o.Embedding.source(env)}
	if g.embedder, g.fault = o.Embedding.open(env); g.fault != nil && !env.Recorded { // recorded results may replace questions
		return nil, g.fault
	}
	return g, nil
}

// A similarGrader compares the vector of the output with those of the references. An output without words, and
// one that the model rejects, fail, also if the grader is negated. If the model cannot be asked, the trial is an error.
//
// It is safe for concurrent use.
type similarGrader struct {
	*SimilarOptions
	negated  bool
	embedder provider.Embedder
	source   judgeSource
	fault    error // why the model cannot be asked
}

// A similarity holds the details of the grader.
type similarity struct {
	Metric string `json:"metric"`
	// Values are the similarities, or the distances, to the references.
	Values []float64     `json:"values"`
	Usage  *record.Usage `json:"usage,omitempty"`
}

func (g *similarGrader) references(s *grader.Subject) []string {
	texts := make([]string, len(g.References))
	for i, r := range g.References {
		texts[i] = s.Expanded(r)
	}
	return texts
}

// Asks implements [grader.Asker].
func (g *similarGrader) Asks(s *grader.Subject) any {
	return []any{g.references(s), g.Metric, g.Threshold, g.source}
}

func (g *similarGrader) Grade(ctx context.Context, s *grader.Subject) (grader.Score, error) {
	switch {
	case s.OutputCut() != nil:
		return grader.Score{}, s.OutputCut()
	case strings.TrimSpace(s.Output) == "":
		return grader.Score{Undecided: true, Feedback: "the output is empty"}, nil
	case g.fault != nil:
		return grader.Score{}, g.fault
	}
	references := g.references(s)
	vectors, usage, err := g.embedder.Embed(ctx, append(references[:len(references):len(references)], s.Output))
	if err != nil {
		return g.rejected(ctx, s, references, usage, err)
	}
	score := g.compare(vectors[:len(references)], vectors[len(references)], used(usage))
	if !score.Passed {
		score.Feedback += "\noutput: " + grader.Excerpt(s.Output)
	}
	return score, nil
}

// rejected returns the result if the model did not answer. If it rejects the request, but not the references
// alone, the output is the reason, which can be too long.
func (g *similarGrader) rejected(
	ctx context.Context, s *grader.Subject, references []string, usage record.Usage, err error,
) (grader.Score, error) {
	if fault, ok := errors.AsType[*provider.Error](err); ok && (fault.Status == http.StatusBadRequest || fault.Status == http.StatusRequestEntityTooLarge) {
		_, more, alone := g.embedder.Embed(ctx, references)
		if usage = usage.Add(more); alone == nil {
			return grader.Score{
				Undecided: true, Usage: used(usage),
				Feedback: fmt.Sprintf("the embedding model rejects the output: %s\noutput: %s", fault.Message, grader.Excerpt(s.Output)),
			}, nil
		}
	}
	return grader.Score{Usage: used(usage)}, modelFault("embedding model "+g.Model, err)
}

func used(u record.Usage) *record.Usage { return usageOf([]opinion{{usage: u}}) }

// compare returns the score of an output.
func (g *similarGrader) compare(references [][]float64, output []float64, usage *record.Usage) grader.Score {
	d := similarity{Metric: g.Metric, Values: make([]float64, len(references)), Usage: usage}
	best := 0
	for i, r := range references {
		d.Values[i] = measure(g.Metric, r, output)
		if !g.reaches(d.Values[best]) && (g.reaches(d.Values[i]) || g.score(d.Values[i]) > g.score(d.Values[best])) {
			best = i
		}
	}
	value := d.Values[best]
	result := grader.Score{Score: math.Min(1, math.Max(0, g.score(value))), Passed: g.reaches(value), Details: d, Usage: usage}
	switch {
	case result.Passed:
	case g.Metric == metricEuclidean:
		result.Feedback = fmt.Sprintf("the distance to the reference is %s, more than %s", figure.Score(value, g.Threshold), figure.Threshold(g.Threshold))
	default:
		result.Feedback = fmt.Sprintf("the similarity to the reference is %s, less than %s", figure.Score(value, g.Threshold), figure.Threshold(g.Threshold))
	}
	return result
}

// reaches reports whether a similarity or distance reaches the threshold.
func (g *similarGrader) reaches(value float64) bool {
	margin := 1e-9 // because sums of floats are not exact
	if g.negated {
		margin = -margin
	}
	if g.Metric == metricEuclidean {
		return value <= g.Threshold+margin
	}
	return value >= g.Threshold-margin
}

// score returns the score of a similarity or distance, which can lie outside of 0 to 1.
func (g *similarGrader) score(value float64) float64 {
	if g.Metric == metricEuclidean {
		return 1 / (1 + value)
	}
	return value
}

// measure compares two vectors of the same length.
func measure(metric string, a, b []float64) float64 {
	dot, ofA, ofB, distance := 0.0, 0.0, 0.0, 0.0
	for i := range a {
		dot, ofA, ofB = dot+a[i]*b[i], ofA+a[i]*a[i], ofB+b[i]*b[i]
		distance += (a[i] - b[i]) * (a[i] - b[i])
	}
	switch {
	case metric == metricEuclidean:
		return math.Sqrt(distance)
	case metric == metricDot:
		return dot
	case ofA == 0 || ofB == 0:
		return 0
	}
	return dot / (math.Sqrt(ofA) * math.Sqrt(ofB))
}

var _ grader.Asker = (*similarGrader)(nil)
