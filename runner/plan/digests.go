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

// Digests remembers the digest of each file and skill directory, by absolute
// path: tasks share them. It belongs to one goroutine.
type Digests struct {
	Ctx           context.Context // reading ends with it
	Left          int64           // bytes that may still be read
	Files, skills map[string]string
	Dirs          map[string]bool // in which skills were looked through
	suiteDir      string
	suiteRoot     string
	// own are the files that the suite itself consists of, see [digests.skill].
	own map[string]bool
}

// MaxContent bounds the bytes of all files that a suite depends on: a digest reads
// them. It is far more than a suite needs, and stops at sparse files, which can be
// larger than any disk.
const MaxContent = 16 << 30

func newDigests(ctx context.Context, s *eval.Suite) *Digests {
	d := &Digests{Ctx: ctx, Left: MaxContent, Files: map[string]string{}, skills: map[string]string{}, Dirs: map[string]bool{}, suiteDir: s.Dir, suiteRoot: s.Root(), own: map[string]bool{s.File: true}}
	if s.Project != nil {
		d.own[s.Project.File] = true
	}
	if s.Triggers != nil {
		d.own[s.Triggers.File] = true
	}
	fixtures := filepath.Join(s.Dir, "fixtures")
	for _, t := range s.Tasks {
		d.own[t.File] = true
		if t.Inputs.PromptFile != "" {
			d.own[filepath.Join(filepath.Dir(t.File), filepath.FromSlash(t.Inputs.PromptFile))] = true
		}
		for _, f := range t.Inputs.Files {
			if rel, err := filepath.Rel(fixtures, f.Source); err == nil && filepath.IsLocal(rel) {
				d.own[f.Source] = true // others may be the skill's as well
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
			err = fmt.Errorf("%s: %w: with it the files that the suite depends on have more than %s", path, files.ErrTooLarge, files.Size(MaxContent))
		}
		return "", err
	}
	d.Left -= h.bytes
	d.Files[path] = hex.EncodeToString(h.Sum(nil)[:16])
	return d.Files[path], nil
}

// counter is a hash that counts.
type counter struct {
	hash.Hash
	bytes int64
}

func (c *counter) Write(b []byte) (int, error) {
	c.bytes += int64(len(b))
	return c.Hash.Write(b)
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

// skill gives the digest of a skill: of all files below its directory, and of what
// links lead to within the suite's repository or the skill, and of the name of the directory, by which agents know it. Where the
// suite lives within the skill it tests, it is no part of that: its directory is
// left out or, where it stands beside SKILL.md, the files that it consists of; and
// the name is left out, for it is that of the checkout as a rule.
func (d *Digests) skill(dir string) (string, error) {
	if sum, ok := d.skills[dir]; ok {
		return sum, nil
	}
	w := &skillWalk{Digests: d, root: dir, reach: dir, sums: map[string]any{}}
	if files.Within(d.suiteRoot, dir) {
		w.reach = d.suiteRoot
	}
	name := filepath.Base(dir)
	if rel, err := filepath.Rel(dir, d.suiteDir); err == nil && filepath.IsLocal(rel) {
		name = ""
	}
	if err := w.directory(dir, ""); err != nil {
		return "", err
	}
	sum, err := digestJSON([]any{name, w.sums})
	d.skills[dir] = sum
	return sum, err
}

// maxSkillDepth bounds how deep a skill is looked into, because links may lead in
// circles, and maxSkillEntries how many files and directories it may have.
const (
	maxSkillDepth   = 32
	maxSkillEntries = 200_000
)

// skillWalk gathers the digests of a skill's files.
type skillWalk struct {
	*Digests
	root  string
	reach string   // the directory that links may not lead out of
	seen  int      // files and directories
	above []string // the directories that lead to the one it is in, links resolved
	sums  map[string]any
}

// directory takes what is in a directory; rel is its path in the skill.
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
		w.sums[filepath.ToSlash(rel)] = link // what is elsewhere is no part of the skill
		return nil
	}
	info, err := os.Stat(path)
	switch {
	case err != nil || w.own[path]:
		return nil // a link that leads nowhere, a file that has just gone
	case info.IsDir():
		if name == ".git" || name == "node_modules" || path == w.suiteDir {
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
	w.sums[filepath.ToSlash(rel)] = []any{sum, info.Mode()&0o111 != 0}
	return nil
}

// isExecutable reports whether a file may be executed, which it may be in the
// workspace, too. Other permissions are those of the checkout.
func isExecutable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode()&0o111 != 0
}
