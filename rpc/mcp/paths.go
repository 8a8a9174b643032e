package mcp

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"waza/eval/files"
)

// realDir returns the absolute path of a directory without links.
func realDir(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if err != nil {
		return "", err
	}
	info, err := os.Stat(abs)
	if err == nil && !info.IsDir() {
		err = &fs.PathError{Op: "open", Path: dir, Err: errors.New("not a directory")}
	}
	return abs, err
}

// within returns the absolute path for a path from a client, which is relative to the directory
// of the server; empty means that directory. It fails if the path, after resolving links, is
// outside: some clients can call tools without asking their user, but must not read all files.
func (s *server) within(parameter, given string) (string, error) {
	path := given
	if strings.HasPrefix(strings.ToLower(given), "file:") {
		u, err := url.Parse(given)
		if err != nil || u.Host != "" && u.Host != "localhost" || u.Path == "" {
			return "", fmt.Errorf("%s: %q is not a file URI of this machine", parameter, shorten(given, 200))
		}
		path = u.Path
	}
	if strings.ContainsRune(path, 0) {
		return "", fmt.Errorf("%s: the path contains a NUL character", parameter)
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(s.dir, path)
	}
	rel, err := filepath.Rel(s.dir, files.RealPath(path))
	if err != nil || !filepath.IsLocal(rel) {
		return "", fmt.Errorf("%s: %q is outside of %s; start waza mcp with --dir to work elsewhere", parameter, shorten(given, 200), s.dir)
	}
	return rel, nil
}

// relative returns a path relative to the directory of the server, if it is below.
func (s *server) relative(path string) string {
	if rel, err := filepath.Rel(s.dir, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}

// brief returns a text in which paths below the directory of the server are relative to it.
func (s *server) brief(text string) string {
	return strings.ReplaceAll(text, s.dir+string(filepath.Separator), "")
}
