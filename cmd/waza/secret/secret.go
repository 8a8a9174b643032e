// Package secret reads tokens and keys that only this user may see. Call [TokenFile] or
// [ReadFile] for a file that other users must not be able to read, and [Unset] for an environment
// variable that agents must not inherit.
package secret

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"strings"

	"waza/cmd/waza/exit"
)

// ModeError reports that other users have access to a file.
type ModeError struct {
	Path string
	Mode fs.FileMode
}

func (e *ModeError) Error() string {
	return fmt.Sprintf("%s has mode %#o, other users must not have access to it", e.Path, e.Mode)
}

// ReadFile reads at most limit bytes of a file that only this user can access. It does not check
// the mode of pipes and other files that are not regular. The error is a [*ModeError], or that
// of the file system.
func ReadFile(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if mode := info.Mode(); mode.IsRegular() && mode.Perm()&0o077 != 0 && runtime.GOOS != "windows" {
		return nil, &ModeError{path, mode.Perm()}
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("%s has more than %d bytes", path, limit)
	}
	return data, err
}

// Unset returns the value of a variable and removes it from the environment, because agents,
// graders and hooks inherit the environment, and waza records their output.
func Unset(variable string) string {
	value := os.Getenv(variable)
	os.Unsetenv(variable)
	return value
}

// maxToken limits the size of a token file, in bytes.
const maxToken = 4096

// TokenFile returns the token in a file. In usage errors, the argument what names the flag or
// key of the file.
func TokenFile(what, path string, least int) (string, error) {
	data, err := ReadFile(path, maxToken)
	var mode *ModeError
	switch {
	case errors.As(err, &mode):
		return "", exit.Usagef("chmod 600 "+path, "%s: %v", what, err)
	case err != nil:
		return "", exit.Usagef("", "%s: %v", what, err)
	}
	return Token(what+" "+path, string(data), least)
}

// Token returns the token in a text from a file or variable, which must have at least that many
// bytes. In errors, from names the source.
func Token(from, text string, least int) (string, error) {
	token := strings.TrimSpace(text)
	if token == "" {
		return "", exit.Usagef("a token is a random line of text; openssl rand -hex 32 prints one", "%s contains no token", from)
	}
	if len(token) < least {
		return "", exit.Usagef("openssl rand -hex 32 prints a good one",
			"%s: the token must have at least %[3]d characters, got %[2]d", from, len(token), least)
	}
	return token, nil
}
