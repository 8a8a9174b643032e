package sandbox

import "golang.org/x/sys/unix"

// A request asks a keeper to do something. Exactly one field is set.
type request struct {
	Start *startRequest `json:",omitempty"`
	Kill  bool          `json:",omitempty"` // the program and everything that it started
}

// A startRequest starts a program. Its first file is that of the program's standard input.
type startRequest struct {
	Path   string
	Args   []string
	Env    []string
	Dir    string
	Mounts []Mount
	Limits Limits
	Mark   uint64 // the soft limit of file locks; 0 changes nothing
	// Roots are the directories and files that the program can write.
	Roots []string
	// Counted are the directories whose contents Limits.Disk limits together.
	Counted []string
	// Listen are addresses in the network of the sandbox, each as tcp:HOST:PORT or
	// udp:HOST:PORT. The reply has a socket for each.
	Listen []string
}

// A reply answers a request, or reports the end of the program.
type reply struct {
	// Fault explains why the request failed, and Errno is its number, if it has one.
	Fault string `json:",omitempty"`
	Errno int    `json:",omitempty"`
	// Ended means that the program and everything that it started have ended.
	Ended  bool            `json:",omitempty"`
	Status unix.WaitStatus `json:",omitempty"`
	// Exceeded names the limit for which the keeper ended the program; empty for none.
	Exceeded string `json:",omitempty"`
}
