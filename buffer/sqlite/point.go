package sqlite

import "github.com/spool-dev/spool/buffer"

// Point names a place in the writer's work where a test may step in.
type Point string

// The points of one transaction, in their order. An error there is taken as the file's own.
const (
	AtWrite     Point = "write"     // before each statement that changes the file
	AtClaim     Point = "claim"     // a run was created in the transaction
	AtLedger    Point = "ledger"    // a ledger row was written
	AtAppend    Point = "append"    // chunks of a live run
	AtFinish    Point = "finish"    // the last chunks and the ended state
	AtRelease   Point = "release"   // an ended run became a tombstone
	AtCommit    Point = "commit"    // before COMMIT: a crash leaves nothing
	AtCommitted Point = "committed" // after it, before anybody knows: a crash leaves all
	AtLook      Point = "look"      // before the file is asked whether a failed COMMIT has happened
)

// The points of a checkpoint, on either connection that makes one.
const (
	AtCheckpoint   Point = "checkpoint"
	AtCheckpointed Point = "checkpointed"
)

// step is the point of a request, where it is one of the order of a run: claim, ledger, send, append,
// finish, release.
func step(o op) Point {
	switch o := o.(type) {
	case *create:
		return AtClaim
	case *attempt:
		return AtLedger
	case *appendOp:
		if o.state.Ended() {
			return AtFinish
		}
		return AtAppend
	case *end:
		if o.to == buffer.Released {
			return AtRelease
		}
	}
	return ""
}
