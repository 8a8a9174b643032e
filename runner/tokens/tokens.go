// Package tokens counts the tokens of texts for current language models. Call [Count]. [Load]
// loads the vocabulary before the first text; [Estimate] does not need it.
package tokens

import (
	"bytes"
	"compress/gzip"
	"container/heap"
	_ "embed" // the vocabulary
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"
)

// Name is the encoding that [Count] uses.
const Name = "o200k_base"

// tokens is the number of tokens in the encoding, without special ones.
const tokens = 199_998

// vocabulary maps texts to the ranks of their tokens.
type vocabulary map[string]uint

// packed is the vocabulary as a gzip file. It contains the texts of all tokens by rank, each after
// a byte with its length. A test compares it with github.com/tiktoken-go/tokenizer and can write it
// again. waza does not link that library. The vocabularies in its code take 6 MB of the program and
// seconds to compile, and its counts are wrong for lines of white space and for U+007F.
//
//go:embed o200k_base.gz
var packed []byte

// load unpacks the vocabulary. Only commands that count tokens load it.
var load = sync.OnceValues(func() (vocabulary, error) {
	unzip, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("load the vocabulary of %s: %w", Name, err)
	}
	var texts strings.Builder
	if _, err := io.Copy(&texts, unzip); err != nil {
		return nil, fmt.Errorf("load the vocabulary of %s: %w", Name, err)
	}
	v := make(vocabulary, tokens)
	for rest := texts.String(); rest != ""; {
		end := 1 + int(rest[0])
		v[rest[1:end]], rest = uint(len(v)), rest[end:]
	}
	return v, nil
})

// Count returns the number of tokens of a text in [Name]. Markers such as <|endoftext|> count as
// plain text, and invalid UTF-8 bytes as U+FFFD. It is safe for concurrent use. An error means
// that the vocabulary could not be loaded.
func Count(text string) (int, error) {
	v, err := load()
	if err != nil {
		return 0, err
	}
	if !utf8.ValidString(text) {
		text = string([]rune(text))
	}
	n := 0
	for text != "" {
		p := piece(text)
		n += v.count(p)
		text = text[len(p):]
	}
	return n, nil
}

// white is the content of a class with the characters that are white space in the encoding.
const white = `\t-\r \x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000}`

// pieces is the pattern by which the encoding splits texts, without its lookahead \s+(?!\S),
// which [piece] adds. It matches at the start of any text, in linear time.
var pieces = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:` + strings.Join([]string{
		`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?`,
		`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?`,
		`\p{N}{1,3}`,
		` ?[^` + white + `\p{L}\p{N}]+[\r\n/]*`,
		`[` + white + `]*[\r\n]+`,
		`([` + white + `]+)`,
	}, "|") + `)`)
})

// piece returns the first piece of a text that is not empty. No token spans two pieces. White
// space before other text leaves its last character to the next piece.
func piece(text string) string {
	at := pieces().FindStringSubmatchIndex(text)
	if at == nil { // cannot happen: each character is in one of the classes
		return text
	}
	end := at[1]
	if blank := at[2] >= 0; blank && end < len(text) {
		if _, last := utf8.DecodeLastRuneInString(text[:end]); last < end {
			end -= last
		}
	}
	return text[:end]
}

// count returns the number of tokens of a piece. Byte pair encoding joins the two neighbors
// whose token has the lowest rank, the first ones of several, until no two neighbors have one.
func (v vocabulary) count(piece string) int {
	if _, ok := v[piece]; ok {
		return 1
	}
	// A part starts at a byte and ends at the start of the next one.
	next, before := make([]int, len(piece)+1), make([]int, len(piece)+1)
	alive := make([]bool, len(piece)+1)
	for i := range next {
		next[i], before[i], alive[i] = i+1, i-1, true
	}
	var open pairs
	add := func(left int) {
		if left < 0 || next[left] >= len(piece) {
			return
		}
		end := next[next[left]]
		if rank, ok := v[piece[left:end]]; ok {
			heap.Push(&open, pair{rank, left, end})
		}
	}
	for i := range len(piece) - 1 {
		add(i)
	}
	n := len(piece)
	for len(open) > 0 {
		p := heap.Pop(&open).(pair)
		middle := next[p.left]
		if !alive[p.left] || middle >= len(piece) || next[middle] != p.end {
			continue // one of both was joined with another part
		}
		alive[middle], next[p.left], before[p.end] = false, p.end, p.left
		n--
		add(before[p.left])
		add(p.left)
	}
	return n
}

// pair is a pair of neighbors that have a token together.
type pair struct {
	rank      uint
	left, end int
}

// pairs is a heap of pairs.
type pairs []pair

func (p pairs) Len() int      { return len(p) }
func (p pairs) Swap(i, j int) { p[i], p[j] = p[j], p[i] }
func (p pairs) Less(i, j int) bool {
	return p[i].rank < p[j].rank || p[i].rank == p[j].rank && p[i].left < p[j].left
}

// Push implements [heap.Interface].
func (p *pairs) Push(x any) { *p = append(*p, x.(pair)) }

// Pop implements [heap.Interface].
func (p *pairs) Pop() any {
	last := (*p)[len(*p)-1]
	*p = (*p)[:len(*p)-1]
	return last
}

// Estimate returns the number of tokens of a text at four bytes each, rounded up.
func Estimate(text string) int { return (len(text) + 3) / 4 }
