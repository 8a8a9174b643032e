package inspect

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/klauspost/compress/zstd"

	"waza/runner/importing/source"
)

// The limits of an archive.
const (
	// maxTotal is the most bytes that all entries have together.
	maxTotal = 2 << 30
	// maxRatio is how many times larger an entry can be than it is in the archive, if it is large.
	maxRatio, largeEntry = 1000, 1 << 20
	// maxEntries is the most entries.
	maxEntries = 2 * source.MaxTrials
)

// A jsonLog is a log in one JSON file.
type jsonLog struct {
	*source.Document
	list []source.Span
}

func openJSON(path string) (container, error) {
	d, err := source.ReadDocument(path)
	if err != nil {
		return nil, err
	}
	return &jsonLog{d, d.Elements(d.Members(d.All())["samples"])}, nil
}

func (l *jsonLog) sum() []byte                   { return l.Sum }
func (l *jsonLog) header() ([]byte, bool, error) { return l.Text, true, nil }
func (l *jsonLog) samples() int                  { return len(l.list) }
func (l *jsonLog) sample(i int) ([]byte, error)  { return l.list[i].In(l.Text), nil }
func (l *jsonLog) fail(i int, err error) error {
	return l.Fail(l.list[i], fmt.Sprintf("samples[%d]", i), err)
}

// An archive is a log in a zip archive.
type archive struct {
	path  string
	hash  []byte
	named map[string]*zip.File
	list  []*zip.File // samples
}

func openArchive(path string) (container, error) {
	text, err := source.ReadFile(path)
	if err != nil {
		return nil, err
	}
	a := &archive{path: path, hash: source.Sum(text), named: map[string]*zip.File{}}
	z, err := zip.NewReader(bytes.NewReader(text), int64(len(text)))
	if err != nil {
		return nil, &source.Error{Path: path, Err: fmt.Errorf("not a complete archive: %w", err)}
	}
	z.RegisterDecompressor(zstd.ZipMethodWinZip, zstd.ZipDecompressor(
		zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(source.MaxBytes),
	))
	if err := a.index(z.File); err != nil {
		return nil, &source.Error{Path: path, Err: err}
	}
	return a, nil
}

// index finds the entries, and checks their stated sizes. Of several with one name, the last
// counts.
func (a *archive) index(entries []*zip.File) error {
	if len(entries) > maxEntries {
		return fmt.Errorf("has %d entries, the limit is %d", len(entries), maxEntries)
	}
	total, places := uint64(0), map[string]int{} // of samples in the list
	for _, f := range entries {
		size, packed := f.UncompressedSize64, f.CompressedSize64
		switch total += min(size, maxTotal+1); {
		case size > source.MaxBytes:
			return fmt.Errorf("%q has %d bytes, the limit is %d", f.Name, size, source.MaxBytes)
		case size > largeEntry && size/maxRatio > packed:
			return fmt.Errorf("%q has %d bytes and takes %d in the archive, the limit is %d times", f.Name, size, packed, maxRatio)
		case total > maxTotal:
			return fmt.Errorf("the entries have more than %d bytes together", uint64(maxTotal))
		}
		if at, ok := places[f.Name]; ok {
			a.list[at] = f
		} else if isSample(f.Name) {
			places[f.Name] = len(a.list)
			a.list = append(a.list, f)
		}
		a.named[f.Name] = f
	}
	return nil
}

func isSample(name string) bool {
	return strings.HasPrefix(name, "samples/") && strings.HasSuffix(name, ".json")
}

func (a *archive) sum() []byte                  { return a.hash }
func (a *archive) samples() int                 { return len(a.list) }
func (a *archive) sample(i int) ([]byte, error) { return a.text(a.list[i]) }

func (a *archive) fail(i int, err error) error {
	return &source.Error{Path: a.path, Member: a.list[i].Name, Err: err}
}

func (a *archive) header() ([]byte, bool, error) {
	for _, name := range []string{"header.json", "_journal/start.json"} {
		if f := a.named[name]; f != nil {
			text, err := a.text(f)
			return text, name == "header.json", err
		}
	}
	return nil, false, &source.Error{
		Path: a.path, Err: errors.New("an archive without header.json and _journal/start.json"),
		Hint: "waza imports .eval logs of Inspect, but no other archives",
	}
}

// text unpacks an entry.
func (a *archive) text(f *zip.File) ([]byte, error) {
	text, err := unpack(f)
	if err == nil {
		text, err = source.CheckJSON(text)
	}
	if err != nil {
		return nil, &source.Error{Path: a.path, Member: f.Name, Err: err}
	}
	return text, nil
}

func unpack(f *zip.File) ([]byte, error) {
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	text, err := io.ReadAll(io.LimitReader(r, int64(f.UncompressedSize64)+1))
	if err == nil && uint64(len(text)) != f.UncompressedSize64 {
		err = fmt.Errorf("its size differs from the stated one, %d bytes", f.UncompressedSize64)
	}
	return text, err
}
