package fakellm

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"
)

// Parse reads one script, a JSON list of ops. An error names the op by its index, and what is wrong.
func Parse(script []byte) ([]Op, error) {
	var raw []json.RawMessage
	if err := json.Unmarshal(script, &raw); err != nil {
		return nil, fmt.Errorf("script: %w", err)
	}
	return parseOps(raw)
}

// ParseRoutes reads the scripts of several routes: {"primary": [[op, …], …], …}, one list for each
// request in turn.
func ParseRoutes(scripts []byte) (map[string][][]Op, error) {
	var raw map[string][][]json.RawMessage
	if err := json.Unmarshal(scripts, &raw); err != nil {
		return nil, fmt.Errorf("scripts: %w", err)
	}
	routes := make(map[string][][]Op, len(raw))
	for route, answers := range raw {
		parsed, err := parseAnswers(route, answers)
		if err != nil {
			return nil, err
		}
		routes[route] = parsed
	}
	return routes, nil
}

func parseAnswers(route string, raw [][]json.RawMessage) ([][]Op, error) {
	var answers [][]Op
	for i, ops := range raw {
		parsed, err := parseOps(ops)
		if err != nil {
			return nil, fmt.Errorf("%s[%d]: %w", route, i, err)
		}
		answers = append(answers, parsed)
	}
	return answers, nil
}

func parseOps(raw []json.RawMessage) ([]Op, error) {
	ops := make([]Op, 0, len(raw))
	for i, r := range raw {
		op, err := parseOp(r)
		if err != nil {
			return nil, fmt.Errorf("op %d: %w", i, err)
		}
		ops = append(ops, op)
	}
	return ops, nil
}

// written is an op as a script writes it.
type written struct {
	Op      string            `json:"op"`
	Status  int               `json:"status"`
	Headers map[string]values `json:"headers"`
	Framing string            `json:"framing"`
	Body    string            `json:"body"`
	Text    string            `json:"text"`
	MS      int64             `json:"ms"`
	Count   int               `json:"count"`
	EveryMS int64             `json:"every_ms"`
	Size    int               `json:"size"`
}

func parseOp(raw []byte) (Op, error) {
	var w written
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields() // a misspelt "every_ms" would otherwise be a silent 0
	if err := d.Decode(&w); err != nil {
		return Op{}, err
	}
	if w.MS < 0 || w.EveryMS < 0 || w.Count < 0 {
		return Op{}, fmt.Errorf("%s: a time or count below 0", w.Op)
	}
	op := Op{Kind: w.Op}
	switch w.Op {
	case opJSON:
		op.Data = []byte(w.Body)
		return op, op.respond(w)
	case opHead:
		return op, op.respond(w)
	case opData:
		op.Data = []byte(w.Text)
	case opBase64:
		var err error
		if op.Data, err = base64.StdEncoding.DecodeString(w.Text); err != nil {
			return Op{}, fmt.Errorf("data_b64: %w", err)
		}
		op.Kind = opData
	case opSleep, opHang:
		op.Wait = millis(w.MS)
	case opRepeat:
		op.Data, op.Count, op.Wait = []byte(w.Text), w.Count, millis(w.EveryMS)
	case opCut:
		if w.Size < 1 {
			return Op{}, fmt.Errorf("cut: size %d", w.Size)
		}
		op.Data, op.Size, op.Wait = []byte(w.Text), w.Size, millis(w.EveryMS)
	case opEnd, opDone, opFin, opRST:
	default:
		return Op{}, fmt.Errorf("unknown op %q", w.Op)
	}
	return op, nil
}

// respond takes over what json and head have in common.
func (op *Op) respond(w written) error {
	op.Status, op.Framing = w.Status, w.Framing
	if op.Status == 0 {
		op.Status = 200
	}
	if op.Status < 100 || op.Status > 999 {
		return fmt.Errorf("%s: status %d", w.Op, w.Status)
	}
	switch op.Framing {
	case "":
		op.Framing = framingChunked
	case framingChunked, framingClose, framingLength, framingRaw:
	default:
		return fmt.Errorf("%s: unknown framing %q", w.Op, w.Framing)
	}
	op.Headers = make(map[string][]string, len(w.Headers))
	for name, v := range w.Headers {
		op.Headers[name] = v
	}
	return nil
}

// values is a header's value in JSON: a string, or a list where the name comes more than once.
type values []string

// UnmarshalJSON takes both forms.
func (v *values) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*v = values{one}
		return nil
	}
	return json.Unmarshal(b, (*[]string)(v))
}

func millis(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }
