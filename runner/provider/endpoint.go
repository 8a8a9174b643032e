package provider

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"waza/eval"
	"waza/eval/decode"
	"waza/runner/internal/keys"
	"waza/runner/proc"
	"waza/runner/record"
)

// API identifies the protocol of a provider.
type API string

// The supported APIs.
const (
	OpenAI    API = keys.OpenAI // also for APIs compatible with its chat completions
	Anthropic API = keys.Anthropic
	Ollama    API = "ollama" // only for embeddings: its chats have the API of OpenAI
)

// Endpoint is the address of a model's API, and the source of its key. Keys are never part of a
// suite. The zero value means the provider's own address and its usual environment variable.
type Endpoint struct {
	// Address of the API. The default is $OPENAI_BASE_URL or $ANTHROPIC_BASE_URL if set, and
	// otherwise the provider's own address.
	BaseURL string `yaml:"base_url"`
	// Environment variable with the key; OPENAI_API_KEY or ANTHROPIC_API_KEY by default.
	APIKeyEnv string `yaml:"api_key_env"`
	// Program that prints the key: a list, or a string run by sh -c. Takes precedence over
	// api_key_env.
	APIKeyCommand KeyCommand `yaml:"api_key_command" path:"words"`
	// API version that Azure requires. If set, the key is sent in the header api-key.
	APIVersion string `yaml:"api_version"`
}

// KeyCommand is a program that prints a key: in YAML a list, or a string for the shell. The generator
// of the documents has its JSON Schema. As a method of this type, it would make the Go compiler compile
// generic types of the schema library again for each of the 58 packages whose types lead here.
type KeyCommand []string

// UnmarshalYAML accepts a list, or a string for the shell.
func (c *KeyCommand) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		if strings.TrimSpace(n.Value) == "" {
			return errors.New("api_key_command is empty; set it to the program to run")
		}
		*c = KeyCommand{"sh", "-c", n.Value}
		return nil
	}
	var args []string
	if err := n.Decode(&args); err != nil || len(args) == 0 || args[0] == "" {
		return errors.New("api_key_command must be a list of strings, or a string for the shell")
	}
	*c = args
	return nil
}

// Check reports the faults of the endpoint of an executor or grader.
func (e *Endpoint) Check(c *eval.Check) {
	for _, f := range e.Faults() {
		c.Errorf(decode.At(f.Key), decode.CodeInvalidValue, "%s", f.Message)
	}
}

// EndpointFault is an invalid key of an [Endpoint], with an error message.
type EndpointFault struct{ Key, Message string }

// Faults returns the faults of the endpoint.
func (e *Endpoint) Faults() []EndpointFault {
	var faults []EndpointFault
	if e.BaseURL != "" {
		u, err := url.Parse(e.BaseURL)
		switch {
		case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
			faults = append(faults, EndpointFault{"base_url", "base_url must be an http or https URL, such as http://127.0.0.1:11434/v1"})
		case u.User != nil:
			faults = append(faults, EndpointFault{
				"base_url",
				"base_url must not contain a password, because keys do not belong in a file; use api_key_env or api_key_command",
			})
		}
	}
	if strings.ContainsAny(e.APIKeyEnv, "=\x00 ") {
		faults = append(faults, EndpointFault{
			"api_key_env", "api_key_env must be the name of an environment variable; keys do not belong in a file",
		})
	} else if looksLikeKey(e.APIKeyEnv) {
		faults = append(faults, EndpointFault{
			"api_key_env",
			"api_key_env looks like a key; it must be the name of the environment variable with the key",
		})
	}
	return faults
}

func looksLikeKey(s string) bool { return strings.HasPrefix(s, "sk-") || len(s) > 80 }

// defaults returns the default address of the API, and its usual environment variables.
func (api API) defaults() (baseURL, baseEnv, keyEnv string) {
	if api == Ollama {
		return "http://localhost:11434", "OLLAMA_BASE_URL", "OLLAMA_API_KEY"
	}
	s := keys.ServiceOf(string(api))
	return s.BaseURL, s.BaseNames[0], s.KeyNames[0]
}

