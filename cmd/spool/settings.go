package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-viper/mapstructure/v2"
	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/file"
	"github.com/knadh/koanf/v2"

	"github.com/spool-dev/spool/api"
	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/buffer/provider"
)

// settings is everything that can be configured: the shape of the YAML file. A flag or a variable
// of the same name outranks the file.
type settings struct {
	Listen   string        `koanf:"listen"`
	Data     string        `koanf:"data"`
	Sync     string        `koanf:"sync"`
	Grace    time.Duration `koanf:"grace"`
	TTL      time.Duration `koanf:"ttl"`
	LogLevel string        `koanf:"log_level"`

	TLS  tlsSettings  `koanf:"tls"`
	CORS corsSettings `koanf:"cors"`

	Secret string `koanf:"secret"`
	// PreviousSecret is the one before it, whose run tokens are still good.
	PreviousSecret string                      `koanf:"previous_secret"`
	Auth           authSettings                `koanf:"auth"`
	Providers      map[string]providerSettings `koanf:"providers"`
	Limits         limitSettings               `koanf:"limits"`
	Callers        callerSettings              `koanf:"callers"`
	Queue          queueSettings               `koanf:"queue"`
	Compat         compatSettings              `koanf:"compat"`
	// RetryDedupe lets an SDK's retry that carries no key find the run of its first send; on unless false.
	RetryDedupe *bool `koanf:"retry_dedupe"`
}

type callerSettings struct {
	Live         int `koanf:"live"`
	Runs         int `koanf:"runs_per_minute"`
	OutputTokens int `koanf:"output_tokens_per_minute"`
}

type queueSettings struct {
	Length int           `koanf:"length"`
	Wait   time.Duration `koanf:"wait"`
}

type authSettings struct {
	Keys map[string]string `koanf:"keys"` // name → buffer key
}

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

type limitSettings struct {
	Body      int64         `koanf:"body"`
	Chunk     int           `koanf:"chunk"`
	Run       int64         `koanf:"run"`
	Window    int64         `koanf:"window"`
	MaxTTL    time.Duration `koanf:"max_ttl"`
	Hold      time.Duration `koanf:"hold"`
	Heartbeat time.Duration `koanf:"heartbeat"`
	Write     time.Duration `koanf:"write"`
}

type compatSettings struct {
	Cloudflare *bool `koanf:"cloudflare"` // unset: on where the listener is loopback
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

// load is the defaults, then the file, then the flags.
func (c *serveCmd) load() (settings, error) {
	s := settings{
		Listen: "127.0.0.1:8787", Data: "./data", Sync: "full", TTL: time.Hour, LogLevel: "info",
		Providers: map[string]providerSettings{},
	}
	if c.Config != "" {
		if err := readFile(c.Config, &s); err != nil {
			return s, err
		}
	}
	override(&s.Listen, c.Listen)
	override(&s.Data, c.Data)
	override(&s.Sync, c.Sync)
	override(&s.LogLevel, c.LogLevel)
	override(&s.TLS.Cert, c.TLSCert)
	override(&s.TLS.Key, c.TLSKey)
	if len(c.CORSOrigin) > 0 {
		s.CORS.Origins = c.CORSOrigin
	}
	if err := overrideDuration("grace", &s.Grace, c.Grace); err != nil {
		return s, err
	}
	if err := overrideDuration("ttl", &s.TTL, c.TTL); err != nil {
		return s, err
	}
	for _, text := range c.Provider {
		name, p, err := parseProvider(text)
		if err != nil {
			return s, err
		}
		s.Providers[name] = p
	}
	return s, s.validate()
}

func override(v *string, flag string) {
	if flag != "" {
		*v = flag
	}
}

func overrideDuration(name string, v *time.Duration, flag string) error {
	if flag == "" {
		return nil
	}
	d, err := time.ParseDuration(flag)
	if err != nil {
		return fmt.Errorf("%s: %q is not a duration such as 30s", name, flag)
	}
	*v = d
	return nil
}

// readFile merges a YAML file into s. A key that is not known is an error that names it.
func readFile(path string, s *settings) error {
	k := koanf.New("\x00") // keys are not split: a provider's name may hold a dot
	if err := k.Load(file.Provider(path), yaml.Parser()); err != nil {
		return fmt.Errorf("config %s: %w", path, err)
	}
	err := k.UnmarshalWithConf("", s, koanf.UnmarshalConf{DecoderConfig: &mapstructure.DecoderConfig{
		Result: s, TagName: "koanf", ErrorUnused: true, WeaklyTypedInput: false,
		DecodeHook: mapstructure.StringToTimeDurationHookFunc(),
	}})
	if err != nil {
		return fmt.Errorf("config %s: %w", path, err)
	}
	return nil
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

func (s settings) validate() error {
	if s.Sync != "full" && s.Sync != "normal" {
		return fmt.Errorf("sync: %q is neither full nor normal", s.Sync)
	}
	if s.Grace < 0 {
		return errors.New("grace: must not be negative; 0 waits until live runs have ended")
	}
	if s.TTL <= 0 {
		return errors.New("ttl: must be a duration above 0")
	}
	if (s.TLS.Cert == "") != (s.TLS.Key == "") {
		return errors.New("tls: cert and key go together")
	}
	if err := s.CORS.validate(); err != nil {
		return err
	}
	for name, key := range s.Auth.Keys {
		if len(key) < 16 {
			return fmt.Errorf("auth.keys.%s: a buffer key needs at least 16 characters", name)
		}
	}
	_, err := s.routes()
	return err
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

func dialectNames() string {
	names := make([]string, len(dialects))
	for i, d := range dialects {
		names[i] = string(d)
	}
	return strings.Join(names, ", ")
}

// runs is what the settings say about runs.
func (s settings) runs(o buffer.Observer) buffer.Config {
	return buffer.Config{
		MaxChunk: s.Limits.Chunk, MaxRun: s.Limits.Run, Observe: o,
		NoDedupe: s.RetryDedupe != nil && !*s.RetryDedupe,
		Callers:  buffer.CallerLimits(s.Callers),
		Queue:    buffer.QueueLimits(s.Queue),
	}
}

// longestConnect is the longest that any route lets a dial take; each drain cuts it to its route's.
func longestConnect(routes map[string]provider.Route) time.Duration {
	longest := time.Duration(0)
	for _, r := range routes {
		longest = max(longest, r.Clocks.WithDefaults(r.Dialect, "", true).Connect)
	}
	return longest
}
