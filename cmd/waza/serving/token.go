package serving

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"waza/cmd/waza/secret"
	"waza/rpc"
)

// tokenName is the file in the state directory that holds the token of /rpc when the
// configuration names none.
const tokenName = "serve.token"

// rpcToken returns the token that clients of /rpc show. It is made at the first start;
// the log has the name of its file, and never the token.
func rpcToken(file, stateDir string, log *slog.Logger) (string, error) {
	if file == "" {
		file = filepath.Join(stateDir, tokenName)
		if err := makeToken(file); err != nil {
			return "", fmt.Errorf("token of /rpc: %w", err)
		}
	}
	token, err := secret.TokenFile("jobs.token_file", file, rpc.MinToken)
	if err == nil {
		log.Info("clients of /rpc show the token in a file", "file", file)
	}
	return token, err
}

// makeToken writes a new token to a file, unless there is one. The file appears whole,
// so that a process that is killed leaves none without a token.
func makeToken(file string) error {
	if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var random [32]byte
	if _, err := rand.Read(random[:]); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(file), ".token-") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString(hex.EncodeToString(random[:]) + "\n")
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), file)
}
