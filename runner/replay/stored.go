package replay

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"iter"
	"os"
	"slices"
	"sync"
	"unicode/utf8"

	"waza/eval/jsonwalk"
	"waza/eval/text"
	"waza/runner/journal"
	"waza/runner/record"
)

// Large outputs and transcripts are stored beside the journal, compressed and each content once:
//
//	feed, amendment ── store ──► line with references ─┐
//	                       └───► files.gz              ├─ Trials ──► whole trial
//	                                                   ┘
//
// Only the journal and result.json contain references. All other readers receive whole trials.

// storeAbove is the maximum size in bytes of an output, or of a transcript as JSON, within a
// line of the journal.
const storeAbove = 32 << 10

// storedTrial is a [record.Trial] in the format of the journal, which alone has references. They
// come first, so that the first bytes show whether there are any.
type storedTrial struct {
	Blobs *storedBlobs `json:"blobs,omitempty"`
	*record.Trial
}

// appendJSON appends the trial as JSON.
func (t *storedTrial) appendJSON(b []byte) ([]byte, error) {
	b, err := jsonwalk.Append(append(b, storedHead...), t.Blobs)
	if err != nil {
		return b, err
	}
	return t.AppendMembers(append(b, ','))
}

// storedHead is the start of a trial with references.
const storedHead = `{"blobs":`

// storedBlobs identifies the stored contents of a trial or an earlier attempt; nil for a content
// in the line.
type storedBlobs struct {
	Output     *record.Blob `json:"output,omitempty"`
	Transcript *record.Blob `json:"transcript,omitempty"`
	// Said are the indices of the entries of the transcript whose text is the stored output. The
	// answer of an agent is both, and most of the bytes of either.
	Said []int `json:"said,omitempty"`
	// Attempts are in order; nil for an attempt without references.
	Attempts []*storedBlobs `json:"attempts,omitempty"`
}

// store stores the large parts of a trial beside the journal, and returns the trial without
// them. It returns nil when there are no large parts, or when they cannot be stored.
func store(res *record.Trial, blobs *journal.Blobs) *storedTrial {
	lean := *res
	at := &storedBlobs{}
	stored := at.take(blobs, &lean.Output, &lean.Transcript)
	for i := range res.Attempts {
		if i == 0 {
			lean.Attempts = append([]record.Attempt(nil), res.Attempts...)
			at.Attempts = make([]*storedBlobs, len(res.Attempts))
		}
		of := &storedBlobs{}
		if of.take(blobs, &lean.Attempts[i].Output, &lean.Attempts[i].Transcript) {
			at.Attempts[i], stored = of, true
		}
	}
	if !stored {
		return nil
	}
	return &storedTrial{Blobs: at, Trial: &lean}
}

// take stores a large output and transcript, and clears them.
func (s *storedBlobs) take(blobs *journal.Blobs, output *string, transcript *[]record.Entry) (taken bool) {
	if len(*output) > storeAbove {
		if b, err := blobs.Put([]byte(*output)); err == nil {
			*transcript, s.Said = withoutText(*transcript, *output)
			s.Output, *output, taken = &b, "", true
		}
	}
	if len(*transcript) == 0 {
		return taken
	}
	raw, err := record.AppendTranscript(nil, *transcript)
	if err != nil || len(raw) <= storeAbove {
		return taken
	}
	if b, err := blobs.Put(raw); err == nil {
		s.Transcript, *transcript, taken = &b, nil, true
	}
	return taken
}

// withoutText returns a transcript without the texts of the entries that say the same as an output,
// and the indices of these.
func withoutText(transcript []record.Entry, output string) (lean []record.Entry, said []int) {
	lean = transcript
	for i := range transcript {
		if transcript[i].Text != output {
			continue
		}
		if said == nil {
			lean = slices.Clone(transcript)
		}
		lean[i].Text, said = "", append(said, i)
	}
	return lean, said
}

// say sets the texts of the entries that say the same as the output.
func (s *storedBlobs) say(transcript []record.Entry, output string) {
	for _, i := range s.Said {
		if i >= 0 && i < len(transcript) && transcript[i].Text == "" { // a lost transcript has another entry there
			transcript[i].Text = output
		}
	}
}

