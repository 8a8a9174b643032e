package replay

import (
	"slices"
	"sync"

	"waza/runner/record"
)

// A memory holds what a [RecordedRun] has learned from its record, so that a command that asks for
// progress, results and damage reads the record once: with a million trials, each reading takes
// seconds. It is safe for concurrent use.
type memory struct {
	mu    sync.Mutex // guards the fields below
	stamp string     // of the record when it was read, see [journal.Run.ReadingStamp]
	known knowledge
}

// knowledge consists of the parts of a record that were read; nil for the others. Of a trial it
// contains only the place, because trials take most of the space.
type knowledge struct {
	head    *headRead
	journal *checker
	damage  *damageRead
	// progress is that of the state.
	progress *record.Progress
	state    *State // shared: nobody may change it
}

// headRead is the head of result.json and the damage of that file. Either can be nil.
type headRead struct {
	head   *resultHead
	broken *record.DamagedFile
}

// damageRead is the damage of a record, which is nil without damage.
type damageRead struct{ damage *record.Damage }

// recall returns the kept facts about the record with this stamp.
func (m *memory) recall(stamp string) knowledge {
	m.mu.Lock()
	defer m.mu.Unlock()
	if stamp == "" || stamp != m.stamp {
		return knowledge{}
	}
	return m.known
}

// learn adds facts about the record. The stamp is from before reading, so that a record that
// changed meanwhile has another stamp.
func (m *memory) learn(stamp string, add func(*knowledge)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if stamp != m.stamp {
		m.stamp, m.known = stamp, knowledge{}
	}
	add(&m.known)
}

// copied returns a head and its damage as the caller may change them.
func (h *headRead) copied() (*resultHead, *record.DamagedFile) {
	return shallow(h.head), shallow(h.broken)
}

// copied returns the damage as the caller may change it.
func (d *damageRead) copied() *record.Damage {
	c := shallow(d.damage)
	if c != nil {
		c.Files = slices.Clone(c.Files)
	}
	return c
}

// shallow returns a copy of the value that p points to; nil if p is.
func shallow[T any](p *T) *T {
	if p == nil {
		return nil
	}
	c := *p
	return &c
}
