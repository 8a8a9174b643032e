package sandbox

// Mounts returns the mounts of a program, one line each.
func (p *Policy) Mounts(program string, v View) []string {
	var lines []string
	for _, m := range p.mounts(program, &v) {
		lines = append(lines, m.String())
	}
	return lines
}

// Profile returns the profile of a program for sandbox-exec.
func (p *Policy) Profile(program string, v View) string { return p.profile(program, &v) }
