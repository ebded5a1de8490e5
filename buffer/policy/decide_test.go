package policy

import (
	"math"
	"testing"
	"time"
)

// situation is one in which a transient refusal is tried again: the rows of the tests differ from it
// in one thing each.
func situation() Situation {
	return Situation{
		Verdict:       Verdict{Class: Transient, Sent: WasRefused, Status: 503},
		Kind:          ReadOnly,
		AttemptsLeft:  2,
		ElapsedLeft:   time.Minute,
		CostLeft:      math.Inf(1),
		RetryExpected: 1500 * time.Millisecond,
		Fallback: Alternative{
			Approved: true, Healthy: true, IndependentQuota: true, Expected: 2 * time.Second,
		},
	}
}

func TestDecide_FirstMatch(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Situation)
		want   Action
	}{
		{"transient", func(s *Situation) {}, Retry},
		{"rate", func(s *Situation) { s.Verdict.Class = Rate }, Retry},
		{"proof beats all", func(s *Situation) { s.Verdict.Proven, s.Verdict.Delivered, s.AttemptsLeft = true, true, 0 }, Complete},
		{"proof beats a stream that is open", func(s *Situation) { s.Verdict.Proven, s.Verdict.Transport = true, Open }, Complete},
		{"alive beats delivered", func(s *Situation) { s.Verdict.Transport, s.Verdict.Delivered = Open, true }, Continue},
		{"client gone, budget spent", func(s *Situation) { s.Verdict.Transport, s.AttemptsLeft = ClientGone, 0 }, Continue},
		{"delivered beats the class", func(s *Situation) { s.Verdict.Delivered, s.Verdict.Class = true, Request }, Interrupt},
		{"request", func(s *Situation) { s.Verdict.Class = Request }, Fail},
		{"auth", func(s *Situation) { s.Verdict.Class = Auth }, Fail},
		{"policy", func(s *Situation) { s.Verdict.Class = Policy }, Fail},
		{"unknown", func(s *Situation) { s.Verdict.Class = Unknown }, Fail},
		{"no attempts left", func(s *Situation) { s.AttemptsLeft = 0 }, Fail},
		{"no time left", func(s *Situation) { s.ElapsedLeft = 0 }, Fail},
		{"no money left", func(s *Situation) { s.CostLeft = 0 }, Fail},
		{"the total clock", func(s *Situation) { s.Verdict.Transport, s.Verdict.Status = TotalTimeout, 0 }, Fail},
		{"unknown outcome, read only", func(s *Situation) { s.Verdict.Sent = SentUnknown }, Retry},
		{"unknown outcome, server tools", func(s *Situation) { s.Verdict.Sent, s.Kind = SentUnknown, ServerTools }, Fail},
		{"unknown outcome, external", func(s *Situation) { s.Verdict.Sent, s.Kind = SentUnknown, External }, Fail},
		{"unknown outcome, no kind", func(s *Situation) { s.Verdict.Sent, s.Kind = SentUnknown, "" }, Fail},
		{"refused, external", func(s *Situation) { s.Kind = External }, Retry},
		{"silent", func(s *Situation) { s.Verdict.Transport, s.Verdict.Status = HeaderTimeout, 0 }, Fallback},
		{"silent, no fallback", func(s *Situation) { silent(s); s.Fallback = Alternative{} }, Retry},
		{"silent, no fallback, circuit open", func(s *Situation) { silent(s); s.Fallback = Alternative{}; s.CircuitOpen = true }, Fail},
		{"an error, then silence", func(s *Situation) { silent(s); s.Verdict.InBand = true }, Retry},
		{"hint at the longest wait", func(s *Situation) { s.Verdict.Hint = DefaultInlineWait }, Retry},
		{"hint over the longest wait", func(s *Situation) { s.Verdict.Hint = DefaultInlineWait + 1 }, Fallback},
		{"hint over a wait of its own", func(s *Situation) { s.Verdict.Hint, s.MaxInlineWait = 2*time.Second, time.Second }, Fallback},
		{"hint and expected time just fit", func(s *Situation) { s.Verdict.Hint, s.ElapsedLeft = time.Second, 2500*time.Millisecond }, Retry},
		{"hint and expected time do not fit", func(s *Situation) { s.Verdict.Hint, s.ElapsedLeft = time.Second, 2499*time.Millisecond }, Fallback},
		{"hint that would overflow", func(s *Situation) { s.Verdict.Hint, s.MaxInlineWait = math.MaxInt64, math.MaxInt64 }, Fallback},
		{"x-should-retry: false", func(s *Situation) { s.Verdict.NoRetry = true }, Fallback},
		{"circuit open", func(s *Situation) { s.CircuitOpen = true }, Fallback},
		{"retry costs too much", func(s *Situation) { s.CostLeft, s.RetryCost = 1, 2 }, Fallback},
		{"both cost too much", func(s *Situation) { s.CostLeft, s.RetryCost, s.Fallback.Cost = 1, 2, 2 }, Fail},
		{"quota", func(s *Situation) { s.Verdict.Class = Quota }, Fallback},
		{"quota, one quota", func(s *Situation) { s.Verdict.Class, s.Fallback.IndependentQuota = Quota, false }, Fail},
		{"fallback not approved", func(s *Situation) { s.CircuitOpen, s.Fallback.Approved = true, false }, Fail},
		{"fallback not healthy", func(s *Situation) { s.CircuitOpen, s.Fallback.Healthy = true, false }, Fail},
		{"fallback too slow", func(s *Situation) { s.CircuitOpen, s.Fallback.Expected = true, 2*time.Minute }, Fail},
		{"fallback with the same quota, rate", func(s *Situation) { s.CircuitOpen, s.Fallback.IndependentQuota = true, false }, Fallback},
		{"our own limit", func(s *Situation) { s.Verdict = Classify(Evidence{Transport: LocalLimit}) }, Fallback},
		{"our own limit, no fallback", func(s *Situation) {
			s.Verdict, s.Fallback = Classify(Evidence{Transport: LocalLimit}), Alternative{}
		}, Fail},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := situation()
			c.change(&s)
			d := Decide(s)
			if d.Action != c.want {
				t.Errorf("action %q (%s), want %q", d.Action, d.Why, c.want)
			}
			if d.Why == "" {
				t.Error("no reason is given")
			}
			if d.Action == Retry && d.Delay != s.Verdict.Hint {
				t.Errorf("delay %v, hint %v", d.Delay, s.Verdict.Hint)
			}
		})
	}
}

