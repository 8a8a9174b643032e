package journal

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"os"
	"strings"
	"sync"
)

// Each line of a journal has a digest before its checksum. It proves that waza wrote the line in
// this run, after the line before:
//
//	appended  {"seq":7,"type":"log"}
//	in file   {"seq":7,"type":"log","mac":"<link><tag>","crc":"8c1f2a03"}
//
// The tag is the HMAC-SHA-256 of everything before the tag, cut to 128 bits, with a key that
// follows from the key of the state directory and the id of the run. The link is the first half
// of the tag of the line before. A reader can therefore verify a line after a damaged one, and
// nobody without the key can change, remove, insert or reorder lines. run.json and result.json
// end with a tag of their own. run.json also contains the id of the key, and result.json the tag
// of the journal's last line.
//
// Records of versions before digests were introduced have none. They can be read, but not
// verified. Lines that were added to them later have digests. The same holds for all records
// that the user decided to trust, see stateKey.
const (
	macHead  = `,"mac":"`
	linkSize = 8
	tagSize  = 16
	macSize  = len(macHead) + 2*(linkSize+tagSize) + len(`"`)
	// soleSize is the size of the member with a tag without a link.
	soleSize = len(macHead) + 2*tagSize + len(`"`)
)

// A tag authenticates a line or a file. The zero tag precedes the first line.
type tag [tagSize]byte

