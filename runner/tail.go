package runner

import (
	"sort"

	"waza/runner/record"
)

// tailEvents and tailBytes limit the recorded events that are kept in memory for fast subscribers.
// Slow subscribers read the journal.
const (
	tailEvents = 2048
	tailBytes  = 8 << 20
)

// tail holds the last events of a run, in the batches in which they were recorded. Batches never
// change, so subscribers share them. A tail is not safe for concurrent use.
type tail struct {
	batches []tailBatch // in the order of their events, without gaps
	events  int
	bytes   int
}

type tailBatch struct {
	events []*record.Event // at least one
	bytes  int
}

// add adds the events after those of the tail, and removes the oldest ones beyond the limits. The
// last batch stays, whatever its size.
func (t *tail) add(events []*record.Event, bytes int) {
	t.batches = append(t.batches, tailBatch{events, bytes})
	t.events += len(events)
	t.bytes += bytes
	for len(t.batches) > 1 && (t.events > tailEvents || t.bytes > tailBytes) {
		oldest := t.batches[0]
		t.events -= len(oldest.events)
		t.bytes -= oldest.bytes
		t.batches[0] = tailBatch{} // append moves the others now and then, and drops it
		t.batches = t.batches[1:]
	}
}

// from returns events from the number seq on, at least one, or nil if the tail does not contain
// that event. start is the number of its first event; next if it has none.
func (t *tail) from(seq, next int64) (events []*record.Event, start int64) {
	if len(t.batches) == 0 {
		return nil, next
	}
	if start = t.batches[0].events[0].Seq; seq < start {
		return nil, start
	}
	after := sort.Search(len(t.batches), func(i int) bool { return t.batches[i].events[0].Seq > seq })
	batch := t.batches[after-1].events
	return batch[seq-batch[0].Seq:], start
}
