package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spool-dev/spool/api"
	"github.com/spool-dev/spool/buffer/provider"
)

type providerSettings struct {
	BaseURL   string        `koanf:"base_url"`
	Dialect   string        `koanf:"dialect"`
	Generates bool          `koanf:"generates"`
	Key       string        `koanf:"key"`
	Clocks    clockSettings `koanf:"clocks"`

	Region      string             `koanf:"region"`
	Expected    time.Duration      `koanf:"expected"`
	Price       priceSettings      `koanf:"price"`
	Concurrency int                `koanf:"concurrency"`
	Retry       *bool              `koanf:"retry"` // false: never the same route again within one run
	Fallbacks   []fallbackSettings `koanf:"fallbacks"`
}

type priceSettings struct {
	Input  float64 `koanf:"input"` // US dollars for a million tokens
	Output float64 `koanf:"output"`
}

type fallbackSettings struct {
	Provider string            `koanf:"provider"`
	Models   map[string]string `koanf:"models"`
	Tools    bool              `koanf:"tools"`
	Schema   bool              `koanf:"schema"`
	Context  int64             `koanf:"context"`
	OwnQuota bool              `koanf:"own_quota"`
}

type clockSettings struct {
	Connect      time.Duration `koanf:"connect"`
	Headers      time.Duration `koanf:"headers"`
	FirstContent time.Duration `koanf:"first_content"`
	ByteIdle     time.Duration `koanf:"byte_idle"`
	ContentGap   time.Duration `koanf:"content_gap"`
	FinishGrace  time.Duration `koanf:"finish_grace"`
	Total        time.Duration `koanf:"total"`
}

// builtIn are the providers that need no configuration. Base URLs exclude /v1.
var builtIn = map[string]string{
	"openai":     "https://api.openai.com",
	"anthropic":  "https://api.anthropic.com",
	"gemini":     "https://generativelanguage.googleapis.com",
	"openrouter": "https://openrouter.ai/api",
	"ollama":     "http://127.0.0.1:11434",
	"bedrock":    "https://bedrock-runtime.us-east-1.amazonaws.com",
}

// dialects are the names that a provider's dialect may have.
var dialects = []provider.Dialect{
	provider.OpenAIChat, provider.OpenAIResponses, provider.Anthropic, provider.Gemini,
	provider.Bedrock, provider.BedrockInvoke, provider.Ollama, provider.Generic,
}

// parseProvider reads NAME[:DIALECT]=BASE_URL.
func parseProvider(text string) (string, providerSettings, error) {
	left, base, ok := strings.Cut(text, "=")
	name, dialect, _ := strings.Cut(left, ":")
	if !ok || name == "" {
		return "", providerSettings{}, fmt.Errorf("--provider %q: want NAME[:DIALECT]=BASE_URL", text)
	}
	return name, providerSettings{BaseURL: base, Dialect: dialect}, nil
}

// routes is the built-in providers and the configured ones, by name.
func (s settings) routes() (map[string]provider.Route, error) {
	all := map[string]providerSettings{}
	for name, base := range builtIn {
		all[name] = providerSettings{BaseURL: base}
	}
	for name, p := range s.Providers {
		if p.BaseURL == "" {
			p.BaseURL = builtIn[name]
		}
		all[name] = p
	}
	routes := map[string]provider.Route{}
	for name, p := range all {
		r, err := p.route(name)
		if err != nil {
			return nil, fmt.Errorf("providers.%s: %w", name, err)
		}
		routes[name] = r
	}
	for name, p := range all {
		r := routes[name]
		for i, f := range p.Fallbacks {
			to, ok := routes[f.Provider]
			if !ok || f.Provider == name {
				return nil, fmt.Errorf("providers.%s.fallbacks[%d].provider: %q is not another provider", name, i, f.Provider)
			}
			if len(f.Models) == 0 {
				return nil, fmt.Errorf("providers.%s.fallbacks[%d].models: name at least one model and what it becomes", name, i)
			}
			if a, b := family(name, r.Dialect), family(f.Provider, to.Dialect); a != "" && b != "" && a != b {
				return nil, fmt.Errorf("providers.%s.fallbacks[%d].provider: %q speaks %s and not %s: nothing is translated", name, i, f.Provider, b, a)
			}
			r.Fallbacks = append(r.Fallbacks, provider.Fallback{
				Route: &to, Models: f.Models, Tools: f.Tools, Schema: f.Schema, Context: f.Context, OwnQuota: f.OwnQuota,
			})
		}
		routes[name] = r
	}
	return routes, nil
}

func (p providerSettings) route(name string) (provider.Route, error) {
	if slices.Contains(api.Reserved(), name) {
		return provider.Route{}, errors.New("the name is reserved; choose another")
	}
	if strings.ContainsAny(name, "/?#% ") {
		return provider.Route{}, errors.New("the name must be one path segment")
	}
	u, err := provider.ParseBase(p.BaseURL)
	if err != nil {
		return provider.Route{}, fmt.Errorf("base_url %w", err)
	}
	d := provider.Dialect(p.Dialect)
	if d != "" && !slices.Contains(dialects, d) {
		return provider.Route{}, fmt.Errorf("dialect %q is not one of %s", p.Dialect, dialectNames())
	}
	return provider.Route{
		Name: name, BaseURL: u, Dialect: d, Generates: p.Generates || d == provider.Generic, Key: p.Key,
		Clocks: provider.Clocks(p.Clocks), Region: p.Region, Expected: p.Expected, Price: provider.Price(p.Price),
		Concurrency: p.Concurrency, NoRetry: p.Retry != nil && !*p.Retry,
	}, nil
}

// families are the protocols that the built-in providers speak.
var families = map[string]string{
	"openai": "OpenAI's", "openrouter": "OpenAI's", "anthropic": "Anthropic's", "gemini": "Gemini's", "ollama": "Ollama's", "bedrock": "Bedrock's",
}

// family is whose protocol a provider speaks, by its dialect or else its built-in name; empty where
// its paths decide.
func family(name string, d provider.Dialect) string {
	switch d {
	case "":
		return families[name]
	case provider.OpenAIChat, provider.OpenAIResponses:
		return families["openai"]
	case provider.Anthropic:
		return families["anthropic"]
	case provider.Gemini:
		return families["gemini"]
	case provider.Ollama:
		return families["ollama"]
	case provider.Bedrock, provider.BedrockInvoke:
		return families["bedrock"]
	}
	return ""
}

func dialectNames() string {
	names := make([]string, len(dialects))
	for i, d := range dialects {
		names[i] = string(d)
	}
	return strings.Join(names, ", ")
}

// longestConnect is the longest that any route lets a dial take; each drain cuts it to its route's.
func longestConnect(routes map[string]provider.Route) time.Duration {
	longest := time.Duration(0)
	for _, r := range routes {
		longest = max(longest, r.Clocks.WithDefaults(r.Dialect, "", true).Connect)
	}
	return longest
}
