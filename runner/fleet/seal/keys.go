package seal

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/nats-io/nkeys"
)

const (
	// maxFile is the maximum size of a file with keys, in bytes.
	maxFile = 64 << 10
	// maxKeys is the maximum number of keys that a worker can trust.
	maxKeys = 1000
)

// NewKey creates a key, writes its seed to file, which only this user can read, and returns the
// public key. If the file exists, or is a link to a missing one, the error is [fs.ErrExist]: a
// seed is never overwritten.
func NewKey(file string) (public string, err error) {
	pair, err := nkeys.CreateUser()
	if err != nil {
		return "", err
	}
	defer pair.Wipe()
	if public, err = pair.PublicKey(); err != nil {
		return "", err
	}
	seed, err := pair.Seed()
	if err != nil {
		return "", err
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("%w; waza does not replace keys, name a different file", err)
	}
	if err != nil {
		return "", err
	}
	_, err = f.Write(append(seed, '\n'))
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		os.Remove(file)
		return "", err
	}
	return public, nil
}

// ReadSigner reads a file with the seed of a user, as written by [NewKey], or a NATS credentials
// file, from which it takes the seed. Only the owner of the file can have access to it. If this
// user is not the owner, the group can read it, because Kubernetes mounts secrets in this way.
// No error contains text of the file.
func ReadSigner(file string) (*Signer, error) {
	data, info, err := read(file)
	if err != nil {
		return nil, err
	}
	if mode := info.Mode(); mode.IsRegular() && mode.Perm()&forbidden(info) != 0 {
		return nil, fmt.Errorf("%s has mode %#o, other users must not have access to a seed; run chmod 600 %s", file, mode.Perm(), file)
	}
	// The last seed, because a credentials file starts with a token.
	var seed []byte
	for line := range bytes.Lines(data) {
		if line = bytes.TrimSpace(line); bytes.HasPrefix(line, []byte("S")) {
			seed = line
		}
	}
	if seed == nil {
		return nil, fmt.Errorf("%s has no seed (a line that starts with SU); create one with waza fleet key FILE", file)
	}
	kind, raw, err := nkeys.DecodeSeed(seed)
	if err != nil {
		return nil, fmt.Errorf("%s has a damaged seed: %v", file, err)
	}
	if kind != nkeys.PrefixByteUser {
		return nil, fmt.Errorf("%s has the seed of an NKey of kind %s, expected that of a user (SU)", file, kind)
	}
	return newSigner(raw)
}

// Trust is the set of keys whose orders a worker executes. It is immutable and safe for
// concurrent use. Nil and the zero value trust no keys.
type Trust struct {
	keys map[string]ed25519.PublicKey // by the texts of the keys
}

// Keys returns the sorted public keys.
func (t *Trust) Keys() []string {
	if t == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(t.keys))
}

// ReadTrust parses a list of public keys and files, separated by commas. A file contains a key
// per line; # starts a comment. The list has at least one key and at most 1,000, and each file
// at most 64 KiB. Errors name the part of the list, or the line. They never print a seed that
// was given instead of its public key.
func ReadTrust(spec string) (*Trust, error) {
	t := &Trust{keys: map[string]ed25519.PublicKey{}}
	for part := range strings.SplitSeq(spec, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		if err := t.addPart(part); err != nil {
			return nil, err
		}
	}
	if len(t.keys) == 0 {
		return nil, fmt.Errorf("%q names no key to trust, expected public keys (U…) or files with a key per line", spec)
	}
	return t, nil
}

// addPart adds a key, or the keys in a file.
func (t *Trust) addPart(part string) error {
	if looksLikeKey(part) {
		return t.addKey(part)
	}
	data, _, err := read(part)
	if err != nil {
		return fmt.Errorf("trusted keys: %w", err)
	}
	found, n := false, 0
	for line := range strings.Lines(string(data)) {
		n++
		text, _, _ := strings.Cut(line, "#")
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		if err := t.addKey(text); err != nil {
			return fmt.Errorf("%s:%d: %w", part, n, err)
		}
		found = true
	}
	if !found {
		return fmt.Errorf("%s names no key to trust, expected a public key (U…) per line", part)
	}
	return nil
}

func (t *Trust) addKey(text string) error {
	key, err := readKey(text)
	if err != nil {
		return err
	}
	t.keys[text] = key
	if len(t.keys) > maxKeys {
		return fmt.Errorf("there must be at most %d trusted keys", maxKeys)
	}
	return nil
}

// looksLikeKey reports whether a text is meant as a key and not as a file: it has at least 40
// characters, all from base32.
func looksLikeKey(text string) bool {
	return len(text) >= 40 && strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") == ""
}

// readKey parses the public key of a user. A key has only one valid text.
func readKey(text string) (ed25519.PublicKey, error) {
	if strings.HasPrefix(text, "S") && looksLikeKey(text) {
		return nil, errors.New("this is a seed, which must stay secret; expected the public key that belongs to it (U…)")
	}
	key, err := nkeys.Decode(nkeys.PrefixByteUser, []byte(text))
	if err != nil || len(key) != ed25519.PublicKeySize {
		return nil, fmt.Errorf("%.80q is not the public key of a user (U and %d characters)", text, keyLength-1)
	}
	if canonical, err := nkeys.Encode(nkeys.PrefixByteUser, key); err != nil || string(canonical) != text {
		return nil, fmt.Errorf("%.80q is not the public key of a user (U and %d characters)", text, keyLength-1)
	}
	return key, nil
}

// read reads a file of keys, and returns its content and its properties when opened.
func read(file string) ([]byte, fs.FileInfo, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("%s must have at most %d bytes", file, maxFile)
	}
	return data, info, err
}
