package main

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"reflect"
	"slices"
	"time"

	"github.com/spool-dev/spool/buffer"
)

// settings is everything that can be configured: the shape of the YAML file. A flag or a variable
// of the same name outranks the file. The tags are what the reference is made of: koanf is the key,
// default its default, help its meaning; fixed takes a restart to change, secret is never shown,
// and holds:"secret" names a file that must not be seen.
type settings struct {
	Listen   string        `koanf:"listen" default:"127.0.0.1:8787" fixed:"true" help:"Address to serve on."`
	Data     string        `koanf:"data" default:"./data" fixed:"true" help:"The data folder, created where it is missing."`
	Sync     string        `koanf:"sync" default:"full" fixed:"true" help:"full: what a reader saw survives a power cut. normal: it survives the death of the process only."`
	Grace    time.Duration `koanf:"grace" default:"0s" help:"At shutdown, how long live runs may take to end; 0 waits until they have."`
	TTL      time.Duration `koanf:"ttl" default:"1h" help:"How long an ended run's chunks are kept where the call does not say."`
	LogLevel string        `koanf:"log_level" default:"info" help:"debug, info, warn or error."`

	Admin     adminSettings     `koanf:"admin" help:"The admin listener: metrics, profiles and the console with the runs of all callers."`
	Telemetry telemetrySettings `koanf:"telemetry" help:"OpenTelemetry traces. Off without an endpoint, here or in OTEL_EXPORTER_OTLP_ENDPOINT."`

	Store storeSettings `koanf:"store" help:"A NATS cluster that keeps the runs instead of the data folder, for more than one node."`

	Secret         string `koanf:"secret" fixed:"true" secret:"true" help:"For run tokens and the hashes of credentials, at least 32 characters; empty: made once in the data folder. The nodes of a cluster need the same."`
	PreviousSecret string `koanf:"previous_secret" fixed:"true" secret:"true" help:"The one before it, at least 32 characters: its run tokens stay valid, no new ones are made."`

	Encryption encryptionSettings `koanf:"encryption" help:"Of what is stored of answers (docs/security.md). Off without keys."`

	TLS       tlsSettings                 `koanf:"tls" help:"PEM files, both or none: serve TLS."`
	CORS      corsSettings                `koanf:"cors" help:"Which pages may read answers."`
	Auth      authSettings                `koanf:"auth" help:"Who may call. Without keys, a caller is the credential that goes to the provider."`
	Providers map[string]providerSettings `koanf:"providers" help:"By name, which is the first path segment of a call. The built-in ones need no entry: anthropic, bedrock, gemini, ollama, openai, openrouter."`
	Callers   callerSettings              `koanf:"callers" help:"What one caller may use; 0 is without limit."`
	Queue     queueSettings               `koanf:"queue" help:"How calls wait where a provider's concurrency is reached."`

	RetryDedupe *bool `koanf:"retry_dedupe" default:"true" help:"An SDK's retry that carries no key finds the run of its first send."`

	Limits limitSettings  `koanf:"limits" help:"Bounds of whatever comes from outside; 0 is the default. Sizes are bytes."`
	Compat compatSettings `koanf:"compat" help:"Routes for clients of other products."`
}

type callerSettings struct {
	Live         int `koanf:"live" default:"0" help:"Live runs at once."`
	Runs         int `koanf:"runs_per_minute" default:"0" help:"Runs that begin within a minute."`
	OutputTokens int `koanf:"output_tokens_per_minute" default:"0" help:"Output tokens that providers gave within a minute."`
}

type queueSettings struct {
	Length int           `koanf:"length" default:"100" help:"For each provider and caller; beyond it 429 busy."`
	Wait   time.Duration `koanf:"wait" default:"30s" help:"How long one call waits at most."`
}

type authSettings struct {
	Keys map[string]string `koanf:"keys" secret:"true" help:"Name of a caller: its buffer key, at least 16 characters."`
}

func (a authSettings) validate() error {
	var all []error
	owner := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(a.Keys)) {
		key := a.Keys[name]
		if len(key) < 16 {
			all = append(all, fmt.Errorf("auth.keys.%s: a buffer key needs at least 16 characters", name))
		}
		if other, taken := owner[key]; taken {
			all = append(all, fmt.Errorf("auth.keys.%s: must not be the key of auth.keys.%s: each caller needs its own", name, other))
		}
		owner[key] = name
	}
	return errors.Join(all...)
}

