package fakellm

import (
	"encoding/json"
	"fmt"
	"time"
)

// Bug is one public report of a stream that went wrong, as a script and what must come of it.
type Bug struct {
	ID       string
	URL      string
	Symptom  string
	Correct  string // what a right program does, in prose
	Protocol string // openai_chat, openai_responses, anthropic, gemini
	Limits   Limits
	Client   Client
	Primary  [][]Op
	Fallback [][]Op // empty: there is no fallback route
	Retry    bool   // false: a route is not tried twice
	Expect   Expect
	Observed []Observed
}

// Limits are the clocks and the budget that a Bug sets; 0 leaves a default alone.
type Limits struct {
	Headers, FirstContent, ByteIdle, ContentGap, FinishGrace, Total, Heartbeat time.Duration
	Attempts                                                                   int
}

// Client is what the caller does: it reads all, or leaves after so many bytes of the body.
type Client struct {
	Behaviour string `json:"behaviour"` // read_all, disconnect_after_bytes
	Bytes     int    `json:"bytes"`
}

// Expect is what must come of a Bug. Empty fields ask for nothing.
type Expect struct {
	Attempts   []Attempt         `json:"attempts"`
	State      string            `json:"state"`
	Reason     string            `json:"reason"`
	ClientSees string            `json:"client_sees"`
	MinGapMS   int64             `json:"min_gap_ms"` // between two attempts
	Metrics    map[string]int64  `json:"metrics"`
	Ledger     map[string]int64  `json:"ledger"`
	Health     map[string]string `json:"health"`
	MustNot    []string          `json:"must_not"`
}

// Attempt is one row of the ledger that a Bug expects.
type Attempt struct {
	Route  string `json:"route"`
	Class  string `json:"class"`
	Action string `json:"action"`
	Billed string `json:"billed"`
}

// Observed is what Go's net/http client saw of one answer of the script.
type Observed struct {
	Route   string `json:"route"`
	Attempt int    `json:"attempt"` // from 1
	Status  int    `json:"status"`
	Bytes   int    `json:"bytes"`
	Err     string `json:"err"`
}

// ParseBugs reads a file of bugs. An error names the bug, the answer and the op.
func ParseBugs(file []byte) ([]Bug, error) {
	var f struct {
		Bugs []writtenBug `json:"bugs"`
	}
	if err := json.Unmarshal(file, &f); err != nil {
		return nil, fmt.Errorf("bugs: %w", err)
	}
	var bugs []Bug
	for _, w := range f.Bugs {
		bug, err := w.bug()
		if err != nil {
			return nil, fmt.Errorf("bug %s: %w", w.ID, err)
		}
		bugs = append(bugs, bug)
	}
	return bugs, nil
}

// writtenBug is a Bug as the file writes it.
type writtenBug struct {
	ID       string `json:"id"`
	URL      string `json:"url"`
	Symptom  string `json:"symptom"`
	Correct  string `json:"correct_behaviour"`
	Provider struct {
		Protocol string              `json:"protocol"`
		Limits   map[string]int64    `json:"limits"`
		Client   Client              `json:"client"`
		Primary  [][]json.RawMessage `json:"primary"`
		Fallback [][]json.RawMessage `json:"fallback"`
		Retry    *bool               `json:"retry"`
	} `json:"fake_provider"`
	Expect   Expect     `json:"expect"`
	Observed []Observed `json:"observed_with_net_http"`
}

func (w writtenBug) bug() (Bug, error) {
	p := w.Provider
	primary, err := parseAnswers("primary", p.Primary)
	if err != nil {
		return Bug{}, err
	}
	fallback, err := parseAnswers("fallback", p.Fallback)
	if err != nil {
		return Bug{}, err
	}
	limits, err := parseLimits(p.Limits)
	if err != nil {
		return Bug{}, err
	}
	return Bug{
		ID: w.ID, URL: w.URL, Symptom: w.Symptom, Correct: w.Correct,
		Protocol: p.Protocol, Limits: limits, Client: p.Client,
		Primary: primary, Fallback: fallback, Retry: p.Retry == nil || *p.Retry,
		Expect: w.Expect, Observed: w.Observed,
	}, nil
}

// parseLimits fails on a limit that it does not know: a bug whose clock is ignored proves nothing.
func parseLimits(raw map[string]int64) (Limits, error) {
	var l Limits
	clocks := map[string]*time.Duration{
		"headers_ms": &l.Headers, "first_content_ms": &l.FirstContent, "byte_idle_ms": &l.ByteIdle,
		"content_gap_ms": &l.ContentGap, "finish_grace_ms": &l.FinishGrace, "total_ms": &l.Total,
		"heartbeat_ms": &l.Heartbeat,
	}
	for name, n := range raw {
		if name == "attempts" {
			l.Attempts = int(n)
			continue
		}
		clock, ok := clocks[name]
		if !ok {
			return Limits{}, fmt.Errorf("unknown limit %q", name)
		}
		*clock = millis(n)
	}
	return l, nil
}