func silent(s *Situation) { s.Verdict.Transport, s.Verdict.Status = FirstContentTimeout, 0 }

func TestDecide_Busy(t *testing.T) {
	for _, transport := range []Transport{LocalLimit, CircuitOpen} {
		s := situation()
		s.Verdict, s.Fallback = Classify(Evidence{Transport: transport}), Alternative{}
		if d := Decide(s); d.Action != Fail || !d.Busy || d.Billed != BilledNo {
			t.Errorf("%s: %+v", transport, d)
		}
		if FailStatus(s.Verdict) != 429 {
			t.Errorf("%s: status %d", transport, FailStatus(s.Verdict))
		}
	}
}

func TestDecide_Billed(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Verdict)
		want   Billed
	}{
		{"refused", func(v *Verdict) {}, BilledNo},
		{"not sent", func(v *Verdict) { v.Sent = NotSent }, BilledNo},
		{"unknown", func(v *Verdict) { v.Sent = SentUnknown }, BilledUnknown},
		{"delivered", func(v *Verdict) { v.Sent, v.Delivered = SentUnknown, true }, BilledYes},
		{"proven", func(v *Verdict) { v.Class, v.Proven = None, true }, BilledYes},
		{"alive", func(v *Verdict) { v.Class, v.Transport = None, Open }, BilledUnknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := situation()
			c.change(&s.Verdict)
			if d := Decide(s); d.Billed != c.want {
				t.Errorf("billed %q, want %q", d.Billed, c.want)
			}
		})
	}
}

func TestFailStatus_StandsForAnErrorWithoutOne(t *testing.T) {
	inBand := func(code string) Verdict { return Classify(answer(200, `{"error":{"code":"`+code+`"}}`)) }
	for _, c := range []struct {
		name string
		v    Verdict
		want int
	}{
		{"the provider's own", Classify(answer(418, "")), 418},
		{"overloaded", inBand("overloaded_error"), 529},
		{"rate", inBand("rate_limit_exceeded"), 429},
		{"quota", inBand("insufficient_quota"), 429},
		{"auth", inBand("invalid_api_key"), 401},
		{"request", inBand("invalid_request_error"), 400},
		{"policy", inBand("content_filter"), 400},
		{"transient", inBand("server_error"), 502},
		{"unknown", inBand("weird"), 502},
		{"a page", Classify(answer(200, "<html>")), 502},
		{"cut off", Classify(Evidence{Status: 200, Transport: Reset, RequestSent: true}), 502},
		{"not reached", Classify(Evidence{Transport: DNSError}), 502},
		{"no headers", Classify(Evidence{Transport: HeaderTimeout, RequestSent: true}), 504},
		{"no content", Classify(Evidence{Status: 200, Transport: FirstContentTimeout, RequestSent: true}), 504},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := FailStatus(c.v); got != c.want {
				t.Errorf("status %d, want %d", got, c.want)
			}
		})
	}
}

func TestVerdict_CountsAgainstRoute(t *testing.T) {
	for _, c := range []struct {
		name string
		e    Evidence
		want bool
	}{
		{"transient", answer(503, ""), true},
		{"silent", Evidence{Transport: HeaderTimeout, RequestSent: true}, true},
		{"cut off after content", Evidence{Status: 200, Transport: Reset, Delivered: true, RequestSent: true}, true},
		{"client gone", Evidence{Status: 200, Transport: ClientGone, RequestSent: true}, false},
		{"our own limit", Evidence{Transport: LocalLimit}, false},
		{"circuit open", Evidence{Transport: CircuitOpen}, false},
		{"one key's 429", answer(429, ""), false},
		{"auth", answer(401, ""), false},
		{"request", answer(400, ""), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Classify(c.e).CountsAgainstRoute(); got != c.want {
				t.Errorf("counts: %v", got)
			}
		})
	}
}
