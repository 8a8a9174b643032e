package config_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"waza/cmd/waza/config"
	"waza/eval/decode"
	"waza/rpc/gateway/door"
)

// write puts a file into a directory of the test's own.
func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// load reads a configuration of that text and returns the findings as lines.
func load(t *testing.T, text string, o config.Options) (*config.Config, string) {
	t.Helper()
	if text != "" {
		o.File = write(t, "serve.yaml", text)
	}
	c, ds := config.Load(o)
	var lines []string
	for _, d := range ds {
		if d.File == filepath.ToSlash(o.File) {
			d.File = filepath.Base(o.File)
		}
		lines = append(lines, d.String())
	}
	return c, strings.Join(lines, "\n")
}

func TestNothingSaidIsValid(t *testing.T) {
	t.Parallel()
	c, findings := load(t, "", config.Options{})
	require.Empty(t, findings)
	require.Equal(t, config.Default(), c)
	open := []string{}
	for _, d := range c.Doors() {
		if d.Open() {
			open = append(open, d.Name+" "+d.URL())
		}
	}
	require.Equal(t, []string{
		"agents ws://127.0.0.1:8080", "jobs ws://127.0.0.1:8501", "browser ws://127.0.0.1:8000/ws",
		"router ws://localhost:9473",
	},
		open)
}

// The documented defaults of the protocols.
func TestDefaultsOfTheProtocols(t *testing.T) {
	t.Parallel()
	c := config.Default()
	require.Equal(t, "1m", c.Agents.IdleTimeout.String())
	require.Equal(t, "30s", c.Browser.CommandTimeout.String())
	require.Equal(t, "1h", c.Browser.IdleTimeout.String())
	require.Equal(t, 100, c.Browser.MessagesPerMinute)
	require.Equal(t, "10s", c.Router.PongTimeout.String())
	require.Equal(t, 100, c.Router.MaxConnections)
}

// Each key can be set by the file and by a variable, and the variable counts.
func TestEveryKeyHasAVariable(t *testing.T) {
	t.Parallel()
	seen := 0
	var each func(block string, v reflect.Value)
	each = func(block string, v reflect.Value) {
		for _, f := range decode.FieldsOf(v.Type()) {
			field := v.FieldByIndex(f.Index)
			if block == "" {
				each(f.Name, field)
				continue
			}
			value := "7"
			switch {
			case f.Type == reflect.TypeFor[door.Duration]():
				value = "7s"
			case f.Name == "listen":
				value = "off"
			case f.Type.Kind() == reflect.Bool:
				value = "true"
			case f.Enum != nil:
				value = f.Enum[0]
			}
			name := config.Variable(block, f.Name)
			loaded, ds := config.Load(config.Options{Environ: []string{name + "=" + value, "HOME=/"}})
			for _, d := range ds { // such as that a file is missing
				require.Equal(t, decode.CodeInvalidValue, d.Code, "%s: %s", name, d)
			}
			got := reflect.ValueOf(loaded).Elem()
			for _, b := range decode.FieldsOf(got.Type()) {
				if b.Name == block {
					require.NotEqual(t, reflect.Zero(f.Type).Interface(), got.FieldByIndex(b.Index).FieldByIndex(f.Index).Interface(), name)
				}
			}
			seen++
		}
	}
	each("", reflect.ValueOf(config.Default()).Elem())
	require.Greater(t, seen, 50)
}

func TestListsAreSeparatedByCommas(t *testing.T) {
	t.Parallel()
	c, findings := load(t, "agents: {hosts: [a.example], origins: [https://a.example]}", config.Options{
		Environ: []string{"WAZA_SERVE_AGENTS_HOSTS=b.example, c.example,", "WAZA_SERVE_AGENTS_ORIGINS="},
	})
	require.Empty(t, findings)
	require.Equal(t, []string{"b.example", "c.example"}, c.Agents.Hosts)
	require.Equal(t, []string{"https://a.example"}, c.Agents.Origins)
}

