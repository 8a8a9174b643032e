package sandbox

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A Mount is one part of the file system that a program sees.
type Mount struct {
	Kind MountKind
	// Target is the path inside. Source is a path outside for Bind and Overlay, and the target
	// of a Link.
	Target, Source string
	Writable       bool
	// Size limits a writable Empty or Overlay, in bytes; 0 means the default of the system, half of the
	// memory.
	Size int64
	// Mode holds the permissions of an Empty; 0 means 0755.
	Mode uint32
	// Optional means that a missing Source is no error.
	Optional bool
}

// MountKind is a kind of mounts.
type MountKind string

// The kinds of mounts.
const (
	Bind    MountKind = "bind"    // a directory or file of the machine
	Empty   MountKind = "empty"   // an empty directory in memory
	Overlay MountKind = "overlay" // a private copy of a directory, whose changes are in memory
	Link    MountKind = "link"    // a symbolic link
	Proc    MountKind = "proc"    // the processes of the sandbox
	Devices MountKind = "devices" // the devices that every program can use
	File    MountKind = "file"    // a small file in place of one of the machine; Source is its content
)

// system lists the directories that every program can read. Links among them remain links.
var system = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/sys",
	"/nix", "/gnu", "/snap", "/run/current-system", "/run/opengl-driver", "/run/systemd/resolve", "/var/lib/snapd",
}

// deviceNames are the devices that every program can use.
var deviceNames = []string{"null", "zero", "full", "random", "urandom", "tty"}

// secretFiles lists files of the system that contain secrets of the machine.
var secretFiles = []string{
	"/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/security/opasswd",
	"/etc/ssh/ssh_host_*_key", "/etc/ssl/private", "/etc/krb5.keytab",
}

// mounts returns the mounts of a program and its view, in the order in which they are made. It reads the file
// system to follow links, and to leave out what does not exist.
func (p *Policy) mounts(program string, v *View) []Mount {
	b := builder{policy: p, home: variable(v.Env, "HOME")}
	for _, dir := range system {
		b.system(dir)
	}
	b.add(Mount{Kind: Proc, Target: "/proc"})
	b.add(Mount{Kind: Devices, Target: "/dev"})
	for _, name := range deviceNames {
		b.add(Mount{Kind: Bind, Target: "/dev/" + name, Source: "/dev/" + name, Writable: true, Optional: true})
	}
	for _, dir := range []string{"/tmp", "/var/tmp"} {
		b.add(Mount{Kind: Empty, Target: dir, Writable: true, Size: p.Limits.Disk, Mode: 0o1777})
	}
	b.homes(v)
	for _, path := range secretFiles {
		found, _ := filepath.Glob(path)
		for _, path := range found {
			b.hide(path)
		}
	}
	for _, dir := range searched(v.Env, b.home) {
		b.tools(dir)
	}
	b.programFile(program)
	for _, path := range slices.Concat(p.Read, v.Read) {
		b.add(Mount{Kind: Bind, Target: path, Source: path, Optional: true})
	}
	for _, path := range slices.Concat(v.Logins, p.Write, v.Write) {
		b.add(Mount{Kind: Bind, Target: path, Source: path, Writable: true, Optional: true})
	}
	b.personal(v)
	for _, dir := range v.Copy {
		b.add(Mount{Kind: Overlay, Target: dir, Source: dir, Writable: true, Size: p.Limits.Disk})
	}
	b.elsewhere(v)
	for _, path := range p.hidden(v) {
		b.hide(path)
	}
	return b.sorted()
}

// hidden returns the paths that a view hides. A view can name one of them, such as a skill that
// contains its suite; the parts of the suite in it are hidden by paths of their own.
func (p *Policy) hidden(v *View) []string {
	if v.Suite {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(p.Hidden), func(path string) bool { return slices.Contains(v.Read, path) })
}

// elsewhere adds the directories that are visible at other paths than on the machine.
func (b *builder) elsewhere(v *View) {
	for _, target := range v.Task.Targets() {
		m := Mount{Kind: Bind, Target: target, Source: filepath.Join(v.Workspace, filepath.FromSlash(v.Task.Paths[target])), Writable: true}
		if slices.Contains(v.Copy, v.Workspace) {
			m.Kind, m.Size = Overlay, b.policy.Limits.Disk
		}
		b.add(m)
	}
	for target, source := range v.Elsewhere {
		b.add(Mount{Kind: Bind, Target: target, Source: source, Writable: slices.Contains(v.Write, source)})
	}
}

