package frame_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/spool-dev/spool/buffer/frame"
)

var errReset = errors.New("connection reset")

// script is a reader that gives data as it is told to. Zero fields: all at once, then io.EOF.
type script struct {
	data    []byte
	size    func() int // of the next read, at least 0; nil gives what fits
	end     error      // nil is io.EOF
	endWith bool       // the end comes with the last bytes, not after them

	reads int
	given int // bytes
}

func (r *script) Read(p []byte) (int, error) {
	r.reads++
	end := r.end
	if end == nil {
		end = io.EOF
	}
	left := r.data[r.given:]
	if len(left) == 0 {
		return 0, end
	}
	n := len(left)
	if r.size != nil {
		n = min(n, r.size())
	}
	n = copy(p, left[:n])
	r.given += n
	if r.endWith && n == len(left) {
		return n, end
	}
	return n, nil
}

func bySize(n int) func() int { return func() int { return n } }

// byChance gives small reads, now and then an empty one.
func byChance(seed uint64) func() int {
	rng := rand.New(rand.NewPCG(seed, 0))
	return func() int { return rng.IntN(20) }
}

// outcome is all that a scanner gave.
type outcome struct {
	chunks  []string
	partial string
	err     error
}

// scan reads r to its end and checks what holds for every body: Buffered tells the truth, chunks are
// not empty, what was given is never written again, the end is final, and nothing is lost or added.
func scan(t testing.TB, r *script, k frame.Kind, limit int) outcome {
	t.Helper()
	var out outcome
	var given [][]byte
	s := frame.NewScanner(r, k, limit)
	for {
		buffered, before := s.Buffered(), r.reads
		chunk, err := s.Next()
		if buffered != (r.reads == before) {
			t.Fatalf("chunk %d: Buffered said %t, Next made %d reads", len(given), buffered, r.reads-before)
		}
		if err != nil {
			out.err = err
			break
		}
		if len(chunk) == 0 || cap(chunk) != len(chunk) {
			t.Fatalf("chunk %d has %d bytes of %d: want some, and no room behind them", len(given), len(chunk), cap(chunk))
		}
		given = append(given, chunk)
		out.chunks = append(out.chunks, string(chunk))
	}
	out.partial = string(s.Partial())

	for i, chunk := range given {
		if string(chunk) != out.chunks[i] {
			t.Fatalf("chunk %d was written again: %q, was %q", i, chunk, out.chunks[i])
		}
	}
	if _, err := s.Next(); err != out.err || string(s.Partial()) != out.partial {
		t.Fatalf("after the end: %v and partial %q, want %v and %q", err, s.Partial(), out.err, out.partial)
	}
	joined := append(bytes.Join(given, nil), out.partial...)
	if errors.Is(out.err, frame.ErrTooLarge) {
		if !bytes.HasPrefix(r.data[:r.given], joined) || out.partial != "" {
			t.Fatalf("too large: gave %q and partial %q of %q", out.chunks, out.partial, r.data)
		}
	} else if !bytes.Equal(joined, r.data[:r.given]) {
		t.Fatalf("gave %q and partial %q for %q", out.chunks, out.partial, r.data[:r.given])
	}
	return out
}

func wantSame(t testing.TB, what string, got, want outcome) {
	t.Helper()
	if !slices.Equal(got.chunks, want.chunks) || got.err != want.err {
		t.Fatalf("%s:\n got %q, %v\nwant %q, %v", what, got.chunks, got.err, want.chunks, want.err)
	}
	// How far a corrupt stream was read is up to its reads; all else is up to its bytes.
	if got.partial != want.partial && !errors.Is(want.err, frame.ErrCorrupt) {
		t.Fatalf("%s: partial %q, want %q", what, got.partial, want.partial)
	}
}
