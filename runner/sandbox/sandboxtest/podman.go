package sandboxtest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Image is the name of the image that [Podman] makes.
const Image = "localhost/busybox:1"

// containersConf is the configuration of podman. A root user that may not raise limits, such as that of some
// virtual machines, needs default_ulimits.
const containersConf = `[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "none"
runtime = %q
`

// storageConf lets podman keep everything in a directory, without an overlay over another.
const storageConf = `[storage]
driver = "vfs"
graphroot = %q
runroot = %q
`

// Podman makes podman keep its containers in a directory, with an image of busybox. It returns variables for
// programs that use it, and an error if podman does not run containers here, with crun or runc.
func Podman(dir string) (variables []string, err error) {
	for _, name := range []string{"podman", "busybox"} {
		if _, err := exec.LookPath(name); err != nil {
			return nil, fmt.Errorf("%s is not installed", name)
		}
	}
	if os.Geteuid() != 0 {
		return nil, errors.New("podman needs the root user, because its storage is in a directory of the test")
	}
	root, archive := filepath.Join(dir, "root"), filepath.Join(dir, "root.tar")
	if err := os.Mkdir(root, 0o755); err != nil {
		return nil, err
	}
	if err := writeRoot(root); err != nil {
		return nil, err
	}
	if out, err := exec.Command("tar", "-C", root, "-c", "-f", archive, ".").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("tar: %w: %s", err, out)
	}
	storage := fmt.Sprintf(storageConf, filepath.Join(dir, "storage"), filepath.Join(dir, "run"))
	if err := os.WriteFile(filepath.Join(dir, "storage.conf"), []byte(storage), 0o600); err != nil {
		return nil, err
	}
	var faults []error
	for _, runtime := range []string{"crun", "runc"} {
		variables := []string{
			"WAZA_CONTAINER_RUNTIME=podman", "BUILDAH_RUNTIME=" + runtime,
			"CONTAINERS_CONF=" + filepath.Join(dir, "containers.conf"), "CONTAINERS_STORAGE_CONF=" + filepath.Join(dir, "storage.conf"),
		}
		if err := os.WriteFile(filepath.Join(dir, "containers.conf"), fmt.Appendf(nil, containersConf, runtime), 0o600); err != nil {
			return nil, err
		}
		podman := func(args ...string) error {
			cmd := exec.Command("podman", args...)
			cmd.Env = append(os.Environ(), variables...)
			if out, err := cmd.CombinedOutput(); err != nil {
				return fmt.Errorf("podman %s: %w: %s", args[0], err, bytes.TrimSpace(out))
			}
			return nil
		}
		err := podman("import", "--quiet", archive, Image)
		if err == nil {
			err = podman("run", "--rm", "--network=none", Image, "true")
		}
		if err == nil {
			return variables, nil
		}
		faults = append(faults, err)
	}
	return nil, errors.Join(faults...)
}

// writeRoot writes a root file system with the programs of busybox into an empty directory.
func writeRoot(dir string) error {
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		return err
	}
	binary, err := os.ReadFile(busybox)
	if err != nil {
		return err
	}
	for _, sub := range []string{"bin", "etc", "proc", "dev", "tmp", "sys"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o755); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "bin", "busybox"), binary, 0o755); err != nil {
		return err
	}
	for name := range strings.FieldsSeq(programs) {
		if err := os.Symlink("busybox", filepath.Join(dir, "bin", name)); err != nil {
			return err
		}
	}
	return os.Chmod(dir, 0o755) // regardless of the umask
}
