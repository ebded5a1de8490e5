package buffer

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/oklog/ulid/v2"
)

// What a Store or a Log refuses with. Callers branch on these with errors.Is.
var (
	// ErrExists: the run's id, or its caller's key, is taken. Create returns the run that holds it.
	ErrExists = errors.New("run exists")
	// ErrNotFound: no such run.
	ErrNotFound = errors.New("no such run")
	// ErrSealed: the log is closed, or belongs to another owner now. Nothing was appended.
	ErrSealed = errors.New("log is sealed")
	// ErrAhead: a read from beyond the head.
	ErrAhead = errors.New("position is ahead of the run")
	// ErrReleased: the chunks are given up.
	ErrReleased = errors.New("run is released")
	// ErrLive: the run has not ended.
	ErrLive = errors.New("run is live")
	// ErrStorage: the log cannot be written now. Nothing of the request was kept.
	ErrStorage = errors.New("log cannot be written")
	// ErrClosed: the store is closed.
	ErrClosed = errors.New("store is closed")
)

// Store keeps runs. It is safe for concurrent use. Its contract is the test suite
// buffer/storetest, which every engine passes.
//
// Create, Append and Seal are atomic, each by itself; nothing spans runs.
type Store interface {
	// Create makes the run durable and claims its id and, where it has one, its caller's key. Of all
	// claims of one key exactly one wins; the rest get ErrExists and the run that holds it. A run
	// whose RetryOf names the key's present run takes the key over; it loses with ErrExists where
	// the key names another run by then. State must be Idle; Head, Bytes and times are set here. Rows in
	// Attempts are committed with the claim, so that a send that follows at once waits for one commit; one
	// without a time was sent when the run was created.
	Create(ctx context.Context, r Run) (Log, Run, error)

	// Get returns the run with its ledger, or ErrNotFound.
	Get(ctx context.Context, id ulid.ULID) (Run, error)

	// Read returns one snapshot: the run, and its chunks from position from on: at least one where
	// there is one, then no more than fit into max bytes; none where max is 0. If the run has ended and its head is
	// reached, that is all there will ever be. from beyond the head is ErrAhead (with the page's Run
	// set). Of a run that another process keeps, the head may be that of some milliseconds before,
	// but never below from. A released run is readable until its chunks are swept, then ErrReleased (Run set).
	// Nothing of a page may be written; how long it may be read, see Page.Recycle.
	Read(ctx context.Context, id ulid.ULID, from int64, max int) (Page, error)

	// Watch returns the run's bell: a channel that is closed by the next commit for that run. Take it
	// before Read. stop gives it back and must be called. Spurious wake-ups are allowed; a lost one
	// is made good within a second.
	Watch(id ulid.ULID) (changed <-chan struct{}, stop func())

	// Wake rings the run's bell without a commit, for those who know something of the run that is not in
	// the log. It waits for nobody, whatever the log does.
	Wake(id ulid.ULID)

	// Reuse counts a repeat that is served from the run instead of a purchase: an attach while it is
	// live, a replay after. With claim above 0 it does so only where no claim as high was made
	// before: of the SDK's retries that find an orphan, each count takes it once. It reports whether
	// it did.
	Reuse(ctx context.Context, id ulid.ULID, claim int) (bool, error)

	// Seal closes a live log from outside: cancel from another node, a lost owner. An Idle run
	// becomes Failed where Interrupted or Cancelled is asked for. No Append can succeed after it.
	// Sealing an ended run changes nothing. It returns the run as it is then.
	Seal(ctx context.Context, id ulid.ULID, to State, reason Reason) (Run, error)

	// Recover seals the live runs of dead owners as Interrupted (Failed where nothing was
	// committed), reason OwnerLost, and sets their open ledger rows to billed unknown. It runs
	// before the listener opens. It returns how many runs it sealed.
	Recover(ctx context.Context) (int, error)

	// List yields the runs that match, newest first, without their ledger and their Partial.
	List(ctx context.Context, f Filter) iter.Seq2[Run, error]

	// Release turns an ended run into a tombstone: new readers are refused from now on, a repeat of
	// its key is told so. ErrLive while it is live. Again changes nothing.
	Release(ctx context.Context, id ulid.ULID) (Run, error)

	// Sweep does what time asks for at now: ended runs past their TTL are released, the chunks of
	// released runs are deleted in small steps, tombstones whose key's time is over are forgotten.
	// Runs for which open reports a tail under way keep their chunks.
	Sweep(ctx context.Context, now time.Time, open func(ulid.ULID) bool) (Swept, error)

	// Probe writes something that means nothing, and returns nil once that is durable: the log can be written.
	Probe(ctx context.Context) error

	// Close ends this process's ownership: the writer finishes what it has accepted, later calls get
	// ErrClosed.
	Close() error
}

// Log is the only way to append to a run: one goroutine drains, gathers, appends.
type Log interface {
	// Append commits chunks, the transition to state and the closing facts: all or nothing. Positions
	// and byte offsets are given inside the transaction. nil once durable and readable; ErrSealed if
	// the log is closed. It never says "don't know": it finds out, or its context ends it. The
	// chunks' memory belongs to the log from then on.
	Append(ctx context.Context, chunks [][]byte, state State, c Closing) error

	// Attempt commits one row of the ledger, new or completed (the same N again).
	Attempt(ctx context.Context, a Attempt) error

	// Sealed is closed soon after another process has closed the log, so that an owner who has nothing to
	// append hears of it. It may be closed after any end, and is nil where no other process can.
	Sealed() <-chan struct{}
}

// Filter picks runs. Zero fields do not filter.
type Filter struct {
	Caller     string
	State      State
	Key        string // with Caller: the one run that the key names now; else all that were made with it
	Provider   string
	ProviderID string
	TagName    string
	TagValue   string
	BodyHash   string
	Before     ulid.ULID // only runs older than this one (for paging)
	Limit      int       // 0 is no limit
}

// Swept counts what one Sweep did.
type Swept struct {
	Released  int   // runs that became tombstones
	Chunks    int64 // chunks that were deleted
	Forgotten int   // tombstones that are gone
	Rewrapped int   // runs whose data key is the first named key's from now on
}

// KeyTTL is how long a key stays taken after its run was created: a repeat that comes later than
// the chunks' TTL is told that they are released, and is not a second purchase.
const KeyTTL = 24 * time.Hour
