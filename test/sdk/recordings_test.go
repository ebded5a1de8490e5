package sdk

import (
	"bytes"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spool-dev/spool/test/fakellm"
)

// inBand finds the error object with which a recording ends.
var inBand = regexp.MustCompile(`"error":\s*\{"`)

// readers returns the clients that yield the events of a recording; none for a dialect without SDK.
func readers(rec fakellm.Recording) []client {
	switch {
	case strings.HasPrefix(rec.Path, "/v1/completions"):
		return []client{legacyCompletions}
	case !strings.HasPrefix(rec.Path, "/v1"): // a binary framing, or a path that no client here knows
		return nil
	}
	return slices.DeleteFunc(slices.Clone(clients), func(c client) bool {
		return !c.raw || c.dialect != rec.Dialect
	})
}

// reading is one recording, perhaps cut, read by one client both ways.
type reading struct {
	name          string
	rec           fakellm.Recording
	direct, spool job
}

func (r *rig) reading(c client, rec fakellm.Recording, cut string) reading {
	name := c.name + " " + rec.Name + cut
	tape := "/" + rec.Name + cut
	return reading{
		name: name, rec: rec,
		direct: c.job(name+" direct", r.tapes.URL+tape, "hello"),
		spool:  c.job(name+" spool", r.spool+"/tape"+tape, "hello"),
	}
}

func (r *rig) read(t *testing.T, readings []reading) map[string]result {
	t.Helper()
	var jobs []job
	for _, rd := range readings {
		jobs = append(jobs, rd.direct, rd.spool)
	}
	return r.run(t, jobs)
}

// wholeRecordings are answers of real providers. One that ends in an error of the provider's own
// raises one both ways, but for SDKs that do not notice.
func wholeRecordings(t *testing.T, r *rig) {
	var readings []reading
	for _, rec := range r.recordings {
		for _, c := range readers(rec) {
			readings = append(readings, r.reading(c, rec, ""))
		}
	}
	results := r.read(t, readings)
	for _, rd := range readings {
		t.Run(rd.name, func(t *testing.T) {
			direct, spool := results[rd.direct.ID], results[rd.spool.ID]
			if inBand.Match(rd.rec.Body) {
				if spool.OK && !direct.OK {
					t.Errorf("through Spool %+v\nwithout       %+v", spool, direct)
				}
				return
			}
			if !direct.OK {
				t.Fatalf("the recording itself: %+v", direct)
			}
			if spool != direct {
				t.Errorf("through Spool %+v\nwithout       %+v", spool, direct)
			}
		})
	}
}

// cutRecordings are answers that end at about three fifths: with a reset or properly, in the middle
// of an event or between two. Without Spool some of these look whole.
func cutRecordings(t *testing.T, r *rig) {
	var readings []reading
	for rec := range onePerFamily(r.recordings) {
		middle, between := cutPoints(rec.Body)
		for _, c := range readers(rec) {
			for _, n := range []int{middle, between} {
				readings = append(readings,
					r.reading(c, rec, fmt.Sprintf(",cut=%d", n)),
					r.reading(c, rec, fmt.Sprintf(",end=%d", n)))
			}
		}
	}
	results := r.read(t, readings)
	silent := 0
	for _, rd := range readings {
		t.Run(rd.name, func(t *testing.T) {
			if results[rd.direct.ID].OK {
				silent++
			}
			wantBroken(t, results[rd.spool.ID])
			e := results[rd.spool.ID].Error
			// go-openai, which nobody official wrote, puts comments into its errors; openai-go prints of a
			// refusal its status alone.
			if !strings.HasPrefix(rd.name, "go-openai ") && e.Status < 400 && !runID.MatchString(e.Message) {
				t.Errorf("the error does not name the run: %s %q", e.Name, e.Message)
			}
		})
	}
	if silent == 0 {
		t.Error("no cut answer looks whole without Spool: these cuts prove nothing")
	}
}

// onePerFamily yields of each provider and dialect the first recording that can be cut: one that
// SDKs can read, without an error inside, and with events but no proof of the end before the cut.
func onePerFamily(all []fakellm.Recording) iter.Seq[fakellm.Recording] {
	return func(yield func(fakellm.Recording) bool) {
		taken := make(map[string]bool)
		for _, rec := range all {
			family := rec.Name[:strings.LastIndexByte(rec.Name, '-')]
			_, between := cutPoints(rec.Body)
			if taken[family] || len(readers(rec)) == 0 || between == 0 || inBand.Match(rec.Body) || proof.Match(rec.Body[:between]) {
				continue
			}
			taken[family] = true
			if !yield(rec) {
				return
			}
		}
	}
}

// runID finds a run's id in an error's message.
var runID = regexp.MustCompile(`[0-9A-HJKMNP-TV-Z]{26}`)

// proof finds what ends an answer properly.
var proof = regexp.MustCompile(`"(finish_reason|finishReason|stop_reason)":\s*"\w|data: ?\[DONE\]|response\.(completed|incomplete)`)

// cutPoints returns two offsets at about three fifths of a stream: in an event, and after the event
// before it. The second is 0 where there is none.
func cutPoints(body []byte) (middle, between int) {
	at := len(body) * 3 / 5
	for _, blank := range []string{"\n\n", "\r\n\r\n"} {
		if i := bytes.LastIndex(body[:at], []byte(blank)); i >= 0 {
			between = max(between, i+len(blank))
		}
	}
	return max(at, between+8), between
}
