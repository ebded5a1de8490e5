package console

import (
	"time"

	"github.com/spool-dev/spool/buffer"
)

// The timeline is drawn in units of its own; the page stretches it.
const (
	lineWidth = 1000.0
	lineRow   = 26
	lineBar   = 14
	leastBar  = 4.0 // so that the shortest attempt can be seen
)

// timeline is the attempts of a run between its beginning and its end.
type timeline struct {
	Bars     []bar
	Height   int
	Boundary float64 // where the first content came; below 0 where none did
	Whole    time.Duration
	Open     bool // it goes on
}

// bar is one attempt. Wait is the part of it before its answer's head.
type bar struct {
	N              int
	Class, Action  string
	X, Width, Wait float64
	Y              int
}

func timelineOf(run buffer.Run) timeline {
	end := run.Ended
	if end.IsZero() {
		end = time.Now()
	}
	t := timeline{Boundary: -1, Open: run.State.Live(), Height: lineRow*len(run.Attempts) + 4, Whole: max(end.Sub(run.Created), time.Millisecond)}
	at := func(moment time.Time) float64 {
		return min(max(float64(moment.Sub(run.Created))/float64(t.Whole), 0), 1) * lineWidth
	}
	if !run.Committed.IsZero() {
		t.Boundary = at(run.Committed)
	}
	for i, a := range run.Attempts {
		b := bar{N: a.N, Class: string(a.Class), Action: string(a.Action), X: min(at(a.Sent), lineWidth-leastBar), Y: lineRow*i + (lineRow-lineBar)/2 + 2}
		till := lineWidth
		if !a.Ended.IsZero() {
			till = at(a.Ended)
		}
		b.Width = max(till-b.X, leastBar)
		if a.FirstByte > 0 {
			b.Wait = min(at(a.Sent.Add(a.FirstByte))-b.X, b.Width)
		}
		t.Bars = append(t.Bars, b)
	}
	return t
}
