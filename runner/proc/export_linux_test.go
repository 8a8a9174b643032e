package proc

// CgroupPath exports cgroupPath for tests.
var CgroupPath = cgroupPath

// HasCgroups reports whether scopes have control groups on this machine.
func HasCgroups() bool {
	g := newCgroup()
	defer g.end()
	return g != nil
}
