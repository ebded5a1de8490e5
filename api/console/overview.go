package console

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"
)

// hour is the overview.
type hour struct {
	Panels []panel
	From   string // what the left edge of the plots is
	Middle string
	Source string
}

func (c *Console) overview(w http.ResponseWriter, _ *http.Request, v Viewer) error {
	if !v.All || c.Record == nil {
		return errNoPage
	}
	return c.show(w, "overview", page{Title: "Overview", Viewer: v, Body: hourOf(c.Record.samples())})
}

func (c *Console) panels(w http.ResponseWriter, r *http.Request, v Viewer) error {
	if !v.All || c.Record == nil {
		return errNoPage
	}
	return c.part(w, r, "overview", "panels", hourOf(c.Record.samples()))
}

func hourOf(all []sample) hour {
	h := hour{Source: "/ui/panels"}
	if len(all) == 0 {
		return h
	}
	c := canvasOf(all)
	h.From, h.Middle = ago(c.span), ago(c.span/2)
	h.Panels = []panel{
		c.gauges("Live runs", all, whole, gauge{"runs", "one", func(s sample) float64 { return s.live }}, gauge{"readers", "two", func(s sample) float64 { return s.tails }}),
		c.rates(all),
		c.latencies(all),
		c.outcomes(all),
		c.saved(all),
		c.gauges("Circuits open", all, whole, gauge{"circuits", "bad", func(s sample) float64 { return s.circuits }}),
	}
	if all[len(all)-1].diskFree > 0 { // a node of a cluster has none
		h.Panels = append(h.Panels, c.disk(all))
	}
	return h
}

func ago(d time.Duration) string {
	return strconv.FormatFloat(math.Round(d.Minutes()*10)/10, 'f', -1, 64) + " m ago"
}

func whole(v float64) string  { return count(int64(v)) }
func octets(v float64) string { return size(int64(v)) }

func tenths(v float64) string {
	if v >= 10 || v == 0 {
		return whole(v)
	}
	return strconv.FormatFloat(v, 'f', 1, 64)
}

func seconds(v float64) string { return took(time.Duration(v * float64(time.Second))) }

// gauge is a figure that goes up and down.
type gauge struct {
	name, class string
	value       func(sample) float64
}

// gauges draws figures that share a scale; the first one is the panel's.
func (c canvas) gauges(title string, all []sample, text func(float64) string, of ...gauge) panel {
	lines := make([][]point, len(of))
	for i, g := range of {
		for _, s := range all {
			lines[i] = append(lines[i], point{s.at, g.value(s), true})
		}
	}
	p := panel{Title: title}
	names := make([]series, len(of))
	for i, g := range of {
		names[i] = series{Name: g.name, Class: g.class}
	}
	return c.drawn(p, names, lines, 1, text)
}

// drawn fills a panel with lines on one scale, whose top is at least least.
func (c canvas) drawn(p panel, names []series, lines [][]point, least float64, text func(float64) string) panel {
	top := topOf(least, lines...)
	p.Top = text(top)
	for i, s := range names {
		points := lines[i]
		if n := len(points); n > 0 {
			s.Now = "–"
			if points[n-1].ok {
				s.Now = text(points[n-1].value)
			}
		}
		s.Line = c.line(points, top)
		if i == 0 && s.Class != "plain" {
			s.Area = c.area(points, top)
		}
		p.Series = append(p.Series, s)
	}
	p.Now = p.Series[0].Now
	return p
}

// rate is what a total has grown by each second, between neighbouring samples.
func rate(all []sample, total func(sample) float64) []point {
	var points []point
	for i := 1; i < len(all); i++ {
		over := all[i].at.Sub(all[i-1].at).Seconds()
		points = append(points, point{all[i].at, max(total(all[i])-total(all[i-1]), 0) / max(over, 0.001), true})
	}
	return points
}

func (c canvas) rates(all []sample) panel {
	events := rate(all, func(s sample) float64 { return s.chunks })
	p := c.drawn(panel{Title: "Events per second"}, []series{{Name: "events", Class: "one"}}, [][]point{events}, 1, tenths)
	if bytes := rate(all, func(s sample) float64 { return s.bytes }); len(bytes) > 0 {
		p.Note = octets(bytes[len(bytes)-1].value) + "/s stored"
	}
	if p.Now == "" {
		p.Now = "–"
	}
	return p
}

// latencyWindow is over how many samples a latency is reckoned.
const latencyWindow = 12

func (c canvas) latencies(all []sample) panel {
	var half, most []point
	for i := range all {
		buckets := all[i].since(all[max(0, i-latencyWindow)])
		a, ok := quantile(buckets, 0.5)
		b, _ := quantile(buckets, 0.95)
		half, most = append(half, point{all[i].at, a, ok}), append(most, point{all[i].at, b, ok})
	}
	p := c.drawn(panel{Title: "First content", Note: "over two minutes"},
		[]series{{Name: "median", Class: "plain"}, {Name: "95th percentile", Class: "two"}}, [][]point{half, most}, 0.1, seconds)
	return p
}

// kinds are the outcomes that a bar shows, from below.
var kinds = []struct {
	name, class string
	outcomes    []string
}{
	{"completed", "good", []string{"primary_ok", "completed_policy", "completed_usage_missing"}},
	{"recovered", "two", []string{"retry_recovered", "fallback_recovered"}},
	{"interrupted", "warn", []string{"interrupted"}},
	{"failed", "bad", []string{"failed"}},
	{"cancelled", "dim", []string{"cancelled"}},
}

// The bars of the outcomes.
const (
	mostBars = 30
	barGap   = 2.0
)

func (c canvas) outcomes(all []sample) panel {
	p := panel{Title: "Runs ended"}
	ended := func(from, to sample, kind int) (n float64) {
		for _, name := range kinds[kind].outcomes {
			n += to.outcomes[name] - from.outcomes[name]
		}
		return max(n, 0)
	}
	last, sum, highest := len(all)-1, 0.0, 1.0
	steps := last/mostBars + 1 // samples that one bar holds
	for k := range kinds {
		n := ended(all[0], all[last], k)
		sum += n
		p.Keys = append(p.Keys, series{Name: kinds[k].name, Class: kinds[k].class, Now: whole(n)})
	}
	p.Now, p.Note = whole(sum), "in that time"
	for to := last; to > 0; to -= steps {
		n := 0.0
		for k := range kinds {
			n += ended(all[max(0, to-steps)], all[to], k)
		}
		highest = max(highest, n)
	}
	top := topOf(highest)
	for to := last; to > 0; to -= steps {
		from := max(0, to-steps)
		x, y := c.x(all[from].at), plotHeight
		bar := stack{}
		for k := range kinds {
			h := plotHeight * ended(all[from], all[to], k) / top
			if y -= h; h > 0 {
				bar.Parts = append(bar.Parts, part{kinds[k].class, x, y, max(c.x(all[to].at)-x-barGap, 1), h})
			}
		}
		p.Bars = append(p.Bars, bar)
	}
	p.Top = whole(top)
	return p
}

func (c canvas) saved(all []sample) panel {
	p := c.gauges("Tokens saved", all, whole, gauge{"tokens", "good", func(s sample) float64 { return s.savedTokens }})
	p.Note = dollars(all[len(all)-1].savedCost) + " saved since the start"
	return p
}

func (c canvas) disk(all []sample) panel {
	p := c.gauges("Disk", all, octets, gauge{"used", "one", func(s sample) float64 { return s.diskUsed }})
	p.Note = fmt.Sprintf("%s free", octets(all[len(all)-1].diskFree))
	return p
}
