package api

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/oklog/ulid/v2"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/resume"
	"github.com/spool-dev/spool/tail"
)

// givenUp is a client whose stream has ended while a write was under way: net/http may be reading it still.
type givenUp struct {
	http.ResponseWriter
	reading [][]byte
}

func (w *givenUp) Write(b []byte) (int, error) {
	w.reading = append(w.reading, b)
	return 0, errors.New("http2: stream closed")
}

func TestSocket_WhatAFailedWriteHasIsNotWrittenTo(t *testing.T) {
	small := func(c byte) *buffer.Page {
		return &buffer.Page{Chunks: []buffer.Chunk{{Data: []byte{c}}, {Data: []byte{c}}}}
	}
	for range 10 { // the pool may forget
		w := &givenUp{ResponseWriter: httptest.NewRecorder()}
		if (socket{w: w}).writeAll(small('a'), 0) {
			t.Fatal("the write was taken")
		}
		(socket{w: httptest.NewRecorder()}).writeAll(small('b'), 0)
		if got := string(w.reading[0]); got != "aa" {
			t.Fatalf("another answer is in it: %q", got)
		}
	}
}

func TestSocket_WritesTheSameWhereverAPageLies(t *testing.T) {
	data := make([]byte, 3*joinBytes)
	for i := range data {
		data[i] = byte(i % 251)
	}
	page := &buffer.Page{}
	for _, end := range []int{10, 11, 11, 5000, 5000 + joinBytes, len(data) - 1, len(data)} {
		from := len(slices.Concat(datas(page)...))
		page.Chunks = append(page.Chunks, buffer.Chunk{Data: data[from:end]})
	}
	for _, joined := range [][]byte{nil, data} {
		for _, skip := range []int64{0, 1, 10} {
			page.Joined = joined
			w := httptest.NewRecorder()
			if !(socket{w: w}).writeAll(page, skip) || !bytes.Equal(w.Body.Bytes(), data[skip:]) {
				t.Errorf("joined %t, skip %d: %d other bytes", joined != nil, skip, w.Body.Len())
			}
		}
	}
}

func datas(page *buffer.Page) (all [][]byte) {
	for _, c := range page.Chunks {
		all = append(all, c.Data)
	}
	return all
}

// onePage is a run of one chunk, which counts how often its page is given back.
type onePage struct{ back int }

func (l *onePage) Read(context.Context, ulid.ULID, int64, int) (buffer.Page, error) {
	return buffer.Page{
		Run:     buffer.Run{State: buffer.Completed, Head: 1},
		Chunks:  []buffer.Chunk{{End: 1, Data: []byte("x")}},
		Recycle: func() { l.back++ },
	}, nil
}

func (l *onePage) Watch(ulid.ULID) (<-chan struct{}, func()) { return nil, func() {} }

func TestAnswer_GivesItsPageBackWhenItWasWritten(t *testing.T) {
	for _, row := range []struct {
		name string
		w    http.ResponseWriter
		back int
	}{
		{"written", httptest.NewRecorder(), 1},
		{"given up", &givenUp{ResponseWriter: httptest.NewRecorder()}, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			log := &onePage{}
			a := &answer{
				server: &Server{}, w: row.w, r: httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil), sent: true,
				reached: func(int64) {}, tail: &resume.Tail{Cursor: tail.New(log, ulid.Make(), 0)},
			}
			page, err := a.tail.Poll(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if a.deliver(page) != (row.back == 1) {
				t.Error("the answer does not say whether it was taken")
			}
			a.tail.Close()
			if log.back != row.back {
				t.Errorf("given back %d times, want %d", log.back, row.back)
			}
		})
	}
}