// Trials gives access to the trials in the files of a run. It is safe for concurrent use.
type Trials struct {
	Run   *journal.Run
	lines *os.File // nil when the lines are read elsewhere, or missing

	mu     sync.Mutex // guards the fields below
	blobs  *journal.BlobReader
	result *journal.Result
}

// OpenTrials opens the files of a run. The caller closes them.
func OpenTrials(run *journal.Run) (*Trials, error) {
	lines, err := run.Lines()
	if err != nil {
		return nil, err
	}
	return &Trials{Run: run, lines: lines}, nil
}

// Close closes the files.
func (f *Trials) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var err error
	if f.blobs != nil {
		err = f.blobs.Close()
	}
	if f.result != nil {
		err = errors.Join(err, f.result.Close())
	}
	if f.lines != nil {
		err = errors.Join(err, f.lines.Close())
	}
	return err
}

// Bytes reads the bytes at a place, into buf if that is large enough. The trial may have
// references.
func (f *Trials) Bytes(at Place, buf []byte) ([]byte, error) {
	if cap(buf) < int(at.Size) {
		buf = make([]byte, at.Size)
	}
	buf = buf[:at.Size]
	from, err := f.fileOf(at)
	if err == nil {
		_, err = from.ReadAt(buf, at.Off)
	}
	return at.verified(buf, err)
}

// verified returns the bytes that were read at the place if they are those of the trial.
func (at Place) verified(raw []byte, err error) ([]byte, error) {
	if err == nil && maphash.Bytes(placeSeed, raw) != at.sum {
		err = errChangedSince
	}
	if err != nil {
		return nil, fmt.Errorf("journal: trial: %w", err)
	}
	return raw, nil
}

var errChangedSince = errors.New("another program changed the record while it was used")

