package secrets

import (
	"slices"
	"sync"
	"unsafe"
)

// maxDecodings is the maximum depth of nested encodings in which a secret is found.
const maxDecodings = 3

// view is a text together with the origin of its bytes. Its pieces are separated by NULs, which
// no secret contains.
type view struct {
	text   string
	pieces []piece // in order; none if the text was not decoded
	places []place // origins of the pieces
}

// piece is a part of a text that was decoded from a part of the source.
type piece struct {
	start, end int
	// bits is the number of bits of a character: 4 for hexadecimal digits, 6 for base64, 8 for
	// escapes.
	bits int
	// first is the number of characters before the first decoded one.
	first int
	// from and to select the places of the view with the origins of the characters. Characters
	// between two places are contiguous.
	from, to int
}

// place maps a character, by number, to its offset in the source.
type place struct{ char, offset int }

// offset returns the offset of a character of a piece in the source.
func (v view) offset(p *piece, char int) int {
	places := v.places[p.from:p.to]
	i, found := slices.BinarySearchFunc(places, char, func(pl place, c int) int { return pl.char - c })
	if !found {
		i--
	}
	return places[i].offset + char - places[i].char
}

// source returns the range of the source from which a span of v was decoded.
func (v view) source(s span, from string) span {
	i, found := slices.BinarySearchFunc(v.pieces, s.start, func(p piece, at int) int { return p.start - at })
	if !found {
		i--
	}
	p := &v.pieces[i]
	a, b := s.start-p.start, s.end-p.start
	var out span
	switch p.bits {
	case 4:
		out = span{v.offset(p, p.first+2*a), v.offset(p, p.first+2*b-1) + 1}
	case 6:
		out = span{v.offset(p, p.first+a/3*4+a%3), v.offset(p, p.first+(b-1)/3*4+(b-1)%3+1) + 1}
		for out.end < len(from) && from[out.end] == '=' {
			out.end++
		}
	default:
		out = span{v.offset(p, a), v.offset(p, b)}
	}
	out.end = min(out.end, len(from))
	return out
}

// Classes of characters.
const (
	isHex = 1 << iota
	isBase64
	isEscape // can start an escape
)

var classes, sextets = func() (classes, sextets [256]byte) {
	const std = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	for i, c := range []byte(std) {
		classes[c], sextets[c] = isBase64, byte(i)
	}
	classes['-'], sextets['-'] = isBase64, 62
	classes['_'], sextets['_'] = isBase64, 63
	for _, c := range []byte("0123456789abcdefABCDEF") {
		classes[c] |= isHex
	}
	for _, c := range []byte(`%\&`) {
		classes[c] = isEscape
	}
	return
}()

// decoder decodes the encoded parts of a text. Its memory is reused.
type decoder struct {
	text   string // text to decode
	buf    []byte
	pieces []piece
	places []place
	chars  []byte
}

var decoders = sync.Pool{New: func() any { return new(decoder) }}

// maxKept is the maximum size of a buffer that is reused.
const maxKept = 32 << 20

// release makes the memory of decoded texts available again.
func (d *decoder) release() {
	if cap(d.buf) <= maxKept {
		d.text = ""
		decoders.Put(d)
	}
}

// decode decodes all possibly encoded parts of v once. The result is valid until d is released.
func (x *secretIndex) decode(d *decoder, v view) view {
	d.text, d.buf, d.pieces, d.places = v.text, d.buf[:0], d.pieces[:0], d.places[:0]
	if v.pieces == nil {
		x.decodeRange(d, 0, len(v.text), nil)
	}
	for i := range v.pieces {
		p := &v.pieces[i]
		switch {
		case p.bits == 8:
			x.decodeRange(d, p.start, p.end, v.places[p.from:p.to])
		case readable(v.text[p.start:p.end]):
			x.decodeRange(d, p.start, p.end, nil)
		}
	}
	return view{text: unsafe.String(unsafe.SliceData(d.buf), len(d.buf)), pieces: d.pieces, places: d.places}
}

// readable reports whether decoded bytes can be a text. Most decoded parts were never encoded.
func readable(text string) bool {
	left := len(text) / 8 // allowed number of unusual bytes
	for i := range len(text) {
		if c := text[i]; c < ' ' && c != '\n' && c != '\t' && c != '\r' || c >= 0x7f {
			if left--; left < 0 {
				return false
			}
		}
	}
	return true
}

// decodeRange decodes a range of the text. If the range is the result of removing escapes, runs
// without escapes are already decoded.
func (x *secretIndex) decodeRange(d *decoder, start, end int, unescaped []place) {
	minBase64, minHex := min(16, (x.shortest*4+2)/3), min(24, 2*x.shortest)
	escaped := false
	escape := 0 // index of the next place in unescaped
	for i := start; i < end; {
		class := classes[d.text[i]]
		if class&isBase64 == 0 {
			escaped = escaped || class&isEscape != 0
			i++
			continue
		}
		run := i + 1
		hex := class & isHex
		for run < end {
			c := classes[d.text[run]]
			if c&isBase64 == 0 {
				break
			}
			hex &= c
			run++
		}
		if run-i < minBase64 && hex == 0 {
			i = run
			continue
		}
		if unescaped != nil {
			for escape < len(unescaped) && unescaped[escape].char+start <= i {
				escape++
			}
		}
		fresh := func(end int) bool {
			return unescaped == nil || escape < len(unescaped) && unescaped[escape].char+start <= end
		}
		next := run
		if hex != 0 {
			if digits, at := d.hexRun(i, end); digits >= minHex {
				next = max(next, at)
				if fresh(at) {
					d.addHex(i, digits)
					d.addHexWords(i, at, digits, minHex)
				}
			}
		}
		if run-i >= minBase64 {
			places := len(d.places)
			at := d.base64Run(i, run, end)
			next = max(next, at)
			if fresh(at) {
				d.addBase64(places)
			} else {
				d.places = d.places[:places]
			}
		}
		i = next
	}
	if escaped {
		d.unescape(start, end)
	}
}

