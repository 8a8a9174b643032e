package container

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"waza/runner/proc"
	"waza/runner/sandbox/internal/pids"
)

// An OCI runtime has no images. It runs programs on a copy of a directory, the root file system. The
// copy is an overlay whose upper layer waza fills and reads itself:
//
//	unshare ──► script: mounts ──► crun run ──► program
//
// The process namespace of unshare ends everything, and its mount namespace holds all mounts.

// rootScript mounts the root file system and becomes the runtime. Its arguments are the bundle, the
// directory, the runtime, and the largest process id of the namespace, or 0. crun needs control
// groups of version 2 even if it does not use them.
const rootScript = `set -eu
cd "$1"
[ "$4" = 0 ] || echo "$4" >` + pids.File + `
if [ "$(stat -f -c %T /sys/fs/cgroup)" != cgroup2fs ]; then
	umount -R /sys/fs/cgroup 2>/dev/null || true
	mount -t cgroup2 none /sys/fs/cgroup
fi
mount -t overlay -o "lowerdir=$2,upperdir=$1/upper,workdir=$1/work" overlay root
case ${3##*/} in
*crun*) exec "$3" --cgroup-manager=disabled --root "$1/state" run program ;;
*) exec "$3" --root "$1/state" run program ;;
esac
`

// checkRoot returns the reason why the engine cannot run programs on a directory; nil if it can.
func (e *Engine) checkRoot() error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("%s needs the root user, because waza mounts the root file system; use podman as another user", e)
	}
	if _, err := exec.LookPath("unshare"); err != nil {
		return fmt.Errorf("%s needs the program unshare; install util-linux", e)
	}
	return nil
}

