package provider

import (
	"net/http"
	"strings"
)

// hopByHop are the headers of RFC 9110, section 7.6.1, and their relatives: they speak of one
// connection and never cross the buffer.
var hopByHop = []string{
	"Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization",
	"Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// Forward returns what of a caller's request headers goes to the provider: all but hop-by-hop
// headers, the ones that steer the buffer, and those that net/http sets itself.
func Forward(in http.Header) http.Header {
	out := in.Clone()
	dropHopByHop(out)
	for name := range out {
		if strings.HasPrefix(name, "X-Buffer-") || strings.HasPrefix(name, "X-Forwarded-") {
			delete(out, name)
		}
	}
	for _, name := range []string{"Idempotency-Key", "Host", "Content-Length", "Forwarded", "X-Provider-Key", "Expect", "Origin", "Cookie", "Last-Event-Id"} {
		out.Del(name)
	}
	out.Set("Accept-Encoding", "identity")
	if _, ok := out["User-Agent"]; !ok {
		out["User-Agent"] = nil // net/http would add its own
	}
	return out
}

// EndToEnd returns what of a provider's response headers is stored and given to callers.
func EndToEnd(in http.Header) http.Header {
	out := in.Clone()
	dropHopByHop(out)
	for _, name := range []string{"Content-Length", "Set-Cookie", "Alt-Svc"} {
		out.Del(name)
	}
	for name := range out {
		if strings.HasPrefix(name, "X-Buffer-") || strings.HasPrefix(name, "Access-Control-") {
			delete(out, name)
		}
	}
	return out
}

func dropHopByHop(h http.Header) {
	for _, v := range h["Connection"] {
		for name := range strings.SplitSeq(v, ",") {
			h.Del(strings.TrimSpace(name))
		}
	}
	for _, name := range hopByHop {
		h.Del(name)
	}
}
