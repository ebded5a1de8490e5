package api

import (
	"net/http"
	"slices"
	"strings"
)

// noPages are the media types, by how they begin, that no browser makes a page of.
var noPages = []string{
	"application/json", "text/event-stream", "application/x-ndjson", "application/vnd.amazon.eventstream",
	"application/octet-stream", "text/plain", "audio/", "video/",
}

// sandbox marks a provider's answer that a browser may show as a page. It would be one of this origin,
// where the console keeps its session. Whoever asks from a script or a program sees no difference.
func sandbox(h http.Header) {
	kind := strings.ToLower(strings.TrimSpace(h.Get("Content-Type")))
	if !slices.ContainsFunc(noPages, func(begin string) bool { return strings.HasPrefix(kind, begin) }) {
		h.Add("Content-Security-Policy", "sandbox")
	}
}