// checkRootImage returns the fault of an image that must be a directory.
func (e *Engine) checkRootImage(image Image) error {
	switch info, err := os.Stat(image.Name); {
	case image.Dockerfile != "":
		return fmt.Errorf("%s cannot build %s; use docker or podman", e, image.Dockerfile)
	case !filepath.IsAbs(image.Name):
		return fmt.Errorf("%s needs an image that is the absolute path of a directory with a root file system, got %s; use docker or podman", e, image.Name)
	case err != nil:
		return fmt.Errorf("the image %s: %w", image.Name, errors.Unwrap(err))
	case !info.IsDir():
		return fmt.Errorf("the image %s is not a directory", image.Name)
	case strings.ContainsAny(image.Name, `,:\`):
		return fmt.Errorf("the path of the image %s contains a comma, a colon or a backslash, which an overlay cannot have", image.Name)
	}
	return nil
}

// A bundle is the directory of one program of an OCI runtime.
type bundle struct {
	containers *Containers
	dir        string
	client     *client
	program    Program
	entrance   *entrance // nil without one
	pid        int
}

// bundles is the directory of the bundles of all owners. Only the root user can create files in the
// directory above, so that no other user can plant a bundle. It is a variable for tests.
var bundles = "/var/lib/waza/bundles"

// bundlesDir contains the bundles of this owner, named like containers.
func bundlesDir() string { return filepath.Join(bundles, owner()) }

// pidFile is the file of a bundle with the process that ends everything in it, and its start time.
const pidFile = "pid"

// startRoot starts a program on a root file system.
func (c *Containers) startRoot(of Box, p Program) (child, error) {
	if len(p.Places) > 0 || p.State != "" {
		return nil, fmt.Errorf("%s cannot show folders at other paths (sandbox.paths of the task); use docker or podman", c.engine)
	}
	if _, err := c.image(context.Background(), of.Image); err != nil {
		return nil, err
	}
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil, errClosed
	}
	c.started++
	name := nameOf(c.id, c.started)
	c.work.Add(1)
	c.mu.Unlock()
	b := &bundle{containers: c, dir: filepath.Join(bundlesDir(), name), program: p}
	if err := b.start(of, name); err != nil {
		b.close()
		return nil, err
	}
	return b, nil
}

func (b *bundle) start(of Box, name string) error {
	for _, name := range []string{"upper", "work", "root", "state"} {
		if err := os.MkdirAll(filepath.Join(b.dir, name), 0o700); err != nil {
			return err
		}
	}
	if err := os.Chmod(filepath.Join(b.dir, "upper"), 0o755); err != nil { // it is the root directory
		return err
	}
	home := b.program.home(of.Mounts)
	if err := transfer(func(w *os.File) error { return writeArchive(w, home, b.program.In, nil) }, func(r *os.File) error {
		return unpack(filepath.Join(b.dir, "upper"), r)
	}); err != nil {
		return fmt.Errorf("files cannot be copied into the container: %w", err)
	}
	config, err := b.config(of, name)
	if err != nil {
		return err
	}
	for _, dir := range b.program.In { // the directory of devices hides those of the root file system
		if dir = filepath.Clean(dir); strings.HasPrefix(dir, "/dev/") {
			config.Mounts = append(config.Mounts, configMount{dir, "bind", filepath.Join(b.dir, "upper", dir), []string{"rbind", "nosuid", "nodev"}})
		}
	}
	text, err := json.Marshal(config)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(b.dir, "config.json"), text, 0o600); err != nil {
		return err
	}
	if b.entrance != nil {
		if err := b.entrance.serve(&b.program); err != nil {
			return err
		}
	}
	cmd := b.program.Cmd
	most, _ := pids.Max(of.Limits.Processes) // 0 for no limit
	unshare := exec.Command("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", rootScript, "waza",
		b.dir, of.Image.Name, b.containers.engine.path, strconv.FormatInt(most, 10))
	unshare.Dir, unshare.Stdin, unshare.Stdout, unshare.Stderr, unshare.SysProcAttr = "/", cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.SysProcAttr
	if b.client, err = startClient(unshare); err != nil {
		return err
	}
	pid := unshare.Process.Pid
	return os.WriteFile(filepath.Join(b.dir, pidFile), []byte(strconv.Itoa(pid)+"-"+startTime(pid)), 0o600)
}

// config returns the configuration of the program, and makes its entrance.
func (b *bundle) config(of Box, name string) (config, error) {
	args, err := b.program.args(of)
	if err != nil {
		return config{}, err
	}
	mounts, err := b.containers.mounts(of)
	if err != nil {
		return config{}, err
	}
	if of.Connected {
		if b.entrance, err = b.containers.entrances.newEntrance(b.containers.id, name); err != nil {
			return config{}, err
		}
		mounts = append(mounts, b.entrance.mount())
	}
	return configOf(of, mounts, &b.program, args), nil
}

// entered implements [child].
func (b *bundle) entered() (*entrance, *client) { return b.entrance, b.client }

// setPid implements [child].
func (b *bundle) setPid(pid int) { b.pid = pid }

// Pid implements [proc.Child].
func (b *bundle) Pid() int { return b.pid }

// Kill implements [proc.Child]. unshare takes everything with it.
func (b *bundle) Kill() { b.client.kill() }

// Wait implements [proc.Child].
func (b *bundle) Wait() error {
	defer b.close()
	err := b.client.wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		err = &proc.ExitError{Code: exit.ExitCode()}
	}
	if fault := b.entrance.close(); fault != nil {
		return notStarted(fault)
	}
	for _, path := range b.program.Out {
		if fault := b.copyOut(path); fault != nil {
			return &proc.LostError{Err: fmt.Errorf("%s cannot be copied from the container: %w", path, fault)}
		}
	}
	return err
}

// copyOut replaces a directory or file by the one in the upper layer. The program has ended. It can
// have replaced the directories above by links, which are not followed.
func (b *bundle) copyOut(path string) error {
	root, err := os.OpenRoot(filepath.Join(b.dir, "upper"))
	if err != nil {
		return err
	}
	defer root.Close()
	err = transfer(func(w *os.File) error { return writeArchiveOf(w, root, nameInside(path)) }, func(r *os.File) error {
		return replace(path, r, b.program.MaxOut)
	})
	if errors.Is(err, errGone) {
		return os.RemoveAll(path)
	}
	return err
}

// close deletes the bundle.
func (b *bundle) close() {
	_ = b.entrance.close()  // Wait has reported its fault
	_ = os.RemoveAll(b.dir) // the next run tries it again
	b.containers.work.Done()
}

// removeBundles ends the programs of processes that were killed, and deletes their bundles.
func removeBundles() error {
	list, err := os.ReadDir(bundlesDir())
	if err != nil {
		return nil // none was ever made
	}
	for _, d := range list {
		if id, ok := runOf(d.Name()); !ok || runs(id) {
			continue
		}
		dir := filepath.Join(bundlesDir(), d.Name())
		if text, err := os.ReadFile(filepath.Join(dir, pidFile)); err == nil && runs(string(text)) {
			first, _, _ := strings.Cut(string(text), "-")
			pid, _ := strconv.Atoi(first) // runs has read it
			if p, err := os.FindProcess(pid); err == nil {
				_ = p.Signal(syscall.SIGKILL)
			}
		}
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	return nil
}
