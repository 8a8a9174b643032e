package seal

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/require"
)

// key creates a key in a file and reads it.
func key(t testing.TB) (file string, s *Signer) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "owner.nk")
	public, err := NewKey(file)
	require.NoError(t, err)
	s, err = ReadSigner(file)
	require.NoError(t, err)
	require.Equal(t, public, s.Public())
	return file, s
}

func trust(t testing.TB, spec string) *Trust {
	t.Helper()
	trusted, err := ReadTrust(spec)
	require.NoError(t, err)
	return trusted
}

const subject = "waza.search.order.any.01J.7"

var body = []byte(`{"run":"01J","plan":"sha256:aa","task":"t","num":7}`)

func TestSealHoldsForOneOrderOnly(t *testing.T) {
	t.Parallel()
	_, anna := key(t)
	_, ben := key(t)
	trusted := trust(t, anna.Public())
	good := anna.Sign("search", subject, body)
	require.Len(t, good.Signature, signatureLength)
	require.NoError(t, trusted.Check("search", subject, body, good))

	// The same bytes, divided differently.
	moved := anna.Sign("searchw", subject[1:], body)
	require.ErrorIs(t, trusted.Check("search", subject, body, moved), ErrAltered)

	for name, c := range map[string]struct {
		team, subject string
		body          []byte
		seal          Seal
		want          error
	}{
		"no seal":           {"search", subject, body, Seal{}, ErrUnsigned},
		"no key":            {"search", subject, body, Seal{Signature: good.Signature}, ErrMalformed},
		"no signature":      {"search", subject, body, Seal{Key: good.Key}, ErrMalformed},
		"other team":        {"ads", subject, body, good, ErrAltered},
		"other subject":     {"search", subject + "1", body, good, ErrAltered},
		"other body":        {"search", subject, append([]byte(" "), body...), good, ErrAltered},
		"no body":           {"search", subject, nil, good, ErrAltered},
		"unknown key":       {"search", subject, body, ben.Sign("search", subject, body), ErrUnknownKey},
		"key of another":    {"search", subject, body, Seal{anna.Public(), ben.Sign("search", subject, body).Signature}, ErrAltered},
		"not a key":         {"search", subject, body, Seal{"hello\nworld", good.Signature}, ErrMalformed},
		"lower case":        {"search", subject, body, Seal{strings.ToLower(good.Key), good.Signature}, ErrMalformed},
		"padded signature":  {"search", subject, body, Seal{good.Key, good.Signature + "=="}, ErrMalformed},
		"newline for text":  {"search", subject, body, Seal{good.Key, good.Signature[:85] + "\n"}, ErrMalformed},
		"spare bits set":    {"search", subject, body, Seal{good.Key, spareBits(good.Signature)}, ErrMalformed},
		"standard alphabet": {"search", subject, body, Seal{good.Key, "+/" + good.Signature[2:]}, ErrMalformed},
		"zero signature":    {"search", subject, body, Seal{good.Key, strings.Repeat("A", signatureLength)}, ErrAltered},
	} {
		err := trusted.Check(c.team, c.subject, c.body, c.seal)
		require.ErrorIs(t, err, c.want, name)
		require.NotContains(t, err.Error(), "world", "%s: the error contains a stranger's text", name)
	}
}

// spareBits changes the unused bits of the last character.
func spareBits(signature string) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	last := strings.IndexByte(alphabet, signature[len(signature)-1])
	return signature[:len(signature)-1] + string(alphabet[last|1])
}

// A worker without a trust set must execute no orders, instead of all.
func TestNilTrustRefuses(t *testing.T) {
	t.Parallel()
	_, s := key(t)
	for _, none := range []*Trust{nil, {}} {
		require.ErrorIs(t, none.Check("search", subject, body, s.Sign("search", subject, body)), ErrUnknownKey)
		require.ErrorIs(t, none.Check("search", subject, body, Seal{}), ErrUnsigned)
		require.Empty(t, none.Keys())
	}
}

