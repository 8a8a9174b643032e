// Package catalog finds, lists and removes the recorded runs of a state directory,
// those of other processes included. Make a [Catalog] with [New] and call
// [Catalog.ListBy], [Catalog.Find] or, to follow what changes, [Catalog.Watch].
package catalog

import (
	"encoding/json"
	"strconv"
	"strings"

	"waza/runner/journal"
)

// The memo keeps the Info of runs that have ended, so that a list of many runs looks
// at the files of each run without reading them. It is a file of sealed JSON lines,
// see [journal.Seal]:
//
//	{"catalog":4}
//	{"id":"20260101-…","stamp":"…","info":{…},"crc":"…"}
//
// The memo is a mere cache. A line counts as long as its checksum is right and the
// run has the same stamp, see [journal.Run.Stamp]; waza reads the run again
// otherwise. Several processes may write the file: the last one wins, which costs
// the lines of the others at worst.
const (
	catalogFile    = "runs.catalog"
	catalogVersion = 4 // raise it when the fields of Info change, or their meaning
)

var catalogHeader = `{"catalog":` + strconv.Itoa(catalogVersion) + "}\n"

// catalogSlack is how many lines may be missing before the file is written again:
// reading so many runs takes as long as writing it.
const catalogSlack = 32

// memo has the lines by the id of their run. A line is decoded when it is needed.
type memo struct {
	lines   map[string]string
	missing int // lines that were added
}

// The members of a line before the Info.
const (
	memoID    = `{"id":"`
	memoStamp = `","stamp":"`
	memoInfo  = `","info":`
)

// readMemo finds the lines of a file, which may hold anything.
func readMemo(data []byte) *memo {
	m := &memo{lines: map[string]string{}}
	rest, ok := strings.CutPrefix(string(data), catalogHeader)
	if !ok {
		return m
	}
	for line := range strings.Lines(rest) {
		begun, ok := strings.CutPrefix(line, memoID)
		if id, _, more := strings.Cut(begun, memoStamp); ok && more && strings.HasSuffix(line, "\n") {
			m.lines[id] = line
		}
	}
	return m
}

// encode is the file of the given runs.
func (m *memo) encode(ids []string) []byte {
	b := []byte(catalogHeader)
	for _, id := range ids {
		b = append(b, m.lines[id]...)
	}
	return b
}

// find returns the Info of a run that has the stamp, as JSON.
func (m *memo) find(id, stamp string) (info []byte, ok bool) {
	head := memoID + id + memoStamp + stamp + memoInfo
	if line := m.lines[id]; stamp == "" || !strings.HasPrefix(line, head) {
		return nil, false
	}
	body, ok := journal.Unseal(m.lines[id])
	if !ok {
		return nil, false
	}
	return body[len(head) : len(body)-1], true
}

// put remembers an Info.
func (m *memo) put(id, stamp string, info *Info) {
	b, err := json.Marshal(info)
	if stamp == "" || err != nil {
		return
	}
	m.lines[id] = string(journal.Seal([]byte(memoID + id + memoStamp + stamp + memoInfo + string(b) + "}")))
	m.missing++
}

// needles are texts that the JSON of every Info that f takes contains. Looking for
// them is quicker than decoding.
func (f Filter) needles() [][]byte {
	var list [][]byte
	for name, value := range map[string]string{"status": string(f.Status), "path": f.Path} {
		if b, err := json.Marshal(value); err == nil && value != "" {
			list = append(list, []byte(`"`+name+`":`+string(b)))
		}
	}
	return list
}

// saveMemo writes the memo if that is worth it. ids are all runs there are.
func (r *Catalog) saveMemo(m *memo, ids []string) {
	if m.missing+max(0, len(m.lines)-len(ids)) <= catalogSlack {
		return
	}
	if err := r.Store.WriteCache(catalogFile, m.encode(ids)); err != nil {
		r.log.Debug("catalog of runs not written", "error", err)
	}
}

func (r *Catalog) loadMemo() *memo { return readMemo(r.Store.ReadCache(catalogFile)) }
