package buffer

import "slices"

// State is where a run stands. The words are part of the HTTP contract.
type State string

// The states of a run. Idle and Streaming are live: chunks may still be appended. The rest are
// ended: the log is closed for ever.
const (
	// Idle is accepted and durable, without content yet.
	Idle State = "idle"
	// Streaming has content in the log.
	Streaming State = "streaming"
	// Completed ended with the provider's own proof of the end.
	Completed State = "completed"
	// Interrupted had content and ended without proof.
	Interrupted State = "interrupted"
	// Cancelled had content and was asked to stop.
	Cancelled State = "cancelled"
	// Failed ended without content: refused, budget spent, or stopped before the first token.
	Failed State = "failed"
	// Released is the tombstone of an ended run: its chunks are given up, its key is still taken.
	Released State = "released"
)

// transitions is the one table of what may follow what. The engine repeats it as a trigger.
// Idle to Completed or to Interrupted is a run that went through Streaming within one commit: an
// empty answer that ended properly, or one whose content and end came together.
var transitions = map[State][]State{
	Idle:        {Idle, Streaming, Completed, Interrupted, Failed},
	Streaming:   {Streaming, Completed, Interrupted, Cancelled},
	Completed:   {Released},
	Interrupted: {Released},
	Cancelled:   {Released},
	Failed:      {Released},
	Released:    {},
}

// CanBecome reports whether a run in state s may be committed in state next.
func (s State) CanBecome(next State) bool { return slices.Contains(transitions[s], next) }

// Live reports whether chunks may still be appended.
func (s State) Live() bool { return s == Idle || s == Streaming }

// Ended reports whether the log is closed.
func (s State) Ended() bool { return s != "" && !s.Live() }

// Known reports whether s is one of the states.
func (s State) Known() bool { _, ok := transitions[s]; return ok }

// Stopped is the state of a live run that is closed from outside in state s: a run without content
// has failed, since nothing was shown; a run with content keeps what was asked for.
func (s State) Stopped(want State) State {
	if s == Idle && (want == Interrupted || want == Cancelled) {
		return Failed
	}
	return want
}

// Reason says why a run ended as it did, in the contract's words. Empty for a plain completion.
type Reason string

// The reasons of docs/protocol.md, section 7.
const (
	EOFWithoutEnd Reason = "eof_without_end" // the body ended, and nothing proved that the answer had
	ProviderError Reason = "provider_error"  // the provider told its own error in the stream
	Reset         Reason = "reset"           // the connection broke, or there was none
	Stalled       Reason = "stalled"         // nothing came any more
	Limit         Reason = "limit"           // of time, of size, or of the buffer's own
	OwnerLost     Reason = "owner_lost"      // the process that drained it died
	Shutdown      Reason = "shutdown"        // … or went down before it had ended
	Storage       Reason = "storage"         // the log could not be written
	CancelAsked   Reason = "cancelled"       // somebody asked for that
	ClientGone    Reason = "client_gone"     // its last reader left, and its OnDisconnect says so
	Refused       Reason = "refused"         // the provider said no
	BudgetSpent   Reason = "budget"          // no further send was left
	Silent        Reason = "silent"          // the provider was asked and said nothing
)
