package buffer

import (
	"math"
	"net/http"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/spool-dev/spool/buffer/frame"
	"github.com/spool-dev/spool/buffer/policy"
	"github.com/spool-dev/spool/buffer/provider"
)

// Run is one call to a provider and its answer: everything about it but its chunks. It is a value;
// a copy that was read from a Store is one moment's snapshot.
type Run struct {
	ID       ulid.ULID
	Caller   string    // who owns it: a configured name, or a keyed hash of the credential
	Key      string    // the operation's idempotency key; empty where the caller gave none
	BodyHash string    // hex SHA-256 over method, path and body as sent
	RetryOf  ulid.ULID // the failed run whose key this one took over; zero for none

	Method    string
	Path      string // as called on the provider, with the query, without credentials
	Provider  string
	Route     string
	Dialect   provider.Dialect
	Model     string // as the body names it; empty where it names none
	Stream    bool   // the call asks for a stream
	Kind      policy.Kind
	Operation string // the agent's own id for all calls of one user action
	Turn      string // the agent's own id of the turn that the call serves; empty where it sends none
	Tags      map[string]string

	OnDisconnect OnDisconnect
	TTL          time.Duration // how long chunks are kept after the end
	Budget       Budget

	State   State
	Outcome State // the ended state it reached; stays when State becomes Released
	Reason  Reason
	Notes   []string // proof_weak, usage_missing, policy, or the name of the limit that the answer went over

	Status     int         // the provider's status; 0 until the run commits
	Header     http.Header // the provider's end-to-end headers; nil until the run commits
	Framing    frame.Kind  // how the answer was cut; empty until the run commits
	ProviderID string      // the provider's own id of the answer (resp_…, chatcmpl-…, msg_…)
	Head       int64       // the next position to be written
	Bytes      int64       // the bytes of all chunks 0..Head-1
	Partial    []byte      // a half-received event after the last chunk: stored, without a position
	Usage      *provider.Usage

	Created   time.Time
	Committed time.Time // the first content; zero before
	Ended     time.Time // zero while live
	Released  time.Time // zero while kept

	// EncryptedWith is the name of the key that what is stored of the answer needs; empty: it is in the clear.
	EncryptedWith string

	Claimed  int   // the highest retry count of an SDK whose repeat took the run over
	Replays  int64 // repeats that were served from the log after the end, instead of a purchase
	Attaches int64 // and before it
	// Sends is how many ledger rows there are.
	Sends int
	// Attempts is the ledger, oldest first. Store.Create stores it, and only Store.Get fills it.
	Attempts []Attempt
}

// Expires is when the chunks may be given up; zero while the run is live.
func (r Run) Expires() time.Time {
	if r.Ended.IsZero() {
		return time.Time{}
	}
	return r.Ended.Add(r.TTL)
}

// OnDisconnect is the run's own policy for the moment when its last reader leaves. The zero value
// keeps the drain going.
type OnDisconnect struct {
	Cancel bool
	After  time.Duration // how long without a reader before the run is cancelled; 0 is at once
}

// DefaultElapsed is a budget's time where the call sets none. It bounds the deciding: a first attempt
// keeps the route's own clocks under it, which a model that thinks for long may need.
const DefaultElapsed = 300 * time.Second

// Budget bounds the sends of one run: SDK retries, retries here and fallbacks together.
type Budget struct {
	Attempts int           // sends at most, those in Spent included
	Elapsed  time.Duration // from Since
	CostUSD  float64       // 0 is no limit
	Spent    int           // sends that were made before this run, by the caller's SDK or by RetryOf
	Since    time.Time     // when the first run of the chain was created
}

// ends is when the time of the budget is over.
func (b Budget) ends() time.Time { return b.Since.Add(b.Elapsed) }

// left is how many US dollars there are when spent may be gone.
func (b Budget) left(spent float64) float64 {
	if b.CostUSD == 0 {
		return math.Inf(1)
	}
	return b.CostUSD - spent
}

// Chunk is one upstream event, byte for byte. Data must not be modified: readers share it.
type Chunk struct {
	Pos  int64 // from 0, dense within its run
	End  int64 // byte offset just after it within its run
	Data []byte
}

// Page is one snapshot of a run and of some of its chunks: they cannot disagree. Chunks is dense
// and starts at the position that was asked for; it is empty where nothing is there yet.
type Page struct {
	Run    Run
	Chunks []Chunk
	// Joined is their data, where it lies one behind the other in memory; else nil. Whoever changes Chunks clears it.
	Joined []byte

	// Recycle, if there is one, takes back the room of Chunks and what their Data points to: other pages are read
	// into it, those of other runs too, so whoever keeps something has copied it. It is called once at most, by
	// the one reader whose page it is, and is never waited for: what is not given back is garbage.
	Recycle func()
}

// GiveBack recycles the page where it can be. Neither it nor its chunks are used afterwards.
func (p *Page) GiveBack() {
	if p.Recycle != nil {
		p.Recycle()
	}
}

// Next is the position after the page's last chunk, given the position that the page was read from.
func (p Page) Next(from int64) int64 { return from + int64(len(p.Chunks)) }

// Closing holds what a commit says about the run besides its chunks. Zero fields leave what is
// stored as it is, so that the first commit tells status and headers, the last one the reason.
type Closing struct {
	Status     int
	Header     http.Header
	Framing    frame.Kind
	ProviderID string
	Reason     Reason
	Notes      []string
	Partial    []byte
	Usage      *provider.Usage
	// Attempt is a ledger row that is completed in the same commit.
	Attempt *Attempt
}

// Attempt is one row of the ledger: one physical send. It is committed before its request is sent
// (with Ended zero and Billed unknown) and completed after.
type Attempt struct {
	N         int    // from 1
	Route     string // which route it went to
	Model     string
	Sent      time.Time
	Ended     time.Time // zero while open
	Status    int       // 0 where no response line was read
	RequestID string    // the provider's own request id
	Class     policy.Class
	SentState policy.Sent
	Action    policy.Action
	Why       string        // one clause for people: why this action
	Hint      time.Duration // the provider's retry hint
	FirstByte time.Duration // from the send to the answer's head; 0 where none came
	Billed    policy.Billed

	ReusedConn    bool
	RequestBytes  int64 // bytes of the request body that were written
	PreambleBytes int64
	ContentBytes  int64
	Usage         *provider.Usage // the last cumulative figures; nil where none came
}
