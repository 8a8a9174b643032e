package bundle

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"waza/eval/files"
	"waza/eval/text"
)

// manifest lists the content of a bundle. It is stored as JSON under its hash. The directories
// and git repositories of the owner are numbered:
//
//	0/evals/demo/eval.yaml   a file of the first directory
//	g0                       the first repository
type manifest struct {
	Version int `json:"version"`
	// Entries are sorted by path, each directory before its content.
	Entries []entry `json:"entries"`
	// Repos are the repositories, the first of which is g0.
	Repos []repo `json:"repos,omitempty"`
}

// entry is a directory, a link or a file.
type entry struct {
	Path string `json:"path"`
	// Mode contains the permission bits of a file or directory.
	Mode uint32 `json:"mode,omitempty"`
	Dir  bool   `json:"dir,omitempty"`
	// Link is the target of a link, relative to its directory.
	Link string `json:"link,omitempty"`
	// Size is the size of a file. Data is its content; without Data, the content is the object
	// Hash.
	Size int64  `json:"size,omitempty"`
	Hash string `json:"hash,omitempty"`
	Data []byte `json:"data,omitempty"`
}

// repo contains the commits of a git repository that trials need.
type repo struct {
	// Commits are commit ids. The pack of a commit is the object "git-" followed by the id.
	Commits []string `json:"commits"`
}

const (
	manifestVersion = 1
	// maxManifest is the maximum size of a manifest, including small files in it.
	maxManifest = 64 << 20
	maxRepos    = 1000 // also the maximum number of commits
	maxPath     = 4096
	maxName     = 255
)

// decode decodes and validates an untrusted manifest: no entry leads out of the directory into
// which it is unpacked, and the limits are respected.
func decode(b []byte, l Limits) (*manifest, error) {
	m := new(manifest)
	if err := json.Unmarshal(b, m); err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	if m.Version != manifestVersion {
		return nil, fmt.Errorf("manifest version must be %d, got %d; use the same version of waza for owner and workers",
			manifestVersion, m.Version)
	}
	if err := m.check(l); err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	return m, nil
}

func (m *manifest) check(l Limits) error {
	if len(m.Entries) > l.Files {
		return fmt.Errorf("%d files and directories exceed the limit of %d", len(m.Entries), l.Files)
	}
	kinds := map[string]bool{} // whether a path is a directory
	var bytes int64
	for i := range m.Entries {
		e := &m.Entries[i]
		if err := e.check(l); err != nil {
			return fmt.Errorf("%q: %w", text.Clip(e.Path, 200), err)
		}
		if _, twice := kinds[e.Path]; twice {
			return fmt.Errorf("%q is listed twice", text.Clip(e.Path, 200))
		}
		if above := path.Dir(e.Path); above != "." && !kinds[above] {
			return fmt.Errorf("%q must be listed after its directory", text.Clip(e.Path, 200))
		}
		kinds[e.Path] = e.Dir
		if bytes += e.Size; bytes > l.Bytes {
			return fmt.Errorf("the files must have at most %s", files.Size(l.Bytes))
		}
	}
	commits := 0
	for _, r := range m.Repos {
		for _, c := range r.Commits {
			if !packPattern().MatchString(packName(c)) {
				return fmt.Errorf("invalid commit id %q", text.Clip(c, 80))
			}
		}
		if commits += max(1, len(r.Commits)); commits > maxRepos {
			return fmt.Errorf("there must be at most %d commits", maxRepos)
		}
	}
	return nil
}

func packName(commit string) string { return "git-" + commit }

var numbered = text.Pattern(`^(?:0|[1-9][0-9]{0,5})$`)

func (e *entry) check(l Limits) error {
	first, _, below := strings.Cut(e.Path, "/")
	switch {
	case !isPortable(e.Path):
		return errors.New("not a portable path below a directory")
	case !numbered().MatchString(first) || !below && !e.Dir:
		return errors.New("not in a numbered directory")
	case e.Mode > 0o777:
		return fmt.Errorf("mode must contain only permissions, got %o", e.Mode)
	case e.Dir && (e.Link != "" || e.Size != 0 || e.Hash != "" || e.Data != nil):
		return errors.New("a directory must have no content")
	case e.Dir:
		return nil
	case e.Link != "" && (e.Size != 0 || e.Hash != "" || e.Data != nil):
		return errors.New("a link must have no content")
	case e.Link != "":
		return checkLink(e.Path, e.Link)
	case e.Size < 0 || e.Size > l.FileBytes:
		return fmt.Errorf("size must be at most %s, got %d bytes", files.Size(l.FileBytes), e.Size)
	case e.Hash == "" && int64(len(e.Data)) != e.Size || e.Hash != "" && e.Data != nil:
		return errors.New("content and size do not match")
	case e.Hash != "" && !isHash(e.Hash):
		return errors.New("invalid hash")
	}
	return nil
}

// isPortable reports whether a path with slashes is a path below a directory on every system.
func isPortable(p string) bool {
	if len(p) > maxPath || !fs.ValidPath(p) || p == "." || strings.ContainsAny(p, "\\\x00") {
		return false
	}
	return !slices.ContainsFunc(strings.Split(p, "/"), func(name string) bool { return len(name) > maxName })
}

// checkLink returns an error unless a link at a path stays in its numbered directory. Steps up
// must come first, where they pass through directories. A step up after the name of a different
// link could lead anywhere.
func checkLink(at, link string) error {
	up := 0
	rest := link
	for {
		if rest == ".." {
			up, rest = up+1, ""
			break
		}
		after, ok := strings.CutPrefix(rest, "../")
		if !ok {
			break
		}
		up, rest = up+1, after
	}
	if depth := strings.Count(at, "/") - 1; up > depth || rest != "" && rest != "." && !isPortable(rest) {
		return fmt.Errorf("the link to %q leads out of the directory", text.Clip(link, 200))
	}
	return nil
}
