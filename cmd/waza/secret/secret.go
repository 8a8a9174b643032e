// Package secret reads what only this user may know: tokens and keys. Call
// [TokenFile] or [ReadFile] for a file that other users must not be able to read, and
// [Take] for a variable of the environment, which agents must not inherit.
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

// ModeError says that other users have access to a file.
type ModeError struct {
	Path string
	Mode fs.FileMode
}

func (e *ModeError) Error() string {
	return fmt.Sprintf("%s has mode %#o, other users must not have access to it", e.Path, e.Mode)
}

// ReadFile reads at most limit bytes of a file that is for this user alone. What is
// not a regular file, such as a pipe of the shell, has no mode that says so. The error
// is a [*ModeError], or that of the file system.
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

// Take returns the value of a variable and removes it from the environment: agents,
// graders and hooks get the rest of that, and records what they print.
func Take(variable string) string {
	value := os.Getenv(variable)
	os.Unsetenv(variable)
	return value
}

// maxToken is how much a file with a token may hold, in bytes.
const maxToken = 4096

// TokenFile returns the token in a file. what names the flag or key that names the
// file, in errors about how waza was called.
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

// Token returns the token that a text from a file or variable holds, which from names
// in errors. It must have at least that many bytes.
func Token(from, text string, least int) (string, error) {
	token := strings.TrimSpace(text)
	if token == "" {
		return "", exit.Usagef("a token is a line of text that is hard to guess", "%s: there is no token in it", from)
	}
	if len(token) < least {
		return "", exit.Usagef("openssl rand -hex 32 prints a good one", "%s: the token has %d characters, it must have at least %d", from, len(token), least)
	}
	return token, nil
}
