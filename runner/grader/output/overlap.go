package output

import (
	"context"
	"fmt"
	"math"
	"strings"

	"waza/eval"
	"waza/eval/decode"
	"waza/eval/text"
	"waza/runner/figure"
	"waza/runner/grader"
)

// Overlap measures how many sequences of words the output shares with reference texts.
var Overlap = grader.KindOf(eval.Kind{
	Name:    "overlap",
	Summary: "Measures how many sequences of words the output shares with reference texts. The score is the value of the metric.",
	Options: func() any { return &OverlapOptions{Threshold: 0.5} },
}, checkOverlap, newOverlap)

// The metrics of the overlap grader.
const (
	metricBLEU  = "bleu"
	metricGLEU  = "gleu"
	metricRouge = "rouge-n"
)

// OverlapOptions holds the options of the overlap grader.
type OverlapOptions struct {
	// Metric: bleu (precision of sequences of 1 to 4 words, with a penalty for short outputs), gleu (the lower of
	// precision and recall of such sequences) or rouge-n (recall of sequences of n words and punctuation
	// marks, in the same letter case). bleu and gleu ignore letter case.
	Metric string `yaml:"metric" jsonschema:"required,enum=bleu,enum=gleu,enum=rouge-n"`
	// Reference texts. With bleu, a sequence counts as often as in the reference that has it most often; with gleu and
	// rouge-n, the best reference counts. Can use template variables.
	References []string `yaml:"references" jsonschema:"required"`
	// Number of words in the sequences of rouge-n; 1 when absent.
	N int `yaml:"n" json:",omitempty" jsonschema:"minimum=1,maximum=9"`
	// Minimum score, 0 to 1, that passes.
	Threshold float64 `yaml:"threshold" jsonschema:"minimum=0,maximum=1"`
}

func checkOverlap(c *eval.Check, o *OverlapOptions) {
	if len(o.References) == 0 {
		c.Errorf(decode.At(), decode.CodeChecksNothing, "nothing to compare with: give references")
	}
	for i, r := range o.References {
		if strings.TrimSpace(r) == "" {
			c.Errorf(decode.At("references", i), decode.CodeInvalidValue, "references[%d] is empty", i)
		}
	}
	if o.N != 0 && o.Metric != metricRouge {
		c.Warnf(decode.At("n"), decode.CodeNoEffect, "n has no effect: it is an option of rouge-n")
	}
}

func newOverlap(o *OverlapOptions, _ *grader.Env) (grader.Grader, error) {
	switch o.Metric {
	case metricBLEU, metricGLEU, metricRouge:
		return overlapGrader{o}, nil
	}
	return nil, fmt.Errorf("unknown metric %q", text.Clip(o.Metric, 40))
}

type overlapGrader struct{ *OverlapOptions }

func (g overlapGrader) Grade(_ context.Context, s *grader.Subject) (grader.Score, error) {
	if err := s.OutputCut(); err != nil {
		return grader.Score{}, err
	}
	references := make([]string, len(g.References))
	for i, r := range g.References {
		references[i] = s.Expanded(r)
	}
	score := g.measure(s.Output, references)
	result := grader.Score{Score: score, Passed: score >= g.Threshold-1e-9}
	if !result.Passed {
		result.Feedback = fmt.Sprintf("%s is %s, less than %s\noutput: %s", g.Metric, figure.Score(score), figure.Score(g.Threshold), grader.Excerpt(s.Output))
	}
	return result, nil
}

func (g overlapGrader) measure(output string, references []string) float64 {
	switch g.Metric {
	case metricBLEU:
		return bleu(output, references)
	case metricGLEU:
		return best(output, references, gleu)
	}
	return best(output, references, func(output, reference string) float64 { return rougeN(output, reference, max(1, g.N)) })
}

// best returns the highest value of a metric among the references.
func best(output string, references []string, metric func(output, reference string) float64) float64 {
	highest := 0.0
	for _, r := range references {
		highest = max(highest, metric(output, r))
	}
	return highest
}

// maxOrder is the number of words in the longest sequences of BLEU and GLEU.
const maxOrder = 4

// grams counts the sequences of n tokens, and returns how many there are.
func grams(tokens []string, n int) (counts map[string]int, total int) {
	counts = map[string]int{}
	for i := 0; i+n <= len(tokens); i++ {
		counts[strings.Join(tokens[i:i+n], "\x00")]++
		total++
	}
	return counts, total
}

// shared returns how many sequences two texts have in common, each as often as in the text that has it less.
func shared(one, other map[string]int) (n int) {
	for gram, count := range one {
		n += min(count, other[gram])
	}
	return n
}

// leastPrecision takes the place of a precision of 0, whose logarithm is infinite.
const leastPrecision = 1e-7

// bleu returns the BLEU of one sentence: K. Papineni et al., BLEU: a method for automatic evaluation of
// machine translation, ACL 2002.
func bleu(output string, references []string) float64 {
	tokens := strings.Fields(strings.ToLower(output))
	if len(tokens) == 0 {
		return 0
	}
	var others [][]string
	nearest := -1
	for _, r := range references {
		other := strings.Fields(strings.ToLower(r))
		others = append(others, other)
		by, least := distance(len(other), len(tokens)), distance(nearest, len(tokens))
		if nearest < 0 || by < least || by == least && len(other) < nearest {
			nearest = len(other)
		}
	}
	logs := 0.0
	for n := 1; n <= maxOrder; n++ {
		counts, total := grams(tokens, n)
		most := map[string]int{}
		for _, other := range others {
			found, _ := grams(other, n)
			for gram, count := range found {
				most[gram] = max(most[gram], count)
			}
		}
		precision := float64(shared(counts, most)) / float64(max(1, total))
		logs += math.Log(max(precision, leastPrecision)) / maxOrder
	}
	penalty := math.Min(0, 1-float64(nearest)/float64(len(tokens)))
	return math.Exp(penalty + logs)
}

func distance(a, b int) int { return max(a-b, b-a) }

// gleu returns the GLEU of one sentence: Y. Wu et al., Google's neural machine translation system, 2016,
// section 5.2. Full stops at the ends of words do not count.
func gleu(output, reference string) float64 {
	words := func(s string) []string {
		list := strings.Fields(strings.ToLower(s))
		for i, w := range list {
			list[i] = strings.TrimRight(w, ".")
		}
		return list
	}
	one, other := words(output), words(reference)
	matches, ofOne, ofOther := 0, 0, 0
	for n := 1; n <= maxOrder; n++ {
		a, inOne := grams(one, n)
		b, inOther := grams(other, n)
		matches, ofOne, ofOther = matches+shared(a, b), ofOne+inOne, ofOther+inOther
	}
	return float64(matches) / float64(max(1, ofOne, ofOther)) // the lower of precision and recall
}

// rougeN returns the ROUGE-N of a text: C.-Y. Lin, ROUGE: a package for automatic evaluation of summaries, 2004.
func rougeN(output, reference string, n int) float64 {
	a, _ := grams(wordOrMark().FindAllString(output, -1), n)
	b, total := grams(wordOrMark().FindAllString(reference, -1), n)
	return float64(shared(a, b)) / float64(max(1, total))
}

// wordOrMark matches a word, with marks inside of it such as in don't and 3.14, or a mark beside one.
var wordOrMark = text.Pattern(`[\pL\pN\pM]+(?:[.,'’-][\pL\pN\pM]+)*|\S`)
