package policy

import (
	"net/http"
	"testing"
	"time"
	"unicode/utf8"
)

// FuzzClassify: every evidence has a verdict of the known words, within bounds, and whatever it is,
// nothing is sent after content or after a proof.
func FuzzClassify(f *testing.F) {
	f.Add(200, "none", "1", `{"error":{"code":"rate_limit_exceeded","message":"try again in 1.2s"}}`, true, false)
	f.Add(429, "none", "1e300", `[{"error":{"details":[{"retryDelay":"3.5s"}]}}]`, true, false)
	f.Add(200, "eof_clean", "", "event: error\r\ndata: {\"type\":\"error\"}\r\n\r\n{\"error\":", true, true)
	f.Add(0, "reset", "-1", "", true, false)
	f.Add(200, "open", "NaN", awsMessage(`{"bytes":"e30="}`, ":message-type", "event"), true, false)
	f.Add(200, "eof_clean", "", awsMessage(`{}`, ":message-type", "exception", ":exception-type", "x"), true, false)
	f.Fuzz(func(t *testing.T, status int, transport, retryAfter, body string, sent, delivered bool) {
		e := Evidence{
			Status: status, Transport: Transport(transport), Body: []byte(body), RequestSent: sent, Delivered: delivered,
			Header: http.Header{
				"Retry-After": {retryAfter}, "X-Ratelimit-Remaining-A": {"0"}, "X-Ratelimit-Reset-A": {retryAfter},
			},
		}
		v := Classify(e)
		switch v.Class {
		case None, Policy, Quota, Auth, Rate, Transient, Request, Unknown:
		default:
			t.Fatalf("class %q", v.Class)
		}
		if v.Hint < 0 || v.Hint > maxHint {
			t.Fatalf("hint %v", v.Hint)
		}
		if !utf8.ValidString(v.Code) || !utf8.ValidString(v.Message) || len(v.Code) > 128 || len(v.Message) > 512 {
			t.Fatalf("code %q, message %q", v.Code, v.Message)
		}
		d := Decide(Situation{Verdict: v, Kind: ReadOnly, AttemptsLeft: 1, ElapsedLeft: time.Minute, CostLeft: 1})
		if delivered && (d.Action == Retry || d.Action == Fallback) {
			t.Fatalf("%s after content", d.Action)
		}
		if d.Delay > DefaultInlineWait {
			t.Fatalf("delay %v", d.Delay)
		}
		if status := FailStatus(v); status < 300 {
			t.Fatalf("a failure is answered with %d", status)
		}
		e.Proven = true
		if v := Classify(e); v.Class != None && v.Class != Policy {
			t.Fatalf("class %q of an answer that proved its end", v.Class)
		}
	})
}
