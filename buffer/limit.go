package buffer

import (
	"errors"
	"slices"
	"strings"

	"github.com/spool-dev/spool/buffer/frame"
)

// overError is a limit that an answer went over, by the name of its setting.
type overError string

// The limits of an answer. Their names are what a cut run's notes, its ledger and its error say.
const (
	overChunk   overError = "limits.chunk"
	overRun     overError = "limits.run"
	overEvents  overError = "limits.events"
	overHeaders overError = "limits.provider_headers"
	overTotal   overError = "clocks.total"
)

// Error implements error.
func (o overError) Error() string { return "over " + string(o) }

// limits are the names that a run's notes may hold.
var limits = []string{string(overChunk), string(overRun), string(overEvents), string(overHeaders), string(overTotal)}

// Limit is the setting whose limit the run's answer went over; empty where it went over none.
func (r *Run) Limit() string {
	if i := slices.IndexFunc(r.Notes, func(note string) bool { return slices.Contains(limits, note) }); i >= 0 {
		return r.Notes[i]
	}
	return ""
}

// over is the limit that ended the attempt; empty where it was something else.
func (e *ending) over() overError {
	if o, ok := errors.AsType[overError](e.err); ok {
		return o
	}
	switch {
	case e.alarm == alarmTotal:
		return overTotal
	case e.head == nil && e.err != nil && isLongHead(e.err):
		return overHeaders
	case e.head != nil && e.head.success() && errors.Is(e.err, frame.ErrTooLarge):
		return overChunk
	}
	return ""
}

// isLongHead reports whether an answer's headers were over the client's limit. net/http has no types
// for it, and these texts quote nothing.
func isLongHead(err error) bool {
	text := strings.TrimPrefix(err.Error(), "net/http: HTTP/1.x transport connection broken: ")
	return strings.HasPrefix(text, "net/http: server response headers exceeded ") ||
		strings.HasPrefix(text, "http2: response header list larger than advertised limit")
}

// note names the limit that ended the attempt in what its run's last commit says.
func (e *ending) note(c *Closing) {
	if o := e.over(); o != "" {
		c.Notes = append(slices.Clip(c.Notes), string(o))
	}
}