// afterUnkeyed is the link of the first line with a digest in a journal that starts with lines
// without.
var afterUnkeyed = tag{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

// keyIDHead starts the member of run.json with the id of the key.
const keyIDHead = `,"recordKey":"`

// Why a trusted record cannot be verified.
const (
	unkeyedRecord  = "no digests"
	otherKeyRecord = "recorded with a different key"
)

var (
	errForged  = errors.New("digest mismatch: waza did not write this")
	errUnkeyed = errors.New("no digest: waza did not write this")
	errLink    = errors.New("digest mismatch: the part before it was replaced")
	// errOtherKey reports that nobody can know whether waza wrote a part.
	errOtherKey = errors.New("recorded with a different key; waza runs trust reads it nevertheless")
)

// The purposes of tags, which keep one from passing for another.
const (
	forLine    = "line\n"
	forRequest = "request\n"
	forResult  = "result\n"
	forKey     = "key\n"
)

// A signer authenticates the record of one run. Only one goroutine may use it.
type signer struct {
	key     *stateKey
	run     string
	mac     hash.Hash
	sum     [sha256.Size]byte
	purpose []byte // memory for start
}

func newSigner(key *stateKey, run string) *signer {
	m := hmac.New(sha256.New, key.secret[:])
	m.Write([]byte("waza run\n" + run))
	return &signer{key: key, run: run, mac: hmac.New(sha256.New, m.Sum(nil))}
}

// start starts the tag of something with a purpose. The caller writes the content to s.mac.
func (s *signer) start(purpose string) {
	s.mac.Reset()
	s.purpose = append(s.purpose[:0], purpose...)
	_, _ = s.mac.Write(s.purpose) // never fails
}

func (s *signer) end() (t tag) {
	copy(t[:], s.mac.Sum(s.sum[:0]))
	return t
}

func (s *signer) tag(purpose string, content []byte) tag {
	s.start(purpose)
	_, _ = s.mac.Write(content)
	return s.end()
}

// sign appends a line to buf in the format of the file, including the newline, and returns the
// tag of the line. before is the tag of the line before.
func (s *signer) sign(buf, line []byte, before tag) ([]byte, tag) {
	start := len(buf)
	buf = append(append(buf, line[:len(line)-1]...), macHead...)
	buf = hex.AppendEncode(buf, before[:linkSize])
	t := s.tag(forLine, buf[start:])
	buf = hex.AppendEncode(buf, t[:])
	buf = append(buf, '"')
	return appendSeal(buf, start), t
}

// cutMac removes the digest from the end of a line without its checksum, whose last byte is a
// brace. signed is the part that the tag covers.
func cutMac(line []byte) (body, signed []byte, link [linkSize]byte, t tag, ok bool) {
	at := len(line) - 1 - macSize
	if at <= 0 || !bytes.HasPrefix(line[at:], []byte(macHead)) || line[len(line)-2] != '"' {
		return line, nil, link, t, false
	}
	end := at + len(macHead) + 2*linkSize
	if !decodeHex(link[:], line[at+len(macHead):end]) || !decodeHex(t[:], line[end:len(line)-2]) {
		return line, nil, link, t, false
	}
	return line[:at], line[:end], link, t, true
}

// decodeHex decodes twice as many digits as into has bytes. It refuses capital letters, because
// waza writes none: nobody can change a record without being noticed.
func decodeHex(into, digits []byte) bool {
	for i := range into {
		high, low := hexValue[digits[2*i]], hexValue[digits[2*i+1]]
		if high|low > 0xf {
			return false
		}
		into[i] = high<<4 | low
	}
	return true
}

// hexValue contains the value of each digit, and 0xff for all other characters. A table, because a
// reader decodes 56 digits of each line, and encoding/hex with a search for capital letters took a
// tenth of its time.
var hexValue = func() (value [256]byte) {
	for c := range value {
		value[c] = 0xff
	}
	for i, c := range []byte("0123456789abcdef") {
		value[c] = byte(i)
	}
	return value
}()

// A verifier decides which parts of a run's record to trust.
type verifier struct {
	signer *signer // nil without a key
	// trusted reports whether parts may lack digests, or have digests of a different key.
	trusted bool
	err     error       // why there is no key
	other   func() bool // reports whether the run was recorded with a different key; nil means that it was not
}

// verifier returns the verifier of the run.
func (r *Run) verifier() *verifier {
	key, err := r.store.keys.load()
	if err != nil {
		return &verifier{err: err}
	}
	id := r.ID()
	return &verifier{signer: newSigner(key, id), trusted: key.trusted[id], other: sync.OnceValue(func() bool {
		theirs, ok := r.store.keys.keyOf(id)
		return ok && theirs != key.id
	})}
}

// doubt describes why the record cannot be verified although it is trusted; empty when it can.
func (v *verifier) doubt() string {
	switch {
	case !v.trusted:
		return ""
	case v.other():
		return otherKeyRecord
	}
	return unkeyedRecord
}

// verify returns an error for a part with a tag that differs from want, unless the part is
// trusted.
func (v *verifier) verify(t, want tag) error {
	switch {
	case t == want:
		return nil
	case v.other == nil || !v.other():
		return errForged
	case !v.trusted:
		return errOtherKey
	}
	return nil
}

// verifyMissing returns an error for a part without a tag, unless it is trusted. Without a key,
// nobody knows whether the part must have one; [Reader.KeyFault] reports that.
func (v *verifier) verifyMissing() error {
	if v.signer == nil || v.trusted {
		return nil
	}
	if v.other != nil && v.other() {
		return errOtherKey
	}
	return errUnkeyed
}

// ID returns the id of the run.
func (r *Run) ID() string { return r.dir[strings.LastIndexByte(r.dir, os.PathSeparator)+1:] }

// clone returns a verifier of the same record for another goroutine.
func (v *verifier) clone() *verifier {
	c := *v
	if v.signer != nil {
		c.signer = newSigner(v.signer.key, v.signer.run)
	}
	return &c
}

// A proof is what a line shows without the lines before it. Finding it out takes nearly all of the
// time of reading.
type proof struct {
	line   []byte // without its checksum
	sealed bool   // it has a checksum
	damage error  // the checksum is wrong
	body   int    // size of the line without its digest
	keyed  bool   // it has a digest, which consists of the two fields below
	link   [linkSize]byte
	tag    tag
	forged error // the tag is wrong
}

// prove finds out what a line with or without its newline shows. It removes the checksum in place.
func (v *verifier) prove(raw []byte) (p proof) {
	raw = bytes.TrimSuffix(raw, []byte("\n"))
	if p.line, p.sealed, p.damage = unseal(raw); p.damage != nil {
		return p
	}
	body, signed, link, t, keyed := cutMac(p.line)
	p.body, p.link, p.tag, p.keyed = len(body), link, t, keyed
	if keyed && v.signer != nil {
		p.forged = v.verify(t, v.signer.tag(forLine, signed))
	}
	return p
}

// follow decides whether to trust a line that follows another. It returns the line as it was
// appended, and what the next line must continue. after is the tag of the line before, unless whole
// is not set: then parts between the two lines are lost.
func (v *verifier) follow(p *proof, after tag, whole bool) (body []byte, t tag, err error) {
	switch {
	case !p.keyed:
		return p.line, afterUnkeyed, v.verifyMissing()
	case p.forged != nil:
		return nil, t, p.forged
	case whole && p.link != [linkSize]byte(after[:linkSize]):
		return nil, t, errLink
	}
	p.line[p.body] = '}'
	return p.line[: p.body+1 : p.body+1], p.tag, nil
}

// checkFile verifies the tag at the end of a file without its checksum, in place. It returns the
// object without the tag.
func (v *verifier) checkFile(purpose string, object []byte) (body []byte, err error) {
	t, at, keyed := cutSole(object)
	if !keyed {
		return object, v.verifyMissing()
	}
	if v.signer != nil {
		if err := v.verify(t, v.signer.tag(purpose, object[:at])); err != nil {
			return nil, err
		}
	}
	object[at] = '}'
	return object[: at+1 : at+1], nil
}

// cutKeyID removes the id of the key from the end of an object, in place.
func cutKeyID(object []byte) []byte {
	at := len(object) - len(keyIDHead) - 2*len(keyID{}) - len(`"}`)
	if at <= 0 || !bytes.HasPrefix(object[at:], []byte(keyIDHead)) {
		return object
	}
	object[at] = '}'
	return object[: at+1 : at+1]
}

// cutSole finds the tag at the end of an object, and where its member starts.
func cutSole(object []byte) (t tag, at int, ok bool) {
	at = len(object) - 1 - soleSize
	if at <= 0 || !bytes.HasPrefix(object[at:], []byte(macHead)) || object[len(object)-2] != '"' {
		return t, 0, false
	}
	return t, at, decodeHex(t[:], object[at+len(macHead):len(object)-2])
}