// limitSettings bound what callers, readers and providers may do. Zero is the default.
type limitSettings struct {
	Connections     int           `koanf:"connections" default:"0" fixed:"true" help:"Open at once; 0: as many as the system allows."`
	Headers         time.Duration `koanf:"headers" default:"20s" fixed:"true" help:"For a request's headers to come."`
	HeaderBytes     int           `koanf:"header_bytes" default:"1048576" fixed:"true" help:"Of a request's headers."`
	Idle            time.Duration `koanf:"idle" default:"2m" fixed:"true" help:"Of a connection between two requests."`
	Body            int64         `koanf:"body" default:"67108864" help:"Of a call's body."`
	Bodies          int64         `koanf:"bodies" default:"536870912" help:"Of the bodies of all calls that may have to be sent again, each until its first content; at least body."`
	BodyTime        time.Duration `koanf:"body_time" default:"5m" help:"For a request's body to come."`
	BodyGap         time.Duration `koanf:"body_gap" default:"1m" help:"Between two reads of the body of a call that passes through."`
	ProviderHeaders int64         `koanf:"provider_headers" default:"1048576" help:"Of an answer's headers, informational ones included."`

	Chunk     int           `koanf:"chunk" default:"67108864" help:"Of one event."`
	Run       int64         `koanf:"run" default:"1073741824" help:"Of one answer."`
	Events    int64         `koanf:"events" default:"4194304" help:"Events of one answer: each costs a row, however small."`
	Window    int64         `koanf:"window" default:"67108864" fixed:"true" help:"Of recent chunks kept in memory over all runs; below 0 none."`
	Pages     int64         `koanf:"pages" default:"536870912" fixed:"true" help:"Of events above 256 KiB that readers are being sent, all together; at least chunk."`
	MaxTTL    time.Duration `koanf:"max_ttl" default:"24h" help:"The longest that X-Buffer-TTL may ask for."`
	Hold      time.Duration `koanf:"hold" default:"30s" help:"How long headers wait for the first content."`
	Heartbeat time.Duration `koanf:"heartbeat" default:"15s" help:"Between two signs of life on a quiet stream."`
	Write     time.Duration `koanf:"write" default:"60s" help:"How long one write to a reader may take."`
}

type compatSettings struct {
	Cloudflare *bool `koanf:"cloudflare" help:"A run id is a credential on the route of Cloudflare's resume client. Absent: on where the listener is loopback."`
}

// cloudflare reports whether its resume client's route is there, for a listener at addr.
func (c compatSettings) cloudflare(addr net.Addr) bool {
	if c.Cloudflare != nil {
		return *c.Cloudflare
	}
	return loopback(addr)
}

// load is the settings. What is wrong with them is a misuse.
func (c *serveCmd) load() (settings, error) {
	s, err := c.read()
	return s, asMisuse(err)
}

// read is the defaults, then the file, then the flags, all of which must be right.
func (c *serveCmd) read() (settings, error) {
	s, err := c.merge()
	if err != nil {
		return s, err
	}
	return s, s.validate()
}

// merge is read without a look at the values. Beside an error it gives what could be understood.
func (c *serveCmd) merge() (settings, error) {
	s := settings{Providers: map[string]providerSettings{}}
	if err := fill(reflect.ValueOf(&s).Elem()); err != nil {
		return s, err
	}
	var inFile error
	if c.Config != "" {
		inFile = readFile(c.Config, &s)
	}
	for _, zeroIsDefault := range []any{&s.Limits, &s.Queue} {
		if err := fill(reflect.ValueOf(zeroIsDefault).Elem()); err != nil {
			return s, err
		}
	}
	return s, errors.Join(inFile, c.override(&s))
}