// fileOf returns the file that contains a place.
func (f *Trials) fileOf(at Place) (io.ReaderAt, error) {
	if !at.inResult {
		if f.lines == nil {
			return nil, os.ErrNotExist
		}
		return f.lines, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.result == nil {
		var err error
		if f.result, err = f.Run.Result(); err != nil {
			return nil, err
		}
	}
	return f.result, nil
}

// Decode decodes the trial at a place, including separately stored contents.
func (f *Trials) Decode(at Place, res *record.Trial) error {
	raw, err := f.Bytes(at, nil)
	if err != nil {
		return err
	}
	return f.DecodeRaw(raw, res)
}

// DecodeRaw is like [Trials.Decode] for a trial whose bytes were already read.
func (f *Trials) DecodeRaw(raw []byte, res *record.Trial) error {
	return f.decode(raw, res, res.DecodeJSON, func(blobs *storedBlobs) error { return f.load(blobs, res) })
}

// decodeOutcome decodes a trial without its transcripts, the outputs of earlier attempts and the
// rest of a stored output. It does not read them either. It returns the size of that rest.
func (f *Trials) decodeOutcome(raw []byte, res *record.Trial) (more int64, err error) {
	withoutTranscript := func(raw []byte) error {
		*res = record.Trial{}
		n := jsonwalk.Each(raw, func(key, rest []byte) int {
			if string(key) == "transcript" || string(key) == "blobs" {
				return jsonwalk.ValueEnd(rest)
			}
			return res.DecodeMember(key, rest)
		})
		if n < 0 {
			return res.DecodeJSON(raw)
		}
		return nil
	}
	err = f.decode(raw, res, withoutTranscript, func(blobs *storedBlobs) (err error) {
		more, err = f.loadHead(blobs.Output, &res.Output)
		return err
	})
	res.Transcript = nil
	for i := range res.Attempts {
		res.Attempts[i].Output, res.Attempts[i].Transcript = "", nil
	}
	return more, err
}

// decode decodes a trial and loads its stored contents, if it has any.
func (f *Trials) decode(raw []byte, res *record.Trial, decodeJSON func(raw []byte) error, load func(*storedBlobs) error) error {
	if liftNotStarted(res, raw) {
		return nil
	}
	blobs, err := BlobsOf(raw)
	if err != nil {
		return err
	}
	if err = decodeJSON(raw); err == nil && blobs != nil {
		err = load(blobs)
	}
	return asRecorded(err)
}

// load sets the contents of a trial. It does not encode them first, like fill does, because that
// would take most of the time.
func (f *Trials) load(blobs *storedBlobs, res *record.Trial) error {
	if err := f.loadTexts(blobs, &res.Output, &res.Transcript); err != nil {
		return err
	}
	for i := range min(len(blobs.Attempts), len(res.Attempts)) {
		of, a := blobs.Attempts[i], &res.Attempts[i]
		if of == nil {
			continue
		}
		if err := f.loadTexts(of, &a.Output, &a.Transcript); err != nil {
			return err
		}
	}
	return nil
}

func (f *Trials) loadTexts(blobs *storedBlobs, output *string, transcript *[]record.Entry) error {
	if err := errors.Join(f.loadOutput(blobs.Output, output), f.loadTranscript(blobs.Transcript, transcript)); err != nil {
		return err
	}
	blobs.say(*transcript, *output)
	return nil
}

func (f *Trials) loadOutput(blob *record.Blob, output *string) error {
	if blob == nil {
		return nil
	}
	content, err := f.content(*blob)
	if err != nil {
		*output = lostContent("output", *blob, err)
		return nil
	}
	*output, err = asText(content)
	return err
}

// asText returns the same text for a content as a result has, which is JSON.
func asText(content []byte) (text string, err error) {
	if utf8.Valid(content) {
		return string(content), nil
	}
	quoted, err := jsonwalk.Encode(string(content))
	if err == nil {
		err = json.Unmarshal(quoted, &text)
	}
	return text, err
}

// headBytes is the size of the start of a stored output that is read alone.
const headBytes = 16 << 10

// loadHead sets the start of an output, and returns the size of the rest. An output that is not
// longer is complete.
func (f *Trials) loadHead(blob *record.Blob, output *string) (more int64, err error) {
	if blob == nil || blob.Size <= headBytes {
		return 0, f.loadOutput(blob, output)
	}
	head, err := f.head(*blob)
	if err != nil {
		*output = lostContent("output", *blob, err)
		return 0, nil
	}
	*output, err = asText(head)
	return blob.Size - int64(len(head)), err
}

// head returns whole characters from the start of a content.
func (f *Trials) head(blob record.Blob) ([]byte, error) {
	blobs, err := f.open()
	if err != nil {
		return nil, err
	}
	content, err := blobs.Head(blob, headBytes+1)
	return content[:len(text.Head(string(content), headBytes))], err
}

func (f *Trials) loadTranscript(blob *record.Blob, transcript *[]record.Entry) error {
	if blob == nil {
		return nil
	}
	*transcript = nil
	content, err := f.content(*blob)
	if err == nil {
		err = json.Unmarshal(content, transcript)
		if syntax := (*json.SyntaxError)(nil); !errors.As(err, &syntax) {
			return err
		}
		err = jsonwalk.ErrNoObject
	}
	*transcript = lostTranscript(*blob, err)
	return nil
}

// BlobsOf returns the references of a trial; nil when it has none.
func BlobsOf(raw []byte) (*storedBlobs, error) {
	if !bytes.HasPrefix(raw, []byte(storedHead)) {
		return nil, nil
	}
	var t struct{ Blobs *storedBlobs }
	if err := json.Unmarshal(raw, &t); err != nil {
		return nil, fmt.Errorf("journal: trial: %w", err)
	}
	return t.Blobs, nil
}

// Register registers the stored contents with blobs, so that they are not stored again.
func (s *storedBlobs) Register(blobs *journal.Blobs) {
	for b := range s.all() {
		blobs.Register(*b)
	}
}

// all yields all references. s can be nil.
func (s *storedBlobs) all() iter.Seq[*record.Blob] {
	return func(yield func(*record.Blob) bool) { s.each(yield) }
}

func (s *storedBlobs) each(yield func(*record.Blob) bool) bool {
	if s == nil {
		return true
	}
	for _, b := range []*record.Blob{s.Output, s.Transcript} {
		if b != nil && !yield(b) {
			return false
		}
	}
	for _, of := range s.Attempts {
		if !of.each(yield) {
			return false
		}
	}
	return true
}

// size returns about the number of bytes of all contents in JSON.
func (s *storedBlobs) size() int {
	n := int64(0)
	for b := range s.all() {
		n += b.Size + b.Size/8
	}
	if s != nil && s.Output != nil {
		n += s.Output.Size * int64(len(s.Said))
	}
	return int(min(max(n, 0), maxGuess))
}

// maxGuess limits the memory that is reserved because a reference claims a size.
const maxGuess = 64 << 20

// whole replaces the references of a trial by their contents. All other bytes stay unchanged. A
// missing content is replaced by a message.
func (f *Trials) whole(raw []byte) ([]byte, error) {
	blobs, err := BlobsOf(raw)
	if err != nil || blobs == nil {
		return raw, err
	}
	return f.fill(raw, blobs)
}

func (f *Trials) fill(raw []byte, blobs *storedBlobs) ([]byte, error) {
	out := append(make([]byte, 0, len(raw)+blobs.size()), '{')
	var failed error
	err := jsonwalk.Members(raw, "", func(key, value []byte) bool {
		switch string(key) {
		case "blobs":
			return true
		case "output":
			value, failed = f.output(value, blobs.Output)
		case "transcript":
			value, failed = f.transcript(value, blobs)
		case "attempts":
			value, failed = f.attempts(value, blobs.Attempts)
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(append(out, '"'), key...), `":`...), value...)
		return failed == nil
	})
	if err = errors.Join(err, failed); err != nil {
		return nil, fmt.Errorf("journal: trial: %w", err)
	}
	return append(out, '}'), nil
}

