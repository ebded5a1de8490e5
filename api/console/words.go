package console

import (
	"fmt"
	"html/template"
	"strconv"
	"strings"
	"time"

	"github.com/spool-dev/spool/buffer"
)

// words is how the pages write values.
var words = template.FuncMap{
	"count": count, "bytes": size, "took": took, "clock": clock, "iso": iso, "dollars": dollars, "short": short, "caller": callerName, "word": word,
}

// count groups digits by threes.
func count(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "\u202f" + text[i:]
	}
	return text
}

// size is a number of bytes in the unit that suits it.
func size(n int64) string {
	value, unit := float64(n), "B"
	for _, next := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if value < 1024 {
			break
		}
		value, unit = value/1024, next
	}
	if unit == "B" || value >= 100 {
		return fmt.Sprintf("%.0f %s", value, unit)
	}
	return fmt.Sprintf("%.1f %s", value, unit)
}

// took is a duration with two figures that matter.
func took(d time.Duration) string {
	switch {
	case d < 0:
		return "–"
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%d m %02d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d h %02d m", int(d.Hours()), int(d.Minutes())%60)
}

func clock(t time.Time) string {
	if t.IsZero() {
		return "–"
	}
	return t.UTC().Format("2006-01-02 15:04:05 UTC")
}

func iso(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// dollars keeps what is left of a cent.
func dollars(v float64) string {
	if v > 0 && v < 0.01 {
		return fmt.Sprintf("$%.5f", v)
	}
	return fmt.Sprintf("$%.2f", v)
}

// short is the part of a run's id that tells it from its neighbours.
func short(r buffer.Run) string { id := r.ID.String(); return id[len(id)-10:] }

// hashSize is that of a caller who has no name, in hexadecimal digits.
const hashSize = 64

// callerName is a caller's name, or the beginning of its hash.
func callerName(name string) string {
	if len(name) == hashSize && strings.Trim(name, "0123456789abcdef") == "" {
		return name[:8] + "…"
	}
	return name
}

// word is a word of the contract as a person writes it.
func word(v any) string { return strings.ReplaceAll(fmt.Sprint(v), "_", " ") }
