package plan

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"os"
	"path/filepath"
	"slices"

	"waza/eval"
	"waza/eval/files"
)

// Digests caches the digests of files and skill directories by absolute path, because tasks
// share them. Only one goroutine may use it.
type Digests struct {
	Ctx           context.Context // Ctx ends reading
	Left          int64           // number of bytes that may still be read
	Files, skills map[string]string
	skillFiles    map[string][]string // paths of the files that the digest of a skill covers, by its directory
	named         map[naming][]string
	Dirs          map[string]bool // the directories that were searched for skills
	suiteDir      string
	suiteRoot     string
	suite         *eval.Suite
	// own contains the files of the suite itself and its fixtures, see [Digests.skill].
	own map[string]bool
	// today maps the directories of skills at a revision to those of the same skills today, whose
	// places decide which files are part of the suite; nil for other skills.
	today map[string]string
	// commits maps repositories and names to the ids of the commits that tasks name.
	commits map[[2]string]string
}

// MaxContent limits the total size in bytes of all files that a suite depends on, because a
// digest reads them. It is far more than a suite needs, and stops at sparse files, which can be
// larger than any disk.
const MaxContent = 16 << 30

func newDigests(ctx context.Context, s *eval.Suite) *Digests {
	d := &Digests{
		suite: s, Ctx: ctx, Left: MaxContent, Files: map[string]string{}, skills: map[string]string{},
		skillFiles: map[string][]string{}, named: map[naming][]string{}, Dirs: map[string]bool{}, suiteDir: s.Dir,
		suiteRoot: s.Root(), own: map[string]bool{}, commits: map[[2]string]string{},
	}
	for _, path := range s.Own() {
		d.own[path] = true
	}
	fixtures := filepath.Join(s.Dir, "fixtures")
	for _, t := range s.Tasks {
		for _, f := range t.AllFiles() {
			if rel, err := filepath.Rel(fixtures, f.Source); err == nil && filepath.IsLocal(rel) {
				d.own[f.Source] = true // other files may belong to the skill
			}
		}
	}
	return d
}

// File returns the hash of a file's content. Each file is read once.
func (d *Digests) File(path string) (string, error) {
	if sum, ok := d.Files[path]; ok {
		return sum, nil
	}
	f, err := files.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := &counter{Hash: sha256.New()}
	if err := files.Copy(d.Ctx, h, f, d.Left); err != nil {
		if errors.Is(err, files.ErrTooLarge) {
			err = fmt.Errorf("%s: %w: the files that the suite depends on exceed %s in total", path, files.ErrTooLarge, files.Size(MaxContent))
		}
		return "", err
	}
	d.Left -= h.bytes
	d.Files[path] = hex.EncodeToString(h.Sum(nil)[:16])
	return d.Files[path], nil
}

// counter is a hash that counts bytes.
type counter struct {
	hash.Hash
	bytes int64
}

func (c *counter) Write(b []byte) (int, error) {
	c.bytes += int64(len(b))
	return c.Hash.Write(b)
}

// naming is the use of options for a task.
type naming struct {
	options any
	task    *eval.Task
}

// refers returns the paths of the files that options name. It asks them once, because some search
// directories.
func (d *Digests) refers(options any, suite *eval.Suite, t *eval.Task) []string {
	r, ok := options.(eval.Referrer)
	if !ok {
		return nil
	}
	key := naming{options, t}
	paths, known := d.named[key]
	if !known {
		paths = r.Refers(suite, t)
		d.named[key] = paths
	}
	return paths
}

func (d *Digests) list(paths []string) ([]string, error) {
	var sums []string
	for _, path := range paths {
		sum, err := d.File(path)
		if err != nil {
			return nil, err
		}
		sums = append(sums, sum)
	}
	return sums, nil
}

// skill returns the digest of a skill. It covers all files below the skill's directory, and
// files that links lead to within the suite's repository or the skill. It also covers the name
// of the directory, by which agents find the skill. If the suite is located within the skill
// that it tests, the digest excludes the suite's directory or, if that also contains SKILL.md,
// the suite's files. It then also excludes the name of the directory, which is usually that of
// the checkout.
func (d *Digests) skill(dir string) (string, error) {
	if sum, ok := d.skills[dir]; ok {
		return sum, nil
	}
	w := &skillWalk{Digests: d, root: dir, today: dir, reach: dir, sums: map[string]any{}}
	if today, ok := d.today[dir]; ok {
		w.today = today
	}
	w.parts = d.suite.PartsIn(w.today)
	if files.Within(d.suiteRoot, dir) {
		w.reach = d.suiteRoot
	}
	name := filepath.Base(dir)
	if rel, err := filepath.Rel(w.today, d.suiteDir); err == nil && filepath.IsLocal(rel) {
		name = ""
	}
	if err := w.directory(dir, ""); err != nil {
		return "", err
	}
	sum, err := digestJSON([]any{name, w.sums})
	slices.Sort(w.files)
	d.skills[dir], d.skillFiles[dir] = sum, w.files
	return sum, err
}

// maxSkillDepth limits the depth of a skill, because links can form cycles. maxSkillEntries
// limits its number of files and directories.
const (
	maxSkillDepth   = 32
	maxSkillEntries = 200_000
)

// skillWalk collects the digests of a skill's files.
type skillWalk struct {
	*Digests
	root  string
	today string   // root, or the directory of the same skill today
	parts []string // of the suite, below today
	reach string   // the directory that links must not leave
	seen  int      // number of files and directories
	above []string // the parents of the current directory, with links resolved
	sums  map[string]any
	files []string // paths of the regular files
}

// directory adds the contents of a directory; rel is its path in the skill.
func (w *skillWalk) directory(dir, rel string) error {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	if len(w.above) == maxSkillDepth || slices.Contains(w.above, real) {
		return nil
	}
	w.Dirs[dir] = true
	w.above = append(w.above, real)
	defer func() { w.above = w.above[:len(w.above)-1] }()
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := w.entry(filepath.Join(dir, e.Name()), filepath.Join(rel, e.Name()), e.Name()); err != nil {
			return err
		}
	}
	return nil
}

func (w *skillWalk) entry(path, rel, name string) error {
	if w.seen++; w.seen > maxSkillEntries {
		return fmt.Errorf("%w: more than %d files and directories", files.ErrTooLarge, maxSkillEntries)
	}
	if w.Ctx.Err() != nil {
		return context.Cause(w.Ctx)
	}
	if link, err := os.Readlink(path); err == nil && !files.Within(w.reach, path) {
		w.sums[filepath.ToSlash(rel)] = link // files elsewhere are not part of the skill
		return nil
	}
	info, err := os.Stat(path)
	today := filepath.Join(w.today, rel)
	switch {
	case err != nil || w.own[today] || slices.Contains(w.parts, today):
		return nil // a dangling link, or a file that was just removed
	case info.IsDir():
		if name == ".git" || name == "node_modules" || today == w.suiteDir {
			return nil
		}
		return w.directory(path, rel)
	case !info.Mode().IsRegular():
		return nil
	}
	sum, err := w.File(path)
	if err != nil {
		return err
	}
	w.files = append(w.files, path)
	w.sums[filepath.ToSlash(rel)] = []any{sum, info.Mode()&0o111 != 0}
	return nil
}

// isExecutable reports whether a file is executable; it is then executable in the workspace,
// too. Other permissions depend on the checkout.
func isExecutable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode()&0o111 != 0
}
