package sandbox

import (
	"errors"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"waza/runner/proc"
)

// seatbeltProgram restricts a program on macOS, see sandbox-exec(1).
const seatbeltProgram = "/usr/bin/sandbox-exec"

var errNotMac = errors.New("this system is not macOS")

// seatbelt returns a sandbox that starts programs with sandbox-exec.
func (s *Sandboxes) seatbelt(v View) *proc.Sandbox {
	return &proc.Sandbox{Wrap: func(cmd *exec.Cmd) error {
		v := v
		v.Env = cmd.Env
		cmd.Args = append([]string{seatbeltProgram, "-p", s.policy.profile(cmd.Path, &v), cmd.Path}, cmd.Args[1:]...)
		cmd.Path = seatbeltProgram
		return nil
	}}
}

// profile returns the profile of a program in the language of sandbox-exec. Later rules win. It
// reads the file system like mounts. Programs can read the system, but of the directories of users
// only what the view names, and change only that.
func (p *Policy) profile(program string, v *View) string {
	var b strings.Builder
	b.WriteString("(version 1)\n(allow default)\n")
	home := variable(v.Env, "HOME")
	list := func(rule string, paths []string) {
		for _, path := range paths {
			if filepath.IsAbs(path) {
				b.WriteString("(" + rule + " (subpath " + quoted(filepath.Clean(path)) + "))\n")
			}
		}
	}
	b.WriteString("(deny file-write*)\n")
	if !p.HomeShared {
		list("deny file-read*", []string{"/Users"})
	}
	b.WriteString("(allow file-read-metadata)\n") // programs look at the directories above theirs
	var private []string
	for _, name := range privateDirs {
		private = append(private, filepath.Join(home, name))
	}
	list("deny file-read*", private)
	for _, dir := range searched(v.Env, home) {
		if filepath.Base(dir) == "bin" && filepath.Dir(dir) != filepath.Clean(home) {
			dir = filepath.Dir(dir)
		}
		list("allow file-read*", []string{dir})
	}
	hidden := p.hidden(v)
	list("deny file-read*", hidden)
	list("allow file-read*", append([]string{program}, p.Read...))
	list("allow file-read*", v.Read)
	for _, path := range hidden { // in a skill that the view names
		if slices.ContainsFunc(v.Read, func(dir string) bool { return within(dir, path) }) {
			list("deny file-read*", []string{path})
			list("allow file-read*", slices.DeleteFunc(slices.Clone(v.Read), func(file string) bool { return !within(path, file) }))
		}
	}
	for _, paths := range [][]string{v.Logins, p.Write, v.Write, v.Copy, {"/private/tmp", "/private/var/tmp", "/private/var/folders", "/dev"}} {
		list("allow file-read* file-write*", paths)
	}
	list("deny file-read*", p.hiddenSettings(v))
	b.WriteString("(deny signal (target others))\n")
	if p.Isolated || v.Isolated {
		b.WriteString("(deny network*)\n(allow network* (local ip \"localhost:*\"))\n")
	}
	return b.String()
}

// quoted returns a string of the profile language.
func quoted(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}
