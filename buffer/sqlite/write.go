package sqlite

import (
	"database/sql/driver"
	"fmt"
	"slices"
	"strings"

	"github.com/spool-dev/spool/buffer"
)

// The rows of one INSERT: as many as pay, and one for what is left over.
const insertRows = 32

var (
	insertOne  = insertArrivals(1)
	insertMany = insertArrivals(insertRows)
)

func insertArrivals(n int) string {
	return `INSERT INTO arrivals (id, run, pos, start, sizes, data) VALUES (?, ?, ?, ?, ?, ?)` + strings.Repeat(", (?, ?, ?, ?, ?, ?)", n-1)
}

const (
	insertSegment = `INSERT INTO segments (run, pos, start, sizes, data) VALUES (?, ?, ?, ?, ?)`
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
			p := pack(d.added)
			values = append(values, d.arrival, d.row, p.pos, p.start, p.sizes, p.data)
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
	rest := slices.Concat(d.arrived, d.added)
	t.bytes += span(d.arrived)
	for len(rest) > 0 {
		var segment []buffer.Chunk
		segment, rest = cut(rest)
		p := pack(segment)
		if _, err := t.exec(insertSegment, d.row, p.pos, p.start, p.sizes, p.data); err != nil {
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

func (t *tx) insertArrivals(values []any) error {
	const width = 6
	for len(values) > 0 {
		query, n := insertOne, width
		if len(values) >= insertRows*width {
			query, n = insertMany, insertRows*width
		}
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