func TestFlagsOverrideVariablesOverrideTheFile(t *testing.T) {
	t.Parallel()
	environ := []string{"WAZA_SERVE_AGENTS_LISTEN=127.0.0.1:2"}
	flags := []config.Setting{{From: "--agents", Block: "agents", Key: "listen", Value: "127.0.0.1:3"}}
	text := "agents: {listen: 127.0.0.1:1}"
	for _, c := range []struct {
		o    config.Options
		want string
	}{
		{config.Options{}, "127.0.0.1:1"},
		{config.Options{Environ: environ}, "127.0.0.1:2"},
		{config.Options{Environ: environ, Flags: flags}, "127.0.0.1:3"},
	} {
		got, findings := load(t, text, c.o)
		require.Empty(t, findings)
		require.Equal(t, c.want, got.Agents.Listen)
	}
}

func TestWhatIsRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"[]": `serve.yaml:1:1: error: this must be a map, got a list [wrong-type]`,
		"agents:\n  listen: false": `serve.yaml:2:11: error: agents.listen: must be HOST:PORT or off, got ` +
			`"false" (did you mean "off"?) [invalid-value]`,
		"agent: {}": `serve.yaml:1:1: error: unknown key "agent" (did you mean "agents"?) [unknown-key]`,
		"agents: {listen: 80}": `serve.yaml:1:18: error: agents.listen: must be HOST:PORT or off, got ` +
			`"80" (did you mean "127.0.0.1:80"?) [invalid-value]`,
		"agents: {listen: 'localhost:99999'}": `serve.yaml:1:18: error: agents.listen: the port must be a number up ` +
			`to 65535, got "99999"; 0 means any free port [invalid-value]`,
		"agents: {listen: 'localhost:http'}": `serve.yaml:1:18: error: agents.listen: the port must be a number up ` +
			`to 65535, got "http"; 0 means any free port [invalid-value]`,
		"agents: {idle_timeout: 60}": `serve.yaml:1:24: error: agents.idle_timeout: duration must be a ` +
			`number with a unit, such as 90s, 5m or 1h30m, got "60" (did you mean "60s"?) [invalid-value]`,
		"agents: {idle_timeout: 2 Days}": `serve.yaml:1:24: error: agents.idle_timeout: duration must be a ` +
			`number with a unit, such as 90s, 5m or 1h30m, got "2 Days" (did you mean "48h"?) [invalid-value]`,
		"agents: {idle_timeout: -1s}": `serve.yaml:1:24: error: agents.idle_timeout: duration must not be ` +
			`negative, got "-1s" [invalid-value]`,
		"jobs: {listen: ':8080'}\nagents: {listen: '[::1]:8080'}": ``,
		"jobs: {listen: 'localhost:8080'}": `serve.yaml:1:16: error: jobs.listen: ` +
			`the door agents also listens there; each door needs its own address [invalid-value]`,
		"agents: {listen: 'localhost:8501'}": `serve.yaml:1:18: error: agents.listen: ` +
			`the door jobs also listens there; each door needs its own address [invalid-value]`,
		"jobs: {listen: 127.0.0.1:0}\nagents: {listen: localhost:0}": ``,
		"jobs: {listen: 'example.org:1', insecure: true}":            ``,
		"jobs: {listen: 'example.org:1'}": `serve.yaml:1:16: error: jobs.listen: ` +
			`other machines can reach example.org:1; set tls_cert and tls_key, or insecure for no encryption [invalid-value]`,
		"agents: {tls_cert: a.pem}": `serve.yaml:1:20: error: ` +
			`agents.tls_cert: agents.tls_key is missing [invalid-value]`,
		"agents: {tls_key: a.pem}": `serve.yaml:1:19: error: ` +
			`agents.tls_key: agents.tls_cert is missing [invalid-value]`,
		"browser: {listen: nowhere}": `serve.yaml:1:19: error: ` +
			`browser.listen: must be HOST:PORT or off, got "nowhere" [invalid-value]`,
		"router: {listen: '0.0.0.0:9473', insecure: true}": `serve.yaml:1:18: error: router.listen: ` +
			`other machines can reach 0.0.0.0:9473, but clients of this door present no secret; use a loopback address ` +
			`(did you mean "localhost:9473"?) [invalid-value]`,
		"router: {listen: 'localhost:8501'}": `serve.yaml:1:18: error: router.listen: ` +
			`the door jobs also listens there; each door needs its own address [invalid-value]`,
		"browser: {tool_timeout: 500ms}": `serve.yaml:1:25: error: ` +
			`browser.tool_timeout: must be at least 1s, got 500ms [invalid-value]`,
		"agents: {max_concurrency: 0}": `serve.yaml:1:27: error: ` +
			`agents.max_concurrency must be at least 1, got 0 [invalid-value]`,
		"agents: {hosts: [a.example, 'https://b.example/x']}": `serve.yaml:1:29: error: agents.hosts: ` +
			`must be a host name such as eval.example.com, got "https://b.example/x" (did you mean "b.example"?) [invalid-value]`,
		"agents: {origins: ['*']}": `serve.yaml:1:20: error: ` +
			`agents.origins: must be an origin such as https://example.com, got "*" [invalid-value]`,
		"agents: {origins: [a.example]}": `serve.yaml:1:20: error: ` +
			`agents.origins: must be an origin such as https://example.com, got "a.example" (did you mean "https://a.example"?) [invalid-value]`,
		"agents: {origins: ['https://a.example/x']}": `serve.yaml:1:20: error: ` +
			`agents.origins: must be an origin such as https://example.com, got "https://a.example/x" (did you mean ` +
			`"https://a.example"?) [invalid-value]`,
		"agents: {origins: ['https://a.example:8443/', 'app://x'], hosts: ['a:1', '::1']}": ``,
		"router: {history: -1}": `serve.yaml:1:19: error: ` +
			`router.history: must be at least 0, got -1 [invalid-value]`,
		"model: {executor: opnai, model: x}": `serve.yaml:1:19: error: model.executor ` +
			`must be one of openai, anthropic, got "opnai" (did you mean "openai"?) [invalid-value]`,
		"model: {executor: openai, model: x, base_url: localhost}": `serve.yaml:1:47: error: ` +
			`model.base_url: base_url must be an http or https URL, such as http://127.0.0.1:11434/v1 [invalid-value]`,
		"model: {model: x}": `serve.yaml:1:16: error: model.model: ` +
			`model.executor is missing; set it to openai or anthropic [invalid-value]`,
		"agents: {listen: off, listen: off}": `serve.yaml:1:23: error: duplicate key ` +
			`"listen"; it is first set in line 1 [duplicate-key]`,
		"agents: {": `serve.yaml:1:9: error: did not find ` +
			`expected node content; the { has no end, perhaps because the file is truncated [syntax]`,
	} {
		_, findings := load(t, text, config.Options{})
		assert.Equal(t, want, findings, text)
	}
}

