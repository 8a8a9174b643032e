package grader

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/eval/files"
	"waza/eval/reach"
)

// around are options of a grader with a script in the directory check of a suite.
type around struct{}

func (*around) Refers(s *eval.Suite, _ *eval.Task) []string {
	return []string{filepath.Join(s.Dir, "check", "check.sh")}
}

func (*around) Around(s *eval.Suite, named []string) []Place {
	return []Place{{Dir: filepath.Dir(named[0])}, {Dir: filepath.Join(s.Dir, "check", "sub")}}
}

type surroundings struct {
	t *testing.T
	*Planned
	suite   *eval.Suite
	task    *eval.Task
	options *around
}

func newSurroundings(t *testing.T, p *Planned, paths ...string) *surroundings {
	dir := t.TempDir()
	s := &surroundings{t, p, &eval.Suite{Places: reach.Places{Dir: dir, RootDir: dir}}, &eval.Task{}, &around{}}
	for _, path := range append(paths, "check/check.sh") {
		s.write(path, "planned")
	}
	require.NoError(t, p.Hold(&eval.Grader{Options: s.options}, s.suite, s.task, nil))
	require.Empty(t, s.changed())
	return s
}

func (s *surroundings) path(name string) string { return filepath.Join(s.suite.Dir, name) }

func (s *surroundings) write(name, text string) {
	require.NoError(s.t, os.MkdirAll(filepath.Dir(s.path(name)), 0o700))
	require.NoError(s.t, os.WriteFile(s.path(name), []byte(text), 0o600))
}

// changed lists the changes, with a plus before added files.
func (s *surroundings) changed() string {
	var names []string
	for _, c := range s.Compare(s.options, s.task).Changed {
		rel, err := filepath.Rel(s.suite.Dir, c.Path)
		require.NoError(s.t, err)
		names = append(names, map[bool]string{true: "+"}[c.Added]+rel)
	}
	return strings.Join(names, " ")
}

func TestPlannedNoticesChanges(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(s *surroundings)
		want   string
	}{
		"nothing":              {func(*surroundings) {}, ""},
		"same content":         {func(s *surroundings) { s.write("check/sub/data", "planned") }, ""},
		"elsewhere":            {func(s *surroundings) { s.write("other/data", "x"); s.write("file", "x") }, ""},
		"same length":          {func(s *surroundings) { s.write("check/sub/data", "PLANNED") }, "check/sub/data"},
		"script":               {func(s *surroundings) { s.write("check/check.sh", "x") }, "check/check.sh"},
		"new":                  {func(s *surroundings) { s.write("check/sub/more", "x") }, "+check/sub/more"},
		"new directory":        {func(s *surroundings) { s.write("check/new/a", "x"); s.write("check/new/b", "x") }, "+check/new"},
		"removed":              {func(s *surroundings) { require.NoError(s.t, os.Remove(s.path("check/sub/data"))) }, "check/sub/data"},
		"removed directory":    {func(s *surroundings) { require.NoError(s.t, os.RemoveAll(s.path("check/sub"))) }, "check/link check/sub"},
		"link instead of file": {func(s *surroundings) { s.relink("check/sub/data", "elsewhere") }, "check/sub/data"},
		"link to another file": {func(s *surroundings) { s.relink("check/link", "sub/data") }, "check/link"},
		"target of a link":     {func(s *surroundings) { s.write("target", "x") }, "check/out"},
		"directory of a link":  {func(s *surroundings) { s.write("linked/more", "x") }, "+linked/more"},
		"many files":           {func(s *surroundings) { s.many() }, "+check/many"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &surroundings{
				t: t, suite: &eval.Suite{Places: reach.Places{Dir: t.TempDir()}}, task: &eval.Task{},
				options: &around{}, Planned: &Planned{},
			}
			s.suite.RootDir = s.suite.Dir
			for _, path := range []string{"check/check.sh", "check/sub/data", "check/sub/other", "target", "linked/a"} {
				s.write(path, "planned")
			}
			s.relink("check/link", "sub/other")
			s.relink("check/out", "../target")
			s.relink("check/dir", "../linked")
			require.NoError(t, s.Hold(&eval.Grader{Options: s.options}, s.suite, s.task, nil))
			require.Empty(t, s.changed())
			c.change(s)
			require.Equal(t, c.want, s.changed())
		})
	}
}

func (s *surroundings) relink(name, to string) {
	_ = os.Remove(s.path(name)) // it need not exist
	require.NoError(s.t, os.Symlink(to, s.path(name)))
}

func (s *surroundings) many() {
	for i := range 2 * maxChanges {
		s.write(fmt.Sprintf("check/many/%d", i), "x")
	}
}

