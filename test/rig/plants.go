package rig

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/spool-dev/spool/test/fakellm"
)

// carriers are the headers that bring a credential.
var carriers = []string{"Authorization", "X-Api-Key", "X-Goog-Api-Key", "Api-Key", "X-Buffer-Key", "X-Provider-Key"}

const (
	shortest   = 8   // length of a secret that can be told from a word, or a part of one
	mostPlants = 100 // of a rig: some tests make up thousands of credentials
)

// plants are the secrets of a rig, and all that it has logged: none of the former may be in the latter.
type plants struct {
	mu      sync.Mutex
	secrets map[string]bool
	log     bytes.Buffer
}

func newPlants(o Options) *plants {
	p := &plants{secrets: map[string]bool{}}
	p.plant(Secret)
	p.plant(PreviousSecret)
	p.plant(strings.SplitAfter(fakellm.DefaultText, ".")[0]) // an answer
	for _, key := range o.Keys {
		p.plant(key)
	}
	return p
}

func (p *plants) plant(secret string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(secret) >= shortest && len(p.secrets) < mostPlants {
		p.secrets[secret] = true
	}
}

// plantRequest plants the credentials of a request.
func (p *plants) plantRequest(h http.Header) {
	for _, name := range carriers {
		for _, value := range h.Values(name) {
			p.plant(strings.TrimPrefix(value, "Bearer "))
		}
	}
}

// Write implements io.Writer.
func (p *plants) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.Write(b)
}

// hear has a logger's every line heard, also those below its level.
func (p *plants) hear(log *zap.Logger) *zap.Logger {
	mine := zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), zapcore.AddSync(p), zapcore.DebugLevel)
	return log.WithOptions(zap.WrapCore(func(c zapcore.Core) zapcore.Core { return zapcore.NewTee(c, mine) }))
}

// wantNone looks for the secrets in the log and the metrics.
func (p *plants) wantNone(t testing.TB, metrics http.Handler) {
	t.Helper()
	told := httptest.NewRecorder()
	metrics.ServeHTTP(told, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	p.mu.Lock()
	defer p.mu.Unlock()
	for secret := range p.secrets {
		for where, text := range map[string][]byte{"the log": p.log.Bytes(), "the metrics": told.Body.Bytes()} {
			if i := bytes.Index(text, []byte(secret)); i >= 0 {
				t.Errorf("%s has the secret %q: %q", where, secret, text[max(0, i-80):min(i+len(secret)+20, len(text))])
			}
		}
	}
}
