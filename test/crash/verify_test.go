package crash

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/spool-dev/spool/api/wire"
)

// events is how many whole events b holds.
func events(b []byte) int { return bytes.Count(b, []byte("\n\n")) }

// errorEvent is how an event begins that tells of a cut; the provider's own events do not.
const errorEvent = `data: {"error":`

// verify holds the log of a service that has just started against all that was seen of it.
func (f *folder) verify(a *agent, calls []*call) {
	ctx, cancel := context.WithTimeout(f.t.Context(), patience)
	defer cancel()
	runs := f.list(ctx, a)
	f.settled(runs)
	chains := f.chains(runs)
	f.again = nil
	for _, c := range calls {
		f.verifyCall(ctx, a, c, chains[c.key])
	}
	if ctx.Err() != nil {
		f.t.Fatal("what is read after a start does not end")
	}
	f.look()
}

// settled verifies that no run is live and that nothing changed that had ended.
func (f *folder) settled(runs map[string]wire.Run) {
	for id, r := range runs {
		if live(r) {
			f.wrong("run %s is %s after the start", id, r.State)
		}
		was, known := f.ended[id]
		if known && r.State != "released" && outline(r) != outline(was) {
			f.wrong("run %s was %s and is %s", id, outline(was), outline(r))
		}
		f.ended[id] = r
	}
	for id := range f.ended {
		if _, ok := runs[id]; !ok {
			f.wrong("run %s is gone", id)
		}
	}
}

func live(r wire.Run) bool { return r.State == "idle" || r.State == "streaming" }

// outline is what must not change of an ended run.
func outline(r wire.Run) string {
	return fmt.Sprintf("%s %s head %d bytes %d attempts %d", r.State, r.Reason, r.Head, r.Bytes, len(r.Attempts))
}

// chains is the runs of each key in the order in which they took it over.
func (f *folder) chains(runs map[string]wire.Run) map[string][]wire.Run {
	next := map[[2]string]wire.Run{} // by key and the run before
	for _, r := range runs {
		at := [2]string{r.Key, r.RetryOf}
		if other, taken := next[at]; taken {
			f.wrong("runs %s and %s both have key %s after %q", r.ID, other.ID, r.Key, r.RetryOf)
		}
		next[at] = r
	}
	chains := map[string][]wire.Run{}
	found := 0
	for _, c := range f.calls {
		for r, ok := next[[2]string{c.key, ""}]; ok; r, ok = next[[2]string{c.key, r.ID}] {
			chains[c.key] = append(chains[c.key], r)
			found++
		}
	}
	if found != len(runs) {
		f.wrong("%d of %d runs belong to no key", len(runs)-found, len(runs))
	}
	return chains
}

// verifyCall verifies one call, whose runs are chain, the last of them the one that has the key.
func (f *folder) verifyCall(ctx context.Context, a *agent, c *call, chain []wire.Run) {
	rows := 0
	byID := map[string]wire.Run{}
	spent := map[string]bool{} // runs that nothing is left to replace
	for i, r := range chain {
		rows += len(r.Attempts)
		byID[r.ID], spent[r.ID] = r, rows >= attempts
		if r.Reason == "budget" && spent[r.ID] && c.down != "" {
			c.staysDown()
		}
		f.verifyState(c, r, i == len(chain)-1)
	}
	if bought := f.fake.Count(c.key); bought > rows {
		f.wrong("%s was bought %d times, the ledger has %d rows", c.key, bought, rows)
	}
	for _, s := range c.seen {
		f.verifyEnding(c, s, byID, spent[s.run])
	}
	f.verifyTold(c, byID)
	if len(chain) == 0 {
		return // no client saw it accepted, or verifyEnding has said so
	}
	current := chain[len(chain)-1]
	switch {
	case live(current): // settled has said so
	case current.State == "released":
		f.verifyReleased(ctx, a, c)
	case current.Reason == "owner_lost" && current.State == "failed" && !spent[current.ID]:
		f.again = append(f.again, c)
		f.verifyBytes(ctx, a, c, current, nil)
	default:
		f.verifyBytes(ctx, a, c, current, f.repeat(ctx, a, c, current))
	}
}

