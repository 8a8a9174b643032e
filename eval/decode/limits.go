package decode

// MaxTextBytes is the largest file of YAML, or prompt, that is read. A file of
// which an editor holds more is not worth following.
const MaxTextBytes = 8 << 20
