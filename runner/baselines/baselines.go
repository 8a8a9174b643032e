// Package baselines counts how often each baseline of a state directory was compared. Call [In] for
// the ledger of a directory, and [Weight] for the share of the level that a comparison may spend.
//
// A baseline with lucky trials makes every candidate look worse. Comparing 20 candidates with it, one
// after the other, reports a difference that does not exist with a probability far beyond 5 %. The
// ledger therefore gives each question about a baseline its place, and later places have less
// weight.
package baselines

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"waza/eval/files"
)

const (
	// dirName is the folder of a state directory with a file for each baseline.
	dirName = "baselines"
	// maxBytes limits the file of a baseline: 30,000 questions.
	maxBytes = 1 << 20
)

// A Ledger counts the questions about the baselines of a state directory. Several processes can use
// the same directory at once. It is safe for concurrent use.
type Ledger struct{ dir string }

// In returns the ledger of a state directory. The directory need not exist.
func In(stateDir string) *Ledger { return &Ledger{filepath.Join(stateDir, dirName)} }

// Ask returns the place of a question among all questions about a baseline, from 1 on, and records
// it. The same question keeps its place, so that asking it again costs nothing. baseline and question
// are texts of any length that identify them; the ledger stores only digests.
//
// other is the run that is compared with the baseline if it is the only one, and otherwise empty. A
// comparison of two runs is the same question in both directions. It counts with the run that has
// more questions, so that a baseline does not become a new one by exchanging the two.
//
// The error is one of reading or writing the ledger. The place then is 1 more than that of all
// questions that could be read, or that fit into a ledger that is full.
func (l *Ledger) Ask(baseline, other, question string) (place int, err error) {
	if other != "" {
		here, all := l.known(baseline, question)
		there, more := l.known(other, question)
		if here == 0 && (there > 0 || more > all) {
			baseline = other
		}
	}
	return l.ask(baseline, question)
}

// known returns the place of a question that was asked before, or 0, and the number of questions.
func (l *Ledger) known(baseline, question string) (place, all int) {
	text, err := files.Read(filepath.Join(l.dir, digest(baseline)), maxBytes)
	if err != nil {
		return 0, 0
	}
	return find(text, []byte(digest(question)))
}

func (l *Ledger) ask(baseline, question string) (place int, err error) {
	line := []byte(digest(question) + "\n")
	path := filepath.Join(l.dir, digest(baseline))
	if err := os.MkdirAll(l.dir, 0o700); err != nil {
		return 1, err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE|unix.O_NONBLOCK, 0o600)
	if errors.Is(err, fs.ErrPermission) {
		return l.look(path, line, err)
	}
	if err != nil {
		return 1, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return 1, err
	case !info.Mode().IsRegular():
		return 1, fmt.Errorf("%s: not a regular file", path)
	case info.Size() > maxBytes:
		return int(info.Size()) / len(line), fmt.Errorf("%s: more than %s; it counts no more questions", path, files.Size(maxBytes))
	}
	before, err := files.ReadAll(f, maxBytes)
	if err != nil {
		return 1, err
	}
	if at, all := find(before, line); at > 0 {
		return at, nil
	} else if len(before) > 0 && before[len(before)-1] != '\n' {
		line = append([]byte("\n"), line...) // a full disk cut the last line
		place = all + 1
	} else {
		place = all + 1
	}
	if _, err := f.Write(line); err != nil {
		return place, err
	}
	// Other processes can have written their lines since. The order of lines decides.
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return place, err
	}
	after, err := files.ReadAll(f, maxBytes)
	if err != nil {
		return place, err
	}
	at, _ := find(after, bytes.TrimLeft(line, "\n"))
	return max(at, 1), nil
}

// look returns the place of a question without recording it.
func (l *Ledger) look(path string, line []byte, err error) (int, error) {
	text, rerr := files.Read(path, maxBytes)
	if rerr != nil {
		return 1, err
	}
	at, all := find(text, line)
	if at > 0 {
		return at, nil
	}
	return all + 1, err
}

// find returns the place of a line among the different lines of a text, or 0, and their number.
func find(text, line []byte) (at, all int) {
	seen := map[string]bool{}
	for l := range bytes.Lines(text) {
		l = bytes.TrimRight(l, "\n")
		if len(l) == 0 || seen[string(l)] {
			continue
		}
		seen[string(l)] = true
		if bytes.Equal(l, bytes.TrimRight(line, "\n")) {
			at = len(seen)
		}
	}
	return at, len(seen)
}

func digest(text string) string {
	h := files.NewHasher()
	_, _ = h.Write([]byte(text)) // never fails
	return h.Digest()
}

// firstWeight is the share of the level that the first comparison with a baseline spends.
const firstWeight = 0.8

// Weight returns the share of the level that the comparison at a place, from 1 on, may spend: 4/5 at
// the first, and 1/5 · 1/((n-1)·n) at the n-th. All of them together spend at most the level, so
// that the probability that any comparison with a baseline reports a difference that does not exist
// is at most the level, whatever the candidates have in common and however many there are (alpha
// spending; Foster and Stine 2008, "α-investing", without its rewards, because these assume that
// comparisons are independent, and all of these share a baseline).
//
// Most baselines are compared once, so the first comparison gets most of the level. Rules that
// control the false discovery rate (Javanmard and Montanari 2018) are no alternative, because a
// single false verdict is an error here.
func Weight(place int) float64 {
	if place <= 1 {
		return firstWeight
	}
	n := float64(place)
	return (1 - firstWeight) / ((n - 1) * n)
}