// hexRun counts the hexadecimal digits of a run and returns its end. Pairs of digits can be
// separated.
func (d *decoder) hexRun(i, end int) (digits, at int) {
	for ; i < end; i++ {
		c := d.text[i]
		switch {
		case classes[c]&isHex != 0:
			digits++
		case (c == ' ' || c == ':' || c == ',' || c == '\n') && digits%2 == 0 && d.text[i-1] != c:
		default:
			return digits, i
		}
	}
	return digits, i
}

// addHex decodes the run at i for both alignments of its pairs of digits.
func (d *decoder) addHex(i, digits int) {
	d.chars = d.chars[:0]
	places := len(d.places)
	for apart := true; len(d.chars) < digits; i++ {
		if classes[d.text[i]]&isHex == 0 {
			apart = true
			continue
		}
		if apart {
			d.places = append(d.places, place{len(d.chars), i})
			apart = false
		}
		d.chars = append(d.chars, unhex(d.text[i]))
	}
	for first := range 2 {
		p := piece{start: len(d.buf), bits: 4, first: first, from: places, to: len(d.places)}
		for c := d.chars[first:]; len(c) >= 2; c = c[2:] {
			d.buf = append(d.buf, c[0]<<4|c[1])
		}
		d.add(p)
	}
}

// addHexWords decodes each long word of a run of several words by itself, because adjacent words
// that encode no text can make the decoded run unreadable.
func (d *decoder) addHexWords(i, end, digits, shortest int) {
	for ; i < end; i++ {
		word := i
		for i < end && classes[d.text[i]]&isHex != 0 {
			i++
		}
		if n := i - word; n >= shortest && n < digits {
			d.addHex(word, n)
		}
	}
}

// base64Run collects the characters of a run and returns its end. A run continues on the next
// line if lines have the length that encoders use.
func (d *decoder) base64Run(start, run, end int) (at int) {
	const shortLine = 60
	d.places = append(d.places, place{0, start})
	d.chars = append(d.chars[:0], d.text[start:run]...)
	for line := run - start; line >= shortLine; {
		next := run
		if next < end && d.text[next] == '\r' {
			next++
		}
		if next >= end || d.text[next] != '\n' {
			break
		}
		next++
		run = next
		for run < end && classes[d.text[run]]&isBase64 != 0 {
			run++
		}
		if line = run - next; line == 0 {
			break
		}
		d.places = append(d.places, place{len(d.chars), next})
		d.chars = append(d.chars, d.text[next:run]...)
	}
	return run
}

// addBase64 decodes the characters for every alignment of their groups of four.
func (d *decoder) addBase64(places int) {
	chars := d.chars
	for i, c := range chars {
		chars[i] = sextets[c]
	}
	joined := len(d.places) > places+1
	for first := range 4 {
		if c := chars[min(first, len(chars)):]; !joined && !startsReadable(c[:min(len(c), 16)]) {
			continue // plain finds secrets in it
		}
		p := piece{start: len(d.buf), bits: 6, first: first, from: places, to: len(d.places)}
		c := chars[min(first, len(chars)):]
		for ; len(c) >= 4; c = c[4:] {
			d.buf = append(d.buf, c[0]<<2|c[1]>>4, c[1]<<4|c[2]>>2, c[2]<<6|c[3])
		}
		if len(c) >= 2 {
			d.buf = append(d.buf, c[0]<<2|c[1]>>4)
		}
		if len(c) >= 3 {
			d.buf = append(d.buf, c[1]<<4|c[2]>>2)
		}
		d.add(p)
	}
}

// startsReadable reports whether sextets can be the start of a text, possibly encoded again.
func startsReadable(c []byte) bool {
	for ; len(c) >= 4; c = c[4:] {
		for _, b := range [3]byte{c[0]<<2 | c[1]>>4, c[1]<<4 | c[2]>>2, c[2]<<6 | c[3]} {
			if b < ' ' && b != '\n' && b != '\t' && b != '\r' || b >= 0x7f {
				return false
			}
		}
	}
	return true
}

// add completes a piece.
func (d *decoder) add(p piece) {
	if p.end = len(d.buf); p.end > p.start {
		d.pieces = append(d.pieces, p)
		d.buf = append(d.buf, 0)
	}
}

// unescape adds a range without its escapes, if it contains any.
func (d *decoder) unescape(start, end int) {
	p := piece{start: len(d.buf), bits: 8, from: len(d.places)}
	d.places = append(d.places, place{0, start})
	copied := start
	for i := start; i < end; {
		if classes[d.text[i]]&isEscape == 0 {
			i++
			continue
		}
		plain, length := unescape(d.text[i:end])
		if length == 0 {
			i++
			continue
		}
		d.buf = append(d.buf, d.text[copied:i]...)
		d.places = append(d.places, place{len(d.buf) - p.start, i})
		d.buf = append(d.buf, plain...)
		i += length
		copied = i
		if plain == "" {
			d.places[len(d.places)-1].offset = i
		} else {
			d.places = append(d.places, place{len(d.buf) - p.start, i})
		}
	}
	if p.to = len(d.places); p.to == p.from+1 {
		return
	}
	d.buf = append(d.buf, d.text[copied:end]...)
	d.add(p)
}

func unhex(c byte) byte {
	switch {
	case c >= 'a':
		return c - 'a' + 10
	case c >= 'A':
		return c - 'A' + 10
	}
	return c - '0'
}
