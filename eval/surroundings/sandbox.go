package surroundings

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/files"
	"waza/eval/text"
)

// A Sandbox is what a suite asks of the sandbox around the programs of a trial: the agent, its MCP
// servers, hooks of tasks and the tools of models. The zero value means that no suite asked,
// because the record is older than sandboxes.
type Sandbox struct {
	// Strength. off: none. auto: the strongest that the machine has, in the order namespaces, Landlock
	// with seccomp, none. strict: namespaces, Landlock and seccomp; waza refuses a run on a machine that
	// lacks one of them. container: a container of image or dockerfile.
	Mode SandboxMode `yaml:"mode" json:"mode" jsonschema:"enum=off,enum=auto,enum=strict,enum=container"`
	// Hosts that programs can connect to: open (all), none, or a list of names, names below a domain
	// (*.example.com), addresses and networks (10.1.0.0/16), each with an optional port (example.com:443);
	// every port when absent.
	Network Network `yaml:"network" json:"network"`
	// API keys. shared: programs see them in their environment. proxy: they do not; waza's proxy adds
	// them to requests.
	Keys SandboxKeys `yaml:"keys" json:"keys" jsonschema:"enum=shared,enum=proxy"`
	// Home directory. private: an empty one, with the login of the agent; it is deleted with the
	// trial. shared: yours, which programs can read but not change.
	Home SandboxHome `yaml:"home" json:"home" jsonschema:"enum=private,enum=shared"`
	// Files and directories that programs can read besides those of the system: absolute, relative to
	// the suite's directory, or ~/PATH in your home directory.
	Read []string `yaml:"read" json:"read,omitempty"`
	// Files and directories that programs can also change besides the workspace, in the same form.
	Write []string `yaml:"write" json:"write,omitempty"`
	// Resources that the programs of a trial can use together.
	Limits SandboxLimits `yaml:"limits" json:"limits"`

	SandboxImage `yaml:",inline"`
}

// SandboxMode is the strength of a sandbox.
type SandboxMode string

// The modes of a sandbox, see [Sandbox.Mode].
const (
	SandboxOff       SandboxMode = "off"
	SandboxAuto      SandboxMode = "auto"
	SandboxStrict    SandboxMode = "strict"
	SandboxContainer SandboxMode = "container"
)

// SandboxKeys is how the programs of a sandbox get API keys.
type SandboxKeys string

// The values of [Sandbox.Keys].
const (
	KeysShared SandboxKeys = "shared"
	KeysProxy  SandboxKeys = "proxy"
)

// SandboxHome is the home directory of the programs of a sandbox.
type SandboxHome string

// The values of [Sandbox.Home].
const (
	HomePrivate SandboxHome = "private"
	HomeShared  SandboxHome = "shared"
)

// SandboxImage is the image of a container. At most one field is set.
type SandboxImage struct {
	// Image of the container, as the container program names it. Only for the mode container.
	Image string `yaml:"image" json:"image,omitempty"`
	// Dockerfile that the image is built from once, relative to the suite's directory. Its directory is
	// the build context, so it must not contain the suite. Only for the mode container.
	Dockerfile string `yaml:"dockerfile" json:"dockerfile,omitempty" jsonschema_extras:"x-refers=suite-file" path:"maybe"`
}

// SandboxLimits limit all programs of a trial together. The mode off has no limits, and other modes
// report the limits that the machine cannot keep.
type SandboxLimits struct {
	// Memory, such as 2GiB, or none, which is the default.
	Memory Bytes `yaml:"memory" json:"memory,omitempty"`
	// Number of processes and threads, or none; 1024 when absent.
	Processes Count `yaml:"processes" json:"processes,omitempty"`
	// Size of the workspace, the private home and /tmp, such as 4GiB, or none; 10GiB when absent.
	Disk Bytes `yaml:"disk" json:"disk,omitempty"`
	// Number of open files per process, or none, which means that of waza; none when absent.
	Files Count `yaml:"files" json:"files,omitempty"`
}

