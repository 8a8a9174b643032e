package acp

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"waza/eval"
	"waza/eval/files"
)

// maxSkill is the maximum size of a skill directory in bytes. maxSkillEntries is the maximum
// number of files and directories in it.
const (
	maxSkill        = 64 << 20
	maxSkillEntries = 20_000
)

// giveSkills copies skill directories to the place in the workspace where the agent looks for
// skills, and returns their names. It copies them instead of linking them, because an agent can
// change them. It does not replace a skill that the task's own files put there, and leaves out the
// suite, whose expected answers a skill can contain.
func giveSkills(ctx context.Context, workspace, place string, skills []string, suite *eval.Suite) ([]string, error) {
	if len(skills) == 0 || place == "" {
		return nil, nil
	}
	root, err := os.OpenRoot(workspace)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	place = filepath.FromSlash(place)
	if err := root.MkdirAll(place, 0o755); err != nil {
		return nil, fmt.Errorf("skills: %w", err)
	}
	var names []string
	for _, dir := range skills {
		name := filepath.Base(dir)
		names = append(names, name)
		if _, err := root.Lstat(filepath.Join(place, name)); err == nil {
			continue
		}
		withheld := suite.Withholds(dir)
		hidden := func(path string) bool { // the workspace is in the skill if the state directory is
			at := filepath.Join(dir, path)
			return at == workspace || withheld(at)
		}
		if err := copyTree(ctx, root, filepath.Join(place, name), dir, hidden); err != nil {
			return nil, fmt.Errorf("skill %s: %w", name, err)
		}
	}
	return names, nil
}

// copyTree copies the regular files of a directory except hidden ones, whose paths are relative to
// it. It follows links that stay inside the directory. It stops when ctx ends.
func copyTree(ctx context.Context, to *os.Root, name, dir string, hidden func(path string) bool) error {
	from, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer from.Close()
	left, entries := int64(maxSkill), 0
	return fs.WalkDir(from.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entries++; entries > maxSkillEntries {
			return fmt.Errorf("directory has more than %d files and directories", maxSkillEntries)
		}
		if d.IsDir() {
			if d.Name() == ".git" || hidden(path) {
				return fs.SkipDir
			}
			return to.MkdirAll(filepath.Join(name, path), 0o755)
		}
		if hidden(path) {
			return nil
		}
		st, err := from.Stat(path)
		if err != nil || !st.Mode().IsRegular() {
			return nil // a socket, or a link that leads out
		}
		if left -= st.Size(); left < 0 {
			return fmt.Errorf("directory is larger than %s", files.Size(maxSkill))
		}
		return copyFile(ctx, to, filepath.Join(name, path), from, path)
	})
}

func copyFile(ctx context.Context, to *os.Root, name string, from *os.Root, path string) error {
	src, err := files.OpenIn(from, path)
	if err != nil {
		return err
	}
	defer src.Close()
	return files.CopyTo(ctx, to, name, src, maxSkill)
}
