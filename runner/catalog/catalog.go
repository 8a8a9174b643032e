// Package catalog finds, lists and removes the recorded runs of a state directory,
// those of other processes included. Make a [Catalog] with [New] and call
// [Catalog.ListBy] or [Catalog.Find].
package catalog

import (
	"fmt"
	"hash/crc32"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// The catalog remembers the Info of runs that are over, so that a list of many
// runs costs a look at each one's files and not into them. It is a file of lines
//
//	waza-catalog <version and shape of Info>
//	<checksum> <run> <stamp> <Info, see catalog_info.go>
//
// and a mere cache: an entry counts as long as the run has the same stamp, see
// [journal.Run.Stamp], and what is missing, damaged, of another version or of a
// run that is gone is made again, or dropped. Several processes may write it; the
// last one's stays, and costs the others' entries at worst.
const (
	catalogFile    = "runs.catalog"
	catalogHead    = "waza-catalog "
	catalogVersion = 2 // raise it when Info comes to mean something else
)

// catalogSlack is how many entries may be missing before the catalog is written
// anew: reading so many runs takes as long as writing it.
const catalogSlack = 32

type memo struct {
	entries map[string]memoEntry
	missing int // entries that were added or dropped
}

// memoEntry is a line. Info is decoded when it is wanted.
type memoEntry struct{ stamp, info string }

// readCatalog takes a file apart. Nothing that it may hold is an error.
func readCatalog(data []byte) *memo {
	c := &memo{entries: map[string]memoEntry{}}
	head, rest, _ := strings.Cut(string(data), "\n")
	if head != catalogHeader {
		return c
	}
	for line := range strings.Lines(rest) {
		if id, e, ok := parseEntry(strings.TrimSuffix(line, "\n")); ok {
			c.entries[id] = e
		}
	}
	return c
}

// parseEntry takes a line apart.
func parseEntry(line string) (id string, e memoEntry, ok bool) {
	sum, body, _ := strings.Cut(line, " ")
	want, err := strconv.ParseUint(sum, 16, 32)
	if err != nil || uint32(want) != crc32.ChecksumIEEE([]byte(body)) {
		return "", e, false
	}
	id, body, _ = strings.Cut(body, " ")
	e.stamp, e.info, ok = strings.Cut(body, " ")
	return id, e, ok
}

func appendEntry(b []byte, id string, e memoEntry) []byte {
	body := id + " " + e.stamp + " " + e.info
	return fmt.Appendf(b, "%08x %s\n", crc32.ChecksumIEEE([]byte(body)), body)
}

// encode is the file of the entries of the given runs.
func (c *memo) encode(ids []string) []byte {
	b := []byte(catalogHeader + "\n")
	for _, id := range ids {
		if e, ok := c.entries[id]; ok {
			b = appendEntry(b, id, e)
		}
	}
	return b
}

// find returns the entry of a run that has the stamp.
func (c *memo) find(id, stamp string) (e memoEntry, ok bool) {
	e, ok = c.entries[id]
	return e, ok && stamp != "" && e.stamp == stamp
}

// put remembers an Info.
func (c *memo) put(id, stamp string, info *Info) {
	if stamp != "" {
		c.entries[id] = memoEntry{stamp, encodeInfo(info)}
		c.missing++
	}
}

// decode returns the Info, or false when it is of no use.
func (e memoEntry) decode(id string) (info Info, ok bool) {
	ok = decodeInfo(e.info, &info)
	return info, ok && info.RunID == id
}

// saveCatalog writes the catalog if that is worth it. ids are all runs there are.
func (r *Catalog) saveMemo(c *memo, ids []string) {
	missing := c.missing + max(0, len(c.entries)-len(ids))
	if missing <= catalogSlack {
		return
	}
	if err := r.Store.WriteCache(catalogFile, c.encode(ids)); err != nil {
		r.log.Debug("catalog of runs not written", "error", err)
	}
}

func (r *Catalog) loadMemo() *memo { return readCatalog(r.Store.ReadCache(catalogFile)) }

var catalogHeader = catalogHead + strconv.Itoa(catalogVersion) + "-" +
	strconv.FormatUint(uint64(crc32.ChecksumIEEE([]byte(shape(reflect.TypeFor[Info]())))), 36)

// shape tells types apart by what JSON makes of them: a catalog that was written by
// a waza whose Info has other fields is of no use.
func shape(t reflect.Type) string {
	switch {
	case t.Kind() == reflect.Pointer:
		return "*" + shape(t.Elem())
	case t.Kind() == reflect.Struct && t != reflect.TypeFor[time.Time]():
		s := "{"
		for i := range t.NumField() {
			f := t.Field(i)
			s += f.Name + " " + f.Tag.Get("json") + " " + shape(f.Type) + ";"
		}
		return s + "}"
	}
	return t.String()
}
