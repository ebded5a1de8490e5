// Package policy classifies a failure and decides what follows. It is pure: no clock, no network, no
// state; everything it knows is in its arguments, and vectors pin what it must say.
package policy

// Kind is what a repeated call could do a second time.
type Kind string

// The kinds of the X-Buffer-Kind header.
const (
	ReadOnly    Kind = "read_only"
	ServerTools Kind = "server_tools"
	External    Kind = "external"
)

// Class is what a failure is. None is no failure.
type Class string

// The classes of docs/providers.md, section 4.
const (
	None      Class = "none"
	Policy    Class = "policy"
	Quota     Class = "quota"
	Auth      Class = "auth"
	Rate      Class = "rate"
	Transient Class = "transient"
	Request   Class = "request"
	Unknown   Class = "unknown"
)

// Sent is what is known about whether the provider acted on a request.
type Sent string

// NotSent: it never left. WasRefused: the provider said no. SentUnknown: possibly acted on and billed.
const (
	NotSent     Sent = "not_sent"
	WasRefused  Sent = "refused"
	SentUnknown Sent = "unknown"
)

// Action is what follows an attempt.
type Action string

// The actions.
const (
	Retry     Action = "retry"     // the same route, a new ledger row
	Fallback  Action = "fallback"  // another approved route, a new ledger row
	Fail      Action = "fail"      // the provider's own answer goes to the caller; no more sends
	Interrupt Action = "interrupt" // content was delivered; no more sends
	Complete  Action = "complete"
	Continue  Action = "continue" // nothing to decide yet
)

// Billed says whether an attempt was paid for.
type Billed string

// The values of the ledger's billed column.
const (
	BilledYes     Billed = "yes"
	BilledNo      Billed = "no"
	BilledUnknown Billed = "unknown"
)