func TestNewKeyOverwritesNothing(t *testing.T) {
	t.Parallel()
	file, s := key(t)
	info, err := os.Stat(file)
	require.NoError(t, err)
	if runtime.GOOS != "windows" {
		require.Equal(t, fs.FileMode(0o600), info.Mode().Perm())
	}
	_, err = NewKey(file)
	require.ErrorIs(t, err, fs.ErrExist)
	require.ErrorContains(t, err, "waza does not replace keys")
	again, err := ReadSigner(file)
	require.NoError(t, err)
	require.Equal(t, s.Public(), again.Public())

	link := filepath.Join(t.TempDir(), "link")
	missing := filepath.Join(t.TempDir(), "missing")
	require.NoError(t, os.Symlink(missing, link))
	_, err = NewKey(link)
	require.ErrorIs(t, err, fs.ErrExist)
	require.NoFileExists(t, missing)
	_, err = NewKey(filepath.Join(missing, "owner.nk"))
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestReadSigner(t *testing.T) {
	t.Parallel()
	file, s := key(t)
	seed, err := os.ReadFile(file)
	require.NoError(t, err)
	account, err := nkeys.CreateAccount()
	require.NoError(t, err)
	ofAccount, err := account.Seed()
	require.NoError(t, err)
	credentials := "-----BEGIN NATS USER JWT-----\neyJ0eXAiOiJKV1QifQ.e30.AAAA\n------END NATS USER JWT------\n\n" +
		"-----BEGIN USER NKEY SEED-----\r\n" + string(seed) + "------END USER NKEY SEED------\n"
	damaged := "SU" + strings.Repeat("A", 56)
	for name, c := range map[string]struct{ text, want string }{
		"comments":       {"# the owner\n\n  " + string(seed), ""},
		"credentials":    {credentials, ""},
		"empty":          {"", "has no seed"},
		"public key":     {s.Public(), "has no seed"},
		"damaged":        {damaged, "damaged"},
		"of an account":  {string(ofAccount), "of kind account"},
		"short":          {"SU", "damaged"},
		"too large":      {strings.Repeat("#", maxFile+1), "at most 65536 bytes"},
		"something else": {"Suddenly, a text", "damaged"},
	} {
		path := filepath.Join(t.TempDir(), "seed")
		require.NoError(t, os.WriteFile(path, []byte(c.text), 0o600))
		got, err := ReadSigner(path)
		if c.want == "" {
			require.NoError(t, err, name)
			require.Equal(t, s.Public(), got.Public(), name)
			continue
		}
		require.ErrorContains(t, err, c.want, name)
		require.ErrorContains(t, err, path, name)
		require.NotContains(t, err.Error(), string(ofAccount), name)
		require.NotContains(t, err.Error(), damaged, name)
		require.NotContains(t, err.Error(), "Suddenly", name)
	}
	_, err = ReadSigner(filepath.Join(t.TempDir(), "missing"))
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = ReadSigner(t.TempDir())
	require.Error(t, err)
}

func TestSeedsOfOthersAreRefused(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("modes of files do not say who has access")
	}
	for _, mode := range []fs.FileMode{0o604, 0o640, 0o620, 0o602, 0o644} {
		file, _ := key(t)
		require.NoError(t, os.Chmod(file, mode))
		_, err := ReadSigner(file)
		require.ErrorContains(t, err, fmt.Sprintf("has mode %#o", mode))
		require.ErrorContains(t, err, "chmod 600")
	}
	for _, mode := range []fs.FileMode{0o600, 0o400} {
		file, _ := key(t)
		require.NoError(t, os.Chmod(file, mode))
		_, err := ReadSigner(file)
		require.NoError(t, err)
	}
}

// Kubernetes mounts secrets as files of root that the group of the pod can read.
func TestGroupMayReadSeedsOfAnotherUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can give files to other users")
	}
	for mode, ok := range map[fs.FileMode]bool{0o440: true, 0o600: true, 0o660: false, 0o444: false} {
		file, _ := key(t)
		require.NoError(t, os.Chown(file, 12345, 12345))
		require.NoError(t, os.Chmod(file, mode))
		_, err := ReadSigner(file)
		require.Equal(t, ok, err == nil, "%#o: %v", mode, err)
	}
}

func TestPrintingASignerHidesTheSeed(t *testing.T) {
	t.Parallel()
	file, s := key(t)
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	text := strings.TrimSpace(string(data))
	_, raw, err := nkeys.DecodeSeed([]byte(text))
	require.NoError(t, err)
	encoded, err := json.Marshal(struct{ Signer any }{s})
	require.NoError(t, err)
	all := string(encoded)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x", "%d", "%q"} {
		all += fmt.Sprintf(verb+verb, s, *s)
	}
	require.NotContains(t, all, text)
	require.NotContains(t, all, fmt.Sprintf("%x", raw[:4]))
	require.NotContains(t, all, fmt.Sprintf("%d %d %d %d", raw[0], raw[1], raw[2], raw[3]))
}

