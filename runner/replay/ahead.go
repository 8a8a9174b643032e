package replay

import (
	"errors"
	"io"

	"waza/runner/journal"
)

// Verifying a line takes a little longer than lifting its event. A long journal is therefore read
// on two processors: one goroutine reads and verifies lines, and its caller uses those of the batch
// before.
//
//	readAhead ◄── full ─── goroutine: Reader.Next, checker
//	     └─────── empty ──────► ▲

// A lineBatch holds consecutive undamaged lines.
type lineBatch struct {
	text  []byte // all lines
	lines []batchedLine
	err   error // after the lines
}

// batchedLine is the end of a line in the text of its batch, with its number and its offset in the
// file.
type batchedLine struct {
	end         int
	number, off int64
}

// batchBytes is the size of the text at which a batch is full.
const batchBytes = 128 << 10

// batches is the number of batches: one is filled, one is used, and one lets neither side wait for
// each change of goroutines.
const batches = 3

// fill reads lines until the batch is full or has an error.
func (b *lineBatch) fill(r *journal.Reader, check *checker) {
	b.text, b.lines, b.err = b.text[:0], b.lines[:0], nil
	for b.err == nil && len(b.text) < batchBytes {
		var line []byte
		var at batchedLine
		if line, at.number, at.off, b.err = check.next(r); b.err == nil {
			b.text = append(b.text, line...)
			at.end = len(b.text)
			b.lines = append(b.lines, at)
		}
	}
}

// readAhead calls use for the undamaged lines of a journal, in order. A line is valid until use
// returns. Nobody else may use the reader and the checker until readAhead returns.
func readAhead(r *journal.Reader, check *checker, use func(line []byte, number, off int64)) error {
	r.Reuse()
	full, empty := make(chan *lineBatch, batches), make(chan *lineBatch, batches)
	for range batches {
		empty <- new(lineBatch)
	}
	go func() {
		for {
			b := <-empty
			b.fill(r, check)
			full <- b
			if b.err != nil {
				return
			}
		}
	}()
	for {
		b := <-full
		start := 0
		for _, at := range b.lines {
			use(b.text[start:at.end:at.end], at.number, at.off)
			start = at.end
		}
		switch {
		case errors.Is(b.err, io.EOF):
			return nil
		case b.err != nil:
			return b.err
		}
		empty <- b
	}
}