// The default limits.
const (
	defaultProcesses Count = 1024
	defaultDisk      Bytes = 10 << 30
)

// SetDefaults sets the sandbox of suites that ask for none: the strongest of the machine, with an
// open network, shared keys, a private home, and the default limits.
func (s *Sandbox) SetDefaults() {
	*s = Sandbox{
		Mode: SandboxAuto, Network: Network{Open: true}, Keys: KeysShared, Home: HomePrivate,
		Limits: SandboxLimits{Processes: defaultProcesses, Disk: defaultDisk},
	}
}

// DecodeShape decodes a mode, or a map whose absent keys keep their values.
func (s *Sandbox) DecodeShape(d *decode.Decoder, n *yaml.Node) {
	if n.Kind == yaml.ScalarNode {
		s.decodeMode(d, n)
		return
	}
	if n.Kind != yaml.MappingNode {
		d.WrongType(n, "off, auto, strict, container or a map")
		return
	}
	image := s.SandboxImage
	d.Structure(n, s, nil)
	s.replace(n, image)
	for _, list := range []struct {
		key   string
		paths *[]string
	}{{"read", &s.Read}, {"write", &s.Write}} {
		if at := decode.Lookup(n, list.key); at != nil {
			cleanPaths(d, at, list.key, *list.paths)
		}
	}
}

func (s *Sandbox) decodeMode(d *decode.Decoder, n *yaml.Node) {
	modes := []string{string(SandboxOff), string(SandboxAuto), string(SandboxStrict), string(SandboxContainer)}
	for _, mode := range modes {
		if n.Value == mode {
			s.Mode = SandboxMode(mode)
			return
		}
	}
	suggestion := decode.Nearest(n.Value, modes)
	if on, ok := decode.BoolOf(n); ok {
		if suggestion = string(SandboxOff); on {
			suggestion = string(SandboxAuto)
		}
	}
	d.Report(n, decode.Error, decode.CodeInvalidValue, suggestion, "%s must be one of %s, or a map, got %q",
		d.Here(), strings.Join(modes, ", "), text.Clip(n.Value, 40))
}

// replace lets an image that a map sets replace a Dockerfile from before, and the reverse.
func (i *SandboxImage) replace(n *yaml.Node, before SandboxImage) {
	switch image, file := decode.Lookup(n, "image"), decode.Lookup(n, "dockerfile"); {
	case image != nil && file == nil && before.Dockerfile != "":
		i.Dockerfile = ""
	case file != nil && image == nil && before.Image != "":
		i.Image = ""
	}
}

// CheckImage reports an image that cannot be built: two sources of it, or a Dockerfile that does
// not exist or whose directory contains the suite. looked gets the absolute path of the Dockerfile.
func (i SandboxImage) CheckImage(suiteDir string, looked func(path string), report Reporter) {
	switch {
	case i.Image != "" && i.Dockerfile != "":
		report(decode.At("dockerfile"), decode.Error, decode.CodeInvalidValue, "sandbox has an image and a dockerfile; omit one of them")
	case i.Dockerfile != "":
		path := Absolute(i.Dockerfile, suiteDir, "")
		looked(path)
		if !files.IsRegular(path) {
			report(decode.At("dockerfile"), decode.Error, decode.CodeMissingFile, "sandbox.dockerfile: no such file: %s", text.Clip(i.Dockerfile, 200))
		} else if rel, err := filepath.Rel(filepath.Dir(path), suiteDir); err == nil && filepath.IsLocal(rel) {
			report(decode.At("dockerfile"), decode.Error, decode.CodeExposed,
				"sandbox.dockerfile: the directory of %s contains the suite, so its build can copy the expected answers into "+
					"the image; move the Dockerfile into a directory of its own", text.Clip(i.Dockerfile, 80))
		}
	case strings.ContainsAny(i.Image, " \t\r\n\x00") || strings.HasPrefix(i.Image, "-"):
		report(decode.At("image"), decode.Error, decode.CodeInvalidValue, "sandbox.image must be the name of an image, got %q", text.Clip(i.Image, 80))
	}
}

