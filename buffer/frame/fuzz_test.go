package frame_test

import (
	"bytes"
	"encoding/json"
	"io"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/spool-dev/spool/buffer/frame"
)

var kinds = []frame.Kind{frame.SSE, frame.NDJSON, frame.JSONArray, frame.AWS, frame.Opaque, frame.Whole}

// FuzzScanner holds every framing to its laws (see scan), for any bytes in any reads; and the cuts
// of text framings to a second, simpler way to find them.
func FuzzScanner(f *testing.F) {
	for i, tt := range bodies {
		for k := range kinds {
			f.Add([]byte(strings.Join(tt.chunks, "")+tt.partial), uint8(k), uint64(i), uint16(i*k))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, k uint8, seed uint64, limit uint16) {
		checkCuts(t, data, kinds[int(k)%len(kinds)], seed, int(limit))
	})
}

// checkCuts scans data at once, byte by byte and in reads by chance, which must agree.
func checkCuts(t testing.TB, data []byte, k frame.Kind, seed uint64, limit int) {
	t.Helper()
	atOnce := scan(t, &script{data: data}, k, limit)
	failed := scan(t, &script{data: data, size: byChance(seed), end: errReset, endWith: true}, k, limit)
	if atOnce.err == io.EOF && failed.err != errReset {
		t.Fatalf("ends with %v, want the reader's error", failed.err)
	}
	if k == frame.Opaque {
		return
	}
	wantSame(t, "byte by byte", scan(t, &script{data: data, size: bySize(1)}, k, limit), atOnce)
	wantSame(t, "by chance", scan(t, &script{data: data, size: byChance(seed), endWith: true}, k, limit), atOnce)

	if limit != 0 && limit < len(data) {
		return
	}
	switch k {
	case frame.SSE:
		wantJoined(t, atOnce, splitAfter(data, blankLines(data)))
	case frame.NDJSON:
		wantJoined(t, atOnce, strings.SplitAfter(string(data), "\n"))
	}
}

// wantJoined compares chunks and partial with parts, of which the last may be empty.
func wantJoined(t testing.TB, got outcome, parts []string) {
	t.Helper()
	all := got.chunks
	if got.partial != "" {
		all = append(all, got.partial)
	}
	if parts[len(parts)-1] == "" {
		parts = parts[:len(parts)-1]
	}
	if strings.Join(all, "|") != strings.Join(parts, "|") {
		t.Fatalf("cut into %q, want %q", all, parts)
	}
}

func splitAfter(data []byte, ends []int) []string {
	var parts []string
	from := 0
	for _, end := range append(ends, len(data)) {
		parts = append(parts, string(data[from:end]))
		from = end
	}
	return parts
}

var lineEnds = regexp.MustCompile(`\r\n|\n|\r`)

// blankLines returns where blank lines end: after two line ends that touch, none of them used twice.
func blankLines(data []byte) []int {
	var ends []int
	found := lineEnds.FindAllIndex(data, -1)
	for i := 0; i+1 < len(found); i++ {
		if found[i][1] == found[i+1][0] {
			ends = append(ends, found[i+1][1])
			i++
		}
	}
	return ends
}

// newRand returns a source of chance whose seed is printed.
func newRand(t *testing.T) *rand.Rand {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

func TestScanner_CutsByBytesNotByReads(t *testing.T) {
	rng := newRand(t)
	words := []string{
		"\n", "\r", "\r\n", "\n\n", "data: ", "data:{\"a\":1}", "event: x", ": hb", "[DONE]", " ", "\ufeff", "\xff",
		"[", "]", "{", "}", ",", "\"", "\\", "1", "null", smallestMessage, smallestMessage[:9], strings.Repeat("long", 300),
	}
	for range 2000 {
		var b bytes.Buffer
		for range rng.IntN(30) {
			b.WriteString(words[rng.IntN(len(words))])
		}
		limit := 0
		if rng.IntN(4) == 0 {
			limit = 1 + rng.IntN(200)
		}
		checkCuts(t, b.Bytes(), kinds[rng.IntN(len(kinds))], rng.Uint64(), limit)
	}
}

func TestScanner_PureLFCountIsThatOfDoubleLF(t *testing.T) {
	rng := newRand(t)
	for range 500 {
		b := make([]byte, rng.IntN(60))
		for i := range b {
			b[i] = "\n\n\nab"[rng.IntN(5)]
		}
		terminated := 0
		for _, c := range scan(t, &script{data: b}, frame.SSE, 0).chunks {
			if strings.HasSuffix(c, "\n\n") {
				terminated++
			}
		}
		if want := bytes.Count(b, []byte("\n\n")); terminated != want {
			t.Fatalf("%q: %d terminated chunks, want %d", b, terminated, want)
		}
	}
}

func TestScanner_CutsArraysAtTheirElements(t *testing.T) {
	rng := newRand(t)
	for range 500 {
		var want []string
		chunk := space(rng) + "["
		for i := range rng.IntN(6) {
			if i > 0 {
				want = append(want, chunk)
				chunk = space(rng) + ","
			}
			chunk += space(rng) + element(t, rng, 3)
		}
		want = append(want, chunk+space(rng)+"]")
		if after := space(rng); after != "" {
			want = append(want, after)
		}
		r := &script{data: []byte(strings.Join(want, "")), size: byChance(rng.Uint64())}
		wantSame(t, "array", scan(t, r, frame.JSONArray, 0), outcome{want, "", io.EOF})
	}
}

func space(rng *rand.Rand) string { return " \r\n\t \n"[:rng.IntN(3)*rng.IntN(4)] }

// element is any JSON value, with strings that look like structure.
func element(t *testing.T, rng *rand.Rand, depth int) string {
	pick := rng.IntN(7)
	if depth == 0 {
		pick %= 4
	}
	switch pick {
	case 0:
		return []string{"null", "true", "false"}[rng.IntN(3)]
	case 1:
		return []string{"0", "-1", "2.5e-3"}[rng.IntN(3)]
	case 2, 3:
		s, err := json.Marshal(`a"\],[}{é`[:rng.IntN(8)])
		if err != nil {
			t.Fatal(err)
		}
		return string(s)
	case 4, 5:
		return "{" + `"k]\\":` + element(t, rng, depth-1) + space(rng) + `,"":` + element(t, rng, depth-1) + "}"
	default:
		return "[" + element(t, rng, depth-1) + "," + space(rng) + element(t, rng, depth-1) + "]"
	}
}
