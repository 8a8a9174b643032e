// Package repository keeps git repositories of other machines that the tasks of a set are in, each at one
// commit. Call [Store.Find] for a repository of this machine, and [Store.Fetch] to fetch another one.
package repository

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"os/exec"
	"path/filepath"

	"waza/eval/files"
	"waza/runner/internal/checkout"
)

// A Store is a directory with repositories. Several processes can use it at once.
type Store struct {
	dir string
}

// At returns the store of a state directory. It creates nothing.
func At(stateDir string) Store { return Store{filepath.Join(stateDir, "repositories")} }

// Find returns the directory of a repository at a commit, if it was fetched. A commit without a name, which is
// the newest one of the repository, is that of the first fetch.
func (s Store) Find(url, commit string) (dir string, found bool) {
	sum := sha256.Sum256([]byte(url + "\n" + commit))
	dir = filepath.Join(s.dir, hex.EncodeToString(sum[:16]))
	return dir, files.IsDir(dir)
}

// Fetch returns the directory of a repository at a commit, an id, a branch or a tag, and fetches it if it is
// not here. The error says why git cannot do that, without the password of the address.
func (s Store) Fetch(ctx context.Context, url, commit string) (dir string, err error) {
	dir, found := s.Find(url, commit)
	if found {
		return dir, nil
	}
	if _, err := exec.LookPath("git"); err != nil {
		return "", errors.New("git is not installed; install it")
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return "", err
	}
	part, err := os.MkdirTemp(s.dir, ".part-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(part)
	if _, err := checkout.Fetch(ctx, url, commit, part); err != nil {
		return "", err
	}
	if err := os.Rename(part, dir); err != nil && !files.IsDir(dir) { // another process was faster
		return "", err
	}
	return dir, nil
}
