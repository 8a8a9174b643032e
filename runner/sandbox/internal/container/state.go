package container

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// A state is the file system that programs of one trial use one after the other. Each program that
// keeps it makes an image of its container.
type state struct {
	base   string         // the image of the first program
	images []string       // the last one is the present file system
	kept   bool           // a program that will keep its files is running
	fault  error          // why the files of a program are lost, so that no other can continue
	users  sync.WaitGroup // counts the containers of the images
}

// stateName is the name of the images of states. Their tags are the owner and the name of a container.
const stateName = "waza-state"

// errKept is the error of a program that needs the files of one that is still running.
var errKept = errors.New("the agent is still running, and the files in its container cannot be seen from outside; " +
	"use an executor that starts a program for each prompt, such as command")

// stateLocked returns the state of a program and the image to start it from. c.mu must be held.
func (c *Containers) stateLocked(name string, keep bool, image string) (*state, string, error) {
	if name == "" {
		return nil, image, nil
	}
	s := c.states[name]
	if s == nil {
		s = &state{base: image}
		c.states[name] = s
	}
	switch {
	case s.kept:
		return nil, "", errKept
	case s.fault != nil:
		return nil, "", s.fault
	}
	s.kept = keep
	if n := len(s.images); n > 0 {
		image = s.images[n-1]
	}
	s.users.Add(1)
	return s, image, nil
}

// spoil refuses further programs of a state, which can be nil, after a fault.
func (c *Containers) spoil(s *state, fault error) {
	if s == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s.fault = fault
}

// ErrMeddled is the error of a program whose new directories contain other files than those that were
// copied to them, or that cannot start, because of what an earlier program of the state did to the container.
var ErrMeddled = errors.New("an earlier program changed the container so that no other can use it")

// fill copies the files of a program into a container. Places that must be new follow last, because
// links of earlier programs can lead from them to other files of the program.
func (c *Containers) fill(b *box, p *Program, mounts []Mount) error {
	var fresh, others []string
	for _, dir := range p.In {
		if at := placeAt(p.Places, filepath.Clean(dir)); at != nil && at.Fresh && b.state != nil {
			fresh = append(fresh, dir)
		} else {
			others = append(others, dir)
		}
	}
	if err := c.copyIn(b, p.home(mounts), others, p.Places); err != nil || len(fresh) == 0 {
		return err
	}
	if err := c.removeStale(b, p.Places); err != nil {
		return err
	}
	if err := c.copyIn(b, "", fresh, p.Places); err != nil {
		return err
	}
	for _, dir := range fresh {
		if err := c.checkFresh(b, placeAt(p.Places, filepath.Clean(dir))); err != nil {
			return err
		}
	}
	return nil
}

// removeStale removes what earlier programs of the state wrote to places that must be new, and links and
// files in the place of the directories above. It needs the program rm of the image.
func (c *Containers) removeStale(b *box, places []Place) error {
	var targets, above []string
	for _, p := range places {
		if !p.Fresh {
			continue
		}
		targets = append(targets, p.Target)
		n := len(above)
		for dir := path.Dir(p.Target); dir != "/"; dir = path.Dir(dir) {
			above = slices.Insert(above, n, dir) // the outermost first
		}
	}
	if len(above) > 0 {
		// rm without -r fails for directories, which remain.
		_, _ = c.engine.output(context.Background(), commandTime, append([]string{"exec", "--user=0", b.name, "rm", "-f", "--"}, above...)...)
	}
	if _, err := c.engine.output(context.Background(), commandTime, append([]string{"exec", "--user=0", b.name, "rm", "-rf", "--"}, targets...)...); err != nil {
		if c.removes(b.state) {
			return fmt.Errorf("%w: rm works in its image, but no longer there: %w", ErrMeddled, err)
		}
		return fmt.Errorf("files of an earlier program cannot be removed from the container: %w", err)
	}
	return nil
}

// removes reports whether earlier programs kept files in a state, and the program rm of its first image works.
func (c *Containers) removes(s *state) bool {
	c.mu.Lock()
	kept := len(s.images) > 0
	c.started++
	name := nameOf(c.id, c.started)
	c.mu.Unlock()
	if !kept {
		return false
	}
	_, err := c.engine.output(context.Background(), commandTime, "run", "--name", name, "--label", runLabel+"="+c.id, "--label", ownerLabel+"="+owner(),
		"--pull=never", "--network=none", "--cap-drop=ALL", "--entrypoint=rm", s.base, "-f", "--", "/.waza-missing")
	_ = c.engine.remove(name) // the next run tries it again
	return err == nil
}

