// Package catalog finds, lists and removes the recorded runs of a state directory, including
// runs of other processes. Make a [Catalog] with [New] and call [Catalog.ListBy], [Catalog.Find]
// or, to follow changes, [Catalog.Watch].
package catalog

import (
	"encoding/json"
	"os"
	"strconv"
	"strings"

	"waza/runner/journal"
)

// The memo keeps the Info of runs that have ended. A list of many runs then checks the files of
// each run without reading them. The memo is a file of sealed JSON lines, see
// [journal.CacheSealer]:
//
//	{"catalog":6}
//	{"id":"20260101-…","stamp":"…","info":{…},"mac":"…","crc":"…"}
//
// The memo is only a cache. A line is valid while its digest is right and the run has the same
// stamp, see [journal.Run.Stamp]; otherwise waza reads the run again. Several processes can
// write the file. The last one wins, which at worst loses the lines of the others.
const (
	catalogFile    = "runs.catalog"
	catalogVersion = 7 // increment it when the fields of Info or their meaning change
)

var catalogHeader = `{"catalog":` + strconv.Itoa(catalogVersion) + "}\n"

// catalogSlack is the number of lines of small runs that may be missing before the file is
// rewritten. Reading that many runs takes as long as writing the file.
const catalogSlack = 32

// memo holds the lines by run id. A line is decoded when it is needed.
type memo struct {
	sealer  journal.CacheSealer
	lines   map[string]string
	missing int // sum of the costs of the added lines, see readingCost
}

// The members of a line that precede the Info.
const (
	memoID    = `{"id":"`
	memoStamp = `","stamp":"`
	memoInfo  = `","info":`
)

// readMemo parses the lines of a file, which may contain anything.
func readMemo(data []byte, sealer journal.CacheSealer) *memo {
	m := &memo{sealer: sealer, lines: map[string]string{}}
	rest, ok := strings.CutPrefix(string(data), catalogHeader)
	if !ok {
		return m
	}
	for line := range strings.Lines(rest) {
		started, ok := strings.CutPrefix(line, memoID)
		if id, _, more := strings.Cut(started, memoStamp); ok && more && strings.HasSuffix(line, "\n") {
			m.lines[id] = line
		}
	}
	return m
}

// encode returns the file for the given runs.
func (m *memo) encode(ids []string) []byte {
	b := []byte(catalogHeader)
	for _, id := range ids {
		b = append(b, m.lines[id]...)
	}
	return b
}

// find returns the Info of a run as JSON if the run has the stamp.
func (m *memo) find(id, stamp string) (info []byte, ok bool) {
	head := memoID + id + memoStamp + stamp + memoInfo
	if line := m.lines[id]; stamp == "" || !strings.HasPrefix(line, head) {
		return nil, false
	}
	body, ok := m.sealer.Unseal(m.lines[id])
	if !ok {
		return nil, false
	}
	return body[len(head) : len(body)-1], true
}

// readingCost returns how many small runs can be read in the time that reading a run takes. One that
// is expensive enough is worth a file even if it is the only one.
func readingCost(run *journal.Run) int {
	const sameTime = 256 << 10 // bytes of a journal that are read in the time that a small run takes
	info, err := os.Stat(run.JournalPath())
	if err != nil {
		return 1
	}
	return 1 + int(info.Size()/sameTime)
}

// put adds an Info that took some cost to read.
func (m *memo) put(id, stamp string, info *Info, cost int) {
	b, err := json.Marshal(info)
	if stamp == "" || err != nil {
		return
	}
	if line := m.sealer.Seal([]byte(memoID + id + memoStamp + stamp + memoInfo + string(b) + "}")); line != nil {
		m.lines[id] = string(line)
		m.missing += cost
	}
}

// needles returns texts that occur in the JSON of every Info that f chooses. Searching for them
// is faster than decoding.
func (f Filter) needles() [][]byte {
	var list [][]byte
	for name, value := range map[string]string{"status": string(f.Status), "path": f.Path} {
		if b, err := json.Marshal(value); err == nil && value != "" {
			list = append(list, []byte(`"`+name+`":`+string(b)))
		}
	}
	return list
}

// save writes the memo if it changed enough. ids are the ids of all existing runs.
func (m *memo) save(store *journal.Store, ids []string) error {
	if m.missing+max(0, len(m.lines)-len(ids)) <= catalogSlack {
		return nil
	}
	return store.Cache(catalogFile).Write(m.encode(ids))
}

func loadMemo(store *journal.Store) *memo {
	file := store.Cache(catalogFile)
	return readMemo(file.Read(), file.Sealer())
}
