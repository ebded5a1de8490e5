package main

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/spool-dev/spool/api/wire"
)

// verify holds the run, and what everybody read of it, against the script.
func (t *trial) verify(bought int) {
	r := t.run
	if r.Outcome != t.state || t.head >= 0 && r.Head != int64(t.head) {
		t.wrong("it is %s %q at %d, want %s at %d", r.Outcome, r.Reason, r.Head, t.state, t.head)
	}
	if bought != len(r.Attempts) {
		t.wrong("%d requests came to the provider, and the ledger has %d", bought, len(r.Attempts))
	}
	whole := t.whole()
	for _, got := range t.readings {
		switch {
		case got.err != nil:
			t.wrong("%s reader: %v", got.name, got.err)
		case got.gone && !t.overdue():
			t.wrong("%s reader: the run was released under it", got.name)
		case got.ended && (got.clean != whole || int64(got.at) != r.Bytes):
			t.wrong("%s reader: it ended at %d of %d bytes, cleanly: %t", got.name, got.at, r.Bytes, got.clean)
		}
	}
	t.verifyCaller(whole)
	t.l.count(func(c *counts) {
		c.endings[t.ending]++
		c.runs++
		c.bought += bought
		c.readers += 1 + len(t.readings)
		c.bytes += int64(len(t.native.bytes))
		for _, got := range t.readings {
			c.hops += got.hops
			c.bytes += got.bytes
			c.habits[got.name]++
		}
		c.habits["the caller"]++
	})
}

// verifyCaller holds what the caller got against the run: the provider's bytes, and behind them, where it
// was cut, what tells of that.
func (t *trial) verifyCaller(whole bool) {
	a := t.native
	if t.stop == "silence" || t.ending == "down" {
		if a.status < 400 || !a.clean && !a.left {
			t.wrong("its caller got status %d, %v", a.status, a.err)
		}
		return
	}
	if t.run.Bytes > int64(len(t.text.bytes)) {
		t.wrong("it has %d bytes of the provider's %d", t.run.Bytes, len(t.text.bytes))
		return
	}
	stored := t.text.bytes[:t.run.Bytes]
	if a.left {
		if !bytes.HasPrefix(a.bytes, stored[:min(len(a.bytes), len(stored))]) {
			t.wrong("its caller left after %d bytes that are not the provider's", len(a.bytes))
		}
		return
	}
	rest, begins := bytes.CutPrefix(a.bytes, stored)
	if !begins || whole != (a.clean && len(rest) == 0) || a.clean != whole {
		t.wrong("its caller got %d of %d bytes, %d after them, cleanly: %t", len(a.bytes)-len(rest), len(stored), len(rest), a.clean)
	}
}

// afterwards has the ended run read again, called again, and released.
func (t *trial) afterwards(ctx context.Context, rng *rand.Rand) {
	for range rng.IntN(3) {
		from := rng.IntN(int(t.run.Head) + 1)
		if t.head < 0 && t.ending == "down" {
			break // its body may be the buffer's own
		}
		t.late(ctx, rng, from)
	}
	if rng.IntN(3) == 0 && !t.again {
		t.repeat(ctx, rng, false)
	}
	if rng.IntN(3) > 0 {
		t.l.keep(past{t, time.Now()})
		return
	}
	resp, err := t.peer.ask(ctx, rng, http.MethodPost, "/runs/"+t.id+"/ack", "")
	if err != nil {
		return // ctx has ended, or the next call says it
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.wrong("ack: %s", resp.Status)
		return
	}
	t.l.count(func(c *counts) { c.acks++ })
	if r := t.peer.follow(ctx, rng, t.id, t.text, 0, habit{}); ctx.Err() == nil && !r.gone {
		t.wrong("it is released and can be read: %d bytes, %v", r.at, r.err)
	}
	if !t.again {
		t.repeat(ctx, rng, true)
	}
}

// late is a reader of an ended run.
func (t *trial) late(ctx context.Context, rng *rand.Rand, from int) {
	r := t.peer.follow(ctx, rng, t.id, t.text, from, habits(rng, int(t.run.Bytes)))
	if ctx.Err() != nil {
		return
	}
	if r.err != nil || r.gone && !t.overdue() || r.ended && (r.clean != t.whole() || int64(r.at) != t.run.Bytes) {
		t.wrong("a late %s reader from %d: at %d of %d, gone %t, cleanly %t, %v", r.name, from, r.at, t.run.Bytes, r.gone, r.clean, r.err)
	}
	t.l.count(func(c *counts) { c.readers++; c.hops += r.hops; c.bytes += r.bytes; c.habits["late"]++ })
}

// whole says whether the answer ends as one that is.
func (t *trial) whole() bool { return t.run.Outcome == "completed" || t.run.Outcome == "failed" }

// overdue says whether the run may be gone by itself.
func (t *trial) overdue() bool { return time.Since(*t.run.Ended) >= t.l.o.ttl }

// repeat makes the call again, which must buy nothing.
func (t *trial) repeat(ctx context.Context, rng *rand.Rand, released bool) {
	before := t.l.fake().Count(t.route)
	resp, err := t.peer.ask(ctx, rng, http.MethodPost, t.path, t.body, t.headers...)
	if err != nil {
		return // ctx has ended, or the next call says it
	}
	defer resp.Body.Close()
	got, _ := io.ReadAll(resp.Body) // it may end as the run did
	bought := t.l.fake().Count(t.route) - before
	if ctx.Err() != nil {
		return
	}
	t.l.count(func(c *counts) { c.repeats++; c.bytes += int64(len(got)) })
	switch {
	case released && resp.StatusCode != http.StatusGone, !released && !bytes.HasPrefix(got, t.text.bytes[:t.run.Bytes]),
		!released && resp.Header.Get(wire.HeaderReplayed) != "true", bought != 0:
		if !t.overdue() || bought != 0 {
			t.wrong("a repeat, released %t: %s, %d bytes of %d, bought %d", released, resp.Status, len(got), t.run.Bytes, bought)
		}
	}
}
