package output

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/grader/internal/gradertest"
)

// The sentences of Papineni et al. (2002), whose precisions for one to four words are 17/18, 10/17, 7/16
// and 4/15. NLTK documents the BLEU 0.5046. The unigram precision of the repeated word is 2/7.
func TestBLEU(t *testing.T) {
	t.Parallel()
	references := []string{
		"It is a guide to action that ensures that the military will forever heed Party commands",
		"It is the guiding principle which guarantees the military forces always being under the command of the Party",
		"It is the practical guide for the army always to heed the directions of the party",
	}
	for _, c := range []struct {
		output     string
		references []string
		want       float64
	}{
		{"It is a guide to action which ensures that the military always obeys the commands of the party", references, 0.5046},
		{"It is to insure the troops forever hearing the activity guidebook that party direct", references, 0.0},
		{"the the the the the the the", []string{"the cat is on the mat", "there is a cat on the mat"}, 0.0},
		{"The cat sat on the mat.", []string{"the cat sat on the mat."}, 1},
		{"a b c d", []string{"a b c d e f g h"}, 0.3679}, // e⁻¹: all precisions are 1, and half of the words are missing
		{"a b c d", []string{"a b c d e", "a b c"}, 1},   // both differ by one word, and the shorter counts
		{"", []string{"a"}, 0},
	} {
		require.InDelta(t, c.want, bleu(c.output, c.references), 0.01, c.output)
	}
}

func TestGLEU(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		output, reference string
		want              float64
	}{
		{"a b c", "a b d", 3.0 / 6}, // 2 of 3 words, 1 of 2 pairs, 0 of 1 triple
		{"a b", "a b c", 3.0 / 6},
		{"a a a", "a", 1.0 / 6},
		{"The Mat.", "the mat", 1},
		{"a", "b", 0},
		{"", "", 0},
	} {
		require.InDelta(t, c.want, gleu(c.output, c.reference), 1e-9, c.output)
	}
}

// The first two lines are sentences of Lin (2004).
func TestRougeN(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		output, reference string
		n                 int
		want              float64
	}{
		{"police kill the gunman", "police killed the gunman", 1, 3.0 / 4},
		{"police kill the gunman", "police killed the gunman", 2, 1.0 / 3},
		{"the the the", "the cat on the mat", 1, 2.0 / 5},
		{"I don't know, 3.14", "I don't know , 3.14", 1, 1},
		{"A", "a", 1, 0},
		{"a", "a", 2, 0},
	} {
		require.InDelta(t, c.want, rougeN(c.output, c.reference, c.n), 1e-9, c.output)
	}
}

func TestOverlap(t *testing.T) {
	t.Parallel()
	gradertest.RunCases(t, "overlap", []gradertest.Case{
		{"bleu", "metric: bleu\nreferences: [the cat sat on the mat]", nil, gradertest.Subject("The cat sat on the mat"), gradertest.Passes()},
		{"gleu of the best", "metric: gleu\nreferences: [x, a b]", nil, gradertest.Subject("a b"), gradertest.Passes()},
		{
			"gleu too low", "metric: gleu\nreferences: [a b d]\nthreshold: 0.6", nil, gradertest.Subject("a b c"),
			gradertest.Scores(0.5, "gleu is 0.50, less than 0.60", `output: "a b c"`),
		},
		{
			"rouge-n", "metric: rouge-n\nreferences: [police killed the gunman]", nil, gradertest.Subject("police kill the gunman"),
			gradertest.Verdict{Score: 0.75, Passed: true},
		},
		{
			"rouge-2", "metric: rouge-n\nn: 2\nreferences: [police killed the gun man]", nil, gradertest.Subject("kill the gun"),
			gradertest.Scores(0.25, "rouge-n is 0.25"),
		},
	})
	gradertest.RunOptions(t, "overlap", []gradertest.OptionCase{
		{"well", "metric: gleu\nreferences: [a]", "", nil},
		{"nothing", "metric: gleu", "missing-field: references is missing", nil},
		{"empty", "metric: gleu\nreferences: [a, '']", "invalid-value: references[1] is empty", nil},
		{"unknown", "metric: meteor\nreferences: [a]", "invalid-value: metric must be one of", nil},
		{"idle", "metric: gleu\nn: 2\nreferences: [a]", "no-effect: n has no effect", nil},
	})
}