// keyEnv returns the default environment variable of the key.
func (api API) keyEnv() string {
	_, _, keyEnv := api.defaults()
	return keyEnv
}

// address returns the address of the API without a trailing slash.
func (e *Endpoint) address(api API, env func(string) string) string {
	baseURL, baseEnv, _ := api.defaults()
	base := strings.TrimRight(cmp.Or(e.BaseURL, env(baseEnv), baseURL), "/")
	if api == Anthropic {
		base = strings.TrimSuffix(base, "/v1") // every request adds it
	}
	return base
}

// Needs returns what a machine must have to use the API: the variable with the key, or the
// program that prints it. A server at an address in the suite might require no key, so its key
// is needed only if the endpoint names the variable.
func (e *Endpoint) Needs(api API) []record.Need {
	if len(e.APIKeyCommand) > 0 {
		return []record.Need{{Kind: record.NeedProgram, Name: e.APIKeyCommand[0]}}
	}
	nowhere := func(string) string { return "" }
	if e.APIKeyEnv == "" && !e.needsKey(api, nowhere) {
		return nil
	}
	return []record.Need{{Kind: record.NeedKey, Name: cmp.Or(e.APIKeyEnv, api.keyEnv())}}
}

// KeyNames returns the default variables for the keys of the providers. The caller owns the
// slice.
func KeyNames() []string { return []string{OpenAI.keyEnv(), Anthropic.keyEnv()} }

// HasKey reports whether an environment satisfies a need of the kind key: the variable is set. A
// default variable is also satisfied if a variable sets a different address for its API, where a
// key might not be required.
func HasKey(name string, env func(string) string) bool {
	if strings.TrimSpace(env(name)) != "" {
		return true
	}
	for _, api := range []API{OpenAI, Anthropic} {
		if api.keyEnv() == name {
			return !new(Endpoint).needsKey(api, env)
		}
	}
	return false
}

// needsKey reports whether the endpoint has the provider's own address, which rejects requests without
// a key.
func (e *Endpoint) needsKey(api API, env func(string) string) bool {
	baseURL, _, _ := api.defaults()
	return api != Ollama && e.address(api, env) == baseURL
}

// key returns the key, or "" if no key is set and none is required: the user's own servers often
// require no key.
func (e *Endpoint) key(ctx context.Context, api API, env func(string) string) (string, error) {
	if len(e.APIKeyCommand) > 0 {
		return runKeyCommand(ctx, e.APIKeyCommand)
	}
	name := cmp.Or(e.APIKeyEnv, api.keyEnv())
	if key := strings.TrimSpace(env(name)); key != "" {
		if strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r > '~' }) {
			return "", &Error{
				Kind:    Refused,
				Message: fmt.Sprintf("the API key in $%s contains invalid characters; it must be printable ASCII", name),
			}
		}
		return key, nil
	}
	if e.APIKeyEnv == "" && !e.needsKey(api, env) {
		return "", nil
	}
	return "", &Error{Kind: Refused, Message: fmt.Sprintf(
		"the API key is missing: $%s is not set; export it, or set api_key_env to a different variable or "+
			"api_key_command to a program that prints the key",
		name)}
}

// Limits of a program that prints a key.
const (
	keyCommandTime  = 30 * time.Second
	keyCommandBytes = 16 << 10
)

func runKeyCommand(ctx context.Context, args []string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, keyCommandTime, fmt.Errorf("it ran longer than %v", keyCommandTime))
	defer cancel()
	out := &proc.Limited{Max: keyCommandBytes}
	// Its standard error can contain the key, so it is not shown.
	if err := proc.Run(ctx, proc.Command{Args: args, Env: os.Environ(), Stdout: out}); err != nil {
		return "", &Error{Kind: Refused, Message: fmt.Sprintf("the API key is missing: api_key_command: %v", err)}
	}
	key := strings.TrimSpace(out.String())
	switch {
	case key == "":
		return "", &Error{Kind: Refused, Message: "the API key is missing: api_key_command printed nothing"}
	case strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", &Error{
			Kind:    Refused,
			Message: "api_key_command must print only the API key, but its output contains spaces or invalid characters",
		}
	}
	return key, nil
}
