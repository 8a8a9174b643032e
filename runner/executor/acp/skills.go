package acp

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// maxSkill bounds the bytes of one skill directory.
const maxSkill = 64 << 20

// giveSkills copies skill directories to where the agent looks for skills in
// the workspace, and returns their names. They are copied, not linked: an agent
// may change what it is given. A skill that the task's own files put there stays.
func giveSkills(workspace, place string, skills []string) ([]string, error) {
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
		if err := copyTree(root, filepath.Join(place, name), dir); err != nil {
			return nil, fmt.Errorf("skill %s: %w", name, err)
		}
	}
	return names, nil
}

// copyTree copies the regular files of a directory. Links are followed as long
// as they stay inside it.
func copyTree(to *os.Root, name, dir string) error {
	from, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer from.Close()
	left := int64(maxSkill)
	return fs.WalkDir(from.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if d.Name() == ".git" {
				return fs.SkipDir
			}
			return to.MkdirAll(filepath.Join(name, path), 0o755)
		}
		st, err := from.Stat(path)
		if err != nil || !st.Mode().IsRegular() {
			return nil // a link that leads out, a socket
		}
		if left -= st.Size(); left < 0 {
			return fmt.Errorf("more than %d MiB", maxSkill>>20)
		}
		b, err := from.ReadFile(path)
		if err != nil {
			return err
		}
		return to.WriteFile(filepath.Join(name, path), b, st.Mode().Perm()|0o600)
	})
}
