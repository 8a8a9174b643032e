package model

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"

	"waza/runner/executor"
)

// Words of filler texts. All are common words, and one token each for the tokenizers of most
// models.
var (
	fillerAdjectives = strings.Fields("old small quiet early bright heavy careful open simple narrow warm distant green common recent strong")
	fillerNouns      = strings.Fields("river garden market teacher bridge letter window station farmer doctor " +
		"village harbor engine kitchen forest road book valley")
	fillerVerbs = strings.Fields("found moved watched followed carried changed crossed reached left passed " +
		"remembered opened built saved joined kept")
	fillerPlaces = strings.Fields("near behind before after above below beside beyond inside without across past")
	fillerTimes  = strings.Fields("today again later often soon always once early twice slowly")
)

// fillerSentences are sentence templates. Letters are replaced by a word from their list; other
// words are kept.
var fillerSentences = [][]string{
	strings.Fields("The A N V the A N P the N ."),
	strings.Fields("One A N V the N T ."),
	strings.Fields("Every N P the N V the A N and the N ."),
	strings.Fields("When the N V the A N the N V it T ."),
	strings.Fields("They V the N P the A N ."),
}

// fillerParagraph is the number of sentences in a paragraph.
const fillerParagraph = 10

// filler returns plausible prose of n tokens. It counts each word, full stop and paragraph break
// as one token. The tokenizers cl100k_base and o200k_base count 99 % of that; the usage of a
// trial contains the real number. Equal seeds give equal texts.
func filler(n int, seed uint64) string {
	rng := rand.New(rand.NewPCG(seed, 0))
	lists := map[string][]string{"N": fillerNouns, "V": fillerVerbs, "P": fillerPlaces, "T": fillerTimes, "A": fillerAdjectives}
	var b strings.Builder
	b.Grow(6 * n)
	for sentence := 0; n > 0; sentence++ {
		switch {
		case sentence == 0:
		case sentence%fillerParagraph == 0 && n > 1:
			b.WriteString("\n\n")
			n--
		default:
			b.WriteByte(' ')
		}
		words := fillerSentences[rng.IntN(len(fillerSentences))]
		for i, word := range words {
			if n == 0 {
				return b.String()
			}
			switch {
			case n == 1 && i > 0:
				word = "."
			case n == 2 && word == ".": // otherwise the last word would be alone
				b.WriteString(" now")
				n--
			}
			if list := lists[word]; list != nil && i > 0 {
				word = list[rng.IntN(len(list))]
			}
			if i > 0 && word != "." {
				b.WriteByte(' ')
			}
			b.WriteString(word)
			n--
		}
	}
	return b.String()
}

// seed returns the seed of a trial's filler text. Attempts have different seeds, because a
// provider could have cached the text of an earlier attempt.
func (m *model) seed(t *executor.Trial) uint64 {
	h := fnv.New64a()
	if !m.options.ContextShared {
		fmt.Fprintf(h, "%s/%s/%d/%d", t.RunID, t.TaskID, t.Num, t.Attempt)
	}
	return h.Sum64()
}