// Absolute returns an entry of [Sandbox.Read] or [Sandbox.Write], or a Dockerfile, as an absolute
// path. dir is the suite's directory, home that of the user.
func Absolute(entry, dir, home string) string {
	switch rest, ok := strings.CutPrefix(entry, "~"); {
	case ok && (rest == "" || rest[0] == '/'):
		return filepath.Join(home, filepath.FromSlash(rest))
	case filepath.IsAbs(entry):
		return filepath.Clean(entry)
	}
	return filepath.Join(dir, filepath.FromSlash(entry))
}

// IsFixed reports whether an entry of [Sandbox.Read] or [Sandbox.Write] does not depend on the
// suite's directory.
func IsFixed(entry string) bool {
	return filepath.IsAbs(entry) || entry == "~" || strings.HasPrefix(entry, "~/")
}

// cleanPaths reports paths that a sandbox cannot have and makes them empty. It cleans the others.
func cleanPaths(d *decode.Decoder, n *yaml.Node, key string, paths []string) {
	d.Push(key)
	defer d.Pop()
	for i, p := range paths {
		at := n
		if items := decode.Follow(n); items.Kind == yaml.SequenceNode && i < len(items.Content) {
			at = items.Content[i]
		}
		report := func(format string, args ...any) {
			d.Report(at, decode.Error, decode.CodeInvalidValue, "", d.Here()+": "+format, args...)
		}
		clean := path.Clean(filepath.ToSlash(p))
		paths[i] = ""
		switch {
		case strings.TrimSpace(p) == "":
			report("a path must not be empty")
		case strings.ContainsRune(p, 0):
			report("the path %q contains a zero byte", text.Clip(p, 80))
		case strings.HasPrefix(p, "~") && p != "~" && !strings.HasPrefix(p, "~/"):
			report("%q names the home directory of another user; only ~/PATH is possible", text.Clip(p, 80))
		case clean == "/":
			report("%q is the whole file system; name the directories that the programs need", text.Clip(p, 80))
		default:
			paths[i] = clean
		}
	}
}

// Override changes the keys that a flag or a request sets: a mode, or a map in YAML or JSON. Other
// keys keep their values. If it returns an error, which describes the first fault, s is unchanged.
func (s *Sandbox) Override(change string) error {
	if len(change) > maxOverride {
		return fmt.Errorf("a sandbox must not have more than %d bytes, got %d", maxOverride, len(change))
	}
	if strings.TrimSpace(change) == "" {
		return errors.New("sandbox must be off, auto, strict, container or a map, got nothing")
	}
	var found decode.Findings
	changed := *s
	changed.Read, changed.Write = append([]string(nil), s.Read...), append([]string(nil), s.Write...)
	src := decode.Parse("", "sandbox", []byte(change), &found)
	if src.Root != nil {
		d := decode.NewDecoder(src, &found)
		d.Push("sandbox")
		d.Into(src.Root, &changed)
	}
	if faults := found.Diagnostics(); len(faults) > 0 { // a flag has no place for warnings
		f := faults[0]
		if f.Suggestion != "" {
			return fmt.Errorf("%s; did you mean %q?", f.Message, f.Suggestion)
		}
		return errors.New(f.Message)
	}
	*s = changed
	return nil
}

// maxOverride limits the text of [Sandbox.Override] in bytes.
const maxOverride = 64 << 10

// InImage reports whether the programs of trials are those of an image, which this machine cannot look
// up.
func (s *Sandbox) InImage() bool { return s.Mode == SandboxContainer }

// Of returns the sandbox of a task, which can have an image of its own.
func (s Sandbox) Of(task SandboxImage) Sandbox {
	if task != (SandboxImage{}) {
		s.SandboxImage = task
	}
	return s
}

