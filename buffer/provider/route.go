package provider

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Route is one way to a provider: where requests go and how long each step may take. It is a value
// from the configuration.
type Route struct {
	Name    string
	BaseURL *url.URL
	Dialect Dialect // empty: the path decides
	// Generates says that every POST to this provider is a generation call. It is how a provider
	// with paths that Generation does not know gets runs.
	Generates bool
	// Key is the provider's own key where the configuration holds it, sent in the header that the
	// dialect wants in place of the caller's credential. Empty: the caller's credential goes through.
	Key    string
	Clocks Clocks

	Region   string        // where data is kept; a fallback of a route with one must be in the same
	Expected time.Duration // how long it is thought to take to the first content; 0 is not known
	Price    Price         // 0 is not known
	// Concurrency is how many attempts of one caller may be under way at once; 0 is without limit.
	Concurrency int
	NoRetry     bool       // never the same route again within one run
	Fallbacks   []Fallback // approved, in order of preference
}

// Clocks bound the steps of one attempt. A zero clock takes its default; a negative one is off.
type Clocks struct {
	Connect      time.Duration // dial and TLS, each
	Headers      time.Duration // request written to response headers
	FirstContent time.Duration // request written to the first content
	ByteIdle     time.Duration // between any two bytes
	ContentGap   time.Duration // between two contents
	FinishGrace  time.Duration // from the finish to the end of the connection
	Total        time.Duration // from the first send; off unless set
}

// Default clocks, from docs/providers.md, section 5.
const (
	defaultConnect      = 10 * time.Second
	defaultHeaders      = 60 * time.Second
	defaultSlowHeaders  = 300 * time.Second // Gemini and local servers send none before they generate
	defaultFirstContent = 120 * time.Second
	defaultReasoning    = 600 * time.Second // models that think before they speak
	defaultByteIdle     = 120 * time.Second
	defaultContentGap   = 300 * time.Second
	defaultFinishGrace  = 2 * time.Second
)

// WithDefaults fills the zero clocks for a call of dialect d to model.
func (c Clocks) WithDefaults(d Dialect, model string, stream bool) Clocks {
	headers, content := defaultHeaders, defaultFirstContent
	if d == Gemini || d == Ollama {
		headers, content = defaultSlowHeaders, defaultSlowHeaders
	}
	if reasons(model) {
		content = defaultReasoning
	}
	if !stream { // headers come with the finished answer
		content = max(content, defaultReasoning)
		headers = content
	}
	set := func(v *time.Duration, def time.Duration) {
		if *v == 0 {
			*v = def
		}
	}
	set(&c.Connect, defaultConnect)
	set(&c.Headers, headers)
	set(&c.FirstContent, max(content, c.Headers))
	set(&c.ByteIdle, defaultByteIdle)
	set(&c.ContentGap, defaultContentGap)
	set(&c.FinishGrace, defaultFinishGrace)
	return c
}

// reasoners are parts of the names of models that may think for minutes before their first token.
var reasoners = []string{"o1", "o3", "o4", "gpt-5", "reason", "think", "deep-research", "r1", "opus", "grok-4", "qwq", "magistral"}

// reasons reports whether a model is known to think before it speaks.
func reasons(model string) bool {
	model = strings.ToLower(model)
	return slices.ContainsFunc(reasoners, func(part string) bool {
		i := strings.Index(model, part)
		return i == 0 || i > 0 && strings.ContainsRune("-/.:_", rune(model[i-1]))
	})
}

// requestIDs are where providers put their own id of a request.
var requestIDs = []string{"X-Request-Id", "Request-Id", "X-Amzn-Requestid", "Apim-Request-Id", "X-Generation-Id", "X-Goog-Request-Id", "Cf-Ray"}

// RequestID is the provider's own id of the request, for the ledger; empty where it gave none.
func RequestID(h http.Header) string {
	for _, name := range requestIDs {
		if v := h.Get(name); v != "" && len(v) <= 256 {
			return v
		}
	}
	return ""
}

// ParseBase reads a provider's base URL: http or https, a host, perhaps a path, nothing else.
func ParseBase(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err == nil && u.User != nil {
		return nil, fmt.Errorf("%q must not hold a user or a password", u.Redacted())
	}
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("%q must be http(s)://host[:port][/path]", withoutSecrets(text))
	}
	return u, nil
}

// withoutSecrets is what is no base URL, without what may be a password or a key in it.
func withoutSecrets(text string) string {
	text, _, cut := strings.Cut(text, "?")
	if cut {
		text += "?…"
	}
	if i := strings.LastIndexByte(text, '@'); i >= 0 {
		text = "…" + text[i:]
	}
	return text
}
