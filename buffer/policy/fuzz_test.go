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
	f.Add(196, "none", "", "", true, true)
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

// FuzzDecide: every situation has a decision of the known words, within what is left to act with.
func FuzzDecide(f *testing.F) {
	f.Add(uint8(0), uint8(0), uint8(0), uint8(0), 1, int64(time.Minute), 1.0, int64(0), 0.0, 0.0)
	f.Add(uint8(5), uint8(2), uint8(1), uint8(255), 0, int64(-1), -1.0, int64(time.Hour), 1e300, -1e300)
	f.Add(uint8(4), uint8(1), uint8(2), uint8(8), 3, int64(8*time.Second), 0.5, int64(60*time.Second), 0.1, 0.2)
	classes := []Class{None, Policy, Quota, Auth, Rate, Transient, Request, Unknown, "no class"}
	sents := []Sent{NotSent, WasRefused, SentUnknown, "nothing known"}
	transports := []Transport{NoFault, Open, ClientGone, Reset, HeaderTimeout, TotalTimeout, CircuitOpen, LocalLimit, RefusedStream, "no transport"}
	f.Fuzz(func(t *testing.T, class, sent, transport, bits uint8, attempts int, elapsed int64, cost float64, hint int64, retryCost, fallbackCost float64) {
		on := func(bit uint8) bool { return bits&bit != 0 }
		kind := ReadOnly
		if on(1) {
			kind = External
		}
		s := Situation{
			Verdict: Verdict{
				Class: classes[int(class)%len(classes)], Sent: sents[int(sent)%len(sents)], Transport: transports[int(transport)%len(transports)],
				Proven: on(2), Delivered: on(4), NoRetry: on(8), Hint: time.Duration(hint),
			},
			Kind: kind, AttemptsLeft: attempts, ElapsedLeft: time.Duration(elapsed), CostLeft: cost, RetryCost: retryCost, CircuitOpen: on(16),
			Fallback: Alternative{Approved: on(32), Healthy: on(64), IndependentQuota: on(128), Cost: fallbackCost},
		}
		d := Decide(s)
		v := s.Verdict
		switch d.Action {
		case Retry, Fallback:
			switch {
			case v.Proven, v.Delivered, v.Alive():
				t.Fatalf("%+v: sent again after %+v", d, v)
			case attempts <= 0, elapsed <= 0, !(cost > 0):
				t.Fatalf("%+v: sent again with nothing left of %+v", d, s)
			case v.Sent == SentUnknown && kind != ReadOnly:
				t.Fatalf("%+v: what could act twice is sent again", d)
			case d.Action == Fallback && !(on(32) && on(64)):
				t.Fatalf("%+v: to a fallback that may not be taken", d)
			}
		case Fail, Interrupt, Complete, Continue:
		default:
			t.Fatalf("action %q", d.Action)
		}
		if (d.Action == Complete) != v.Proven || d.Why == "" || d.Billed != BilledYes && d.Billed != BilledNo && d.Billed != BilledUnknown {
			t.Fatalf("%+v for %+v", d, v)
		}
		if d.Delay > 0 && d.Action != Retry || d.Delay > DefaultInlineWait {
			t.Fatalf("%+v: delay", d)
		}
	})
}