// A Network is the part of the network that a sandbox lets programs connect to. The zero value
// is an empty part.
type Network struct {
	// Open means all of it. Hosts is then nil.
	Open bool
	// Hosts are the names and addresses, as the suite writes them.
	Hosts []string
}

// The words for a network.
const (
	networkOpen = "open"
	networkNone = "none"
)

// maxHosts limits the entries of a network, maxHost the bytes of each of them.
const (
	maxHosts = 1000
	maxHost  = 300
)

// DecodeShape decodes open, none, or a list of hosts.
func (w *Network) DecodeShape(d *decode.Decoder, n *yaml.Node) {
	switch {
	case n.Kind == yaml.ScalarNode && n.Value == networkOpen:
		*w = Network{Open: true}
	case n.Kind == yaml.ScalarNode && n.Value == networkNone:
		*w = Network{}
	case n.Kind == yaml.SequenceNode && len(n.Content) == 0:
		d.Report(n, decode.Error, decode.CodeInvalidValue, networkNone, "%s must contain at least one host; none means no network", d.Here())
	case n.Kind == yaml.SequenceNode && len(n.Content) > maxHosts:
		d.Report(n, decode.Error, decode.CodeTooLarge, "", "%s has %d hosts; the limit is %d", d.Here(), len(n.Content), maxHosts)
	case n.Kind == yaml.SequenceNode:
		*w = Network{}
		d.Into(n, &w.Hosts)
		for i, host := range w.Hosts {
			if fault := hostFault(host); fault != "" && i < len(n.Content) {
				d.Report(n.Content[i], decode.Error, decode.CodeInvalidValue, "", "%s[%d]: %q %s", d.Here(), i, text.Clip(host, 80), fault)
				w.Hosts[i] = "" // no further check reports it
			}
		}
	case n.Kind == yaml.ScalarNode:
		d.Report(n, decode.Error, decode.CodeInvalidValue, decode.Nearest(n.Value, []string{networkOpen, networkNone}),
			"%s must be open, none or a list of hosts, got %q", d.Here(), text.Clip(n.Value, 80))
	default:
		d.WrongType(n, "open, none or a list of hosts")
	}
}

// hostFault returns the reason why a text cannot be a host of a network; empty if it can.
func hostFault(host string) string {
	switch {
	case strings.TrimSpace(host) == "":
		return "is empty"
	case len(host) > maxHost:
		return fmt.Sprintf("is longer than %d bytes", maxHost)
	case strings.Contains(host, "://"):
		return "must be a host without a scheme, such as api.example.com or api.example.com:443"
	case strings.ContainsAny(host, "@ \t\r\n\x00"):
		return "must be a host and a port, without a login or spaces"
	}
	return ""
}

// MarshalJSON encodes the form that suites have: open, none, or the list of hosts.
func (w Network) MarshalJSON() ([]byte, error) {
	switch {
	case w.Open:
		return json.Marshal(networkOpen)
	case len(w.Hosts) == 0:
		return json.Marshal(networkNone)
	}
	return json.Marshal(w.Hosts)
}

// UnmarshalJSON decodes the output of MarshalJSON.
func (w *Network) UnmarshalJSON(data []byte) error {
	*w = Network{}
	var word string
	if json.Unmarshal(data, &word) != nil {
		return json.Unmarshal(data, &w.Hosts)
	}
	if w.Open = word == networkOpen; !w.Open && word != networkNone {
		return fmt.Errorf("a network must be open, none or a list of hosts, got %q", text.Clip(word, 80))
	}
	return nil
}

// String returns the network for people: open, none, or the hosts with commas.
func (w Network) String() string {
	switch {
	case w.Open:
		return networkOpen
	case len(w.Hosts) == 0:
		return networkNone
	}
	return strings.Join(w.Hosts, ", ")
}