func TestReadTrust(t *testing.T) {
	t.Parallel()
	seedFile, anna := key(t)
	_, ben := key(t)
	file := filepath.Join(t.TempDir(), "keys")
	require.NoError(t, os.WriteFile(file, []byte("# owners\n\n"+anna.Public()+" # Anna\r\n\t"+ben.Public()+"\n"), 0o644))
	require.ElementsMatch(t, []string{anna.Public(), ben.Public()}, trust(t, file).Keys())
	require.ElementsMatch(t, []string{anna.Public(), ben.Public()}, trust(t, " "+anna.Public()+", ,"+file).Keys())

	data, err := os.ReadFile(seedFile)
	require.NoError(t, err)
	seed := strings.TrimSpace(string(data))
	account, err := nkeys.CreateAccount()
	require.NoError(t, err)
	ofAccount, err := account.PublicKey()
	require.NoError(t, err)
	mistyped := anna.Public()[:55] + "7"
	if mistyped == anna.Public() {
		mistyped = anna.Public()[:55] + "2"
	}
	var many strings.Builder
	for range maxKeys + 1 {
		pair, err := nkeys.CreateUser()
		require.NoError(t, err)
		public, err := pair.PublicKey()
		require.NoError(t, err)
		fmt.Fprintln(&many, public)
	}
	for name, c := range map[string]struct{ spec, text, want string }{
		"empty":           {"", "", "names no key to trust"},
		"commas":          {" , ,", "", "names no key to trust"},
		"seed":            {seed, "", "this is a seed"},
		"seed in file":    {"", "# x\n" + seed, ":2: this is a seed"},
		"account":         {ofAccount, "", "is not the public key of a user"},
		"mistyped":        {mistyped, "", "is not the public key of a user"},
		"mistyped line":   {"", anna.Public() + "\n" + mistyped, ":2: "},
		"two on a line":   {"", anna.Public() + " " + ben.Public(), ":1: "},
		"only comments":   {"", "# nobody\n", "names no key to trust"},
		"file of a seed":  {seedFile, "", ":1: this is a seed"},
		"missing file":    {filepath.Join(t.TempDir(), "missing"), "", "no such file"},
		"too many":        {"", many.String() + "\n", "at most "},
		"too large":       {"", strings.Repeat("# x\n", maxFile), "at most 65536 bytes"},
		"very long lines": {"", strings.Repeat("x", maxFile), "is not the public key"},
	} {
		if c.text != "" {
			c.spec = filepath.Join(t.TempDir(), "keys")
			require.NoError(t, os.WriteFile(c.spec, []byte(c.text), 0o600))
		}
		_, err := ReadTrust(c.spec)
		require.ErrorContains(t, err, c.want, name)
		require.NotContains(t, err.Error(), seed, name)
		require.Less(t, len(err.Error()), 400, name)
	}
}

// Of all possible messages, only the sealed order passes.
func FuzzCheck(f *testing.F) {
	_, s := key(f)
	trusted := trust(f, s.Public())
	good := s.Sign("search", subject, body)
	f.Add("search", subject, body, good.Key, good.Signature)
	f.Add("search", subject, body, "", "")
	f.Add("searc", "h"+subject, body, good.Key, good.Signature)
	f.Add("search", subject, body, good.Key+"\n", good.Signature+"=")
	f.Add("search", subject+string(body), []byte(nil), strings.ToLower(good.Key), spareBits(good.Signature))
	f.Fuzz(func(t *testing.T, team, about string, text []byte, public, signature string) {
		same := team == "search" && about == subject && string(text) == string(body)
		err := trusted.Check(team, about, text, Seal{public, signature})
		require.Equal(t, same && public == good.Key && signature == good.Signature, err == nil, "%v", err)
		require.NoError(t, trusted.Check(team, about, text, s.Sign(team, about, text)))
		again := s.Sign(team, about, text)
		require.Equal(t, same, again == good, "two orders have one signature")
	})
}

// No list of trusted keys panics, and every accepted text is a key.
func FuzzReadTrust(f *testing.F) {
	_, s := key(f)
	f.Add(s.Public())
	f.Add(s.Public() + "," + s.Public())
	f.Add("SUAA" + strings.Repeat("A", 54))
	f.Add(strings.Repeat("U", 56))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text string) {
		file := filepath.Join(dir, "keys")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		trusted, err := ReadTrust(file)
		if err != nil {
			return
		}
		require.NotEmpty(t, trusted.Keys())
		for _, k := range trusted.Keys() {
			require.True(t, nkeys.IsValidPublicUserKey(k))
			require.Contains(t, text, k)
		}
	})
}

func BenchmarkSign(b *testing.B) {
	_, s := key(b)
	order := make([]byte, 2048)
	b.ReportAllocs()
	for b.Loop() {
		s.Sign("search", subject, order)
	}
}

func BenchmarkCheck(b *testing.B) {
	_, s := key(b)
	trusted := trust(b, s.Public())
	order := make([]byte, 2048)
	sealed := s.Sign("search", subject, order)
	b.ReportAllocs()
	for b.Loop() {
		if err := trusted.Check("search", subject, order, sealed); err != nil {
			b.Fatal(err)
		}
	}
}
