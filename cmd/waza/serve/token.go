package serve

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"waza/cmd/waza/secret"
	"waza/eval/files"
	"waza/rpc"
)

// tokenName is the file in the state directory with the token of /rpc, unless the configuration
// names another one.
const tokenName = "serve.token"

// rpcToken returns the token that clients of /rpc present. The first start makes it. The log
// contains the name of its file, and never the token.
func rpcToken(file, stateDir string, log *slog.Logger) (string, error) {
	if file == "" {
		file = filepath.Join(stateDir, tokenName)
		if err := makeToken(file); err != nil {
			return "", fmt.Errorf("token of /rpc: %w", err)
		}
	}
	token, err := secret.TokenFile("jobs.token_file", file, rpc.MinToken)
	if err == nil {
		log.Info("clients of /rpc present the token in a file", "file", file)
	}
	return token, err
}

// makeToken writes a new token to a file, unless the file exists. The file appears complete, so
// that a killed process leaves no file without a token.
func makeToken(file string) error {
	if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var random [32]byte
	if _, err := rand.Read(random[:]); err != nil {
		return err
	}
	return files.WriteWhole(file, func(w io.Writer) error {
		_, err := io.WriteString(w, hex.EncodeToString(random[:])+"\n")
		return err
	}, (*os.File).Sync)
}
