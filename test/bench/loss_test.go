package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/spool-dev/spool/api/wire"
)

// testEvent is one as the scripted provider sends it.
func testEvent(i int) string {
	head := fmt.Sprintf("%s%0*d%s%0*d\"", beforeNumber, numberDigits, i, beforeTime, timeDigits, 1)
	return fmt.Sprintf("%-*s\n\n", eventSize-len("\n\n"), head)
}

// A server that shows a stream once, and has something else to say when its reader comes back.
func TestLoss_CountsHowStreamsEnded(t *testing.T) {
	whole := func(w http.ResponseWriter, events int) {
		for i := range events {
			fmt.Fprint(w, testEvent(i))
		}
		_ = http.NewResponseController(w).Flush() // a recorder of net/http always can
	}
	for _, tt := range []struct {
		name string
		back func(w http.ResponseWriter)
		want loss
	}{
		{"whole", func(w http.ResponseWriter) { whole(w, lossRun); fmt.Fprint(w, doneEvent) }, loss{Seen: 8, Whole: 2}},
		{"cut", func(w http.ResponseWriter) { whole(w, 4); panic(http.ErrAbortHandler) }, loss{Seen: 8, Cut: 2}},
		{"fewer than seen", func(w http.ResponseWriter) { whole(w, 1); panic(http.ErrAbortHandler) }, loss{Seen: 8, Gone: 6, Cut: 2}},
		{"as if whole", func(w http.ResponseWriter) { whole(w, 5) }, loss{Seen: 8, Ended: 2}},
		{"refused", func(w http.ResponseWriter) { w.WriteHeader(http.StatusUnprocessableEntity) }, loss{Seen: 8, Gone: 8, Refused: 2}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var calls atomic.Int64
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet {
					tt.back(w)
					return
				}
				w.Header().Set(wire.HeaderRunID, fmt.Sprint(calls.Add(1)))
				whole(w, 4)
				<-r.Context().Done()
			}))
			defer srv.Close()
			l := loss{Streams: 2}
			if err := l.stage(t.Context(), srv.URL, srv.URL, 0, func() error { srv.CloseClientConnections(); return nil }); err != nil {
				t.Fatal(err)
			}
			if tt.want.Streams = 2; l != tt.want {
				t.Errorf("got %+v, want %+v", l, tt.want)
			}
		})
	}
}
