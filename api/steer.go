package api

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/tidwall/gjson"

	"github.com/spool-dev/spool/api/wire"
	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/buffer/policy"
)

const (
	maxKey     = 255 // characters of an idempotency key
	maxTags    = 8
	maxTagName = 64  // characters
	maxTag     = 256 // characters of a tag's value

	maxRetryCount = 1000 // of an SDK: beyond it the header is no count

	defaultAttempts = 3
	maxAttempts     = 100 // of a budget, and
	maxCost         = 1e9 // US dollars: what is beyond them is a slip, not a budget

	minHeartbeat = 100 * time.Millisecond // a shorter one would be most of what is sent
)

// once are the headers of which a second line would say another thing.
var once = []string{
	wire.HeaderRunID, wire.HeaderOperation, wire.HeaderKind, wire.HeaderOnDisconnect, wire.HeaderTTL,
	wire.HeaderBudget, wire.HeaderHeartbeat, wire.HeaderMintToken,
}

// steer reads the headers that steer the buffer into the run that the request becomes.
func steer(h http.Header, run *buffer.Run, l Limits) error {
	for _, name := range once {
		if len(h.Values(name)) > 1 {
			return bad(name + " must be given once")
		}
	}
	for _, read := range []func() error{
		func() (err error) { run.Key, err = idempotencyKey(h); return },
		func() (err error) { run.ID, err = runID(h); return },
		func() (err error) { run.Kind, err = kind(h, run.Kind); return },
		func() (err error) { run.OnDisconnect, err = onDisconnect(h); return },
		func() (err error) { run.TTL, err = ttl(h, l); return },
		func() (err error) { run.Tags, err = tags(h); return },
		func() (err error) { run.Budget, err = budget(h); return },
	} {
		if err := read(); err != nil {
			return err
		}
	}
	if run.Operation = h.Get(wire.HeaderOperation); run.Operation == "" {
		run.Operation = run.Key
	}
	if !printable(run.Operation, maxKey) {
		return bad(wire.HeaderOperation + " must be at most 255 printable characters")
	}
	return nil
}

// idempotencyKey reads the key that the headers give; empty for none.
func idempotencyKey(h http.Header) (string, error) { return keyOf(wire.HeaderKey, h[wire.HeaderKey]) }

// keyOf reads a key bare or as a quoted string from the values of the header or parameter with that
// name, of which there may be none.
func keyOf(name string, v []string) (string, error) {
	if len(v) == 0 {
		return "", nil
	}
	key := v[0]
	if len(key) >= 2 && key[0] == '"' && key[len(key)-1] == '"' {
		key = key[1 : len(key)-1]
	}
	if len(v) > 1 || key == "" || !printable(key, maxKey) {
		return "", &fault{code: wire.CodeBadKey, detail: name + " must be 1 to 255 printable characters, given once"}
	}
	return key, nil
}

// printable reports whether s is ASCII that can be seen, or space, and at most max characters.
func printable(s string, max int) bool {
	for _, c := range []byte(s) {
		if c < 0x20 || c > 0x7e {
			return false
		}
	}
	return len(s) <= max
}

func runID(h http.Header) (ulid.ULID, error) {
	v := h.Get(wire.HeaderRunID)
	if v == "" {
		return ulid.ULID{}, nil
	}
	id, err := ulid.ParseStrict(v)
	if err != nil || id == (ulid.ULID{}) {
		return ulid.ULID{}, bad(wire.HeaderRunID + " must be a ULID of 26 characters")
	}
	return id, nil
}

func kind(h http.Header, found policy.Kind) (policy.Kind, error) {
	switch k := policy.Kind(h.Get(wire.HeaderKind)); k {
	case "":
		return found, nil
	case policy.ReadOnly, policy.ServerTools, policy.External:
		return k, nil
	}
	return "", bad(wire.HeaderKind + " must be read_only, server_tools or external")
}

