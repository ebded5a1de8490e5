package sdk

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os/exec"
	"strconv"
	"testing"

	"github.com/spool-dev/spool/buffer/frame"
)

// playedRun is a recording as js/positions.mjs is told it.
type playedRun struct {
	Name string  `json:"name"`
	Path string  `json:"path"`
	Ends []int64 `json:"ends"` // where its chunks end
}

// clientPositions has our JavaScript client go on from each position of each recording.
func clientPositions(t *testing.T, r *rig) {
	want := make(map[string]string)
	var runs []playedRun
	for _, rec := range r.recordings {
		if rec.Dialect == "generic" {
			continue // at such paths the provider is asked directly, where no config says otherwise
		}
		header := http.Header{}
		for name, values := range rec.Header {
			header[http.CanonicalHeaderKey(name)] = values
		}
		ends := chunkEnds(t, rec.Body, frame.Detect(header.Get("Content-Type"), true))
		runs = append(runs, playedRun{rec.Name, rec.Path, ends})
		want[rec.Name] = strconv.Itoa(len(ends))
	}
	job, err := json.Marshal(runs)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "node", "positions.mjs", r.spool)
	cmd.Dir, cmd.Stdin = "js", bytes.NewReader(job)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("positions.mjs: %v\n%s", err, out)
	}
	wantTold(t, out, want)
}

func chunkEnds(t *testing.T, body []byte, kind frame.Kind) (ends []int64) {
	t.Helper()
	scanner := frame.NewScanner(bytes.NewReader(body), kind, len(body)+1)
	at := int64(0)
	for {
		chunk, err := scanner.Next()
		if errors.Is(err, io.EOF) {
			return ends
		}
		if err != nil {
			t.Fatal(err)
		}
		at += int64(len(chunk))
		ends = append(ends, at)
	}
}
