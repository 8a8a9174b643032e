package container

import (
	"archive/tar"
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A Place is a directory of this machine that has a different path in the container. There, a link
// leads from its own path to it. The link is relative, because engines follow links while they copy.
type Place struct {
	Source string // on this machine
	Target string // in the container; empty means the work folder of the image
	// Fresh means that the target does not exist before the directory is copied, whatever earlier programs
	// of the state have written there.
	Fresh bool
}

// located returns places of which each has a target.
func (c *Containers) located(image string, places []Place) ([]Place, error) {
	i := slices.IndexFunc(places, func(p Place) bool { return p.Target == "" })
	if i < 0 {
		return places, nil
	}
	dir, err := c.engine.output(context.Background(), commandTime, "image", "inspect", "--format", "{{.Config.WorkingDir}}", image)
	switch {
	case err != nil:
		return nil, err
	case !filepath.IsAbs(dir) || filepath.Clean(dir) == "/":
		return nil, fmt.Errorf("the image %s has no work folder below /; add WORKDIR to its Dockerfile, or set the work folder of the task", image)
	}
	places = slices.Clone(places)
	places[i].Target = filepath.Clean(dir)
	return places, nil
}

// placeAt returns the place of a directory; nil if it has none.
func placeAt(places []Place, path string) *Place {
	for i := range places {
		if places[i].Source == path {
			return &places[i]
		}
	}
	return nil
}

// below returns the places of directories in a directory, the outer ones first.
func below(places []Place, dir string) []Place {
	list := slices.DeleteFunc(slices.Clone(places), func(p Place) bool { return p.Source == dir || !within(dir, p.Source) })
	slices.SortStableFunc(list, func(a, b Place) int {
		return cmp.Or(cmp.Compare(strings.Count(a.Source, "/"), strings.Count(b.Source, "/")), cmp.Compare(a.Source, b.Source))
	})
	return list
}

// pathInside returns the path in the container of a path of this machine.
func pathInside(places []Place, path string) string {
	var best *Place
	for i := range places {
		if within(places[i].Source, path) && (best == nil || len(places[i].Source) > len(best.Source)) {
			best = &places[i]
		}
	}
	if best == nil {
		return path
	}
	rel, err := filepath.Rel(best.Source, path)
	if err != nil {
		return path
	}
	return filepath.Join(best.Target, rel)
}

// write adds the directory at the place, and the link that leads to it.
func (p *Place) write(t *tar.Writer, places []Place, modified time.Time) error {
	at := filepath.Join(pathInside(places, filepath.Dir(p.Source)), filepath.Base(p.Source))
	to, err := filepath.Rel(filepath.Dir(at), p.Target)
	if err != nil {
		return err
	}
	if at != p.Target {
		if err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: nameInside(at), Linkname: to, Mode: 0o777, ModTime: modified}); err != nil {
			return err
		}
	}
	return t.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: nameInside(p.Target) + "/", Mode: 0o755, ModTime: modified})
}