// verifyState verifies that the run is where it may be: whole, cut where its owner died, or stopped
// as it was asked to.
func (f *folder) verifyState(c *call, r wire.Run, current bool) {
	bare := r.Head == 0 && r.Committed == nil
	ok := false
	switch r.State + " " + r.Reason {
	case "completed ":
		ok = r.Head == int64(len(c.events)) && c.status == 200 && !c.broken && !c.endless
	case "interrupted owner_lost":
		ok = r.Head > 0 && r.Committed != nil
	case "interrupted reset", "interrupted eof_without_end":
		ok = r.Head > 0 && c.broken
	case "cancelled cancelled":
		ok = r.Head > 0 && c.cancelled
	case "failed owner_lost":
		ok = bare
	case "failed cancelled":
		ok = bare && c.cancelled
	case "failed refused", "failed budget":
		ok = r.Head == 1 && r.Status == c.status && c.status != 200
	default:
		ok = r.State == "released" && c.acked
	}
	if !ok || r.Ended == nil || !current && r.State != "failed" {
		f.wrong("%s: run %s is %s, current %t", c.key, r.ID, outline(r), current)
	}
	for _, at := range r.Attempts {
		if r.Reason == "owner_lost" && at.Status == 0 && at.Class == "" && at.Billed != "unknown" {
			f.wrong("%s: run %s was sent, its owner died, and it is billed %q", c.key, r.ID, at.Billed)
		}
	}
}

// verifyEnding verifies that what a client was told about its run is so. A run that was lost before
// its first content may be told of only once its key's budget is spent: before, another replaces it.
func (f *folder) verifyEnding(c *call, s seen, runs map[string]wire.Run, spent bool) {
	if s.run == "" {
		if s.native || s.status != 404 {
			f.wrong("%s: status %d %q", c.key, s.status, s.bytes)
		}
		return
	}
	r, ok := runs[s.run]
	if !ok {
		f.wrong("%s: run %s was accepted and is not there", c.key, s.run)
		return
	}
	good := r.State == "completed" || r.State == "released"
	switch {
	case s.native && s.status == 200:
		ok = r.State != "failed" && (good || !s.clean)
	case s.native:
		ok = r.State == "failed" && (r.Reason != "owner_lost" || spent)
	case s.status == 200:
		ok = good || r.State == "failed" || !s.clean
	default:
		ok = s.status == 410 && c.acked
	}
	if !ok {
		f.wrong("%s: a client saw status %d, clean %t, and run %s is %s", c.key, s.status, s.clean, r.ID, outline(r))
	}
}

// verifyTold verifies that a run which a client was told has ended is as it was told.
func (f *folder) verifyTold(c *call, runs map[string]wire.Run) {
	for _, told := range c.told {
		r, ok := runs[told.ID]
		if !ok || r.State != "released" && outline(r) != outline(told) {
			f.wrong("%s: cancel said %s, and the run is %s", c.key, outline(told), outline(r))
		}
	}
}

// verifyBytes verifies the log of the key's run against the provider's bytes and against what every
// client read. repeated is what the provider's route repeats; nil where it was not asked.
func (f *folder) verifyBytes(ctx context.Context, a *agent, c *call, r wire.Run, repeated []byte) {
	s := a.get(ctx, "/resume?from=0&follow=0&key="+c.key)
	stored := s.bytes
	if s.status != 200 || s.run != r.ID || int64(len(stored)) != r.Bytes {
		f.wrong("%s: run %s is %s, /resume says status %d, run %s, %d bytes", c.key, r.ID, outline(r), s.status, s.run, len(stored))
	}
	if !bytes.Equal(stored, c.first(r.Head)) {
		f.wrong("%s: run %s: the stored bytes are not the provider's first %d events", c.key, r.ID, r.Head)
	}
	f.verifyRest(ctx, a, c, r, f.rng.Int64N(r.Head+1))
	for _, s := range c.seen {
		from := stored
		switch {
		case s.run == "" || s.native && r.State == "failed" && r.Head == 0:
			continue // an error of the buffer's own
		case s.run != r.ID:
			from = nil // an earlier run of the key has nothing
		case s.native && repeated != nil:
			from = repeated
		}
		f.verifySeen(c, s, from)
	}
}

