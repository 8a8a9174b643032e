package keys

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
)

// Withheld is the result of [Withhold].
type Withheld struct {
	// Env is the environment with placeholders instead of keys, in the form NAME=VALUE.
	Env []string
	// Keys are the replaced keys.
	Keys []Key
	// Remaining are the names of variables that still contain a key, because their programs accept
	// no different address, or the address is not known. They are sorted.
	Remaining []string
}

// minSecret is the minimum length in bytes of a key that is also replaced within other variables.
const minSecret = 8

// Withhold replaces the keys of model APIs in an environment by placeholders, and the addresses of
// these APIs by addresses of a proxy, which has the keys and listens on an address in the form
// HOST:PORT. Besides the known services, it recognizes each variable NAME_API_KEY if NAME_BASE_URL
// or NAME_API_BASE contains an address. The path of an address is http://HOST:PORT/SERVICE, followed
// by the path of the replaced address. Withhold also replaces the keys where other variables contain
// them, and sets the address in CODEX_CONFIG. It does not change env.
func Withhold(env []string, proxy string) Withheld {
	e := environment{list: slices.Clone(env)}
	var w Withheld
	var codex []codexKey
	for _, s := range append(slices.Clone(services), e.others()...) {
		names := slices.DeleteFunc(slices.Clone(s.KeyNames), func(name string) bool { return e.get(name) == "" })
		if len(names) == 0 {
			continue
		}
		base, ok := e.base(s)
		for _, name := range names {
			secret := e.get(name)
			if !ok || strings.ContainsFunc(secret, func(r rune) bool { return r <= ' ' || r > '~' }) {
				w.Remaining = append(w.Remaining, name)
				continue
			}
			key := New(s.Name, base.String(), secret)
			w.Keys = append(w.Keys, key)
			e.set(name, key.Placeholder)
			address := "http://" + proxy + "/" + s.Name + base.EscapedPath()
			for _, name := range s.BaseNames {
				e.set(name, address)
			}
			if s.Name == OpenAI {
				codex = append(codex, codexKey{name, base.String(), address})
			}
		}
	}
	for _, key := range w.Keys {
		if len(key.secret) >= minSecret {
			e.replace(key.secret, key.Placeholder)
		}
	}
	if len(codex) > 0 {
		e.configureCodex(codex)
	}
	for _, name := range logins {
		if e.get(name) != "" && !slices.ContainsFunc(w.Keys, func(k Key) bool { return k.Placeholder == e.get(name) }) {
			w.Remaining = append(w.Remaining, name)
		}
	}
	slices.Sort(w.Remaining)
	w.Env, w.Remaining = e.list, slices.Compact(w.Remaining)
	return w
}

// environment is a list of variables in the form NAME=VALUE. The last one of a name counts.
type environment struct{ list []string }

func (e *environment) get(name string) string {
	for _, kv := range slices.Backward(e.list) {
		if n, value, _ := strings.Cut(kv, "="); n == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// set replaces all variables of that name.
func (e *environment) set(name, value string) {
	e.list = slices.DeleteFunc(e.list, func(kv string) bool { return strings.HasPrefix(kv, name+"=") })
	e.list = append(e.list, name+"="+value)
}

// replace replaces a text in the values of all variables.
func (e *environment) replace(old, value string) {
	for i, kv := range e.list {
		if name, text, ok := strings.Cut(kv, "="); ok {
			e.list[i] = name + "=" + strings.ReplaceAll(text, old, value)
		}
	}
}

// codexConfig is the variable with settings of Codex over the Agent Client Protocol, a JSON object.
const codexConfig = "CODEX_CONFIG"

// codexKey is a withheld key of OpenAI's API, with the address of the service and the one that replaces
// it.
type codexKey struct{ variable, base, address string }

// configureCodex sets the address of OpenAI's API for Codex, which ignores OPENAI_BASE_URL (version
// 0.171), and those of its model providers that use a withheld key at the same address. Settings that
// are no JSON object stay. keys must not be empty.
func (e *environment) configureCodex(keys []codexKey) {
	settings := map[string]json.RawMessage{}
	if text := e.get(codexConfig); text != "" && json.Unmarshal([]byte(text), &settings) != nil || settings == nil {
		return
	}
	providers := map[string]map[string]any{}
	if json.Unmarshal(settings["model_providers"], &providers) == nil && len(providers) > 0 {
		for _, provider := range providers {
			base, _ := provider["base_url"].(string)
			for _, key := range keys {
				if provider["env_key"] == key.variable && strings.TrimRight(base, "/") == key.base {
					provider["base_url"] = key.address
				}
			}
		}
		if text, err := json.Marshal(providers); err == nil {
			settings["model_providers"] = text
		}
	}
	quoted, err := json.Marshal(keys[0].address)
	if err != nil {
		return
	}
	settings["openai_base_url"] = quoted
	if text, err := json.Marshal(settings); err == nil {
		e.set(codexConfig, string(text))
	}
}

// base returns the address of a service: that of the first variable with one, or its own.
func (e *environment) base(s Service) (*url.URL, bool) {
	address := s.BaseURL
	for _, name := range s.BaseNames {
		if value := e.get(name); value != "" {
			address = value
			break
		}
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, false
	}
	u.Path, u.RawPath = strings.TrimRight(u.Path, "/"), strings.TrimRight(u.RawPath, "/")
	u.RawQuery, u.Fragment, u.RawFragment = "", "", ""
	return u, true
}

// others returns the services that only the names of variables reveal.
func (e *environment) others() (list []Service) {
	for _, kv := range e.list {
		name, _, _ := strings.Cut(kv, "=")
		service, ok := strings.CutSuffix(name, "_API_KEY")
		if !ok || service == "" || slices.ContainsFunc(services, func(s Service) bool { return slices.Contains(s.KeyNames, name) }) ||
			slices.ContainsFunc(list, func(s Service) bool { return s.KeyNames[0] == name }) {
			continue
		}
		list = append(list, Service{
			Name: pathName(service), KeyNames: []string{name}, BaseNames: e.present(service+"_BASE_URL", service+"_API_BASE"),
		})
	}
	return list
}

// present returns the names of variables that have a value.
func (e *environment) present(names ...string) []string {
	return slices.DeleteFunc(names, func(name string) bool { return e.get(name) == "" })
}

// pathName returns the name of a service for a prefix of variables: "my-llm" for MY_LLM.
func pathName(prefix string) string {
	return "env-" + strings.Map(func(r rune) rune {
		switch {
		case 'A' <= r && r <= 'Z':
			return r + 'a' - 'A'
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9':
			return r
		}
		return '-'
	}, prefix)
}
