package main

import (
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/spool-dev/spool/buffer"
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

	Admin adminSettings `koanf:"admin"`

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

// limitSettings bound what callers, readers and providers may do. Zero is the documented default.
type limitSettings struct {
	Connections     int           `koanf:"connections"`  // open at once; 0 is as many as the system allows
	Headers         time.Duration `koanf:"headers"`      // for a request's headers to come
	HeaderBytes     int           `koanf:"header_bytes"` // of them
	Idle            time.Duration `koanf:"idle"`         // of a connection between two requests
	Body            int64         `koanf:"body"`
	BodyTime        time.Duration `koanf:"body_time"`
	BodyGap         time.Duration `koanf:"body_gap"`
	ProviderHeaders int64         `koanf:"provider_headers"`

	Chunk     int           `koanf:"chunk"`
	Run       int64         `koanf:"run"`
	Events    int64         `koanf:"events"`
	Window    int64         `koanf:"window"`
	MaxTTL    time.Duration `koanf:"max_ttl"`
	Hold      time.Duration `koanf:"hold"`
	Heartbeat time.Duration `koanf:"heartbeat"`
	Write     time.Duration `koanf:"write"`
}

type compatSettings struct {
	Cloudflare *bool `koanf:"cloudflare"` // unset: on where the listener is loopback
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
	override(&s.Admin.Listen, c.AdminListen)
	override(&s.Admin.Key, c.AdminKey)
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
	if err := s.Limits.validate(); err != nil {
		return err
	}
	if err := s.Admin.validate(); err != nil {
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

// validate refuses what would be no limit. The window alone may be below 0: none.
func (l limitSettings) validate() error {
	fields := reflect.ValueOf(l)
	for i := range fields.NumField() {
		name := fields.Type().Field(i).Tag.Get("koanf")
		if name != "window" && fields.Field(i).Int() < 0 {
			return fmt.Errorf("limits.%s: must not be negative; 0 is the default", name)
		}
	}
	return nil
}

// runs is what the settings say about runs.
func (s settings) runs(o buffer.Observer) buffer.Config {
	return buffer.Config{
		MaxChunk: s.Limits.Chunk, MaxRun: s.Limits.Run, MaxEvents: s.Limits.Events, Observe: o,
		NoDedupe: s.RetryDedupe != nil && !*s.RetryDedupe,
		Callers:  buffer.CallerLimits(s.Callers),
		Queue:    buffer.QueueLimits(s.Queue),
	}
}
