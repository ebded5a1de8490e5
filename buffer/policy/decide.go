package policy

import (
	"net/http"
	"time"
)

// DefaultInlineWait is the longest hint that a waiting caller is held for.
const DefaultInlineWait = 15 * time.Second

// Situation is a verdict and what is left to act with.
type Situation struct {
	Verdict Verdict
	Kind    Kind // anything but ReadOnly is never sent again after an unknown outcome

	AttemptsLeft int
	ElapsedLeft  time.Duration
	CostLeft     float64 // in the budget's currency; math.Inf(1) where there is no limit

	RetryExpected time.Duration // how long the same route is expected to take
	RetryCost     float64
	CircuitOpen   bool          // the route's circuit is not closed
	MaxInlineWait time.Duration // 0 is DefaultInlineWait

	Fallback Alternative // the zero value is none
}

// Alternative is the configured fallback of a route, as it stands now.
type Alternative struct {
	Approved         bool // the config allows it for this route
	Healthy          bool
	IndependentQuota bool
	Expected         time.Duration
	Cost             float64
}

// Decision is what follows an attempt.
type Decision struct {
	Action Action
	Delay  time.Duration // of a Retry: its lower bound
	Why    string        // one clause for people
	Billed Billed        // what the attempt's ledger row says
	Busy   bool          // of a Fail: answer with our own `busy`, since nothing was sent
	Budget bool          // of a Fail: the budget is spent
}

// Decide says what follows an attempt: the decision of docs/providers.md, section 4, first match wins.
func Decide(s Situation) Decision {
	d := s.decide()
	d.Billed = s.billed(d.Action)
	return d
}

func (s Situation) decide() Decision {
	v := s.Verdict
	switch {
	case v.Proven:
		return Decision{Action: Complete, Why: "the answer proved its end"}
	case v.Alive():
		return Decision{Action: Continue, Why: "the stream is alive"}
	case v.Delivered:
		return Decision{Action: Interrupt, Why: "content was delivered, nothing is sent again"}
	case v.Class == Request, v.Class == Auth, v.Class == Policy, v.Class == Unknown:
		return Decision{Action: Fail, Why: "another send would not help: class " + string(v.Class)}
	case v.Transport == TotalTimeout:
		return Decision{Action: Fail, Why: "the run's total time is over", Budget: true}
	case s.spent():
		return Decision{Action: Fail, Why: "the budget is spent", Busy: v.Local(), Budget: true}
	case v.Sent == SentUnknown && s.Kind != ReadOnly:
		return Decision{Action: Fail, Why: "the outcome is unknown and a repeat could act twice"}
	case (v.Silent() || v.Local()) && s.fallbackFits():
		return Decision{Action: Fallback, Why: "the route gave no answer"}
	case v.Local():
		return Decision{Action: Fail, Why: "nothing was sent: the route is limited or its circuit open", Busy: true}
	case s.retryFits():
		return Decision{Action: Retry, Delay: v.Hint, Why: "may pass: class " + string(v.Class)}
	case s.fallbackFits():
		return Decision{Action: Fallback, Why: "the route will not serve this in time"}
	}
	return Decision{Action: Fail, Why: "no route fits what is left"}
}

// spent reports whether nothing is left; a cost that is no number is none.
func (s Situation) spent() bool {
	return s.AttemptsLeft <= 0 || s.ElapsedLeft <= 0 || !(s.CostLeft > 0)
}

func (s Situation) retryFits() bool {
	v, wait := s.Verdict, s.MaxInlineWait
	if wait == 0 {
		wait = DefaultInlineWait
	}
	return (v.Class == Transient || v.Class == Rate) && !s.CircuitOpen && !v.NoRetry &&
		v.Hint <= wait && v.Hint <= s.ElapsedLeft-s.RetryExpected && s.RetryCost <= s.CostLeft
}

func (s Situation) fallbackFits() bool {
	f := s.Fallback
	return f.Approved && f.Healthy && f.Expected <= s.ElapsedLeft && f.Cost <= s.CostLeft &&
		(s.Verdict.Class != Quota || f.IndependentQuota)
}

// billed is what is known of the attempt's price: an answer that was seen was paid for.
func (s Situation) billed(a Action) Billed {
	v := s.Verdict
	switch {
	case a == Continue:
		return BilledUnknown
	case v.Proven, v.Delivered:
		return BilledYes
	case v.MaybeBilled():
		return BilledUnknown
	}
	return BilledNo
}

// FailStatus is the status that answers the caller of a failed run, given the verdict on the primary
// route's last attempt: the provider's own, or the one that stands for an error without one.
func FailStatus(v Verdict) int {
	switch {
	case v.Status >= 300:
		return v.Status
	case v.Status != 0 && v.Status < 200: // no answer can be given under it
		return http.StatusBadGateway
	case v.Silent():
		return http.StatusGatewayTimeout
	case v.Local():
		return http.StatusTooManyRequests
	case !v.InBand:
		return http.StatusBadGateway
	case v.Overloaded:
		return 529 // as Anthropic has it
	}
	switch v.Class {
	case Rate, Quota:
		return http.StatusTooManyRequests
	case Auth:
		return http.StatusUnauthorized
	case Request, Policy:
		return http.StatusBadRequest
	}
	return http.StatusBadGateway
}
