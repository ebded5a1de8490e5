package storetest

import (
	"flag"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
	"pgregory.net/rapid"

	"github.com/spool-dev/spool/buffer"
)

var models = map[string]func(*env){
	"Model": func(v *env) {
		// Of the library's 100 rounds each takes a second under the race detector.
		if f := flag.Lookup("rapid.checks"); f.Value.String() == f.DefValue {
			v.check(f.Value.Set(strconv.Itoa(v.often(20))))
		}
		rapid.Check(v.T, func(t *rapid.T) {
			m := &model{env: v, t: t, runs: map[ulid.ULID]*modelRun{}, keys: map[string]ulid.ULID{}, caller: ulid.Make().String()}
			t.Repeat(map[string]func(*rapid.T){
				"create": m.create, "append": m.append, "append2": m.append, "read": m.read, "read2": m.read,
				"seal": m.seal, "release": m.release, "sweep": m.sweep, "reopen": m.reopen,
			})
			m.compare()
		})
	},
}

// model is what the store should hold, in plain Go.
type model struct {
	*env
	t      *rapid.T
	caller string
	order  []ulid.ULID
	runs   map[ulid.ULID]*modelRun
	keys   map[string]ulid.ULID
}

type modelRun struct {
	log    buffer.Log // nil when its owner has gone
	state  buffer.State
	chunks []string
	swept  bool
}

func (m *model) fail(format string, args ...any) { m.t.Helper(); m.t.Fatalf(format, args...) }

func (m *model) ok(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
}

// pick draws one of the runs, and skips the step where there is none.
func (m *model) pick(t *rapid.T) (ulid.ULID, *modelRun) {
	if len(m.order) == 0 {
		t.Skip("no run yet")
	}
	id := rapid.SampledFrom(m.order).Draw(t, "run")
	return id, m.runs[id]
}

func (m *model) create(t *rapid.T) {
	r := newRun()
	r.Caller = m.caller
	r.Key = rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "key")
	if rapid.Bool().Draw(t, "retry") {
		r.RetryOf = m.keys[r.Key]
	}
	holder, taken := m.keys[r.Key]
	log, got, err := m.s.Create(m.ctx(), r)
	if taken && holder != r.RetryOf {
		if err == nil || got.ID != holder || got.State != m.runs[holder].state {
			m.fail("create: error %v, run %s; the key is held by %s", err, got.ID, holder)
		}
		return
	}
	m.ok(err)
	m.ok(log.Attempt(m.ctx(), buffer.Attempt{N: 1}))
	if r.Key != "" {
		m.keys[r.Key] = r.ID
	}
	m.order = append(m.order, r.ID)
	m.runs[r.ID] = &modelRun{log: log, state: buffer.Idle}
}

func (m *model) append(t *rapid.T) {
	_, r := m.pick(t)
	if r.log == nil {
		return
	}
	texts := rapid.SliceOfN(rapid.StringN(0, 40, 200), 0, 5).Draw(t, "chunks")
	to := rapid.SampledFrom([]buffer.State{buffer.Streaming, buffer.Streaming, buffer.Streaming, buffer.Idle, buffer.Completed,
		buffer.Interrupted, buffer.Cancelled, buffer.Failed}).Draw(t, "state")
	var chunks [][]byte
	for _, s := range texts {
		chunks = append(chunks, []byte(s))
	}
	err := r.log.Append(m.ctx(), chunks, to, buffer.Closing{})
	if !r.state.CanBecome(to) {
		if err == nil {
			m.fail("append: from %s to %s", r.state, to)
		}
		return
	}
	m.ok(err)
	r.state = to
	r.chunks = append(r.chunks, texts...)
}

func (m *model) read(t *rapid.T) {
	id, r := m.pick(t)
	from := rapid.IntRange(0, len(r.chunks)+1).Draw(t, "from")
	max := rapid.IntRange(0, 500).Draw(t, "max")
	page, err := m.s.Read(m.ctx(), id, int64(from), max)
	switch {
	case r.swept:
		m.want(err, buffer.ErrReleased)
		return
	case from > len(r.chunks):
		m.want(err, buffer.ErrAhead)
		return
	}
	m.ok(err)
	if page.Run.State != r.state || page.Run.Head != int64(len(r.chunks)) {
		m.fail("run is %s at %d, want %s at %d", page.Run.State, page.Run.Head, r.state, len(r.chunks))
	}
	if wanted := max > 0 && from < len(r.chunks); wanted != (len(page.Chunks) > 0) {
		m.fail("%d chunks at %d of %d, for %d bytes", len(page.Chunks), from, len(r.chunks), max)
	}
	for i, c := range page.Chunks {
		end := len(strings.Join(r.chunks[:from+i+1], ""))
		if c.Pos != int64(from+i) || string(c.Data) != r.chunks[from+i] || c.End != int64(end) {
			m.fail("chunk %d is %q to %d, want %q to %d", c.Pos, c.Data, c.End, r.chunks[from+i], end)
		}
	}
}

func (m *model) seal(t *rapid.T) {
	id, r := m.pick(t)
	to := rapid.SampledFrom([]buffer.State{buffer.Interrupted, buffer.Cancelled}).Draw(t, "state")
	got, err := m.s.Seal(m.ctx(), id, to, buffer.Shutdown)
	m.ok(err)
	if r.state.Live() {
		r.state = r.state.Stopped(to)
	}
	if got.State != r.state {
		m.fail("sealed as %s, want %s", got.State, r.state)
	}
}

func (m *model) release(t *rapid.T) {
	id, r := m.pick(t)
	_, err := m.s.Release(m.ctx(), id)
	if r.state.Live() {
		m.want(err, buffer.ErrLive)
		return
	}
	m.ok(err)
	r.state = buffer.Released
}

func (m *model) sweep(*rapid.T) {
	_, err := m.s.Sweep(m.ctx(), time.Now(), func(ulid.ULID) bool { return false })
	m.ok(err)
	for _, r := range m.runs {
		r.swept = r.state == buffer.Released
	}
}

func (m *model) reopen(t *rapid.T) {
	if rapid.IntRange(0, 7).Draw(t, "reopen") > 0 {
		return // it takes much longer than the rest
	}
	m.restart()
	for _, r := range m.runs {
		r.log = nil // it was the former owner's
	}
	if !rapid.Bool().Draw(t, "recover") {
		return
	}
	_, err := m.s.Recover(m.ctx())
	m.ok(err)
	for _, r := range m.runs {
		if r.state.Live() {
			r.state = r.state.Stopped(buffer.Interrupted)
		}
	}
}

// compare checks everything that is left.
func (m *model) compare() {
	for _, id := range slices.SortedFunc(maps.Keys(m.runs), ulid.ULID.Compare) {
		r := m.runs[id]
		got, err := m.s.Get(m.ctx(), id)
		m.ok(err)
		if got.State != r.state || got.Head != int64(len(r.chunks)) {
			m.fail("run is %s at %d, want %s at %d", got.State, got.Head, r.state, len(r.chunks))
		}
	}
	var listed []ulid.ULID
	for r, err := range m.s.List(m.ctx(), buffer.Filter{Caller: m.caller}) {
		m.ok(err)
		listed = append(listed, r.ID)
	}
	if len(listed) != len(m.order) {
		m.fail("%d runs are listed, want %d", len(listed), len(m.order))
	}
}
