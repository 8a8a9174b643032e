package surroundings

import (
	"maps"
	"path"
	"slices"
	"strings"

	"waza/eval/decode"
	"waza/eval/text"
)

// A TaskSandbox is the part of the sandbox that a task has of its own.
type TaskSandbox struct {
	SandboxImage `yaml:",inline"`
	// Hosts that programs of this task can connect to: open, none, or a list like that of
	// config.sandbox.network. It can only close the network: where config.sandbox.network is not open, its
	// hosts remain the only ones, or are added to those of the task.
	Network *Network `yaml:"network" json:"network,omitempty"`
	// Absolute paths at which programs also see folders of the workspace, such as `/app: .`. Only for
	// sandboxes of namespaces and containers of docker and podman: a task with paths is an error on other
	// machines. Only containers can have paths in directories of the system, such as /usr/src/app. Containers keep the files of the image at these paths, and everything that setup commands
	// and the agent changed remains for the next program of the trial.
	Paths map[string]string `yaml:"paths" json:"paths,omitempty"`
	// The workspace is the work folder (WORKDIR) of the image, with the files that the image has there. Only
	// for containers of docker and podman, which then treat everything like with paths.
	ImageWorkdir bool `yaml:"image_workdir" json:"image_workdir,omitempty"`
}

// maxPaths limits the paths of a task.
const maxPaths = 100

// reservedPaths are directories that a sandbox needs for the system. No path of a task is one of them,
// or contains one.
var reservedPaths = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/proc", "/sys", "/dev", "/tmp", "/var/tmp", "/nix",
}

// IsZero reports whether the task has no part of its own.
func (s TaskSandbox) IsZero() bool {
	return s.SandboxImage == (SandboxImage{}) && s.Network == nil && len(s.Paths) == 0 && !s.ImageWorkdir
}

// Targets returns the paths in the order of the alphabet.
func (s TaskSandbox) Targets() []string { return slices.Sorted(maps.Keys(s.Paths)) }

// CheckPaths reports paths that a sandbox cannot have, and cleans the others. Containers can have paths in
// directories of the system, because those are files of an image.
func (s *TaskSandbox) CheckPaths(contained bool, report Reporter) {
	if len(s.Paths) > maxPaths {
		report(decode.At("paths"), decode.Error, decode.CodeTooLarge, "sandbox.paths has %d entries; the limit is %d", len(s.Paths), maxPaths)
		s.Paths = nil
	}
	clean := map[string]string{}
	for _, target := range s.Targets() {
		at, folder := decode.At("paths", target), s.Paths[target]
		cleaned, ok := Folder(folder)
		switch {
		case !path.IsAbs(target) || strings.ContainsRune(target, 0) || path.Clean(target) == "/":
			report(at, decode.Error, decode.CodeInvalidValue, "sandbox.paths: %q must be an absolute path below /", text.Clip(target, 80))
		case IsReserved(path.Clean(target)) && !(contained && belowImage(path.Clean(target))):
			report(at, decode.Error, decode.CodeInvalidValue, "sandbox.paths: %q is a directory of the system", text.Clip(target, 80))
		case !ok:
			report(at, decode.Error, decode.CodeEscapingPath, "sandbox.paths: the folder of %s must be a relative path inside the workspace, got %q",
				text.Clip(target, 80), text.Clip(folder, 80))
		default:
			clean[path.Clean(target)] = cleaned
		}
	}
	if s.Paths != nil {
		s.Paths = clean
	}
}

// belowImage reports whether a path is in a directory of the system that images have.
func belowImage(target string) bool {
	return slices.ContainsFunc([]string{"/usr", "/etc", "/var", "/lib", "/bin", "/sbin", "/nix"}, func(dir string) bool { return strings.HasPrefix(target, dir+"/") }) &&
		!slices.Contains(reservedPaths, target)
}

// IsReserved reports whether a path is a directory of the system, in one or contains one.
func IsReserved(target string) bool {
	return slices.ContainsFunc(reservedPaths, func(dir string) bool {
		return target == dir || strings.HasPrefix(target, dir+"/") && dir != "/tmp" && dir != "/var/tmp" || strings.HasPrefix(dir, target+"/")
	})
}