// writable returns the paths of mounts that a program can change.
func writable(mounts []Mount) []string {
	roots := []string{"/dev"}
	for _, m := range mounts {
		if m.Writable && !within("/dev", m.Target) {
			roots = append(roots, m.Target)
		}
	}
	return roots
}

// builder collects mounts.
type builder struct {
	policy *Policy
	home   string
	list   []Mount
}

func (b *builder) add(m Mount) {
	m.Target = filepath.Clean(m.Target)
	if m.Target == "/" || !filepath.IsAbs(m.Target) {
		return
	}
	b.list = append(b.list, m)
}

// sorted returns the mounts so that each follows those that contain it. Of several with the same
// target, the last remains.
func (b *builder) sorted() []Mount {
	last := map[string]int{}
	for i, m := range b.list {
		last[m.Target] = i
	}
	var list []Mount
	for i, m := range b.list {
		if last[m.Target] == i {
			list = append(list, m)
		}
	}
	slices.SortStableFunc(list, func(x, y Mount) int {
		return cmp.Or(cmp.Compare(depth(x.Target), depth(y.Target)), cmp.Compare(x.Target, y.Target))
	})
	return list
}

func depth(path string) int { return strings.Count(path, "/") }

// system adds a directory of the system, or a link to one.
func (b *builder) system(dir string) {
	info, err := os.Lstat(dir)
	if err != nil {
		return
	}
	if info.Mode()&os.ModeSymlink != 0 {
		if to, err := os.Readlink(dir); err == nil {
			b.add(Mount{Kind: Link, Target: dir, Source: to})
		}
		return
	}
	b.add(Mount{Kind: Bind, Target: dir, Source: dir, Optional: true})
}

// homes adds the home directory of the program, unless that is in a directory which the view makes
// visible, such as the workspace.
func (b *builder) homes(v *View) {
	if !filepath.IsAbs(b.home) || b.seen(b.home) {
		return
	}
	for _, dir := range slices.Concat(b.policy.Write, v.Write, v.Copy) {
		if within(filepath.Clean(dir), filepath.Clean(b.home)) {
			return
		}
	}
	if _, err := os.Stat(b.home); err != nil && slices.ContainsFunc(slices.Concat(b.policy.Read, v.Read), func(dir string) bool {
		return within(filepath.Clean(dir), filepath.Clean(b.home))
	}) {
		return // it does not exist, and cannot be created there
	}
	if b.policy.HomeShared {
		b.add(Mount{Kind: Bind, Target: b.home, Source: b.home, Optional: true})
		for _, name := range privateDirs {
			b.hide(filepath.Join(b.home, name))
		}
		return
	}
	b.add(Mount{Kind: Empty, Target: b.home, Writable: true, Size: b.policy.Limits.Disk, Mode: 0o700})
}