// checkFresh returns [ErrMeddled] unless a place contains exactly the files that were copied to it. It needs
// no program of the image.
func (c *Containers) checkFresh(b *box, place *Place) error {
	root, err := os.OpenRoot(place.Source)
	if err != nil {
		return err
	}
	defer root.Close()
	missing := 0
	if err := fs.WalkDir(root.FS(), ".", func(string, fs.DirEntry, error) error { missing++; return nil }); err != nil {
		return err
	}
	err = c.copyFrom(b, place.Target, func(r io.Reader) error {
		for t := tar.NewReader(r); ; missing-- {
			h, err := t.Next()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			if err := checkCopied(root, t, h); err != nil {
				return err
			}
		}
	})
	if err == nil && missing != 0 {
		err = ErrMeddled
	}
	if err != nil {
		return fmt.Errorf("%s: %w", place.Target, err)
	}
	return nil
}

// checkCopied returns [ErrMeddled] unless an entry of an archive is a directory or a file of root.
func checkCopied(root *os.Root, r io.Reader, h *tar.Header) error {
	name, ok := inside(h.Name)
	if !ok {
		return ErrMeddled
	}
	info, err := root.Lstat(name)
	switch {
	case err != nil:
		return ErrMeddled
	case info.IsDir() && h.Typeflag == tar.TypeDir:
		return nil
	case !info.Mode().IsRegular() || h.Typeflag != tar.TypeReg || info.Size() != h.Size:
		return ErrMeddled
	}
	want, err := root.ReadFile(name)
	if err != nil {
		return err
	}
	got, err := io.ReadAll(io.LimitReader(r, h.Size))
	if err == nil && !bytes.Equal(got, want) {
		err = ErrMeddled
	}
	return err
}

// keep makes an image of a container whose program has ended.
func (c *Containers) keep(b *box) error {
	c.abandoned.Do(func() { _ = c.engine.removeAbandonedStates() }) // the next run tries it again
	image := stateName + ":" + owner() + "-" + b.name
	if _, err := c.engine.output(context.Background(), copyTime, "commit", b.name, image); err != nil {
		return fmt.Errorf("the files of the container cannot be kept for later programs: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	b.state.images = append(b.state.images, image)
	return nil
}

// Forget removes the files that programs with a state kept, after their containers. It does nothing for
// a state that no program had, and for nil.
func (c *Containers) Forget(name string) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.states[name]
	if s == nil {
		return
	}
	delete(c.states, name)
	c.work.Go(func() {
		s.users.Wait()
		_ = c.engine.removeImages(s.images) // a later run tries it again
	})
}

// forgetAll removes the files of all states. All programs have ended.
func (c *Containers) forgetAll() {
	c.mu.Lock()
	var names []string
	for name := range c.states {
		names = append(names, name)
	}
	c.mu.Unlock()
	for _, name := range names {
		c.Forget(name)
	}
}

// removeImages removes images, each before the one that it was made from.
func (e *Engine) removeImages(images []string) error {
	var faults []error
	for i := len(images) - 1; i >= 0; i-- {
		_, err := e.output(context.Background(), commandTime, "rmi", "--force", images[i])
		faults = append(faults, err)
	}
	return errors.Join(faults...)
}

// removeAbandonedStates removes the images of states of processes that were killed.
func (e *Engine) removeAbandonedStates() error {
	list, err := e.output(context.Background(), commandTime, "images", "--filter", "reference="+stateName, "--format", "{{.Repository}}:{{.Tag}}")
	if err != nil {
		return err
	}
	var abandoned []string
	for image := range strings.FieldsSeq(list) {
		_, tag, _ := strings.Cut(image, stateName+":")
		name, own := strings.CutPrefix(tag, owner()+"-")
		if id, ok := runOf(name); own && ok && !runs(id) {
			abandoned = append(abandoned, image)
		}
	}
	return e.removeImages(abandoned)
}
