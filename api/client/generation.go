package client

import (
	"net/http"
	"net/url"
	"strings"
)

// endings is how the paths end whose POST Spool makes a run: docs/providers.md, section 1.
var endings = []string{
	"/chat/completions", "/completions", "/responses", "/messages",
	":generateContent", ":streamGenerateContent",
	"/converse", "/converse-stream", "/invoke", "/invoke-with-response-stream",
	"/api/chat", "/api/generate",
}

// generates reports whether a POST to the path is a generation call.
func generates(path string) bool {
	path = strings.TrimSuffix(path, "/")
	for _, e := range endings {
		if strings.HasSuffix(path, e) {
			return true
		}
	}
	return false
}

// isBelow reports whether u is a URL of the Spool at base.
func isBelow(base, u *url.URL) bool {
	return strings.EqualFold(base.Scheme, u.Scheme) && strings.EqualFold(authority(base), authority(u)) &&
		strings.HasPrefix(u.EscapedPath(), strings.TrimSuffix(base.EscapedPath(), "/")+"/")
}

// authority is the host with its port, named or not.
func authority(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[strings.ToLower(u.Scheme)]
	}
	return u.Hostname() + ":" + port
}

// isCall reports whether the request is one that becomes a run.
func (t *Transport) isCall(base *url.URL, req *http.Request) bool {
	if req.Method != http.MethodPost || !isBelow(base, req.URL) {
		return false
	}
	return generates(req.URL.EscapedPath()) || t.Generates != nil && t.Generates(req)
}