// override puts the flags and variables that were given over the settings.
func (c *serveCmd) override(s *settings) error {
	override(&s.Listen, c.Listen)
	override(&s.Data, c.Data)
	override(&s.Sync, c.Sync)
	override(&s.Secret, c.Secret)
	c.storeFlags.override(&s.Store)
	s.Store.Unsafe = s.Store.Unsafe || c.UnsafeDurability
	override(&s.LogLevel, c.LogLevel)
	override(&s.Admin.Listen, c.AdminListen)
	override(&s.Admin.Key, c.AdminKey)
	override(&s.TLS.Cert, c.TLSCert)
	override(&s.TLS.Key, c.TLSKey)
	if len(c.CORSOrigin) > 0 {
		s.CORS.Origins = c.CORSOrigin
	}
	wrong := []error{overrideDuration("grace", &s.Grace, c.Grace), overrideDuration("ttl", &s.TTL, c.TTL)}
	for _, text := range c.Provider {
		name, p, err := parseProvider(text)
		if err != nil {
			wrong = append(wrong, err)
			continue
		}
		s.Providers[name] = p
	}
	return errors.Join(wrong...)
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

// validate finds everything that is wrong, each with its key.
func (s settings) validate() error {
	var all []error
	say := func(wrong bool, text string) {
		if wrong {
			all = append(all, errors.New(text))
		}
	}
	if s.Sync != "full" && s.Sync != "normal" {
		all = append(all, fmt.Errorf("sync: %q is neither full nor normal", s.Sync))
	}
	say(s.Grace < 0, "grace: must not be negative; 0 waits until live runs have ended")
	say(s.TTL <= 0, "ttl: must be a duration above 0")
	say(s.TLS.Cert != "" && s.TLS.Key == "", "tls.key: needed with tls.cert, whose private key it is")
	say(s.TLS.Key != "" && s.TLS.Cert == "", "tls.cert: needed with tls.key, whose certificate it is")
	say(s.Store.URL != "" && s.Secret == "", "secret: needed with store, and the same on every node: run tokens and the hashes of credentials are made with it")
	say(s.Store.URL != "" && len(s.Encryption.Keys) > 0, "encryption.keys: they encrypt the data folder; with store the NATS servers do, by their own jetstream.key")
	say(s.Admin.TLS && s.TLS.Cert == "", "admin.tls: true needs tls.cert and tls.key, which it serves with")
	_, level := levelOf(s.LogLevel)
	say(s.Limits.Bodies > 0 && s.Limits.Bodies < s.Limits.Body, fmt.Sprintf("limits.bodies: %d must be at least limits.body, %d", s.Limits.Bodies, s.Limits.Body))
	say(s.Limits.Pages > 0 && s.Limits.Pages < int64(s.Limits.Chunk), fmt.Sprintf("limits.pages: %d must be at least limits.chunk, %d", s.Limits.Pages, s.Limits.Chunk))
	all = append(all, checkAddress("listen", s.Listen), checkSecret("secret", s.Secret), checkSecret("previous_secret", s.PreviousSecret),
		level, s.Store.validate(), s.CORS.validate(), s.Auth.validate(), s.Admin.validate(), s.Telemetry.validate(),
		notNegative("limits", s.Limits, "window"), notNegative("callers", s.Callers), notNegative("queue", s.Queue))
	_, keys := s.Encryption.keys()
	_, routes := s.routes()
	return errors.Join(append(all, keys, routes)...)
}

// notNegative refuses what would be no limit in a group of whole numbers and durations. Those of except may be
// below 0: none.
func notNegative(group string, limits any, except ...string) error {
	var all []error
	fields := reflect.ValueOf(limits)
	for i := range fields.NumField() {
		name := fields.Type().Field(i).Tag.Get("koanf")
		if !slices.Contains(except, name) && fields.Field(i).Int() < 0 {
			all = append(all, fmt.Errorf("%s.%s: must not be negative; 0 is the default", group, name))
		}
	}
	return errors.Join(all...)
}

// runs is what the settings say about runs.
func (s settings) runs(o buffer.Observer) buffer.Config {
	return buffer.Config{
		MaxChunk: s.Limits.Chunk, MaxRun: s.Limits.Run, MaxEvents: s.Limits.Events, MaxBodies: s.Limits.Bodies, Observe: o,
		NoDedupe: s.RetryDedupe != nil && !*s.RetryDedupe,
		Callers:  buffer.CallerLimits(s.Callers),
		Queue:    buffer.QueueLimits(s.Queue),
	}
}
