package page

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"waza/runner/record"
)

const (
	// htmlTranscripts is the default of Options.TranscriptBytes.
	htmlTranscripts = 50_000_000
	// htmlChunk is about how many bytes are compressed together. Trials of one task resemble
	// each other, but opening one trial decompresses its whole chunk.
	htmlChunk = 512 << 10
	// usualRatio is a compression ratio that is always reached. Data smaller than that times the
	// room fits in any order.
	usualRatio = 2
)

// errNoRoom ends the reading of trials.
var errNoRoom = errors.New("no room for more transcripts")

// writeTranscripts writes the trials of the columns in compressed chunks; each chunk is an
// element that lists its trials. If there may not be room for all, trials that did not pass and
// the first of each task come before the others.
func writeTranscripts(out *bufio.Writer, h record.Handle, d *htmlData, room int64) error {
	if room <= 0 {
		room = htmlTranscripts
	}
	blobs, err := h.Blobs()
	if err != nil {
		return err
	}
	defer blobs.Close()
	c := &chunker{out: out, room: room}
	passes := []func(at int) bool{func(int) bool { return true }}
	if d.weight/usualRatio > room {
		passes = []func(at int) bool{d.matters, func(at int) bool { return !d.matters(at) }}
	}
	for _, wanted := range passes {
		if err := d.chunk(c, h, blobs, wanted); err != nil {
			return err
		}
	}
	return nil
}

// matters reports whether people are likely to look at a trial first.
func (d *htmlData) matters(at int) bool {
	return d.columns.Verdict[at] != 'p' || at == 0 || d.columns.Num[at] <= d.columns.Num[at-1]
}

// chunk writes the wanted trials of the run as long as there is room.
func (d *htmlData) chunk(c *chunker, h record.Handle, blobs record.Blobs, wanted func(at int) bool) error {
	err := h.Trials(func(task int, t *record.Trial) error {
		if c.full() {
			return errNoRoom
		}
		// A running run may have progressed since the columns were filled.
		if at, ok := d.find(task, t.TrialNum); ok && wanted(at) {
			return c.add(at, ViewTrial(t, blobs))
		}
		return nil
	})
	if err != nil && !errors.Is(err, errNoRoom) {
		return err
	}
	return c.flush()
}

// A chunker gathers trials and writes them as elements.
type chunker struct {
	out  *bufio.Writer
	room int64 // bytes left to write

	raw    bytes.Buffer // the current chunk, an array of JSON without its end
	trials []int        // in the current chunk
	packed bytes.Buffer
}

func (c *chunker) full() bool { return c.room <= 0 }

// add writes a view with the trial's index in the columns.
func (c *chunker) add(at int, t *TrialView) error {
	b, err := json.Marshal(struct {
		At int `json:"at"`
		*TrialView
	}{at, t})
	if err != nil {
		return fmt.Errorf("trial %d of task %s: %w", t.TrialNum, t.TaskID, err)
	}
	// With little room left, chunks are small, because a chunk is written completely or not at
	// all.
	if len(c.trials) > 0 && int64(c.raw.Len()+len(b)) > min(htmlChunk, c.room) {
		if err := c.flush(); err != nil {
			return err
		}
		if c.full() {
			return errNoRoom
		}
	}
	if len(c.trials) == 0 {
		c.raw.WriteByte('[')
	} else {
		c.raw.WriteByte(',')
	}
	c.raw.Write(b)
	c.trials = append(c.trials, at)
	return nil
}

// flush writes the chunk if there is room for it.
func (c *chunker) flush() error {
	if len(c.trials) == 0 {
		return nil
	}
	c.raw.WriteByte(']')
	c.packed.Reset()
	z := gzip.NewWriter(&c.packed)
	if _, err := z.Write(c.raw.Bytes()); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	c.room -= int64(c.packed.Len())
	if c.room >= 0 {
		fmt.Fprintf(c.out, "<script type=\"application/octet-stream\" data-trials=\"%s\">", ranges(c.trials))
		enc := base64.NewEncoder(base64.StdEncoding, c.out)
		if _, err := enc.Write(c.packed.Bytes()); err != nil {
			return err
		}
		if err := enc.Close(); err != nil {
			return err
		}
		c.out.WriteString("</script>\n")
	}
	c.raw.Reset()
	c.trials = c.trials[:0]
	return c.out.Flush()
}

// ranges formats ascending numbers in a short form: 0-15,18.
func ranges(list []int) string {
	var b strings.Builder
	for i := 0; i < len(list); {
		j := i
		for j+1 < len(list) && list[j+1] == list[j]+1 {
			j++
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%d", list[i])
		if j > i {
			fmt.Fprintf(&b, "-%d", list[j])
		}
		i = j + 1
	}
	return b.String()
}
