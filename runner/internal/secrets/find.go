package secrets

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// minPart is the minimum length of a part of a secret that is recognized where a text was
// truncated. Shorter parts reveal little.
const minPart = 6

// span is a range of a text, in bytes.
type span struct{ start, end int }

// secretIndex finds any number of secrets in a text in one pass. It is immutable.
type secretIndex struct {
	// grams contains a bit for the hash of four bytes: whether a spelling starts or ends with
	// them. heads and tails contain these spellings.
	grams        [1 << 16 / 64]uint64
	heads, tails map[uint32][]spelling
	shortest     int
}

// spelling is a form of a secret in a text, without characters that also depend on the text
// around it.
type spelling struct {
	text          string
	before, after int // number of characters that depend partly on the secret
}

func newSecretIndex(secrets []string) *secretIndex {
	x := &secretIndex{heads: map[uint32][]spelling{}, tails: map[uint32][]spelling{}, shortest: len(secrets[0])}
	for _, s := range secrets {
		x.shortest = min(x.shortest, len(s))
		for _, sp := range spellings(s) {
			head, tail := gramAt(sp.text, 0), gramAt(sp.text, len(sp.text)-4)
			for _, gram := range []uint32{head, tail} {
				h := gramHash(gram)
				x.grams[h/64] |= 1 << (h % 64)
			}
			x.heads[head] = append(x.heads[head], sp)
			x.tails[tail] = append(x.tails[tail], sp)
		}
	}
	return x
}

// spellings returns the spellings that are found without decoding: plain, in hexadecimal digits,
// and in base64 for each offset of the secret in the encoded text.
func spellings(secret string) []spelling {
	digits := hex.EncodeToString([]byte(secret))
	list := []spelling{{text: secret}, {text: digits}, {text: strings.ToUpper(digits)}}
	for shift := range 3 {
		padded := append(make([]byte, shift), secret...)
		first, last := (8*shift+5)/6, 8*len(padded)/6
		for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			sp := spelling{text: encoding.EncodeToString(padded)[first:last], before: min(shift, 1), after: min(8*len(padded)%6, 1)}
			if !slices.Contains(list, sp) {
				list = append(list, sp)
			}
		}
	}
	return list
}

func gramAt(s string, i int) uint32 {
	return uint32(s[i]) | uint32(s[i+1])<<8 | uint32(s[i+2])<<16 | uint32(s[i+3])<<24
}

func gramHash(g uint32) uint16 { return uint16(g * 0x9E3779B1 >> 16) }

// find returns the spans of the secrets in a text with at most the given depth of encodings. The
// spans are in order and do not overlap.
func (x *secretIndex) find(text string, decodings int) []span {
	return merge(x.findIn(view{text: text}, decodings))
}

func (x *secretIndex) findIn(v view, decodings int) []span {
	spans := x.plain(v.text)
	if decodings == 0 {
		return spans
	}
	d := decoders.Get().(*decoder)
	defer d.release()
	if decoded := x.decode(d, v); len(decoded.text) > 0 {
		for _, p := range x.findIn(decoded, decodings-1) {
			spans = append(spans, decoded.source(p, v.text))
		}
	}
	return spans
}

// merge sorts spans and joins overlapping ones.
func merge(spans []span) []span {
	slices.SortFunc(spans, func(a, b span) int { return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.end, b.end)) })
	out := spans[:0]
	for _, p := range spans {
		if n := len(out); n > 0 && p.start < out[n-1].end {
			out[n-1].end = max(out[n-1].end, p.end)
		} else {
			out = append(out, p)
		}
	}
	return out
}

// plain finds the secrets that are not encoded, and parts of them where the text was truncated.
func (x *secretIndex) plain(text string) (spans []span) {
	if len(text) < minPart {
		return nil
	}
	gram := gramAt(text, 0) << 8
	for i := 3; i < len(text); i++ {
		gram = gram>>8 | uint32(text[i])<<24
		if h := gramHash(gram); x.grams[h/64]&(1<<(h%64)) != 0 {
			spans = x.plainAt(spans, text, i-3, gram)
		}
	}
	return spans
}

// plainAt appends the spans that start or end with these four bytes at i.
func (x *secretIndex) plainAt(spans []span, text string, i int, gram uint32) []span {
	for _, sp := range x.heads[gram] {
		n := commonPrefix(text[i:], sp.text)
		if n == len(sp.text) || n >= minPart && cutAfter(text[i+n:]) && isPart(sp.text[:n]) {
			spans = append(spans, sp.widened(text, span{i, i + n}))
		}
	}
	for _, sp := range x.tails[gram] {
		end := i + 4
		n := commonSuffix(text[:end], sp.text)
		if n >= minPart && n < len(sp.text) && cutBefore(text[:end-n]) && isPart(sp.text[len(sp.text)-n:]) {
			spans = append(spans, sp.widened(text, span{end - n, end}))
		}
	}
	return spans
}

// widened extends a span by the characters that depend partly on the secret, and by the padding.
func (sp *spelling) widened(text string, p span) span {
	if sp.before > 0 && p.start > 0 && classes[text[p.start-1]]&isBase64 != 0 {
		p.start--
	}
	if sp.after > 0 && p.end < len(text) && classes[text[p.end]]&isBase64 != 0 {
		p.end++
	}
	for sp.before+sp.after > 0 && p.end < len(text) && text[p.end] == '=' {
		p.end++
	}
	return p
}

func commonPrefix(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

func commonSuffix(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[len(a)-1-i] != b[len(b)-1-i] {
			return i
		}
	}
	return n
}

// cutAfter reports whether a text can have been truncated just before rest.
func cutAfter(rest string) bool {
	if rest == "" || rest[0] == 0 || rest[0] == '"' {
		return true
	}
	rest = strings.TrimPrefix(rest, " ")
	if strings.HasPrefix(rest, string(utf8.RuneError)) { // half of a character
		return true
	}
	return strings.HasPrefix(rest, "…") || strings.HasPrefix(rest, "...") || strings.HasPrefix(rest, "\n[")
}

// cutBefore reports whether a text can have been truncated just after this start.
func cutBefore(text string) bool {
	if text == "" || text[len(text)-1] == 0 || text[len(text)-1] == '"' {
		return true
	}
	text = strings.TrimSuffix(text, " ")
	return strings.HasSuffix(text, "…") || strings.HasSuffix(text, "...")
}

// isPart reports whether a string is distinctive enough to be part of a secret. Words that are
// common in texts are not.
func isPart(part string) bool {
	if strings.Contains(Redacted, part) {
		return false
	}
	return len(part) >= 2*minPart || strings.ContainsFunc(part, func(r rune) bool { return !unicode.IsLetter(r) })
}
