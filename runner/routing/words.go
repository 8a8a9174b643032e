package routing

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/kljensen/snowball/english"
)

// Words chooses the client whose name, description and capabilities share the most distinctive
// words with the message. Words with the same stem are the same, and words without meaning do
// not count. A word counts more if fewer clients have it: with n clients, d of which have the
// word, it counts ln(1 + n/d). The client with the highest sum gets the message; of several, the
// first by name. No client gets it if no word is shared.
type Words struct{}

// maxShown is the most words that a reason lists.
const maxShown = 5

// Choose implements [Chooser]. It never returns an error.
func (Words) Choose(_ context.Context, q *Question) (*Choice, error) {
	said := wordsOf(q.Text)
	type match struct {
		client string
		score  float64
		shared []string
	}
	has := make([]map[string]string, len(q.Clients))
	count := map[string]int{}
	for i, c := range q.Clients {
		has[i] = wordsOf(c.Name + " " + c.Description + " " + strings.Join(c.Capabilities, " "))
		for stem := range has[i] {
			count[stem]++
		}
	}
	var matches []match
	for i, c := range q.Clients {
		m := match{client: c.Name}
		for stem, word := range said {
			if _, ok := has[i][stem]; ok {
				m.score += weight(len(q.Clients), count[stem])
				m.shared = append(m.shared, word)
			}
		}
		if len(m.shared) > 0 {
			slices.SortFunc(m.shared, func(a, b string) int {
				return cmp.Or(cmp.Compare(count[stem(a)], count[stem(b)]), cmp.Compare(a, b))
			})
			matches = append(matches, m)
		}
	}
	if len(matches) == 0 {
		return &Choice{By: ByWords, Reason: "no word of the message is in the description of a client"}, nil
	}
	best := slices.MinFunc(matches, func(a, b match) int {
		// Sums of the same weights may differ by their order.
		if d := b.score - a.score; math.Abs(d) > 1e-9 {
			return cmp.Compare(d, 0)
		}
		return cmp.Compare(strings.ToLower(a.client), strings.ToLower(b.client))
	})
	shown := best.shared[:min(maxShown, len(best.shared))]
	return &Choice{
		By: ByWords, Clients: []string{best.client},
		Reason: fmt.Sprintf("Its description shares words with the message: %s", strings.Join(shown, ", ")),
	}, nil
}

// weight returns the weight of a word that with of all clients have.
func weight(clients, with int) float64 { return math.Log(1 + float64(clients)/float64(with)) }

// maxWords is the most words of a text that are used.
const maxWords = 2000

// wordsOf returns the meaningful words of a text, in lower case, by their stems.
func wordsOf(text string) map[string]string {
	words := map[string]string{}
	n := 0
	for word := range strings.FieldsFuncSeq(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if n++; n > maxWords {
			break
		}
		if !english.IsStopWord(word) && !empty[word] {
			words[stem(word)] = word
		}
	}
	return words
}

func stem(word string) string { return english.Stem(word, false) }

// empty holds words of requests and descriptions without meaning for their subject, in addition
// to the stop words of the stemmer.
var empty = func() map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq("please want need like would could should get make let handle handles " +
		"client user users message messages something thing things also use using i'm im hey hi hello ok okay") {
		set[word] = true
	}
	return set
}()
