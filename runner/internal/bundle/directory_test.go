package bundle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"waza/eval/files"
	"waza/eval/text"
)

// directory is a [Store] in a directory.
type directory struct{ dir string }

// InDir returns a store in a directory, which is created on demand.
func InDir(dir string) Store { return directory{dir} }

func (d directory) path(name string) (string, error) {
	if !isHash(name) && !packPattern().MatchString(name) {
		return "", fmt.Errorf("invalid object name %q", text.Clip(name, 80))
	}
	return filepath.Join(d.dir, name), nil
}

func (d directory) Has(_ context.Context, name string) (bool, error) {
	path, err := d.path(name)
	if err != nil {
		return false, err
	}
	if _, err = os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

func (d directory) Put(ctx context.Context, name string, r io.Reader) error {
	path, err := d.path(name)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(d.dir, 0o700); err != nil {
		return err
	}
	return files.WriteWhole(path, func(w io.Writer) error {
		_, err := io.Copy(w, reading{ctx, r})
		return err
	}, nil)
}

func (d directory) Get(_ context.Context, name string) (io.ReadCloser, error) {
	path, err := d.path(name)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrMissing
	}
	return f, err
}

func (d directory) Delete(_ context.Context, name string) error {
	path, err := d.path(name)
	if err != nil {
		return err
	}
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