// verifyRest verifies that a reader which follows the run from position n gets what lies behind it,
// and an end that looks whole where the run is.
func (f *folder) verifyRest(ctx context.Context, a *agent, c *call, r wire.Run, n int64) {
	s := a.get(ctx, fmt.Sprintf("/runs/%s/resume?from=%d", r.ID, n))
	want := c.first(r.Head)[len(c.first(n)):]
	whole := r.State == "completed" || r.State == "failed"
	if s.status != 200 || s.clean != whole || !bytes.Equal(s.bytes, want) {
		f.wrong("%s: run %s is %s, from position %d it gives status %d, clean %t, %d of %d bytes",
			c.key, r.ID, outline(r), n, s.status, s.clean, len(s.bytes), len(want))
	}
}

// verifySeen verifies that everything that a client read is in the log, which is from.
func (f *folder) verifySeen(c *call, s seen, from []byte) {
	from = from[min(len(from), len(c.first(s.from))):]
	if bytes.HasPrefix(from, s.bytes) {
		return
	}
	same := 0
	for same < min(len(from), len(s.bytes)) && from[same] == s.bytes[same] {
		same++
	}
	lost := events(s.bytes) - events(s.bytes[:same])
	f.lost += lost
	f.wrong("%s: run %s: a client read %d bytes from position %d, the log agrees with %d of them: %d events lost",
		c.key, s.run, len(s.bytes), s.from, same, lost)
}

// repeat makes the call again, which must buy nothing, and returns the answer: what is stored, and
// after it what tells of a cut.
func (f *folder) repeat(ctx context.Context, a *agent, c *call, r wire.Run) []byte {
	before := f.fake.Count(c.key)
	s := a.post(ctx, c, math.MaxInt64, ignore)
	f.replays++
	if after := f.fake.Count(c.key); after != before {
		f.wrong("%s: run %s is %s, and its key was bought again", c.key, r.ID, outline(r))
	}
	if s.run != r.ID || !s.replayed {
		f.wrong("%s: run %s is %s, its key gives run %q, replayed %t", c.key, r.ID, outline(r), s.run, s.replayed)
	}
	stored := c.first(r.Head)
	rest, begins := bytes.CutPrefix(s.bytes, stored)
	ok := false
	switch r.State {
	case "completed":
		ok = s.status == 200 && begins && s.clean && len(rest) == 0
	case "failed":
		ok = s.status >= 400 && s.clean && begins && (len(rest) == 0 || r.Head == 0)
	default:
		told := strings.HasPrefix(string(rest), errorEvent) && strings.Contains(string(rest), r.Reason)
		ok = s.status == 200 && begins && !s.clean && told
	}
	if !ok {
		f.wrong("%s: run %s is %s, a repeat gives status %d, clean %t, %d of %d bytes and then %q",
			c.key, r.ID, outline(r), s.status, s.clean, len(s.bytes)-len(rest), len(stored), rest)
	}
	return s.bytes
}

// verifyReleased verifies that an acknowledged run is refused, not bought again, and that what was
// read of it was right.
func (f *folder) verifyReleased(ctx context.Context, a *agent, c *call) {
	before := f.fake.Count(c.key)
	gone := a.get(ctx, "/resume?key="+c.key)
	again := a.post(ctx, c, math.MaxInt64, ignore)
	if gone.status != 410 || again.status != 410 || f.fake.Count(c.key) != before {
		f.wrong("%s is released: /resume says %d, a repeat %d", c.key, gone.status, again.status)
	}
	for _, s := range c.seen {
		if s.status == 200 {
			f.verifySeen(c, s, c.all())
		}
	}
}
