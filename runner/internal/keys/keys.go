// Package keys lists model APIs and the environment variables of their keys and addresses, and
// replaces the keys in the environment of a program: see [Withhold].
package keys

import (
	"crypto/rand"
	"fmt"
	"slices"
)

// A Service is a model API as programs find it: by environment variables.
type Service struct {
	// Name identifies the service, in letters, digits and hyphens.
	Name string
	// BaseURL is its own address; empty if programs need a variable with the address.
	BaseURL string
	// KeyNames are the variables with a key. The first one is usual.
	KeyNames []string
	// BaseNames are the variables with a different address. The first one is usual.
	BaseNames []string

	prefix string // start of its keys, which some programs check
}

// The services that waza's own models use.
const (
	OpenAI    = "openai"
	Anthropic = "anthropic"
)

// services are the known services. Sources: the documents of their SDKs, and of Claude Code, Codex,
// Gemini CLI and Copilot CLI.
var services = []Service{
	{
		Name: OpenAI, BaseURL: "https://api.openai.com/v1", prefix: "sk-",
		KeyNames:  []string{"OPENAI_API_KEY", "CODEX_API_KEY"},
		BaseNames: []string{"OPENAI_BASE_URL", "OPENAI_API_BASE"},
	},
	{
		Name: Anthropic, BaseURL: "https://api.anthropic.com", prefix: "sk-ant-",
		KeyNames:  []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"},
		BaseNames: []string{"ANTHROPIC_BASE_URL"},
	},
	{
		Name: "gemini", BaseURL: "https://generativelanguage.googleapis.com", prefix: "AIza",
		KeyNames:  []string{"GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY"},
		BaseNames: []string{"GOOGLE_GEMINI_BASE_URL"},
	},
	{
		Name:      "copilot", // with a model provider of the user, not with a login at GitHub
		KeyNames:  []string{"COPILOT_PROVIDER_API_KEY", "COPILOT_PROVIDER_BEARER_TOKEN"},
		BaseNames: []string{"COPILOT_PROVIDER_BASE_URL"},
	},
	{
		Name:      "azure",
		KeyNames:  []string{"AZURE_OPENAI_API_KEY"},
		BaseNames: []string{"AZURE_OPENAI_ENDPOINT"},
	},
}

// logins are variables with keys whose programs accept no different address.
var logins = []string{
	"COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN",
	"AWS_BEARER_TOKEN_BEDROCK", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN",
}

// ServiceOf returns the known service of that name, or one without an address and variables.
func ServiceOf(name string) Service {
	i := slices.IndexFunc(services, func(s Service) bool { return s.Name == name })
	if i < 0 {
		return Service{Name: name}
	}
	return services[i]
}

// A Key is the key of a service, and the placeholder that a program has instead. Its text contains
// no key, whatever verb prints it.
type Key struct {
	// Service is the name of the service.
	Service string
	// BaseURL is the address to which the key may be sent: an http or https URL.
	BaseURL string
	// Placeholder replaces the key in the environment of the program. It is random, so that it
	// also shows that a request comes from that program.
	Placeholder string

	secret string
}

// New returns a key of a service with a new placeholder.
func New(service, baseURL, secret string) Key {
	return Key{Service: service, BaseURL: baseURL, Placeholder: ServiceOf(service).prefix + "waza-" + rand.Text(), secret: secret}
}

// Secret returns the key itself.
func (k Key) Secret() string { return k.secret }

// Format writes a text without the key for every verb.
func (k Key) Format(f fmt.State, _ rune) { fmt.Fprint(f, "key of "+k.Service) }