// certificate makes a certificate for localhost and its key.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"}, NotAfter: time.Now().Add(time.Hour)}
	public, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	require.NoError(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: public})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}))
}

func TestTLS(t *testing.T) {
	t.Parallel()
	cert, key := certificate(t)
	_, other := certificate(t)
	dir := t.TempDir()
	for name, content := range map[string]string{
		"cert.pem": cert, "key.pem": key, "other.pem": other, "keys.yaml": "agent: 0123456789abcdef",
		"good.yaml":   "agents: {listen: 0.0.0.0:1, tls_cert: cert.pem, tls_key: key.pem, keys_file: keys.yaml}",
		"bad.yaml":    "agents: {listen: 0.0.0.0:1, tls_cert: cert.pem, tls_key: other.pem, keys_file: keys.yaml}",
		"absent.yaml": "agents: {listen: 0.0.0.0:1, tls_cert: absent.pem, tls_key: other.pem, keys_file: keys.yaml}",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	c, ds := config.Load(config.Options{File: filepath.Join(dir, "good.yaml")})
	require.Empty(t, ds)
	require.Equal(t, filepath.Join(dir, "cert.pem"), c.Agents.TLSCert)
	require.Equal(t, "wss://0.0.0.0:1", c.Doors()[0].URL())
	require.Equal(t, "every machine that can reach it that presents the key", c.Doors()[0].Clients())
	_, ds = config.Load(config.Options{File: filepath.Join(dir, "bad.yaml")})
	require.Len(t, ds, 1)
	require.Contains(t, ds[0].Message, "agents.tls_cert: private key does not match public key")
	_, ds = config.Load(config.Options{File: filepath.Join(dir, "absent.yaml")})
	require.Len(t, ds, 1)
	require.Contains(t, ds[0].Message, "absent.pem: no such file")
}

func TestKeys(t *testing.T) {
	t.Parallel()
	const id, good = "550e8400-e29b-41d4-a716-446655440000", "correct horse battery"
	for content, want := range map[string]string{
		id + ": " + good:                           "",
		`{"` + id + `": "` + good + `"}`:           "",
		"# a comment\n" + id + ": " + good:         "",
		id + ": " + good + "\n" + id + ": " + good: ":2 is not valid YAML",
		"{}":                                    " contains no keys",
		"[a, b]":                                " must be a map of client ids to keys",
		id + ": short":                          ":1: the key must have at least 16 characters, got 5",
		id + ":":                                ":1 must be a client id and its key",
		id + ": [" + good + "]":                 ":1 must be a client id and its key",
		"\"" + good:                             " is not valid YAML",
		"":                                      " is not valid YAML",
		strings.Repeat("# "+good+"\n", 100_000): " has more than 1048576 bytes",
	} {
		keys := write(t, "keys", content)
		c, findings := load(t, "agents: {keys_file: "+keys+"}", config.Options{})
		if want == "" {
			require.Empty(t, findings)
			require.Equal(t, map[string]string{id: good}, c.Keys)
			require.Equal(t, "key", c.Doors()[0].Secret)
			continue
		}
		require.Contains(t, findings, want)
		require.NotContains(t, findings, "correct", "a key is printed")
	}
}

// A variable that is a name of nothing is reported and stops nobody: clusters make
// variables of the names of services.
func TestUnknownVariables(t *testing.T) {
	t.Parallel()
	_, findings := load(t, "", config.Options{Environ: []string{"WAZA_SERVE_AGENT_LISTEN=off", "WAZA_SERVER=x"}})
	require.Equal(t, `WAZA_SERVE_AGENT_LISTEN: warning: unknown variable of waza serve (did you mean "WAZA_SERVE_AGENTS_LISTEN"?) [no-effect]`,
		findings)
}

// The schema accepts valid files, and rejects wrong types.
func TestSchema(t *testing.T) {
	t.Parallel()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(config.Schema()))
	require.NoError(t, err)
	compiler := jsonschema.NewCompiler()
	require.NoError(t, compiler.AddResource("serve.json", doc))
	schema, err := compiler.Compile("serve.json")
	require.NoError(t, err)
	valid := func(text string) error {
		var v any
		require.NoError(t, yaml.Unmarshal([]byte(text), &v))
		data, err := json.Marshal(v)
		require.NoError(t, err)
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
		require.NoError(t, err)
		return schema.Validate(doc)
	}
	require.NoError(t, valid("agents: {listen: off, idle_timeout: 60s, hosts: [a]}\njobs: {listen: "+
		"127.0.0.1:1}\nmodel: {executor: openai, model: x}"))
	for _, wrong := range []string{
		"agent: {}", "agents: {listen: 1}", "agents: {idle_timout: 1s}", "agents: {hosts: 1}",
		"model: {executor: x}",
	} {
		require.Error(t, valid(wrong), wrong)
	}
}

func FuzzLoad(f *testing.F) {
	f.Add("agents: {listen: 127.0.0.1:1, idle_timeout: 5s}\njobs: {listen: off}\n")
	f.Add("model: &m {executor: openai}\nagents: {<<: *m, hosts: [a, b]}\nbrowser: *m\n")
	f.Add("{\"router\": {\"listen\": \"off\", \"history\": -1}}")
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text string) {
		path := filepath.Join(dir, "serve.yaml")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		c, ds := config.Load(config.Options{File: path})
		if ds.HasErrors() {
			return
		}
		for _, d := range c.Doors() {
			require.True(t, !d.Open() || d.Local() || d.Secret != "" && (d.TLS() || d.Config.Insecure), "a door is open to all")
		}
	})
}
