package provider

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// Which values are taken for secrets because of their variables' names.
func TestLearn(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "key.pem")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for _, c := range []struct {
		name, value string
		secret      bool
	}{
		{"OPENAI_API_KEY", "sk-0123456789", true},
		{"apiKey", "sk-0123456789", true},
		{"X-Api-Key", "sk-0123456789", true},
		{"GH_TOKEN", "ghp_0123456789", true},
		{"AWS_SECRET_ACCESS_KEY", "/wJalrXUtnFEMI/K7MDENG", true},
		{"PGPASSWORD", "correct horse battery", true},
		{"DB_PASSWORD", "supersecretvalue", true},
		{"CLIENT_SECRET_2", "s3cr3t-value", true},
		{"PGPASSWORD", "postgres", false},
		{"API_KEY", "short", false},
		{"API_KEY", "", false},
		{"SSH_KEY", file, false},
		{"SSH_KEY", "~/.ssh/id_ed25519", false},
		{"TOKENIZERS_PARALLELISM", "something-long", false},
		{"KEYBOARD_LAYOUT", "something-long", false},
		{"MONKEY", "something-long", false},
		{"PATH", "/usr/bin:/something-long", false},
	} {
		var r Redactor
		r.Learn([]string{"HOME=/somewhere/else", c.name + "=" + c.value})
		require.Equal(t, !c.secret, r.Empty(), "%s=%s", c.name, c.value)
		if c.secret {
			require.Equal(t, "it is [redacted].", r.Text("it is "+c.value+"."))
		}
	}
	var r Redactor
	r.Learn([]string{"AUTHORIZATION=Bearer abc-0123456789", "DEPLOY_KEY=-----BEGIN KEY-----\nMIIEvQIBADANBgkqhk\n-----END KEY-----"})
	require.Equal(t, "[redacted]; [redacted]; [redacted]", r.Text("Bearer abc-0123456789; abc-0123456789; MIIEvQIBADANBgkqhk"))
}

// Only strings of a JSON text are changed, whatever a secret looks like.
func FuzzRedactJSON(f *testing.F) {
	f.Add(`{"k":["a secret-1 b",12345678,true,"\"secret-1"],"secret-1":null}`, "secret-1")
	f.Add(`{"n":12345678.5,"s":"12345678"}`, "12345678")
	f.Add(`["a\\","b\",c"]`, `\",c"]xyz`)
	f.Add(`["x","y"]`, `","y"]`)
	f.Add(`["\needle-1"]`, "needle-1")
	f.Add("not json \"", "not json")
	f.Fuzz(func(t *testing.T, text, secret string) {
		var r Redactor
		r.Add(secret)
		clean := r.JSON(json.RawMessage(text))
		if !json.Valid([]byte(text)) || strings.Contains(Redacted, secret) {
			return
		}
		if !json.Valid(clean) {
			t.Fatalf("%q without %q is %q", text, secret, clean)
		}
		if len(secret) < minSecret || !utf8.ValidString(secret) {
			return
		}
		for _, said := range stringsIn(t, clean) {
			if strings.Contains(said, secret) {
				t.Fatalf("%q without %q is %q", text, secret, clean)
			}
		}
	})
}

// stringsIn are the strings of a JSON text, keys included.
func stringsIn(t *testing.T, text []byte) []string {
	t.Helper()
	var all []string
	for dec := json.NewDecoder(bytes.NewReader(text)); ; {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if s, ok := token.(string); ok {
			all = append(all, s)
		}
	}
}
