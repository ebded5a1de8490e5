package main

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spool-dev/spool/api"
	"github.com/spool-dev/spool/buffer/provider"
)

type providerSettings struct {
	BaseURL   string        `koanf:"base_url" help:"Without /v1. A built-in name keeps its own where none is given."`
	Dialect   string        `koanf:"dialect" help:"openai_chat, openai_responses, anthropic, gemini, bedrock, bedrock_invoke, ollama or generic; empty: the path decides."`
	Generates bool          `koanf:"generates" default:"false" help:"Every POST is a generation call."`
	Key       string        `koanf:"key" secret:"true" help:"Sent in place of the caller's credential."`
	Clocks    clockSettings `koanf:"clocks" help:"0: the default, which depends on the dialect and the model (docs/providers.md, section 5); negative: off."`

	Region      string             `koanf:"region" help:"Where data is kept; a fallback must be in the same."`
	Expected    time.Duration      `koanf:"expected" default:"0s" help:"How long it is thought to take to the first content; 0: not known."`
	Price       priceSettings      `koanf:"price" help:"US dollars for a million tokens: for a call's cost limit, and for what was saved."`
	Concurrency int                `koanf:"concurrency" default:"0" help:"Attempts of one caller under way at once; 0: without limit."`
	Retry       *bool              `koanf:"retry" default:"true" help:"false: never the same route again within one run."`
	Fallbacks   []fallbackSettings `koanf:"fallbacks" help:"Approved for this provider, in order of preference."`
}

type priceSettings struct {
	Input  float64 `koanf:"input" default:"0" help:"Of a call."`
	Output float64 `koanf:"output" default:"0" help:"Of an answer."`
}

type fallbackSettings struct {
	Provider string            `koanf:"provider" help:"Another provider that speaks the same dialect, with a key of its own."`
	Models   map[string]string `koanf:"models" help:"What each model becomes there. One that is not named has no fallback."`
	Tools    bool              `koanf:"tools" default:"false" help:"It can call tools as this one does."`
	Schema   bool              `koanf:"schema" default:"false" help:"It keeps to a schema for its output."`
	Context  int64             `koanf:"context" default:"0" help:"Tokens that fit into it; 0: as many as here."`
	OwnQuota bool              `koanf:"own_quota" default:"false" help:"Its quota is not this one's."`
}

type clockSettings struct {
	Connect      time.Duration `koanf:"connect" default:"0s" help:"Dial and TLS, each."`
	Headers      time.Duration `koanf:"headers" default:"0s" help:"From the request written to the answer's headers."`
	FirstContent time.Duration `koanf:"first_content" default:"0s" help:"From the request written to the first content."`
	ByteIdle     time.Duration `koanf:"byte_idle" default:"0s" help:"Between any two bytes."`
	ContentGap   time.Duration `koanf:"content_gap" default:"0s" help:"Between two contents."`
	FinishGrace  time.Duration `koanf:"finish_grace" default:"0s" help:"From the finish to the end of the connection."`
	Total        time.Duration `koanf:"total" default:"0s" help:"From the first send; none unless set."`
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
		return "", providerSettings{}, fmt.Errorf("--provider: %q must be NAME[:DIALECT]=BASE_URL", text)
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
	var wrong []error
	names := slices.Sorted(maps.Keys(all))
	for _, name := range names {
		r, err := all[name].route(name)
		wrong = append(wrong, err)
		routes[name] = r
	}
	if err := errors.Join(wrong...); err != nil {
		return nil, err
	}
	for _, name := range names {
		r := routes[name]
		for i, f := range all[name].Fallbacks {
			to, err := f.route(name, r, routes)
			if err != nil {
				wrong = append(wrong, under(fmt.Sprintf("providers.%s.fallbacks[%d]", name, i), err))
			}
			r.Fallbacks = append(r.Fallbacks, to)
		}
		routes[name] = r
	}
	if err := errors.Join(wrong...); err != nil {
		return nil, err
	}
	return routes, nil
}

// route is the provider as a route. What is wrong with it is told by its whole keys.
func (p providerSettings) route(name string) (provider.Route, error) {
	key := "providers." + name
	if slices.Contains(api.Reserved(), name) {
		return provider.Route{}, fmt.Errorf("%s: the name is reserved; choose another", key)
	}
	if name == "" || strings.ContainsAny(name, "/?#% ") {
		return provider.Route{}, fmt.Errorf("%s: the name must be one path segment", key)
	}
	var wrong []error
	u, err := provider.ParseBase(p.BaseURL)
	if err != nil {
		wrong = append(wrong, fmt.Errorf("base_url: %w", err))
	}
	d := provider.Dialect(p.Dialect)
	if d != "" && !slices.Contains(dialects, d) {
		wrong = append(wrong, fmt.Errorf("dialect: %q is not one of %s", p.Dialect, dialectNames()))
	}
	for _, figure := range []struct {
		key   string
		value float64
	}{
		{"concurrency", float64(p.Concurrency)}, {"expected", float64(p.Expected)}, {"price.input", p.Price.Input}, {"price.output", p.Price.Output},
	} {
		if !(figure.value >= 0) || math.IsInf(figure.value, 1) { // nor is it no number at all
			wrong = append(wrong, fmt.Errorf("%s: must not be negative", figure.key))
		}
	}
	return provider.Route{
		Name: name, BaseURL: u, Dialect: d, Generates: p.Generates || d == provider.Generic, Key: p.Key,
		Clocks: provider.Clocks(p.Clocks), Region: p.Region, Expected: p.Expected, Price: provider.Price(p.Price),
		Concurrency: p.Concurrency, NoRetry: p.Retry != nil && !*p.Retry,
	}, under(key, wrong...)
}

// route is the fallback of a provider, among all routes.
func (f fallbackSettings) route(of string, from provider.Route, routes map[string]provider.Route) (provider.Fallback, error) {
	var wrong []error
	to, ok := routes[f.Provider]
	if !ok || f.Provider == of {
		wrong = append(wrong, fmt.Errorf("provider: %q is not another provider", f.Provider))
	} else if a, b := family(of, from.Dialect), family(f.Provider, to.Dialect); a != "" && b != "" && a != b {
		wrong = append(wrong, fmt.Errorf("provider: %q speaks %s and not %s: nothing is translated", f.Provider, b, a))
	}
	if len(f.Models) == 0 {
		wrong = append(wrong, errors.New("models: name at least one model and what it becomes"))
	}
	for _, model := range slices.Sorted(maps.Keys(f.Models)) {
		if f.Models[model] == "" {
			wrong = append(wrong, fmt.Errorf("models.%s: name what it becomes", model))
		}
	}
	if f.Context < 0 {
		wrong = append(wrong, errors.New("context: must not be negative; 0 is as many as here"))
	}
	return provider.Fallback{
		Route: &to, Models: f.Models, Tools: f.Tools, Schema: f.Schema, Context: f.Context, OwnQuota: f.OwnQuota,
	}, errors.Join(wrong...)
}

// under puts a key before each error's own.
func under(key string, wrong ...error) error {
	var all []error
	for _, err := range wrong {
		if many, ok := errors.AsType[joined](err); ok {
			all = append(all, under(key, many.Unwrap()...))
			continue
		}
		all = append(all, fmt.Errorf("%s.%w", key, err))
	}
	return errors.Join(all...)
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
