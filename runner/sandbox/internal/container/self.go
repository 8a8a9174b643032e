package container

import (
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"waza/runner/proc"
)

// The directory of waza in containers.
const (
	wazaDir       = "/.waza"
	wazaProgram   = wazaDir + "/waza"
	wazaLibraries = wazaDir + "/lib"
	wazaLoader    = wazaLibraries + "/loader"
	entranceDir   = wazaDir + "/run"
)

// self is this program, as containers have it.
type self struct {
	mounts  []Mount
	command []string // that starts it in a container
}

// findSelf finds the files of this program. An image need not contain the libraries of a program that
// was built with cgo, because containers get its loader and its libraries as well.
var findSelf = sync.OnceValues(func() (*self, error) {
	if runtime.GOOS != "linux" {
		return nil, fmt.Errorf("waza is a program of %s, which a container cannot run", runtime.GOOS)
	}
	if !mainCalled.Load() {
		return nil, errors.New("the program that runs the suite does not call sandbox.Main")
	}
	file, err := os.Executable()
	if err != nil {
		return nil, err
	}
	s := &self{mounts: []Mount{{Target: wazaProgram, Source: file}}, command: []string{wazaProgram}}
	loader, err := loaderOf(file)
	if err != nil {
		return nil, fmt.Errorf("%s, the file of this program: %w; restart waza if it was replaced", file, err)
	}
	if loader == "" {
		return s, nil
	}
	libraries, err := librariesOf(loader, file)
	if err != nil {
		return nil, fmt.Errorf("the libraries of %s: %w; build waza with CGO_ENABLED=0, so that it needs none", file, err)
	}
	s.mounts = append(append(s.mounts, Mount{Target: wazaLoader, Source: loader}), libraries...)
	s.command = []string{wazaLoader, "--library-path", wazaLibraries, wazaProgram}
	return s, nil
})

// loaderOf returns the dynamic loader of a program; empty for a static one.
func loaderOf(file string) (string, error) {
	f, err := elf.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			text := make([]byte, min(p.Filesz, 4096))
			if _, err := p.ReadAt(text, 0); err != nil {
				return "", err
			}
			return string(bytes.TrimRight(text, "\x00")), nil
		}
	}
	return "", nil
}

// librariesOf returns the libraries of a program. The loader lists them, one per line, as
//
//	libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f5e2b0c5000)
func librariesOf(loader, file string) ([]Mount, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	out := &proc.Limited{Max: maxSaid}
	if err := proc.Run(ctx, proc.Command{Args: []string{loader, "--list", file}, Stdout: out, Stderr: out}); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	var mounts []Mount
	for line := range strings.Lines(out.String()) {
		name, rest, ok := strings.Cut(strings.TrimSpace(line), " => ")
		at, _, _ := strings.Cut(rest, " ")
		if ok && filepath.IsAbs(at) && !strings.Contains(name, "/") {
			mounts = append(mounts, Mount{Target: path.Join(wazaLibraries, name), Source: at})
		}
	}
	return mounts, nil
}
