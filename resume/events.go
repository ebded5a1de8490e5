package resume

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/oklog/ulid/v2"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/tail"
)

// ErrOver: the run has ended and the reader has all of it, its end included.
var ErrOver = errors.New("nothing is left of the run")

// OpenEvents is Open for a reader to whom a run's end is one more event, whose id is the head. On an
// ended run
//
//	the event before the head was the last one read      the end alone
//	the end was read, or the head is where it starts     ErrOver
//	no position is given                                 all, though it may be the end alone
func OpenEvents(ctx context.Context, log tail.Log, id ulid.ULID, s Start) (*Tail, error) {
	run, err := look(ctx, log, id, s)
	if err != nil && !errors.Is(err, buffer.ErrReleased) {
		return nil, err
	}
	if run.State.Ended() && s.event && s.n == run.Head+1 {
		return nil, ErrOver
	}
	t, err := Open(ctx, log, id, s)
	if err == nil && t.Run.State.Ended() && t.From == t.Run.Head && s.given && !s.event {
		return nil, ErrOver
	}
	return t, err
}

// MaxEventRuns is how many runs one reader may follow at once: as many as fit into a URL and into
// the id that says how far each one was read.
const MaxEventRuns = 16

// Following is one of several runs that a reader follows, and its start as text.
type Following struct {
	Run ulid.ULID
	Ask Ask
}

// UnderstandMany reads which runs are followed, each RUN or RUN:FROM, and the id of the last event:
// a list of RUN:N with a comma between two. A run that the id does not name starts where the query
// says. Its error wraps ErrBadPosition.
func UnderstandMany(runs []string, last Text) ([]Following, error) {
	if len(runs) == 0 || len(runs) > MaxEventRuns {
		return nil, fmt.Errorf("%w: run must be given 1 to %d times", ErrBadPosition, MaxEventRuns)
	}
	var all []Following
	at := map[ulid.ULID]int{}
	for _, text := range runs {
		name, from, given := strings.Cut(text, ":")
		id, err := ulid.ParseStrict(strings.ToUpper(name))
		if err != nil {
			return nil, fmt.Errorf("%w: run must be RUN or RUN:FROM", ErrBadPosition)
		}
		if _, twice := at[id]; twice {
			return nil, fmt.Errorf("%w: run %s is given twice", ErrBadPosition, id)
		}
		at[id] = len(all)
		all = append(all, Following{Run: id, Ask: Ask{From: Text{Value: from, Given: given}}})
	}
	if !last.Given {
		return all, nil
	}
	for part := range strings.SplitSeq(last.Value, ",") {
		name, _, named := strings.Cut(part, ":")
		id, err := ulid.ParseStrict(strings.ToUpper(name))
		i, known := at[id]
		if !named && len(all) == 1 { // N alone
			i, known, err = 0, true, nil
		}
		if err != nil || !known || all[i].Ask.LastEventID.Given {
			return nil, fmt.Errorf("%w: Last-Event-ID must be RUN:N for runs that are asked for, once each", ErrBadPosition)
		}
		all[i].Ask.LastEventID = Given(part)
	}
	return all, nil
}
