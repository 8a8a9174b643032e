package container

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
)

// A state is the file system that programs of one trial use one after the other. Each program that
// keeps it makes an image of its container.
type state struct {
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
		s = &state{}
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

// removeStale removes what earlier programs of the state wrote to places that must be new. It needs the
// program rm of the image.
func (c *Containers) removeStale(b *box, places []Place) error {
	args := []string{"exec", "--user=0", b.name, "rm", "-rf", "--"}
	n := len(args)
	for _, p := range places {
		if p.Fresh && b.state != nil {
			args = append(args, p.Target)
		}
	}
	if len(args) == n {
		return nil
	}
	if _, err := c.engine.output(context.Background(), commandTime, args...); err != nil {
		return fmt.Errorf("files of an earlier program cannot be removed from the container: %w", err)
	}
	return nil
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
