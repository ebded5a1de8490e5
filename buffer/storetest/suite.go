// Package storetest is the contract of a buffer.Store as a test suite. An engine that passes it can
// be used in place of any other.
package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/spool-dev/spool/buffer"
)

// Engine is what is tested.
type Engine struct {
	// Open opens the store whose data is in dir, for the first time or again. The suite closes it.
	Open func(t *testing.T, dir string) buffer.Store
	// Check verifies all stored invariants of dir, where a store may be open.
	Check func(t *testing.T, dir string)
	// Abandon takes the data away from a store that is open, as if its process had died, so that it can
	// be opened again. The store itself is not told, and goes on as a process does that was paused.
	Abandon func(t *testing.T, s buffer.Store)
	// Fewer divides how often the tests do what they do very often, for an engine that asks others over a
	// network; 0 divides nothing.
	Fewer int
}

// Run runs the whole suite. Each test has its own data, and ends with Check.
func Run(t *testing.T, e Engine) {
	tests := map[string]func(*env){}
	for _, group := range []map[string]func(*env){claims, appends, seals, reads, wakes, ledgers, retentions, lists, models} {
		maps.Copy(tests, group)
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := &env{T: t, e: e, dir: t.TempDir()}
			v.s = e.Open(t, v.dir)
			t.Cleanup(func() {
				v.check(v.s.Close())
				e.Check(t, v.dir)
			})
			test(v)
		})
	}
}

// env is one test's store.
type env struct {
	*testing.T
	e   Engine
	dir string
	s   buffer.Store
}

// bound ends a wait that would mean a lost wake-up. No test measures anything with it.
const bound = 30 * time.Second

// often is n, or what the engine makes of it.
func (v *env) often(n int) int { return n / max(1, v.e.Fewer) }

func (v *env) ctx() context.Context { return v.Context() }

func (v *env) check(err error) {
	v.Helper()
	if err != nil {
		v.Fatal(err)
	}
}

func (v *env) want(got, want error) {
	v.Helper()
	if !errors.Is(got, want) {
		v.Fatalf("got error %v, want %v", got, want)
	}
}

// restart closes the store and opens its data again.
func (v *env) restart() {
	v.Helper()
	v.check(v.s.Close())
	v.s = v.e.Open(v.T, v.dir)
}

// crash leaves the old store running without its data, and opens the data again.
func (v *env) crash() (zombie buffer.Store) {
	v.Helper()
	zombie = v.s
	v.e.Abandon(v.T, zombie)
	v.s = v.e.Open(v.T, v.dir)
	v.Cleanup(func() { v.check(zombie.Close()) })
	return zombie
}

// newRun is a run that nobody has created yet.
func newRun() buffer.Run {
	return buffer.Run{ID: ulid.Make(), Caller: "agent", State: buffer.Idle, TTL: time.Hour, Path: "/v1/responses"}
}

// create creates r and its first ledger row.
func (v *env) create(r buffer.Run) (buffer.Log, buffer.Run) {
	v.Helper()
	log, r, err := v.s.Create(v.ctx(), r)
	v.check(err)
	v.check(log.Attempt(v.ctx(), buffer.Attempt{N: 1, Sent: r.Created}))
	return log, r
}

// append commits n chunks whose texts tell their positions.
func (v *env) append(log buffer.Log, from, n int, to buffer.State) {
	v.Helper()
	v.check(log.Append(v.ctx(), texts(from, n), to, buffer.Closing{}))
}

// ended creates a run with n chunks that has ended.
func (v *env) ended(r buffer.Run, n int) buffer.Run {
	v.Helper()
	log, r := v.create(r)
	v.append(log, 0, n, buffer.Streaming)
	v.append(log, n, 0, buffer.Completed)
	return r
}

func text(pos int) string { return fmt.Sprintf("data: chunk %d\n\n", pos) }

func texts(from, n int) [][]byte {
	chunks := make([][]byte, n)
	for i := range chunks {
		chunks[i] = []byte(text(from + i))
	}
	return chunks
}

func (v *env) get(id ulid.ULID) buffer.Run {
	v.Helper()
	r, err := v.s.Get(v.ctx(), id)
	v.check(err)
	return r
}

// readAll reads the run from position from to its present head, in pages of max bytes, and checks that
// each page is dense and agrees with itself.
func (v *env) readAll(id ulid.ULID, from int64, max int) (data []string) {
	v.Helper()
	end := int64(-1)
	for {
		page, err := v.s.Read(v.ctx(), id, from, max)
		v.check(err)
		if page.Joined != nil && !bytes.Equal(page.Joined, joined(page.Chunks)) {
			v.Fatalf("page at %d: what is joined is not the data of its chunks", from)
		}
		size := 0
		for _, c := range page.Chunks {
			size += len(c.Data)
			if c.Pos != from || end >= 0 && c.End != end+int64(len(c.Data)) {
				v.Fatalf("chunk at %d ends at %d; want position %d after offset %d", c.Pos, c.End, from, end)
			}
			end = c.End
			from++
			data = append(data, string(c.Data))
		}
		if size > max && len(page.Chunks) > 1 {
			v.Fatalf("page of %d chunks has %d bytes, want at most %d", len(page.Chunks), size, max)
		}
		if from == page.Run.Head {
			if end >= 0 && end != page.Run.Bytes {
				v.Fatalf("last chunk ends at %d of %d bytes", end, page.Run.Bytes)
			}
			return data
		}
		if len(page.Chunks) == 0 {
			v.Fatalf("empty page at %d of %d", from, page.Run.Head)
		}
	}
}

func joined(chunks []buffer.Chunk) (data []byte) {
	for _, c := range chunks {
		data = append(data, c.Data...)
	}
	return data
}

// wantTexts checks that the run holds exactly n chunks, as append writes them.
func (v *env) wantTexts(id ulid.ULID, n int) {
	v.Helper()
	data := v.readAll(id, 0, 1<<20)
	if len(data) != n {
		v.Fatalf("run has %d chunks, want %d", len(data), n)
	}
	for i, d := range data {
		if d != text(i) {
			v.Fatalf("chunk %d is %q", i, d)
		}
	}
}

func (v *env) wantState(r buffer.Run, state buffer.State, reason buffer.Reason) {
	v.Helper()
	if r.State != state || r.Reason != reason {
		v.Fatalf("run is %s %q, want %s %q", r.State, r.Reason, state, reason)
	}
	if r.State.Ended() != !r.Ended.IsZero() || r.State.Ended() != (r.Outcome != "") {
		v.Fatalf("run is %s, ended at %s with outcome %q", r.State, r.Ended, r.Outcome)
	}
}
