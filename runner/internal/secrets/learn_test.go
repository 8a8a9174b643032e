package secrets

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

// TestLearn checks which values count as secrets because of their variables' names.
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
		{"DB_PASS", "hunter22", true},
		{"DBPASS", "hunter22", true},
		{"MYSQL_PWD", "20250101", true},
		{"API_KEYS", "0a1b2c3d,4e5f6a7b", true},
		{"SECRETS", "s3cr3t-value", true},
		{"OPENAIKEY", "sk-0123456789", true},
		{"JWT", "eyJhbGciOi.e30.abc", true},
		{"clientSecret", "s3cr3t-value", true},
		{"GITHUB_PAT", "ghp_0123456789", true},
		{"SESSION_COOKIE", "a-0123456789", true},
		{"GIT_CREDENTIALS", "me-0123456789", true},
		{"CI_JOB", "glpat-0123456789abcdefgh", true}, // because of its prefix
		{"DEPLOY", "Zx81kQpLmN4vT7wR2yB5", true},     // because it is random
		{"PWD", "/no/such/place/at/all", false},
		{"OLDPWD", "/no/such/place/at/all", false},
		{"BYPASS_LIST", "a-0123456789", false},
		{"GIT_AUTHOR_NAME", "Some Author 12", false},
		{"AUTH_METHOD", "device-code-flow", false},
		{"MAX_TOKENS", "100000000", false},
		{"DB_PASSWORD", "changeme", false},
		{"API_KEY", "your-api-key-here", false},
		{"API_KEY", "<insert key here>", false},
		{"API_KEY", "xxxxxxxxxxxxxxxx", false},
		{"API_KEY", "${OTHER_API_KEY}", false},
		{"GITHUB_SHA", "4f2c9a1be07d4c11a2b3c4d5e6f708192a3b4c5d", false},
		{"INVOCATION_ID", "Zx81kQpLmN4vT7wR2yB5", false},
		{"LANGUAGES", "ThisIsALongNameOfNoUse2026", false},
		{"DEPLOYMENT", "some-Model-4o-Mini-2026-07-18", false},
		{"TOKEN_URL", "https://login.example.com/oauth2/token", false},
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

// Passwords in URLs, connection strings, lists and headers are secrets themselves.
func TestLearnParts(t *testing.T) {
	t.Parallel()
	for kv, parts := range map[string]string{
		"DATABASE_URL=postgres://app:hunter22@db.example.com:5432/shop?sslmode=require": "hunter22",
		"BACKEND=amqp://me:p%40ss-w0rd@queue/":                                          "p%40ss-w0rd p@ss-w0rd",
		"REDIS=redis://:only-a-pass1@cache":                                             "only-a-pass1",
		"CONNECTION=Server=db;User Id=sa;Password=Str0ng-One;Encrypt=true":              "Str0ng-One",
		"STORAGE=AccountName=a;AccountKey=abcd0123efgh4567==":                           "abcd0123efgh4567==",
		"CALLBACK=https://x.example.com/cb?state=1&access_token=tok-0123456789":         "tok-0123456789",
		"API_KEYS=key-one-11111, key-two-22222":                                         "key-one-11111 key-two-22222",
		"SECRETS={\"a\": \"key-one-11111\", \"b\": [\"key-two-22222\"]}":                "key-one-11111 key-two-22222",
		"GIT_CONFIG_VALUE_0=AUTHORIZATION: basic eDphYmNkZWZnaA==":                      "eDphYmNkZWZnaA==",
		"SLACK_WEBHOOK=https://hooks.slack.com/services/T0AA/B0BB/abcdEFGH0123456789":   "abcdEFGH0123456789",
		"SENTRY_DSN=https://0a1b2c3d4e5f60718293a4b5c6d7e8f9@o0.example.com/1":          "0a1b2c3d4e5f60718293a4b5c6d7e8f9",
	} {
		var r Redactor
		r.Learn([]string{kv})
		for _, part := range strings.Fields(parts) {
			require.Equal(t, "it is "+Redacted+", so", r.Text("it is "+part+", so"), kv)
		}
		for _, plain := range []string{
			"db.example.com", "postgres", "hooks.slack.com", "services", "app", "Encrypt=true",
			"https://x.example.com/cb", "one two",
		} {
			require.Equal(t, plain, r.Text(plain), kv)
		}
	}
}

// Redacting changes only the strings of a JSON text, whatever the secret.
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

// stringsIn returns the strings of a JSON text, including keys.
func stringsIn(t *testing.T, text []byte) []string {
	t.Helper()
	var all []string
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber() // some are too large for a float64
	for {
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
