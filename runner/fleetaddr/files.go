package fleetaddr

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"

	"waza/eval/text"
)

// mostFileBytes limits the size of a file that an address names. Certificates and keys have a
// few thousand bytes.
const mostFileBytes = 1 << 20

// A namedFile is a file of an address.
type namedFile struct {
	parameter string
	path      *string
	secret    bool
}

func (a *Address) files() []namedFile {
	return []namedFile{
		{"creds", &a.Creds, true},
		{"nkey", &a.NKey, true},
		{"ca", &a.CA, false},
		{"cert", &a.Cert, false},
		{"key", &a.Key, true},
		{"sign", &a.Sign, true},
	}
}

// Check returns an error when a file of the address cannot be read, is not regular or has more
// than 1 MiB. It also returns one when users other than the file's owner and group can read a
// secret.
func (a Address) Check() error {
	for _, file := range a.files() {
		if *file.path == "" {
			continue
		}
		if err := checkFile(*file.path, file.secret); err != nil {
			return fmt.Errorf("fleet address: parameter %q: %w", file.parameter, err)
		}
	}
	return nil
}

func checkFile(path string, secret bool) error {
	shown := text.ClipMiddle(path, 200)
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("file %s does not exist", shown)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("file %s: permission denied", shown)
	case err != nil:
		return fmt.Errorf("file %s: %w", shown, errors.Unwrap(err))
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file", shown)
	case info.Size() > mostFileBytes:
		return fmt.Errorf("file %s has %d bytes; the limit is %d", shown, info.Size(), mostFileBytes)
	case secret:
		return CheckSecret(path, info)
	}
	return nil
}

// CheckSecret returns an error when users other than the owner and the group of a file can read
// or change it, or when the group can change it. The group can read it, because container
// orchestrators pass secrets this way to programs that do not run as root. On Windows, where
// modes do not show who can read a file, it returns nil.
func CheckSecret(path string, info fs.FileInfo) error {
	if mode := info.Mode().Perm(); mode&0o027 != 0 && runtime.GOOS != "windows" {
		return fmt.Errorf("file %s contains a secret, but its mode %04o lets others read or change it; run chmod 600 on it",
			text.ClipMiddle(path, 200), mode)
	}
	return nil
}

// fileParameter returns the parameter for a file of the client's login.
func fileParameter(name string, field func(*Address) *string) parameter {
	return parameter{name, true, false,
		func(a *Address, value string) error { *field(a) = value; return nil },
		func(a *Address) string { return *field(a) }}
}

// allowEmbedded allows a parameter for embedded fleets, too.
func allowEmbedded(p parameter) parameter {
	p.embedded = true
	return p
}
