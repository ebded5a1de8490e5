package wire

import "time"

// The data of the events that /events adds to a run's own. PhaseEvent is of event phase.
type PhaseEvent struct {
	Run   string `json:"run"`
	Phase string `json:"phase"`
}

// UpToDateEvent is of event up_to_date: the reader has all chunks before Next, and the run goes on.
type UpToDateEvent struct {
	Run  string `json:"run"`
	Next int64  `json:"next"`
}

// Heartbeat is of event heartbeat.
type Heartbeat struct {
	Time time.Time `json:"time"` // the buffer's clock
}

// EndEvent is of the events completed, interrupted, failed and cancelled.
type EndEvent struct {
	Run          string `json:"run"`
	State        string `json:"state"`
	Reason       string `json:"reason"`
	Code         string `json:"code,omitempty"` // of a run that failed without an answer of the provider's own
	Status       int    `json:"status"`
	Head         int64  `json:"head"`
	Bytes        int64  `json:"bytes"`
	PartialBytes int64  `json:"partial_bytes,omitempty"`
	Usage        *Usage `json:"usage"`
}

// TokenRequest is what POST /runs/{id}/token asks for. Empty fields are the defaults.
type TokenRequest struct {
	TTL    string `json:"ttl"`    // a duration; default 10m, at most 24h
	From   int64  `json:"from"`   // the first position that may be read
	Origin string `json:"origin"` // the origin whose pages may use it
}

// Token is a run token and the end of its time.
type Token struct {
	Token   string    `json:"token"`
	Expires time.Time `json:"expires"`
}