func (f *Trials) output(value []byte, blob *record.Blob) ([]byte, error) {
	if blob == nil {
		return value, nil
	}
	return jsonwalk.Encode(f.outputText(*blob))
}

// outputText returns an output as it was stored, or a message that it is lost.
func (f *Trials) outputText(blob record.Blob) string {
	content, err := f.content(blob)
	if err != nil {
		return lostContent("output", blob, err)
	}
	return string(content)
}

func (f *Trials) transcript(value []byte, blobs *storedBlobs) ([]byte, error) {
	if blobs.Transcript != nil {
		content, err := f.content(*blobs.Transcript)
		if err == nil && !json.Valid(content) {
			err = jsonwalk.ErrNoObject
		}
		if err != nil {
			return jsonwalk.Encode(lostTranscript(*blobs.Transcript, err))
		}
		value = content
	}
	if len(blobs.Said) == 0 || blobs.Output == nil {
		return value, nil
	}
	var entries []record.Entry
	if err := json.Unmarshal(value, &entries); err != nil {
		return nil, err
	}
	blobs.say(entries, f.outputText(*blobs.Output))
	return record.AppendTranscript(nil, entries)
}

func (f *Trials) attempts(value []byte, blobs []*storedBlobs) ([]byte, error) {
	var list []json.RawMessage
	if err := json.Unmarshal(value, &list); err != nil {
		return nil, err
	}
	for i := range list {
		if i >= len(blobs) || blobs[i] == nil {
			continue
		}
		whole, err := f.fill(list[i], blobs[i])
		if err != nil {
			return nil, err
		}
		list[i] = whole
	}
	return jsonwalk.Encode(list)
}

func lostTranscript(blob record.Blob, err error) []record.Entry {
	return []record.Entry{{Type: record.EntryDropped, Text: lostContent("transcript", blob, err)}}
}

func lostContent(what string, blob record.Blob, err error) string {
	return fmt.Sprintf("[the %s of %d bytes is missing: %v]", what, blob.Size, err)
}

// content reads a stored content.
func (f *Trials) content(blob record.Blob) ([]byte, error) {
	blobs, err := f.open()
	if err != nil {
		return nil, err
	}
	return blobs.Get(blob)
}

// open opens the file of contents, if it exists. The first content creates it.
func (f *Trials) open() (*journal.BlobReader, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.blobs != nil {
		return f.blobs, nil
	}
	blobs, err := f.Run.Blobs()
	if err == nil && !blobs.Empty() {
		f.blobs = blobs
	}
	return blobs, err
}
