package api

import (
	"bytes"
	"encoding/base64"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/buffer/frame"
)

// TestBlocks_LargeChunksGoOutInParts holds the largest chunks against the memory that one may take.
func TestBlocks_LargeChunksGoOutInParts(t *testing.T) {
	for name, c := range map[string]struct {
		kind frame.Kind
		data []byte
		want func(value []byte) bool
	}{
		"line ends, each of which becomes a line": {frame.Whole, bytes.Repeat([]byte("\r"), 1<<20), func(lines []byte) bool {
			return bytes.Equal(lines, bytes.Repeat([]byte("data: \n"), 1<<20+1))
		}},
		"one line": {frame.Whole, bytes.Repeat([]byte("x"), 3*spill), func(lines []byte) bool {
			return bytes.Equal(lines, append([]byte("data: "), append(bytes.Repeat([]byte("x"), 3*spill), '\n')...))
		}},
		"one line of the provider's": {frame.SSE, append([]byte("data: "), append(bytes.Repeat([]byte("x"), 3*spill), "\n\n"...)...), func(lines []byte) bool {
			return bytes.Equal(lines, append([]byte("data: "), append(bytes.Repeat([]byte("x"), 3*spill), '\n')...))
		}},
		"binary": {frame.AWS, bytes.Repeat([]byte{0xff, 0, '\n'}, 2<<20), func(lines []byte) bool {
			text := strings.TrimSuffix(strings.TrimPrefix(string(lines), "event: binary\ndata: "), "\n")
			b, err := base64.StdEncoding.DecodeString(text)
			return err == nil && bytes.Equal(b, bytes.Repeat([]byte{0xff, 0, '\n'}, 2<<20))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var got bytes.Buffer
			b := blocks{out: func(p []byte) bool {
				if len(p) > 2*spill {
					t.Errorf("a write of %d bytes", len(p))
				}
				got.Write(p)
				return true
			}}
			b.chunk("RUN", c.kind, buffer.Chunk{Pos: 7, Data: c.data})
			if !b.send() || cap(b.buf) > keep {
				t.Error("its memory is kept")
			}
			lines, ok := bytes.CutSuffix(got.Bytes(), []byte("id: RUN:7\n\n"))
			if !ok || !c.want(lines) {
				t.Errorf("%d bytes are not the chunk", got.Len())
			}
		})
	}
}

func TestBlocks_WhatAFailedWriteHasIsNotWrittenTo(t *testing.T) {
	w := &givenUp{ResponseWriter: httptest.NewRecorder()}
	b := blocks{out: socket{w: w}.write}
	b.chunk("RUN", frame.SSE, buffer.Chunk{Data: []byte("data: a\n\n")})
	if b.send() {
		t.Fatal("the write was taken")
	}
	want := string(w.reading[0])
	b.chunk("RUN", frame.SSE, buffer.Chunk{Pos: 1, Data: []byte("data: b\n\n")})
	if got := string(w.reading[0]); got != want {
		t.Fatalf("the next block is in it: %q", got)
	}
}

func TestBlocks_AClientThatHasLeft(t *testing.T) {
	calls := 0
	b := blocks{out: func([]byte) bool { calls++; return false }}
	for range 3 {
		b.event("heartbeat", "", nil)
		if b.send() {
			t.Error("it took it")
		}
	}
	if calls != 1 {
		t.Errorf("%d writes to a client that has left", calls)
	}
}
