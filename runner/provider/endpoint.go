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

	"github.com/invopop/jsonschema"
	"gopkg.in/yaml.v3"

	"waza/eval"
	"waza/eval/decode"
	"waza/runner/proc"
)

// API is the protocol that a provider speaks.
type API string

// The APIs.
const (
	OpenAI    API = "openai" // and all who are compatible with its chat completions
	Anthropic API = "anthropic"
)

// Endpoint says where a model is served and where its key comes from. Keys
// are never part of a suite. The zero value means the provider's own
// address and the environment variable that is usual for it.
type Endpoint struct {
	// Address of the API; when absent $OPENAI_BASE_URL or $ANTHROPIC_BASE_URL, else the provider's own.
	BaseURL string `yaml:"base_url"`
	// Environment variable that holds the key; OPENAI_API_KEY or ANTHROPIC_API_KEY when absent.
	APIKeyEnv string `yaml:"api_key_env"`
	// Program that prints the key: a list, or a text run by sh -c. Takes precedence over api_key_env.
	APIKeyCommand KeyCommand `yaml:"api_key_command"`
	// Version of the API that Azure wants to be asked for; the key goes into the header api-key then.
	APIVersion string `yaml:"api_version"`
}

// KeyCommand is a program that prints a key.
type KeyCommand []string

// UnmarshalYAML takes a list, or a text for the shell.
func (c *KeyCommand) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		if strings.TrimSpace(n.Value) == "" {
			return errors.New("api_key_command: no program to run")
		}
		*c = KeyCommand{"sh", "-c", n.Value}
		return nil
	}
	var args []string
	if err := n.Decode(&args); err != nil || len(args) == 0 || args[0] == "" {
		return errors.New("api_key_command: a list of texts, or one text for the shell, is wanted")
	}
	*c = args
	return nil
}

// JSONSchema describes both shapes.
func (KeyCommand) JSONSchema() *jsonschema.Schema {
	one := uint64(1)
	return &jsonschema.Schema{OneOf: []*jsonschema.Schema{
		{Type: "string", MinLength: &one},
		{Type: "array", Items: &jsonschema.Schema{Type: "string"}, MinItems: &one},
	}}
}

// Check reports what is wrong with the endpoint of an executor or grader.
func (e *Endpoint) Check(c *eval.Check) {
	if e.BaseURL != "" {
		u, err := url.Parse(e.BaseURL)
		switch {
		case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
			c.Errorf(decode.At("base_url"), decode.CodeInvalidValue, "base_url must be an http or https URL, such as http://127.0.0.1:11434/v1")
		case u.User != nil:
			c.Errorf(decode.At("base_url"), decode.CodeInvalidValue, "base_url holds a password; keys do not belong into a suite: use api_key_env or api_key_command")
		}
	}
	if strings.ContainsAny(e.APIKeyEnv, "=\x00 ") {
		c.Errorf(decode.At("api_key_env"), decode.CodeInvalidValue, "api_key_env must be the name of an environment variable; keys themselves do not belong into a suite")
	} else if looksLikeKey(e.APIKeyEnv) {
		c.Errorf(decode.At("api_key_env"), decode.CodeInvalidValue, "api_key_env looks like a key; it must be the name of the environment variable that holds it")
	}
}

func looksLikeKey(s string) bool { return strings.HasPrefix(s, "sk-") || len(s) > 80 }

// own are the addresses of the providers themselves, and their variables.
var own = map[API]struct{ baseURL, baseEnv, keyEnv string }{
	OpenAI:    {"https://api.openai.com/v1", "OPENAI_BASE_URL", "OPENAI_API_KEY"},
	Anthropic: {"https://api.anthropic.com", "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY"},
}

// address is where the API is asked, without a slash at its end.
func (e *Endpoint) address(api API, env func(string) string) string {
	base := cmp.Or(e.BaseURL, env(own[api].baseEnv), own[api].baseURL)
	base = strings.TrimRight(base, "/")
	if api == Anthropic {
		base = strings.TrimSuffix(base, "/v1") // which every request adds
	}
	return base
}

// key finds the key; "" when there is none and none is needed: servers of one's
// own often want none.
func (e *Endpoint) key(ctx context.Context, api API, env func(string) string) (string, error) {
	if len(e.APIKeyCommand) > 0 {
		return runKeyCommand(ctx, e.APIKeyCommand)
	}
	name := cmp.Or(e.APIKeyEnv, own[api].keyEnv)
	if key := strings.TrimSpace(env(name)); key != "" {
		if strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r > '~' }) {
			return "", &Error{Kind: Refused, Message: fmt.Sprintf("the API key in $%s holds characters that no key has", name)}
		}
		return key, nil
	}
	if e.APIKeyEnv == "" && e.address(api, env) != strings.TrimRight(own[api].baseURL, "/") {
		return "", nil
	}
	return "", &Error{Kind: Refused, Message: fmt.Sprintf(
		"the API key is missing: $%s is not set; export it, or name another variable with api_key_env or a program that prints the key with api_key_command", name)}
}

// Bounds on a program that prints a key.
const (
	keyCommandTime  = 30 * time.Second
	keyCommandBytes = 16 << 10
)

func runKeyCommand(ctx context.Context, args []string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, keyCommandTime, fmt.Errorf("it ran longer than %v", keyCommandTime))
	defer cancel()
	out := &proc.Limited{Max: keyCommandBytes}
	// What it prints on stderr may hold the key as well, so it is not shown.
	if err := proc.Run(ctx, proc.Command{Args: args, Env: os.Environ(), Stdout: out}); err != nil {
		return "", &Error{Kind: Refused, Message: fmt.Sprintf("the API key is missing: api_key_command: %v", err)}
	}
	key := strings.TrimSpace(out.String())
	switch {
	case key == "":
		return "", &Error{Kind: Refused, Message: "the API key is missing: api_key_command printed nothing"}
	case strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", &Error{Kind: Refused, Message: "api_key_command printed something that is no API key: it must print the key and nothing else"}
	}
	return key, nil
}
