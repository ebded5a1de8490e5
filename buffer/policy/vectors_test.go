package policy_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/spool-dev/spool/buffer/policy"
)

// vector is one moment: everything that is known when an attempt ended, or when somebody asks.
type vector struct {
	Name, Why, Provider string

	Status       *int
	Headers      map[string]string
	Body         string
	BodyEncoding string `json:"body_encoding"`
	Transport    string
	SilentMS     int  `json:"silent_ms"`
	GraceMS      int  `json:"finish_grace_ms"`
	Delivered    int  `json:"bytes_already_delivered"`
	RequestSent  bool `json:"request_sent"`
	ToolStarted  bool `json:"tool_started"`

	Kind         policy.Kind `json:"operation_kind"`
	AttemptsLeft int         `json:"attempts_left"`
	ElapsedLeft  int         `json:"elapsed_left_ms"`
	CostLeft     float64     `json:"cost_left_usd"`
	MaxWait      int         `json:"max_inline_wait_ms"`
	Circuit      string

	RetryExpected int     `json:"retry_expected_ms"`
	RetryCost     float64 `json:"retry_expected_cost_usd"`

	FallbackApproved    bool    `json:"fallback_approved"`
	FallbackHealthy     bool    `json:"fallback_healthy"`
	FallbackIndependent bool    `json:"fallback_independent_quota"`
	FallbackExpected    int     `json:"fallback_expected_ms"`
	FallbackCost        float64 `json:"fallback_expected_cost_usd"`

	ExpectClass  policy.Class  `json:"expect_class"`
	ExpectAction policy.Action `json:"expect_action"`
	ExpectDelay  int           `json:"expect_delay_ms_min"`
	ExpectBilled *bool         `json:"expect_maybe_billed"`
}

// checked are the expectations that TestVectors knows. A vector with another one fails, so that none
// is overlooked.
var checked = []string{"expect_class", "expect_action", "expect_delay_ms_min", "expect_maybe_billed"}

// vectors are those of the file that SPOOL_POLICY_VECTORS names, else the project's own.
func vectors(t *testing.T) []vector {
	t.Helper()
	if path := os.Getenv("SPOOL_POLICY_VECTORS"); path != "" {
		return loadVectors(t, path)
	}
	return append(loadVectors(t, "testdata/policy.json"), loadVectors(t, "testdata/policy-edges.json")...)
}

func loadVectors(t *testing.T, path string) []vector {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Defaults json.RawMessage
		Vectors  []json.RawMessage
	}
	if err := json.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Vectors) == 0 {
		t.Fatalf("%s has no vectors", path)
	}
	vectors := make([]vector, len(file.Vectors))
	for i, one := range file.Vectors {
		for _, layer := range []json.RawMessage{file.Defaults, one} {
			if err := json.Unmarshal(layer, &vectors[i]); err != nil {
				t.Fatalf("vector %d: %v", i, err)
			}
		}
		gjson.ParseBytes(one).ForEach(func(key, _ gjson.Result) bool {
			if strings.HasPrefix(key.Str, "expect_") && !slices.Contains(checked, key.Str) {
				t.Errorf("%s: %s is not checked", vectors[i].Name, key.Str)
			}
			return true
		})
	}
	return vectors
}

// evidence is the vector's moment. Proof of the end is an input of Classify: the reader of the
// stream finds it, here as in the service.
func (x vector) evidence(t *testing.T) policy.Evidence {
	t.Helper()
	e := policy.Evidence{
		Header:      make(http.Header),
		Body:        []byte(x.Body),
		Transport:   policy.Transport(strings.TrimPrefix(strings.TrimPrefix(x.Transport, "h2_"), "http2_")),
		RequestSent: x.RequestSent,
		ToolStarted: x.ToolStarted,
		Delivered:   x.Delivered > 0,
	}
	if x.Status != nil {
		e.Status = *x.Status
	}
	for name, value := range x.Headers {
		e.Header.Set(name, value)
	}
	if x.BodyEncoding == "base64" {
		body, err := base64.StdEncoding.DecodeString(x.Body)
		if err != nil {
			t.Fatal(err)
		}
		e.Body = body
	}
	if e.Status < 200 || e.Status > 299 {
		return e
	}
	end := readEnding(t, dialect(x.Provider), e)
	e.ToolStarted = e.ToolStarted || end.tool
	alive := x.Transport == "open" || x.Transport == "client_gone"
	if alive && (end.proven || end.failure != nil) && x.SilentMS >= x.GraceMS {
		alive = false // the grace after a finish, or after an error, has passed
		e.Transport = policy.EOFClean
	}
	e.Proven = end.final || end.proven && !alive
	e.Refused = e.Proven && end.refused
	return e
}

func (x vector) situation(v policy.Verdict) policy.Situation {
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	return policy.Situation{
		Verdict:       v,
		Kind:          x.Kind,
		AttemptsLeft:  x.AttemptsLeft,
		ElapsedLeft:   ms(x.ElapsedLeft),
		CostLeft:      x.CostLeft,
		RetryExpected: ms(x.RetryExpected),
		RetryCost:     x.RetryCost,
		CircuitOpen:   x.Circuit != "closed",
		MaxInlineWait: ms(x.MaxWait),
		Fallback: policy.Alternative{
			Approved:         x.FallbackApproved,
			Healthy:          x.FallbackHealthy,
			IndependentQuota: x.FallbackIndependent,
			Expected:         ms(x.FallbackExpected),
			Cost:             x.FallbackCost,
		},
	}
}

// fromChunk is the class where the caller has kept nothing but the chunk that holds the error.
func (x vector) fromChunk(t *testing.T) policy.Class {
	e := x.evidence(t)
	if e.Status == http.StatusOK {
		if end := readEnding(t, dialect(x.Provider), e); end.failure != nil {
			e.Body = end.failure
		}
	}
	return policy.Classify(e).Class
}

func TestVectors(t *testing.T) {
	for _, x := range vectors(t) {
		t.Run(x.Name, func(t *testing.T) {
			v := policy.Classify(x.evidence(t))
			d := policy.Decide(x.situation(v))
			if v.Class != x.ExpectClass {
				t.Errorf("class %q, want %q", v.Class, x.ExpectClass)
			}
			if d.Action != x.ExpectAction {
				t.Errorf("action %q (%s), want %q", d.Action, d.Why, x.ExpectAction)
			}
			if want := time.Duration(x.ExpectDelay) * time.Millisecond; d.Delay < want {
				t.Errorf("delay %v, want at least %v", d.Delay, want)
			}
			if x.ExpectBilled != nil && (d.Billed == policy.BilledUnknown) != *x.ExpectBilled {
				t.Errorf("billed %q, want unknown: %v", d.Billed, *x.ExpectBilled)
			}
			if c := x.fromChunk(t); c != v.Class {
				t.Errorf("class %q where only the error's chunk is kept", c)
			}
			if t.Failed() {
				t.Logf("%s: %+v", x.Why, v)
			}
		})
	}
}
