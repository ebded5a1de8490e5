package sqlite

import (
	"database/sql/driver"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/spool-dev/spool/buffer"
)

type insert struct {
	rows  int
	query string
}

// inserts are the statements for so many rows at once. Each costs as much as several of its rows, so a
// batch takes the largest that it fills, again and again.
var inserts = []insert{{64, insertArrivals(64)}, {16, insertArrivals(16)}, {4, insertArrivals(4)}, {1, insertArrivals(1)}}

func insertArrivals(n int) string {
	return `INSERT INTO arrivals (id, run, pos, start, sizes, data, cipher) VALUES (?, ?, ?, ?, ?, ?, ?)` + strings.Repeat(", (?, ?, ?, ?, ?, ?, ?)", n-1)
}

const (
	insertSegment = `INSERT INTO segments (run, pos, start, sizes, data, cipher) VALUES (?, ?, ?, ?, ?, ?)`
	settleRun     = `UPDATE runs SET head = ?, bytes = ? WHERE run = ? AND owner = ? AND ended IS NULL`
)

// write stores the chunks of all runs of the batch: those of a run that has ended, or has enough for
// a segment, in segments, together with what had arrived before; the others among the arrivals.
func (t *tx) write() error {
	if t.wrote || t.adds() {
		if err := t.tidy(); err != nil {
			return err
		}
	}
	var values []any
	for _, d := range t.order {
		switch {
		case d.settles():
			if err := t.settle(d); err != nil {
				return fmt.Errorf("write segment: %w", err)
			}
		case len(d.added) > 0:
			t.w.arrival++
			d.arrival, t.last = t.w.arrival, d
			p := pack(d.added).encrypt(d.key)
			values = append(values, d.arrival, d.row, p.pos, p.start, p.sizes, p.data, p.cipher)
		}
	}
	return t.insertArrivals(values)
}

// adds reports whether there are chunks to be written.
func (t *tx) adds() bool {
	return slices.ContainsFunc(t.order, func(d *draft) bool { return len(d.added) > 0 })
}

// settles reports whether all that is not in segments yet goes there now.
func (d *draft) settles() bool {
	n := len(d.arrived) + len(d.added)
	return n > 0 && (d.settle || d.run.State.Ended() || n >= segmentChunks || span(d.arrived)+span(d.added) >= segmentBytes)
}

func (t *tx) settle(d *draft) error {
	t.bytes += span(d.arrived)
	for p := range d.segments() {
		if _, err := t.exec(insertSegment, d.row, p.pos, p.start, p.sizes, p.data, p.cipher); err != nil {
			return err
		}
	}
	d.settle, d.stored = true, d.run.Head
	if d.run.State.Live() {
		if _, err := t.exec(settleRun, d.run.Head, d.run.Bytes, d.row, d.owner); err != nil {
			return err
		}
	}
	return nil
}

// segments are the rows of all that is in none yet. What cannot be decrypted here goes row by row, since the tag
// vouches for where it is, and not for the table; nothing was added to it: who appends has the key.
func (d *draft) segments() iter.Seq[piece] {
	if len(d.hidden) > 0 {
		return slices.Values(d.hidden)
	}
	return func(yield func(piece) bool) {
		rest := d.added
		if len(d.arrived) > 0 {
			rest = slices.Concat(d.arrived, d.added)
		}
		for len(rest) > 0 {
			var segment []buffer.Chunk
			segment, rest = cut(rest)
			if !yield(pack(segment).encrypt(d.key)) {
				return
			}
		}
	}
}

func (t *tx) insertArrivals(values []any) error {
	const width = 7
	for len(values) > 0 {
		i := slices.IndexFunc(inserts, func(in insert) bool { return len(values) >= in.rows*width })
		query, n := inserts[i].query, inserts[i].rows*width
		if err := t.w.s.cfg.Fault(AtWrite); err != nil {
			return err
		}
		t.wrote = true
		args := t.w.args[:0]
		for i, v := range values[:n] {
			args = append(args, driver.NamedValue{Ordinal: i + 1, Value: v})
		}
		t.w.args = args
		if err := t.w.conn.execHot(query, args); err != nil {
			return fmt.Errorf("insert arrivals: %w", err)
		}
		values = values[n:]
	}
	return nil
}
