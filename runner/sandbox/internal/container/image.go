package container

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
)

// An Image is where the files of a container come from. Exactly one field is set.
type Image struct {
	Name       string // as the engine names it
	Dockerfile string // absolute path; its directory is the build context
}

// prepared is an image that the engine has.
type prepared struct {
	mu   sync.Mutex // held while the image is pulled or built
	done bool
	ref  string // its ID or name
	err  error
}

// Prepare makes the engine have an image: it pulls or builds it, once per run. An image that was
// built keeps a name of its Dockerfile, so that the next run builds only changed parts. The error of
// an image that cannot be prepared is the same for each caller, except after ctx has ended.
func (c *Containers) Prepare(ctx context.Context, image Image) error {
	_, err := c.image(ctx, image)
	return err
}

func (c *Containers) image(ctx context.Context, image Image) (string, error) {
	if image == (Image{}) {
		return "", errors.New("the task has no image; set config.sandbox.image or dockerfile, or sandbox.image of the task")
	}
	c.mu.Lock()
	p := c.images[image]
	if p == nil {
		p = &prepared{}
		c.images[image] = p
	}
	c.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done {
		return p.ref, p.err
	}
	ref, err := c.engine.prepare(ctx, image)
	if err != nil && ctx.Err() != nil {
		return "", err
	}
	p.done, p.ref, p.err = true, ref, err
	return ref, err
}

// prepare returns the ID or the name of an image that it has built or pulled.
func (e *Engine) prepare(ctx context.Context, image Image) (string, error) {
	if e.kind == oci {
		return image.Name, e.checkRootImage(image)
	}
	if filepath.IsAbs(image.Name) {
		return "", fmt.Errorf("%s cannot run the directory %s; install crun and set %s=crun", e, image.Name, RuntimeVariable)
	}
	if image.Dockerfile != "" {
		id, err := e.output(ctx, buildTime, "build", "--quiet", "--tag", tagOf(image.Dockerfile), "--file", image.Dockerfile,
			filepath.Dir(image.Dockerfile))
		if err != nil {
			return "", fmt.Errorf("the image of %s cannot be built: %w", image.Dockerfile, err)
		}
		return id, nil
	}
	if _, err := e.output(ctx, commandTime, "image", "inspect", "--format", "{{.Id}}", image.Name); err == nil {
		return image.Name, nil
	}
	if _, err := e.output(ctx, buildTime, "pull", "--quiet", image.Name); err != nil {
		return "", fmt.Errorf("the image %s cannot be pulled: %w", image.Name, err)
	}
	return image.Name, nil
}

// tagOf returns the name of the image of a Dockerfile.
func tagOf(path string) string {
	sum := sha256.Sum256([]byte(path))
	return "waza-built:" + hex.EncodeToString(sum[:8])
}
