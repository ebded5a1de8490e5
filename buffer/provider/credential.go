package provider

import (
	"net/http"
	"net/url"
	"strings"
)

// CredentialHeaders are where SDKs put their key, in the order in which they are asked.
var CredentialHeaders = []string{"Authorization", "X-Api-Key", "X-Goog-Api-Key", "Api-Key"}

// Authorize puts a provider's key where its dialect wants it, in place of any other.
func Authorize(h http.Header, d Dialect, key string) {
	for _, name := range CredentialHeaders {
		h.Del(name)
	}
	switch d {
	case Anthropic:
		h.Set("X-Api-Key", key)
	case Gemini:
		h.Set("X-Goog-Api-Key", key)
	default:
		h.Set("Authorization", "Bearer "+key)
	}
}

// secretParams are the names under which credentials travel in a query.
var secretParams = map[string]bool{"key": true, "api_key": true, "api-key": true, "apikey": true, "access_token": true, "token": true}

// WithoutKey is a query less the credential that Gemini's clients put there.
func WithoutKey(query string) string {
	var kept []string
	for pair := range strings.SplitSeq(query, "&") {
		escaped, _, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(escaped)
		if pair != "" && (err != nil || !secretParams[strings.ToLower(name)]) {
			kept = append(kept, pair)
		}
	}
	return strings.Join(kept, "&")
}
