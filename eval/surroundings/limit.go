package surroundings

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/files"
	"waza/eval/text"
)

// Bytes is a limit in bytes; 0 means none. Suites write it as a number with a unit, such as 2GiB,
// or none. JSON has the number of bytes.
type Bytes int64

// minBytes is the least limit that [ParseBytes] accepts. Smaller ones are numbers without their unit.
const minBytes = 1 << 20

// units are the units of limits, the larger ones first.
var units = []struct {
	name  string
	bytes int64
}{
	{"TiB", 1 << 40}, {"TB", 1e12}, {"GiB", 1 << 30}, {"GB", 1e9}, {"MiB", 1 << 20}, {"MB", 1e6},
	{"KiB", 1 << 10}, {"kB", 1e3}, {"B", 1},
}

// ParseBytes reads a limit: none, or a positive number, which can have a fraction, with one of the
// units TiB, GiB, MiB, KiB (powers of 1024), TB, GB, MB, kB (powers of 1000) and B. The letter case
// does not matter. A number without a unit is in bytes. A limit is at least 1 MiB.
func ParseBytes(s string) (Bytes, error) {
	given := strings.TrimSpace(s)
	if given == noLimit {
		return 0, nil
	}
	number, factor := given, int64(1)
	for _, u := range units {
		if rest, ok := cutSuffixFold(given, u.name); ok {
			number, factor = strings.TrimSpace(rest), u.bytes
			break
		}
	}
	form := "must be a size such as 2GiB or 512MB, or none"
	if number == "" || strings.Trim(number, "0123456789.") != "" {
		return 0, fmt.Errorf("%s, got %q", form, text.Clip(s, 40))
	}
	if whole, err := strconv.ParseInt(number, 10, 64); err == nil && whole <= math.MaxInt64/factor {
		return atLeast(Bytes(whole*factor), s)
	}
	f, err := strconv.ParseFloat(number, 64)
	switch f *= float64(factor); {
	case err != nil && !math.IsInf(f, 0):
		return 0, fmt.Errorf("%s, got %q", form, text.Clip(s, 40))
	case f >= math.MaxInt64:
		return 0, fmt.Errorf("%s, got %q, which is too large", form, text.Clip(s, 40))
	}
	return atLeast(Bytes(f), s)
}

func atLeast(b Bytes, given string) (Bytes, error) {
	if b < minBytes {
		return 0, fmt.Errorf("must be at least 1MiB, got %q; write a unit, such as 2GiB", text.Clip(given, 40))
	}
	return b, nil
}

func cutSuffixFold(s, suffix string) (before string, ok bool) {
	if len(s) < len(suffix) || !strings.EqualFold(s[len(s)-len(suffix):], suffix) {
		return s, false
	}
	return s[:len(s)-len(suffix)], true
}

// String returns the limit for people: 2 GiB, 512 MB, or none.
func (b Bytes) String() string {
	if b <= 0 {
		return noLimit
	}
	for _, u := range units {
		if n := int64(b); n >= u.bytes && n%u.bytes == 0 && u.bytes > 1 {
			return fmt.Sprintf("%d %s", n/u.bytes, u.name)
		}
	}
	return files.Size(int64(b))
}

// noLimit is the word for the absence of a limit.
const noLimit = "none"

// DecodeShape decodes a limit in the form of [ParseBytes].
func (b *Bytes) DecodeShape(d *decode.Decoder, n *yaml.Node) {
	if n.Kind != yaml.ScalarNode {
		d.WrongType(n, "a size such as 2GiB, or none")
		return
	}
	parsed, err := ParseBytes(n.Value)
	if err != nil {
		d.Report(n, decode.Error, decode.CodeInvalidValue, "", "%s %s", d.Here(), err)
		return
	}
	*b = parsed
}

// Count is a limit on a number of things; 0 means none. Suites write a positive number, or none.
type Count int64

// maxCount limits counts: the kernel has no more processes or open files.
const maxCount = 4 << 20

// DecodeShape decodes a number, or none.
func (c *Count) DecodeShape(d *decode.Decoder, n *yaml.Node) {
	if n.Kind == yaml.ScalarNode && n.Value == noLimit {
		*c = 0
		return
	}
	f, ok := decode.FloatOf(n)
	switch {
	case n.Kind != yaml.ScalarNode || !ok || f != math.Trunc(f):
		d.WrongType(n, "a whole number, or none")
	case f < 1 || f > maxCount:
		d.Report(n, decode.Error, decode.CodeInvalidValue, "", "%s must be between 1 and %d, or none, got %s", d.Here(), maxCount, decode.Describe(n))
	default:
		*c = Count(f)
	}
}

// String returns the limit for people: the number, or none.
func (c Count) String() string {
	if c <= 0 {
		return noLimit
	}
	return strconv.FormatInt(int64(c), 10)
}
