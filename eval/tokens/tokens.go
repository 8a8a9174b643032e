// Package tokens counts the tokens of texts for current language models. Call [Count]. [Load]
// loads the vocabulary before the first text; [Estimate] does not need it.
package tokens

import (
	"fmt"
	"iter"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/tiktoken-go/tokenizer/codec"
)

// Name is the encoding that [Count] uses.
const Name = "o200k_base"

// load builds the table of 200,000 tokens, which takes about 20 ms and 20 MB. Only commands that
// count tokens load it.
var load = sync.OnceValue(codec.NewO200kBase)

// Load loads the vocabulary, unless it is already loaded.
func Load() { load() }

// Count returns the number of tokens of a text in [Name]. Markers such as <|endoftext|> count as
// plain text, and invalid UTF-8 bytes as U+FFFD. It is safe for concurrent use. An error means
// that the text could not be split; no such text is known.
func Count(text string) (int, error) {
	n := 0
	for part := range parts(text) {
		tokens, err := load().Count(part)
		if err != nil {
			return 0, fmt.Errorf("count tokens: %w", err)
		}
		n += tokens
	}
	return n, nil
}

// The splitter of the encoding backtracks, and needs quadratic time for some texts. So it gets
// pieces of at least smallPart bytes. A piece is cut before a line that is not blank and does
// not start with a slash, because no token spans such a cut. After largePart bytes, a piece is
// cut anywhere.
const (
	smallPart = 1 << 10
	largePart = 4 << 10
)

// parts yields the pieces of a text to count one by one.
func parts(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for text != "" {
			n := cut(text)
			if !yield(text[:n]) {
				return
			}
			text = text[n:]
		}
	}
}

// cut returns the length of the first piece of a text.
func cut(text string) int {
	for i := smallPart; i < len(text) && i < largePart; i++ {
		if text[i-1] != '\n' {
			continue
		}
		line, _, _ := strings.Cut(text[i:min(i+largePart, len(text))], "\n")
		if text[i] != '/' && strings.TrimSpace(line) != "" {
			return i
		}
	}
	if len(text) <= largePart {
		return len(text)
	}
	n := largePart
	for n > largePart-utf8.UTFMax && !utf8.RuneStart(text[n]) {
		n--
	}
	return n
}

// Estimate returns the number of tokens of a text at four bytes each, rounded up.
func Estimate(text string) int { return (len(text) + 3) / 4 }
