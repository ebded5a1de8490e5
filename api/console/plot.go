package console

import (
	"fmt"
	"strings"
	"time"
)

// Plots are drawn in units of their own; the page stretches them.
const (
	plotWidth  = 600.0
	plotHeight = 120.0
	leastSpan  = 5 * time.Minute
	mostSpan   = time.Hour
)

// canvas is the time that a plot spans.
type canvas struct {
	now  time.Time
	span time.Duration
}

// canvasOf spans all samples, and a few minutes at least.
func canvasOf(all []sample) canvas {
	c := canvas{now: all[len(all)-1].at}
	c.span = min(max(c.now.Sub(all[0].at), leastSpan), mostSpan)
	return c
}

// point is a value at a moment; ok is false where there is none.
type point struct {
	at    time.Time
	value float64
	ok    bool
}

// series is one line of a plot.
type series struct {
	Name  string
	Class string // of the style sheet
	Now   string // the last value, as a person reads it
	Line  string // the path of the line
	Area  string // and of what lies under it; empty where nothing is filled
}

// panel is one plot and what it is about.
type panel struct {
	Title  string
	Now    string // the figure that matters
	Note   string // beside it
	Top    string // the value of the upper edge
	Series []series
	Bars   []stack
	Keys   []series // what the bars' colours mean
}

// Said is the plot in a sentence, for who does not see it.
func (p panel) Said() string {
	var text strings.Builder
	text.WriteString(p.Title + ", as it went. Now " + p.Now)
	for _, s := range p.Series {
		if s.Now != "" && len(p.Series) > 1 {
			text.WriteString(", " + s.Name + " " + s.Now)
		}
	}
	for _, s := range p.Keys {
		text.WriteString(", " + s.Name + " " + s.Now)
	}
	return text.String() + ". Highest " + p.Top + "."
}

// stack is a bar of several parts, from below.
type stack struct{ Parts []part }

// part is one of them.
type part struct {
	Class               string
	X, Y, Width, Height float64
}

// x is where a moment lies.
func (c canvas) x(at time.Time) float64 {
	return plotWidth * (1 - min(max(float64(c.now.Sub(at))/float64(c.span), 0), 1))
}

// line draws points up to a top value. A gap in the points is one in the line.
func (c canvas) line(points []point, top float64) string {
	var path strings.Builder
	pen := "M"
	for _, p := range points {
		if !p.ok {
			pen = "M"
			continue
		}
		fmt.Fprintf(&path, "%s%.1f %.1f", pen, c.x(p.at), plotHeight*(1-min(p.value/top, 1)))
		pen = "L"
	}
	return path.String()
}

// area is a line without gaps, closed along the bottom.
func (c canvas) area(points []point, top float64) string {
	if len(points) == 0 {
		return ""
	}
	return fmt.Sprintf("%sL%.1f %.0fL%.1f %.0fZ", c.line(points, top),
		c.x(points[len(points)-1].at), plotHeight, c.x(points[0].at), plotHeight)
}

// topOf is a round number that no point is above.
func topOf(least float64, lines ...[]point) float64 {
	highest := least
	for _, points := range lines {
		for _, p := range points {
			highest = max(highest, p.value)
		}
	}
	scale := 1.0
	for scale*10 < highest {
		scale *= 10
	}
	for scale > highest {
		scale /= 10
	}
	for _, step := range []float64{1, 2, 2.5, 5, 10} {
		if scale*step >= highest {
			return scale * step
		}
	}
	return highest
}
