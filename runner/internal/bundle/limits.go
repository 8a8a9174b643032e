package bundle

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"waza/eval/files"
)

// Limits of the files of a run. Zero fields mean the defaults.
type Limits struct {
	// FileBytes is the maximum size of one file; the default is 256 MiB. A git repository counts
	// as a file.
	FileBytes int64
	// Bytes is the maximum size of all files of a run; the default is 1 GiB. Files with the same
	// content all count.
	Bytes int64
	// Files is the maximum number of files, directories and links of a run; the default is
	// 20,000.
	Files int
}

// The defaults of [Limits].
const (
	maxFileBytes = 256 << 20
	maxBytes     = 1 << 30
	maxFiles     = 20_000
)

func (l Limits) orDefaults() Limits {
	return Limits{cmp.Or(l.FileBytes, maxFileBytes), cmp.Or(l.Bytes, maxBytes), cmp.Or(l.Files, maxFiles)}
}

// usage is how much of the limits is used, and by which folders.
type usage struct {
	bytes int64
	files int
	by    map[string]*share // by folder
}

type share struct {
	name  string
	bytes int64
	files int
}

// count adds a file of a folder.
func (u *usage) count(folder string, bytes int64) {
	u.bytes += bytes
	u.files++
	if u.by == nil {
		u.by = map[string]*share{}
	}
	s := u.by[folder]
	if s == nil {
		s = &share{name: folder}
		u.by[folder] = s
	}
	s.bytes += bytes
	s.files++
}

// check returns an error if a limit is exceeded. The error names the largest folders.
func (u *usage) check(l Limits) error {
	var got, limit string
	var more func(s *share) int64
	var show func(s *share) string
	switch {
	case u.bytes > l.Bytes:
		got, limit = about(u.bytes), files.Size(l.Bytes)
		more, show = func(s *share) int64 { return s.bytes }, func(s *share) string { return about(s.bytes) }
	case u.files > l.Files:
		got, limit = fmt.Sprintf("%d files and directories", u.files), fmt.Sprint(l.Files)
		more, show = func(s *share) int64 { return int64(s.files) }, func(s *share) string { return fmt.Sprint(s.files) }
	default:
		return nil
	}
	shares := slices.SortedFunc(maps.Values(u.by), func(a, b *share) int {
		return cmp.Or(cmp.Compare(more(b), more(a)), cmp.Compare(a.name, b.name))
	})
	var largest []string
	for _, s := range shares[:min(len(shares), 3)] {
		largest = append(largest, fmt.Sprintf("%s (%s)", s.name, show(s)))
	}
	return fmt.Errorf("the files of the run have %s, but a fleet accepts at most %s; the largest are %s; move "+
		"files that trials do not need out of the directories of the suite and its skills",
		got, limit, strings.Join(largest, ", "))
}

// about formats a number of bytes for people.
func about(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
}
