package policy

import (
	"net/http"
	"strings"
	"time"
)

// Evidence is everything that is known of one attempt when it ended, or when somebody asks.
type Evidence struct {
	Status int         // 0 where no response line was read
	Header http.Header // of the response; nil where there was none
	// Body is every byte that was received, in any framing; or only the chunk, or the JSON object,
	// that holds the error.
	Body      []byte
	Transport Transport

	RequestSent bool // some byte of the request was written
	ToolStarted bool // a hosted tool had begun to run
	Proven      bool // the protocol's own end of the answer was seen, and no error before it
	Refused     bool // of a proven end: the provider or its model declined to answer, or to go on
	Delivered   bool // content was committed: somebody may have seen it
}

// Verdict is what Classify concluded.
type Verdict struct {
	Class Class
	Sent  Sent
	// Hint is the provider's own lower bound for the wait before the next send; 0 where it gave none.
	Hint time.Duration
	// NoRetry: the provider forbids the same route.
	NoRetry bool
	// InBand: the error came inside an answer whose status was 200.
	InBand bool
	// Overloaded: the error says that the provider has no capacity just now.
	Overloaded bool
	Code       string // the machine word that decided; for people
	Message    string // the provider's own; for people, never for a decision

	Status    int // these four as in Evidence
	Transport Transport
	Proven    bool
	Delivered bool
}

// Alive reports whether the attempt is still under way: nothing is to be decided.
func (v Verdict) Alive() bool { return !v.Proven && v.Transport.alive() }

// Silent reports whether the provider was asked and said nothing in time.
func (v Verdict) Silent() bool { return v.Transport.silent() && !v.InBand && !failed(v.Status) }

// Local reports whether nothing was sent for a reason of our own. Such an attempt has no ledger row.
func (v Verdict) Local() bool { return v.Transport.local() }

// MaybeBilled reports whether a failed attempt may have been paid for.
func (v Verdict) MaybeBilled() bool { return v.Class != None && v.Sent == SentUnknown }

// CountsAgainstRoute reports whether the route's circuit should hear of it (docs/providers.md,
// section 6): the provider did not work, and it was neither our doing nor the caller's.
func (v Verdict) CountsAgainstRoute() bool {
	return v.Class == Transient && !v.Proven && !v.Alive() && !v.Local() && v.Transport != TotalTimeout
}

// Classify says what happened to an attempt (docs/providers.md, section 4). It is total: every
// evidence, however hostile, has a verdict, for work that is linear in the body's size.
func Classify(e Evidence) Verdict {
	v := Verdict{Status: e.Status, Transport: e.Transport, Proven: e.Proven, Delivered: e.Delivered}
	f, found := e.fault()
	v.InBand = found && !failed(e.Status)
	v.Class = e.class(f, found)
	if v.Class == None || e.Proven {
		v.Sent = e.sent(v)
		return v
	}
	v.Code, _ = f.word()
	v.Message = clip(f.message, 512)
	v.Overloaded = v.Class == Transient && overloads[fold(v.Code)]
	v.Hint = hint(e.Header, f)
	switch strings.ToLower(e.Header.Get("x-should-retry")) {
	case "false":
		v.NoRetry = true
	case "true":
		if v.Class == Unknown {
			v.Class = Transient
		}
	}
	v.Sent = e.sent(v)
	return v
}

// failed reports whether a status is that of a failure: a final one outside 2xx, or an interim one, such as
// 101, that an answer ended with. 0, where no response line was read, says nothing.
func failed(status int) bool { return status != 0 && (status < 200 || status >= 300) }

// fault is the error that the evidence holds, if any.
func (e Evidence) fault() (fault, bool) {
	if e.Proven || e.Status == 0 {
		return fault{}, false
	}
	f, found := findFault(e.Body, failed(e.Status))
	if !found && failed(e.Status) {
		f, found = plainText(e.Body), true
	}
	if name := e.Header.Get("x-amzn-errortype"); found && name != "" {
		f.words = append(codes(name), f.words...)
	}
	return f, found
}

func (e Evidence) class(f fault, found bool) Class {
	switch {
	case e.Proven && e.Refused:
		return Policy
	case e.Proven:
		return None
	case found:
		return f.class(e.Status)
	case e.Transport.alive():
		return None
	case e.Transport == LocalLimit:
		return Rate
	case e.Transport == TLSUnverified:
		return Unknown
	case e.Status != 0 && e.isPage():
		return Unknown
	}
	return Transient
}

func (e Evidence) isPage() bool {
	return isPage(e.Body) || !e.Delivered && strings.HasPrefix(strings.ToLower(e.Header.Get("Content-Type")), "text/html")
}

// class is the table of section 4, in its order. The status of a success says nothing.
func (f fault) class(status int) Class {
	if !failed(status) {
		status = 0
	}
	has := func(s int) bool { return status == s || f.inner == s }
	word, class := f.word()
	text := strings.ToLower(f.message)
	prose := class == "" || vague[fold(word)]

	switch {
	case class == Policy, f.flagged:
		return Policy
	case f.limit == "openrouter_in_flight_budget":
		return Rate
	case class == Quota, f.perDay, f.limit != "", has(402),
		prose && (status == 0 || has(400)) && containsAny(text, quotaTexts):
		return Quota
	case class == Auth, has(401), has(403), prose && containsAny(text, authTexts):
		return Auth
	case fold(word) == modelStreamError:
		return f.wrapped()
	case class != "":
		return class
	case has(429) && containsAny(text+" "+strings.ToLower(word), capacityTexts):
		return Transient
	case f.unworded:
		return Transient
	}
	if class := statusClass(f.inner); class != Unknown {
		return class
	}
	return statusClass(status)
}

// wrapped is the class of an error that a model gave to the provider: by its own status.
func (f fault) wrapped() Class {
	if class := statusClass(f.inner); class != Unknown {
		return class
	}
	return Transient
}

// sent says whether the provider may have acted on the request, and so whether it may be billed.
func (e Evidence) sent(v Verdict) Sent {
	switch {
	case e.Transport.unsent(), e.Status == 0 && !e.RequestSent:
		return NotSent
	case e.ToolStarted, e.Status == 0:
		return SentUnknown
	case v.InBand && !e.Delivered && v.Class != Transient && v.Class != Unknown:
		return WasRefused
	}
	switch e.Status {
	case 521, 522, 523:
		return NotSent
	case 429, 503, 529:
		return WasRefused
	case 408:
		return SentUnknown
	}
	if e.Status >= 300 && e.Status < 500 {
		return WasRefused
	}
	return SentUnknown
}