func onDisconnect(h http.Header) (buffer.OnDisconnect, error) {
	v := h.Get(wire.HeaderOnDisconnect)
	switch v {
	case "", "continue":
		return buffer.OnDisconnect{}, nil
	case "cancel":
		return buffer.OnDisconnect{Cancel: true}, nil
	}
	if after, ok := strings.CutPrefix(v, "cancel-after="); ok {
		if d, err := time.ParseDuration(after); err == nil && d > 0 {
			return buffer.OnDisconnect{Cancel: true, After: d}, nil
		}
	}
	return buffer.OnDisconnect{}, bad(wire.HeaderOnDisconnect + " must be continue, cancel, or cancel-after with a duration such as cancel-after=30s")
}

func ttl(h http.Header, l Limits) (time.Duration, error) {
	v := h.Get(wire.HeaderTTL)
	if v == "" {
		return l.TTL, nil
	}
	d, err := time.ParseDuration(v)
	if err != nil || d <= 0 {
		return 0, bad(wire.HeaderTTL + " must be a duration above 0, such as 30m")
	}
	return min(d, l.MaxTTL), nil
}

func tags(h http.Header) (map[string]string, error) {
	out := map[string]string{}
	for _, line := range h[wire.HeaderTag] {
		for pair := range strings.SplitSeq(line, ",") {
			name, value, ok := strings.Cut(strings.TrimSpace(pair), "=")
			if !ok || name == "" || !printable(name, maxTagName) || !printable(value, maxTag) {
				return nil, bad(wire.HeaderTag + " must be name=value pairs, separated by commas")
			}
			if _, twice := out[name]; twice {
				return nil, bad(wire.HeaderTag + " must give each name once")
			}
			out[name] = value
		}
	}
	if len(out) > maxTags {
		return nil, bad(fmt.Sprintf("%s must hold at most %d pairs", wire.HeaderTag, maxTags))
	}
	return out, nil
}

// budget reads attempts, elapsed and cost, any of them; what is not given keeps its default.
func budget(h http.Header) (buffer.Budget, error) {
	b := buffer.Budget{Attempts: defaultAttempts, Elapsed: buffer.DefaultElapsed, Since: time.Now()}
	v := h.Get(wire.HeaderBudget)
	if v == "" {
		return b, nil
	}
	wrong := bad(wire.HeaderBudget + " must be like attempts=3;elapsed=300s;cost=0.05")
	for part := range strings.SplitSeq(v, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		var err error
		switch name {
		case "attempts":
			b.Attempts, err = strconv.Atoi(value)
		case "elapsed":
			b.Elapsed, err = time.ParseDuration(value)
		case "cost":
			b.CostUSD, err = strconv.ParseFloat(value, 64)
		default:
			return b, wrong
		}
		if err != nil {
			return b, wrong
		}
	}
	if b.Attempts < 1 || b.Attempts > maxAttempts || b.Elapsed <= 0 || !(b.CostUSD >= 0 && b.CostUSD < maxCost) {
		return b, wrong
	}
	return b, nil
}

// retryOf reads what SDKs say of themselves when they send a call again. What is not understood is
// not said.
func retryOf(h http.Header) buffer.Retry {
	var r buffer.Retry
	if n, err := strconv.Atoi(h.Get("X-Stainless-Retry-Count")); err == nil && n > 0 && n <= maxRetryCount {
		r.Count = n
	}
	if turn := gjson.Get(h.Get("X-Codex-Turn-Metadata"), "turn_id"); turn.Type == gjson.String && printable(turn.Str, maxKey) {
		r.Turn = turn.Str
	}
	return r
}

// heartbeat reads how often the reader wants to hear that its connection is alive; 0 is never.
func heartbeat(h http.Header, def time.Duration) (time.Duration, error) {
	switch v := h.Get(wire.HeaderHeartbeat); v {
	case "":
		return def, nil
	case "off":
		return 0, nil
	default:
		d, err := time.ParseDuration(v)
		if err != nil || d < minHeartbeat {
			return 0, bad(wire.HeaderHeartbeat + " must be off or a duration of at least 100ms")
		}
		return d, nil
	}
}