// privateDirs are the directories of a home directory that hold keys. A shared home does not
// contain them, unless the suite names them.
var privateDirs = []string{".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".config/gcloud", ".netrc", ".git-credentials", ".password-store"}

// personal hides the personal settings of a view. Agents can write others in their place.
func (b *builder) personal(v *View) {
	for _, path := range b.policy.hiddenSettings(v) {
		// A link leads to a place that can be visible, too. Nothing can be mounted over the link itself.
		if real, err := filepath.EvalSymlinks(path); err == nil && real != path {
			if parent, err := filepath.EvalSymlinks(filepath.Dir(path)); err != nil || real != filepath.Join(parent, filepath.Base(path)) {
				path = real
			}
		}
		before := len(b.list)
		b.hide(path)
		for i := before; i < len(b.list); i++ {
			if m := &b.list[i]; m.Kind == Empty {
				m.Writable, m.Size, m.Mode = true, b.policy.Limits.Disk, 0o700
			}
		}
	}
}

// hiddenSettings returns the personal settings of a view that the policy hides.
func (p *Policy) hiddenSettings(v *View) []string {
	if p.HomeShared {
		return nil
	}
	named := slices.Concat(p.Read, p.Write)
	return slices.DeleteFunc(slices.Clone(v.Personal), func(path string) bool { return slices.Contains(named, path) })
}

// hide replaces a path of the machine with an empty one, if it is visible otherwise.
func (b *builder) hide(path string) {
	info, err := os.Stat(path)
	if err != nil || !b.seen(path) {
		return
	}
	if info.IsDir() {
		b.add(Mount{Kind: Empty, Target: path, Mode: 0o755})
		return
	}
	b.add(Mount{Kind: Bind, Target: path, Source: os.DevNull})
}

// seen reports whether a path of the machine is visible through one of the mounts.
func (b *builder) seen(path string) bool {
	best, visible := -1, false
	for _, m := range b.list {
		if within(m.Target, path) && len(m.Target) >= best {
			best, visible = len(m.Target), m.Kind == Bind && m.Source == m.Target || m.Kind == Overlay
		}
	}
	return visible
}

// tools makes a directory of programs visible, together with the files that these need: a
// directory bin is visible with the one that contains it, and a tool that has a directory below
// the home directory with that, such as .nvm or .pyenv. The programs of packages of node are links
// to these.
func (b *builder) tools(dir string) {
	if b.seen(dir) || !isDir(dir) {
		return
	}
	if packages, ok := strings.CutSuffix(dir, modules+".bin"); ok && b.show(packages+modules[:len(modules)-1]) {
		return
	}
	shown := dir
	if name := filepath.Base(dir); name == "bin" || name == "sbin" {
		shown = filepath.Dir(dir)
	}
	if rel, err := filepath.Rel(b.home, dir); b.home != "" && err == nil && filepath.IsLocal(rel) && rel != "." {
		first, rest, _ := strings.Cut(rel, "/")
		switch {
		case first == ".local":
			for _, name := range []string{"bin", "lib", "share/pipx", "share/uv", "share/mise", "share/fnm"} {
				b.show(filepath.Join(b.home, first, name))
			}
			return
		case slices.Contains(guardedDirs, first):
			shown = dir
		case rest != "":
			shown = filepath.Join(b.home, first)
		default:
			shown = dir
		}
	}
	if !b.show(shown) {
		b.show(dir)
	}
	for _, name := range []string{"credentials", "credentials.toml"} { // of cargo
		b.hide(filepath.Join(shown, name))
	}
}

// guardedDirs are directories below the home directory of which only the directories of programs
// are visible, because the rest is private.
var guardedDirs = append([]string{".config", ".cache", "Documents", "Desktop", "Downloads", "src", "work", "projects"}, privateDirs...)

// show makes a path readable, unless it contains something that must stay hidden. It reports
// whether the path is visible.
func (b *builder) show(path string) bool {
	if b.seen(path) {
		return true
	}
	for _, dir := range append([]string{b.home, os.TempDir()}, b.policy.Hidden...) {
		if dir != "" && within(path, dir) {
			return false
		}
	}
	b.add(Mount{Kind: Bind, Target: path, Source: path, Optional: true})
	return true
}

// programFile makes the program itself visible and, if it is a link, the directory of the
// program to which it leads.
func (b *builder) programFile(path string) {
	if path == "" {
		return
	}
	if !b.seen(path) {
		b.add(Mount{Kind: Bind, Target: path, Source: path})
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil || real == path {
		return
	}
	if i := strings.Index(real, modules); i >= 0 { // programs of node import packages beside their own
		b.show(real[:i+len(modules)-1])
	} else if !b.seen(real) {
		b.show(filepath.Dir(real))
	}
}

// modules is a part of the paths of packages of node.
const modules = "/node_modules/"

// searched returns the directories in which a program finds others and their files.
func searched(env []string, home string) []string {
	var dirs []string
	for _, name := range []string{"PATH", "GOROOT", "JAVA_HOME", "VIRTUAL_ENV", "CONDA_PREFIX", "NVM_DIR", "RUSTUP_HOME", "NODE_PATH", "PYTHONPATH", "LD_LIBRARY_PATH"} {
		for _, dir := range filepath.SplitList(variable(env, name)) {
			if filepath.IsAbs(dir) && filepath.Clean(dir) != filepath.Clean(home) && !slices.Contains(dirs, filepath.Clean(dir)) {
				dirs = append(dirs, filepath.Clean(dir))
			}
		}
	}
	return dirs
}

// variable returns the value of a variable in an environment. The last one counts.
func variable(env []string, name string) string {
	for _, kv := range slices.Backward(env) {
		if value, ok := strings.CutPrefix(kv, name+"="); ok {
			return value
		}
	}
	return ""
}

// within reports whether a path is dir or below it. Both are absolute and clean.
func within(dir, path string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, dir+"/")
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// String describes a mount in one line.
func (m Mount) String() string {
	s := fmt.Sprintf("%s %s", m.Kind, m.Target)
	if m.Source != "" && m.Source != m.Target {
		s += " from " + m.Source
	}
	if m.Writable {
		s += ", writable"
	}
	return s
}
