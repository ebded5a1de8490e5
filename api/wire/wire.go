// Package wire holds the words of the HTTP contract: header names, codes and the JSON of a run.
// Servers and clients both import it; it imports nothing of the service.
package wire

import "time"

// Headers that steer the buffer, as docs/protocol.md spells them. None of them is forwarded upstream.
const (
	HeaderKey          = "Idempotency-Key"
	HeaderRunID        = "X-Buffer-Run-Id"
	HeaderOperation    = "X-Buffer-Operation"
	HeaderKind         = "X-Buffer-Kind"
	HeaderOnDisconnect = "X-Buffer-On-Disconnect"
	HeaderTTL          = "X-Buffer-TTL"
	HeaderTag          = "X-Buffer-Tag"
	HeaderBudget       = "X-Buffer-Budget"
	HeaderFrom         = "X-Buffer-From"
	HeaderHeartbeat    = "X-Buffer-Heartbeat"
	HeaderMintToken    = "X-Buffer-Mint-Token"
	HeaderBufferKey    = "X-Buffer-Key"
	HeaderProviderKey  = "X-Provider-Key"
)

// Headers of answers, besides HeaderRunID and HeaderFrom.
const (
	HeaderStatus   = "X-Buffer-Status"
	HeaderNext     = "X-Buffer-Next"
	HeaderAttempts = "X-Buffer-Attempts"
	HeaderToken    = "X-Buffer-Token"
	HeaderReplayed = "Idempotent-Replayed"
	HeaderCFRunID  = "Cf-Aig-Run-Id" // for Cloudflare's resume client
)

// The codes of errors. They are API: never renamed.
const (
	CodeBadRequest      = "bad_request"
	CodeBadPosition     = "bad_position"
	CodeBadKey          = "bad_key"
	CodeUnauthorized    = "unauthorized"
	CodeNotFound        = "not_found"
	CodeStillRunning    = "still_running"
	CodeIDTaken         = "id_taken"
	CodeReleased        = "released"
	CodeBadMethod       = "bad_method"
	CodeSlowBody        = "slow_body"
	CodeTooLarge        = "too_large"
	CodeAhead           = "ahead"
	CodeKeyReused       = "key_reused"
	CodeBusy            = "busy"
	CodeUpstreamFailed  = "upstream_failed"
	CodeDraining        = "draining"
	CodeStorage         = "storage"
	CodeUpstreamTimeout = "upstream_timeout"
)

// Problem is an error on a native route, as application/problem+json (RFC 9457).
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Code   string `json:"code"`
	Run    string `json:"run,omitempty"`
}

// Run is a run as JSON. Times are RFC 3339; null where the moment has not come.
type Run struct {
	ID           string            `json:"id"`
	State        string            `json:"state"`
	Outcome      string            `json:"outcome"` // the ended state that it reached; stays when it is released
	Phase        string            `json:"phase"`
	Reason       string            `json:"reason"`
	Notes        []string          `json:"notes"`
	Provider     string            `json:"provider"`
	Route        string            `json:"route"`
	Dialect      string            `json:"dialect"`
	Model        string            `json:"model"`
	Method       string            `json:"method"`
	Path         string            `json:"path"`
	Key          string            `json:"key,omitempty"`
	Operation    string            `json:"operation,omitempty"`
	RetryOf      string            `json:"retry_of,omitempty"`
	Status       int               `json:"status"`
	Head         int64             `json:"head"`
	Bytes        int64             `json:"bytes"`
	PartialBytes int64             `json:"partial_bytes,omitempty"`
	Readers      int               `json:"readers"`
	Tags         map[string]string `json:"tags"`
	Kind         string            `json:"kind"`
	OnDisconnect string            `json:"on_disconnect"`
	Created      time.Time         `json:"created"`
	Committed    *time.Time        `json:"committed"`
	Ended        *time.Time        `json:"ended"`
	Released     *time.Time        `json:"released"`
	Expires      *time.Time        `json:"expires"`
	Usage        *Usage            `json:"usage"`
	Saved        Saved             `json:"saved"`
	Attempts     []Attempt         `json:"attempts"`
}

// Saved is what repeats of the run's call would have bought again.
type Saved struct {
	OutputTokens int64 `json:"output_tokens"`
	Replays      int64 `json:"replays"`  // repeats that were served from the log after the end
	Attaches     int64 `json:"attaches"` // and before it
}

// Usage is what an answer or an attempt cost, in tokens.
type Usage struct {
	InputTokens  int64 `json:"input_tokens"`
	OutputTokens int64 `json:"output_tokens"`
	TotalTokens  int64 `json:"total_tokens"` // the provider's own figure, or the sum
}

// Attempt is one row of a run's ledger.
type Attempt struct {
	N                 int        `json:"n"`
	Route             string     `json:"route"`
	Model             string     `json:"model"`
	SentAt            time.Time  `json:"sent_at"`
	EndedAt           *time.Time `json:"ended_at"`
	Status            int        `json:"status"`
	ProviderRequestID string     `json:"provider_request_id"`
	Class             string     `json:"class"`
	Sent              string     `json:"sent"`
	Action            string     `json:"action"`
	Why               string     `json:"why"`
	HintMS            int64      `json:"hint_ms"`
	FirstByteMS       int64      `json:"first_byte_ms"` // from the send to the answer's head; 0 where none came
	Billed            string     `json:"billed"`
	ReusedConnection  bool       `json:"reused_connection"`
	RequestBytes      int64      `json:"request_bytes"`
	PreambleBytes     int64      `json:"preamble_bytes"`
	ContentBytes      int64      `json:"content_bytes"`
	Usage             *Usage     `json:"usage"`
}

// RunList is a page of runs, newest first. Next is the id to give as after for the next page; empty
// at the end.
type RunList struct {
	Runs []Run  `json:"runs"`
	Next string `json:"next"`
}
