package page

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"waza/eval/jsonwalk"
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
	c := &chunker{out: out, room: room, atOnce: runtime.GOMAXPROCS(0)}
	defer c.wait()
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
	return d.columns.verdict[at] != 'p' || at == 0 || d.columns.num[at] <= d.columns.num[at-1]
}

// chunk writes the wanted trials of the run as long as there is room.
func (d *htmlData) chunk(c *chunker, h record.Handle, blobs record.Blobs, wanted func(at int) bool) error {
	err := h.Chosen(func(task, num int) bool {
		at, ok := d.find(task, num) // a running run may have progressed since the columns were filled
		return ok && wanted(at)
	}, func(task int, t *record.Trial) error {
		if full, err := c.full(); full || err != nil {
			return cmp.Or(err, errNoRoom)
		}
		at, _ := d.find(task, t.TrialNum)
		return c.add(at, ViewTrial(t, blobs))
	})
	if err != nil && !errors.Is(err, errNoRoom) {
		return err
	}
	if err := c.pack(); err != nil {
		return err
	}
	for len(c.packing) > 0 {
		if err := c.writeFirst(); err != nil {
			return err
		}
	}
	return nil
}

// A chunker gathers trials and writes them as elements, in order. Compressing takes most of the time,
// so goroutines compress the last chunks while further trials are gathered. It writes the same as
// without them.
type chunker struct {
	out    *bufio.Writer
	room   int64 // bytes left to write, without those of packing
	atOnce int   // the most chunks that are compressed at once

	current *chunk
	packing []*chunk // being compressed, in order
	spare   []*chunk // for reuse

	plain   []byte       // memory of encode
	escaped bytes.Buffer // the same
}

// A chunk is a list of trials. Its goroutine owns it until done receives a value.
type chunk struct {
	raw    bytes.Buffer // an array of JSON, without its end while it is gathered
	trials []int        // indexes in the columns
	packed bytes.Buffer
	zip    *gzip.Writer
	err    error
	done   chan struct{}
}

// full reports whether there is no room for another chunk.
func (c *chunker) full() (bool, error) {
	err := c.settle()
	return c.room <= 0, err
}

// settle waits for chunks as long as their compressed sizes could matter: if whatever their sizes are
// there is room for a whole chunk more, nothing depends on them.
func (c *chunker) settle() error {
	for len(c.packing) > 0 && c.room-c.most() < htmlChunk {
		if err := c.writeFirst(); err != nil {
			return err
		}
	}
	return nil
}

// most returns the most bytes that the chunks can have that are being compressed.
func (c *chunker) most() (n int64) {
	for _, p := range c.packing {
		size := int64(p.raw.Len())
		n += size + size/1000 + 64 // what cannot be compressed gets headers
	}
	return n
}

// add adds a view with the trial's index in the columns.
func (c *chunker) add(at int, t *TrialView) error {
	b, err := c.encode(at, t)
	if err != nil {
		return fmt.Errorf("trial %d of task %s: %w", t.TrialNum, t.TaskID, err)
	}
	// With little room left, chunks are small, because a chunk is written completely or not at
	// all.
	if k := c.current; k != nil && int64(k.raw.Len()+len(b)) > min(htmlChunk, c.room-c.most()) {
		if err := c.pack(); err != nil {
			return err
		}
		if full, err := c.full(); full || err != nil {
			return cmp.Or(err, errNoRoom)
		}
	}
	if c.current == nil {
		c.current = c.empty()
		c.current.raw.WriteByte('[')
	} else {
		c.current.raw.WriteByte(',')
	}
	c.current.raw.Write(b)
	c.current.trials = append(c.current.trials, at)
	return nil
}

// encode returns a view with the trial's index as JSON, like encoding/json in a third of its time. It
// is valid until the next call.
func (c *chunker) encode(at int, t *TrialView) ([]byte, error) {
	b := strconv.AppendInt(append(c.plain[:0], `{"at":`...), int64(at), 10)
	b, err := t.Trial.AppendMembers(append(b, ','))
	if err != nil {
		return nil, err
	}
	b = b[:len(b)-len("}")]
	if len(t.Files) > 0 {
		if b, err = jsonwalk.Append(append(b, `,"files":`...), t.Files); err != nil {
			return nil, err
		}
	}
	b = jsonwalk.AppendText(b, `,"incomplete":`, t.Incomplete)
	b = append(jsonwalk.AppendInt(b, `,"cut":`, t.Cut), '}')
	c.plain = b
	c.escaped.Reset()
	json.HTMLEscape(&c.escaped, b)
	return c.escaped.Bytes(), nil
}

// empty returns a chunk without trials.
func (c *chunker) empty() *chunk {
	n := len(c.spare)
	if n == 0 {
		return &chunk{zip: gzip.NewWriter(nil), done: make(chan struct{}, 1)}
	}
	k := c.spare[n-1]
	c.spare = c.spare[:n-1]
	k.raw.Reset()
	k.packed.Reset()
	k.trials = k.trials[:0]
	return k
}

// pack starts to compress the current chunk, if there is one.
func (c *chunker) pack() error {
	k := c.current
	if k == nil {
		return nil
	}
	for len(c.packing) >= c.atOnce {
		if err := c.writeFirst(); err != nil {
			return err
		}
	}
	k.raw.WriteByte(']')
	c.packing, c.current = append(c.packing, k), nil
	go func() {
		k.zip.Reset(&k.packed)
		_, err := k.zip.Write(k.raw.Bytes())
		k.err = cmp.Or(err, k.zip.Close())
		k.done <- struct{}{}
	}()
	return nil
}

// writeFirst waits for the first of the chunks that are being compressed, and writes it if there is
// room for it.
func (c *chunker) writeFirst() error {
	k := c.packing[0]
	<-k.done
	c.packing = slices.Delete(c.packing, 0, 1)
	if k.err != nil {
		return k.err
	}
	c.room -= int64(k.packed.Len())
	if c.room >= 0 {
		fmt.Fprintf(c.out, "<script type=\"application/octet-stream\" data-trials=\"%s\">", ranges(k.trials))
		enc := base64.NewEncoder(base64.StdEncoding, c.out)
		if _, err := enc.Write(k.packed.Bytes()); err != nil {
			return err
		}
		if err := enc.Close(); err != nil {
			return err
		}
		c.out.WriteString("</script>\n")
	}
	c.spare = append(c.spare, k)
	return c.out.Flush()
}

// wait waits for the goroutines that still compress chunks.
func (c *chunker) wait() {
	for _, k := range c.packing {
		<-k.done
	}
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
