package decode

// MaxTextBytes is the size limit of a YAML file or a prompt, on the disk or in an editor.
const MaxTextBytes = 8 << 20
