package policy

import (
	"errors"
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"
)

// maxHint bounds every hint. It is beyond any budget, so that a longer one says the same.
const maxHint = 366 * 24 * time.Hour

// hint is the provider's lower bound for the wait before the next send: the first form that is found
// and makes sense, in the order of docs/providers.md, section 4. 0 is none.
func hint(h http.Header, f fault) time.Duration {
	for _, d := range []time.Duration{
		number(h.Get("Retry-After-Ms"), time.Millisecond),
		number(h.Get("X-Ms-Retry-After-Ms"), time.Millisecond),
		retryAfter(h.Get("Retry-After"), h.Get("Date")),
		f.delay,
		limitReset(h),
		tryAgainIn(f.message),
	} {
		if d > 0 {
			return d
		}
	}
	return 0
}

// retryAfter reads RFC 9110's header: seconds, fractions too, or a date. A date is measured against
// the response's own, since clocks differ and this package has none.
func retryAfter(value, date string) time.Duration {
	if d := number(value, time.Second); d > 0 {
		return d
	}
	until, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	now, err := http.ParseTime(date)
	if err != nil {
		return 0
	}
	return bounded(until.Sub(now))
}

// limitReset reads x-ratelimit-reset-* beside an x-ratelimit-remaining-* that is 0. Of several used up
// limits the last to come back counts.
func limitReset(h http.Header) time.Duration {
	const reset, remaining = "X-Ratelimit-Reset-", "X-Ratelimit-Remaining-"
	var longest time.Duration
	for name := range h {
		what, ok := strings.CutPrefix(http.CanonicalHeaderKey(name), reset)
		if !ok {
			continue
		}
		left, err := strconv.ParseFloat(strings.TrimSpace(h.Get(remaining+what)), 64)
		if err == nil && left == 0 {
			longest = max(longest, duration(h.Get(name)))
		}
	}
	return longest
}

// tryAgain matches the provider's sentence; the rest is a duration, written "1.2s", "6m0s", "20ms" or
// "5 seconds".
var (
	tryAgain = regexp.MustCompile(`(?i)\btry again in:?\s+((?:\d+(?:\.\d+)?\s*(?:` + unitNames + `)\b[\s,]*|\d+(?:\.\d+)?(?:ms|[smhd]))+)`)
	part     = regexp.MustCompile(`(?i)(\d+(?:\.\d+)?)\s*(` + unitNames + `)`)
)

const unitNames = `milliseconds?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|h|days?|d`

func tryAgainIn(text string) time.Duration {
	match := tryAgain.FindStringSubmatch(text)
	if match == nil {
		return 0
	}
	return parts(match[1])
}

// duration reads "1s", "6m0s", "20ms", "1d2h" or plain seconds.
func duration(value string) time.Duration {
	value = strings.TrimSpace(value)
	if d := number(value, time.Second); d > 0 {
		return d
	}
	if len(value) > 64 || strings.HasPrefix(value, "-") {
		return 0
	}
	return parts(value)
}

func parts(value string) time.Duration {
	sum := 0.0
	for _, m := range part.FindAllStringSubmatch(value, -1) {
		n, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			return 0
		}
		sum += n * float64(unit(m[2]))
	}
	return floated(sum)
}

func unit(name string) time.Duration {
	switch name = strings.ToLower(name); {
	case strings.HasPrefix(name, "ms"), strings.HasPrefix(name, "mil"):
		return time.Millisecond
	case name[0] == 'm':
		return time.Minute
	case name[0] == 'h':
		return time.Hour
	case name[0] == 'd':
		return 24 * time.Hour
	}
	return time.Second
}

// googleDelay reads a google.protobuf.Duration: "3.5s", or its fields.
func googleDelay(v gjson.Result) time.Duration {
	if v.IsObject() {
		return floated(v.Get("seconds").Float()*float64(time.Second) + v.Get("nanos").Float())
	}
	seconds, ok := strings.CutSuffix(clip(v.String(), 64), "s")
	if !ok {
		return 0
	}
	return number(seconds, time.Second)
}

// number reads a decimal count of units. What is no number or not positive is 0.
func number(value string, unit time.Duration) time.Duration {
	value = strings.TrimSpace(value)
	if len(value) > 64 || strings.Trim(value, "0123456789.+-eE") != "" {
		return 0
	}
	n, err := strconv.ParseFloat(value, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) { // what is too large to be held is long all the same
		return 0
	}
	return floated(n * float64(unit))
}

// floated is a count of nanoseconds as a hint, within its bounds.
func floated(ns float64) time.Duration {
	switch {
	case math.IsNaN(ns), ns <= 0:
		return 0
	case ns >= float64(maxHint):
		return maxHint
	}
	return time.Duration(math.Ceil(ns))
}

func bounded(d time.Duration) time.Duration { return min(max(d, 0), maxHint) }