// A file that existed only for a moment leaves a trace.
func TestPlannedNoticesMoments(t *testing.T) {
	t.Parallel()
	s := newSurroundings(t, &Planned{}, "check/sub/data")
	before := s.Compare(s.options, s.task)
	require.True(t, s.Compare(s.options, s.task).Same(before))
	s.write("check/sub/new", "x")
	require.NoError(t, os.Remove(s.path("check/sub/new")))
	require.NoError(t, os.Chtimes(s.path("check/sub"), time.Unix(1, 0), time.Unix(1, 0))) // a clock with large steps
	require.Empty(t, s.changed())
	require.False(t, s.Compare(s.options, s.task).Same(before))
}

// Beyond the limit of files, waza says that it does not check them. It checks the nearer ones.
func TestPlannedTooManyFiles(t *testing.T) {
	t.Parallel()
	p := &Planned{around: 6}
	s := newSurroundings(t, p, "check/a", "check/far/1", "check/far/2", "check/far/3", "check/far/4", "check/far/5")
	require.Equal(t, s.path("check/far"), p.Unread(s.options, s.task))
	s.write("check/far/1", "x")
	require.Empty(t, s.changed())
	s.write("check/a", "x")
	require.Equal(t, "check/a", s.changed())
	contents, err := p.Contents(s.options, s.task)
	require.NoError(t, err)
	require.Equal(t, PlannedFile{}, contents[s.path("check/far")], "a link to the directory")
}

// A file without a copy ends the grader in error if it changed, and is read at its place if not.
func TestPlannedWithoutCopy(t *testing.T) {
	t.Parallel()
	s := newSurroundings(t, &Planned{}, "check/.venv/module", "check/data")
	s.write("check/data", "x")
	contents, err := s.Contents(s.options, s.task)
	require.NoError(t, err)
	require.Nil(t, contents[s.path("check/.venv/module")].Data)
	require.Equal(t, "planned", string(contents[s.path("check/data")].Data))
	s.write("check/.venv/module", "changed")
	_, err = s.Contents(s.options, s.task)
	var changed *ChangedError
	require.ErrorAs(t, err, &changed)
	require.Equal(t, s.path("check/.venv/module"), changed.File)
}

// Files of waza do not belong to the grader, wherever the state directory is.
func TestPlannedLeavesStateOut(t *testing.T) {
	t.Parallel()
	p := &Planned{}
	s := newSurroundings(t, p)
	p.Except(s.path("check/state/work/run"))
	s.write("check/state/"+files.StateMarker, "key")
	s.write("check/state/work/run/out", "x")
	q := &Planned{except: p.except}
	require.NoError(t, q.Hold(&eval.Grader{Options: s.options}, s.suite, s.task, nil))
	s.Planned = q
	s.write("check/state/journal", "x")
	require.Empty(t, s.changed())
	s.write("check/other/"+files.StateMarker, "of the agent")
	require.Equal(t, "+check/other", s.changed())
}

// Files that waza's own steps write become planned ones. Earlier changes stay changes.
func TestPlannedAdopts(t *testing.T) {
	t.Parallel()
	s := newSurroundings(t, &Planned{}, "check/data", "check/tampered")
	s.write("check/tampered", "by the agent")
	s.write("check/planted/file", "by the agent")
	s.Adopt(func() {
		s.write("check/data", "by the hook")
		s.write("check/expected/a", "by the hook")
		s.write("check/planted/more", "by the hook")
	})
	require.Equal(t, "+check/planted check/tampered", s.changed())
	contents, err := s.Contents(s.options, s.task)
	require.NoError(t, err)
	require.Equal(t, "by the hook", string(contents[s.path("check/data")].Data))
	require.Equal(t, "by the hook", string(contents[s.path("check/expected/a")].Data))
	require.Equal(t, "planned", string(contents[s.path("check/tampered")].Data))
	require.NotContains(t, contents, s.path("check/planted/file"))
}

// Steps of waza that change files again and again do not use up the room for copies.
func TestPlannedAdoptsManyTimes(t *testing.T) {
	t.Parallel()
	s := newSurroundings(t, &Planned{}, "check/count", "check/large")
	for i := range 2 + maxBesideBytes/maxBesideFile {
		s.Adopt(func() {
			s.write("check/count", fmt.Sprint(i))
			require.NoError(t, os.Truncate(s.path("check/large"), maxBesideFile-int64(i)))
		})
	}
	s.write("check/count", "by the agent")
	contents, err := s.Contents(s.options, s.task)
	require.NoError(t, err)
	require.Equal(t, "9", string(contents[s.path("check/count")].Data))
	require.NotNil(t, contents[s.path("check/large")].Data)
}
